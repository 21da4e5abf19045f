"""Pictures sampled at computed places, as TVM compiles them for CPUs, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
from tvm_outputs import Inputs, compiled_outputs, same_as_onnxruntime

from small_networks import network

GRIDS = """
    linear = GridSample<mode = "linear">(pictures, grid)
    nearest = GridSample<mode = "nearest", padding_mode = "border">(pictures, grid)
    cubic = GridSample<mode = "cubic", padding_mode = "reflection">(pictures, grid)
    volume = GridSample<mode = "linear", align_corners = 1>(volumes, points)
    many = GridSample<mode = "cubic">(pictures, dense)
"""
OUTPUTS = ("linear", "nearest", "cubic", "volume", "many")


def grids() -> tuple[object, list[Inputs]]:
    """Of two pictures, channels that are no multiple of four, more elements a sum than are added at
    once, and more places than are gone through at once; some places lie outside."""
    random = np.random.default_rng(4)
    inputs = {"pictures": random.standard_normal((2, 6, 9, 7)),
              "volumes": random.standard_normal((2, 5, 4, 3, 6)),
              "grid": random.uniform(-1.4, 1.4, (2, 5, 11, 2)),
              "dense": random.uniform(-1.1, 1.1, (2, 30, 40, 2)),
              "points": random.uniform(-1.4, 1.4, (2, 3, 2, 5, 3))}
    inputs = {name: array.astype(np.float32) for name, array in inputs.items()}
    header = ", ".join(f"float{list(array.shape)} {name}" for name, array in inputs.items())
    outputs = ", ".join(f"float[] {name}" for name in OUTPUTS)
    return network(f"({header}) => ({outputs}) {{ {GRIDS} }}", {}, 20), [inputs]


def test_pictures_are_sampled(tmp_path):
    compiled_outputs(tmp_path, {"grids": grids()})
    linear, _, cubic, volume, many = same_as_onnxruntime(tmp_path / "grids", 1e-5)
    assert linear.shape == cubic.shape == (2, 6, 5, 11) and volume.shape == (2, 5, 3, 2, 5)
    assert many.shape == (2, 6, 30, 40)
