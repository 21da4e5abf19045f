"""Targets: names, folders and the compilers that link for them."""

import pytest

from run_model_tools.targets import NAMED, find_target


def test_named_targets_keep_their_names():
    for name, text in NAMED.items():
        target = find_target(name)
        assert (target.name, target.tvm) == (name, text)
    assert find_target("native").is_native


def test_other_strings_become_folders():
    target = find_target("llvm -mcpu=skylake -mattr=+avx2,+fma")
    assert target.name == "llvm-mcpu-skylake-mattr-avx2-fma"
    assert target.tvm == "llvm -mcpu=skylake -mattr=+avx2,+fma"
    assert find_target("llvm -mcpu=skylake", "fast").name == "fast"


@pytest.mark.parametrize("target, compiler", [
    ("native", None), ("x86-64-v3", None), ("llvm", None),
    ("aarch64", "aarch64-linux-gnu-g++"), ("armhf", "arm-linux-gnueabihf-g++"),
    ("riscv64", "riscv64-linux-gnu-g++"),
    ("llvm -mtriple=aarch64-unknown-linux-gnu", "aarch64-linux-gnu-g++"),
    ("llvm -mtriple=arm-linux-gnueabi", "arm-linux-gnueabi-g++"),
    ("llvm -mtriple=x86_64-linux-gnu", None),
    ("llvm -mtriple=mips64-linux-gnuabi64", "mips64-linux-gnuabi64-g++")])
def test_compilers(target, compiler):
    assert find_target(target).compiler() == compiler
