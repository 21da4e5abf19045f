"""Targets: the list, names, folders and the compilers that link for them."""

import re

import pytest

from run_model_tools import targets, tvm_process
from run_model_tools.compiling.cpu_features import needed_features
from run_model_tools.errors import USAGE, WRONG_MACHINE, ToolError
from run_model_tools.targets import aliases, find_target, named_devices, named_targets

NAMES = ["native", "x86_64_v2", "x86_64_v3", "x86_64_v4", "raspi4_aarch64", "raspi5_aarch64",
         "raspi_armv7", "pynq_z1", "riscv64", "riscv64_v", "spacemit_k1", "c"]
PRESETS = {"x86_64": ("host", "amd64"), "aarch64": ("aarch64", "arm64"),
           "armv7l": ("armhf", "armhf"), "riscv64": ("riscv64", "riscv64"), None: ("host", None)}


def test_the_list():
    assert list(named_targets()) == NAMES
    for target in named_targets().values():
        assert (target.preset, target.debian) == PRESETS[target.machine]
        # What LLVM may use and nothing could check would be in the list for nothing.
        assert needed_features(target.features, target.machine) in (list(target.features), None)
        if target.emulator:
            assert target.emulator[0].startswith("qemu-") and "-cpu" in target.emulator
        assert bool(target.compiler) == (target.machine not in (None, "x86_64"))


def test_named_targets_keep_their_names():
    for name, listed in named_targets().items():
        target = find_target(name)
        assert (target.name, target.tvm) == (name, listed.tvm)
        # The compiler follows from the string alone, for the strings that people make up.
        assert target.compiler() == listed.compiler
    assert find_target("native").is_native


def test_older_spellings_are_the_same_targets():
    assert set(aliases()) == {"x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64", "armhf"}
    for alias, name in aliases().items():
        assert find_target(alias) == find_target(name)
    assert find_target("aarch64", "board").name == "board"


def test_other_strings_become_folders():
    target = find_target("llvm -mcpu=skylake -mattr=+avx2,+fma")
    assert target.name == "llvm-mcpu-skylake-mattr-avx2-fma"
    assert target.tvm == "llvm -mcpu=skylake -mattr=+avx2,+fma"
    assert find_target("llvm -mcpu=skylake", "fast").name == "fast"


@pytest.mark.parametrize("target, compiler", [
    ("llvm", None), ("llvm -mtriple=aarch64-unknown-linux-gnu", "aarch64-linux-gnu-g++"),
    ("llvm -mtriple=armv8l-linux-gnueabihf", "arm-linux-gnueabihf-g++"),
    ("llvm -mtriple=arm-linux-gnueabi", "arm-linux-gnueabi-g++"),
    ("llvm -mtriple=x86_64-linux-gnu", None),
    ("llvm -mtriple=mips64-linux-gnuabi64", "mips64-linux-gnuabi64-g++")])
def test_compilers(target, compiler):
    assert find_target(target).compiler() == compiler


def test_triples_of_arm_have_a_vendor():
    """Which LLVM wants, or casts of int64 are wrong."""
    for text in [*named_targets(), "llvm -mtriple=armv7l-linux-gnueabihf -mcpu=cortex-a9"]:
        assert not re.search("mtriple=arm[^-]*-linux", find_target(text).tvm)
    assert "=armv7l-unknown-linux-gnueabihf -mcpu" in find_target(text).tvm


def test_another_schema_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "targets.json"
    path.write_text('{"schema_version": 2, "targets": []}')
    monkeypatch.setattr(targets, "TARGETS_FILE", path)
    targets._read_list.cache_clear()
    with pytest.raises(ToolError, match="schema_version 2") as caught:
        targets._read_list()
    assert caught.value.code == WRONG_MACHINE
    targets._read_list.cache_clear()


def test_gpus_have_a_cpu_behind_them():
    for name, device in named_devices().items():
        target = find_target(name)
        assert (target.name, target.device) == (name, device.tvm.split()[0])
        assert target.host == named_targets()[device.host].tvm
        assert target.compiler() == named_targets()[device.host].compiler
    assert {find_target(name).device for name in named_devices()} == set(targets.DEVICE_KINDS)
    assert find_target("cuda-sm_87").needs == {"architecture": "sm_87"}
    orin = find_target("vulkan+raspi5_aarch64")
    assert orin.name == "vulkan+raspi5_aarch64"
    assert orin.compiler() == "aarch64-linux-gnu-g++"
    assert find_target("opencl+x86-64-v3").name == "opencl+x86_64_v3"
    assert find_target("opencl+x86-64-v2").name == "opencl"
    own = find_target("opencl -max_num_threads=64")
    assert (own.device, own.host) == ("opencl", named_targets()["x86_64_v2"].tvm)
    assert find_target("native").device is None


@pytest.mark.parametrize("text, complaint", [
    ("cuda-sm_12", "no GPU target 'cuda-sm_12'"), ("cuda", "no GPU target 'cuda'"),
    ("vulkan+native", "'native' is no CPU"), ("opencl+board", "'board' is no CPU")])
def test_unknown_gpus_are_refused(text, complaint):
    with pytest.raises(ToolError, match=complaint) as caught:
        find_target(text)
    assert caught.value.code == USAGE


def test_a_target_that_nobody_knows_is_told_those_that_there_are():
    error = tvm_process._explain({"kind": "target", "message": "no such kind"}, "python",
                                 {"target": "raspberry"})
    assert error.code == USAGE
    assert "'raspberry'" in str(error) and "raspi4_aarch64" in str(error)


def test_what_the_linker_says_is_told_without_its_command():
    message = "Compilation error:\nld: No space left on device\n\nCommand line: g++ a.o b.o"
    error = tvm_process._explain({"kind": "link", "message": message}, "python", {})
    assert str(error) == ("the library could not be linked: Compilation error:\n"
                          "ld: No space left on device")
