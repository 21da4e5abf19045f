"""Small networks for GPUs: right numbers where a driver computes them on the CPU, groups of threads
within the targets' limits, and what cannot be done refused by a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from gpu_networks import TARGETS, check_limits, check_numbers, compile_all

from small_networks import save_classifier

# The others are tried in gpu_layers_slow_test.py.
QUICK = ("conv3x3", "softmax", "index")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gpu")
    compile_all(folder, QUICK)
    return folder


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", QUICK)
def test_layers_keep_to_the_limits(compiled, name, target):
    check_limits(compiled, name, target)


@pytest.mark.parametrize("device", ("opencl", "vulkan"))
@pytest.mark.parametrize("name", QUICK)
def test_numbers(compiled, name, device):
    check_numbers(compiled, name, device)


def test_libraries_are_for_the_cpu_behind(compiled):
    path = compiled / "cuda-sm_53" / "conv3x3" / "model.so"
    assert path.read_bytes()[18:20] == b"\xb7\x00"


@pytest.mark.parametrize("options, complaint", [
    (("--target", "opencl", "--kernels", "ours"), "--kernels ours is not for the target opencl"),
    (("--target", "vulkan", "--compiler", "relax"), "--compiler relax is not for"),
    (("--target", "cuda-sm_80", "--forms", "linked"), "--forms linked is not for"),
    (("--target", "opencl", "--single-file"), "--single-file is not for"),
    (("--target", "cuda-sm_12",), "there is no GPU target 'cuda-sm_12'")])
def test_what_gpus_have_not_is_refused(command, tmp_path, options, complaint):
    save_classifier(tmp_path / "net.onnx")
    result = command("compile_model", "net.onnx", *options, cwd=tmp_path)
    assert result.returncode == 2, result.stderr
    assert complaint in result.stderr
    assert not (tmp_path / "artifacts").exists()
