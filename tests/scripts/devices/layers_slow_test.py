"""Layers of all kinds, and trained networks, for GPUs: their numbers on drivers that compute on the
CPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gpu_networks import NETWORKS, compiled_fixture, limits_test, numbers_test

REPOSITORY = Path(__file__).resolve().parents[3]
TRAINED = ("squeezenet1_1", "mobilenet_v2_coral", "shufflenet_v1_x0_5_g3",
           "resnet18_kill_the_bits")

pytestmark = pytest.mark.slow


compiled = compiled_fixture(NETWORKS)
test_layers_keep_to_the_limits = limits_test(NETWORKS)
test_numbers = numbers_test(NETWORKS, NETWORKS)


@pytest.mark.parametrize("device", ("opencl", "vulkan"))
@pytest.mark.parametrize("name", TRAINED)
def test_trained_networks(command, tmp_path, name, device):
    path = REPOSITORY / "build" / "zoo" / f"{name}.onnx"
    if not path.exists():
        pytest.skip(f"{path} is not there: scripts/fetch_zoo {name}")
    command("compile_model", str(path), "--target", device, cwd=tmp_path)
    metadata = json.loads((tmp_path / f"artifacts/{name}/{device}/metadata.json").read_text())
    assert metadata["verification"]["done"], metadata["verification"]
