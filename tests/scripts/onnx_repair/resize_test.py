"""Resizing, held to ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from repaired_models import FLOAT, check, model_of, noise, run

from run_model_tools.onnx_repair.repair import repair


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "align_corners", "asymmetric",
                                         "pytorch_half_pixel"])
@pytest.mark.parametrize("out", [(8, 12), (3, 5), (7, 1), (5, 6)])
def test_resizes(mode, coordinates, out):
    model = model_of([helper.make_node("Resize", ["x", "", "", "size"], ["y"], mode=mode,
                                       coordinate_transformation_mode=coordinates)],
                     {"x": (FLOAT, [1, 2, 4, 6])}, {"y": FLOAT}, 18,
                     {"size": np.array([1, 2, *out])})
    check(model, {"x": noise(1, 2, 4, 6)})
    check(model, {"x": noise(1, 2, 4, 6)}, is_open=True)


@pytest.mark.parametrize("scale, rate", [(0.6, 0.7), (1.3, 2.6), (2.0, 2.0)])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_resizes_by_scales_keep_the_scale(mode, scale, rate):
    """Not the quotient of the extents, which rounding makes another one."""
    model = model_of([helper.make_node("Resize", ["x", "", "scales"], ["y"], mode=mode,
                                       antialias=int(scale < 1))],
                     {"x": (FLOAT, [1, 2, 7, 9])}, {"y": FLOAT}, 18,
                     {"scales": np.array([1, 1, scale, rate], np.float32)})
    check(model, {"x": noise(1, 2, 7, 9)})
    check(model, {"x": noise(1, 2, 7, 9)}, is_open=True)


@pytest.mark.parametrize("scale, every", [(1 / 3, 3), (0.2, 5), (0.1, 10)])
def test_the_nearest_elements_are_those_of_float32(scale, every):
    """As PyTorch exports interpolate(scale_factor=1 / 3): 17 / float32(1 / 3) is 51."""
    model = model_of([helper.make_node("Resize", ["x", "", "scales"], ["y"], nearest_mode="floor",
                                       coordinate_transformation_mode="asymmetric")],
                     {"x": (FLOAT, [1, 1, 90, 300])}, {"y": FLOAT}, 18,
                     {"scales": np.array([1, 1, scale, scale], np.float32)})
    x = noise(1, 1, 90, 300)
    for is_open in (False, True):
        made = repair(model, {"x": x.shape}, is_open=is_open)
        np.testing.assert_array_equal(run(made, {"x": x})[0], x[..., ::every, ::every])


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_corners_of_pytorch_are_of_whole_elements(mode):
    """ONNX's reference aligns the last of 4.9 = 7 * 0.7 elements, PyTorch and ONNX Runtime of 4."""
    model = model_of([helper.make_node("Resize", ["x", "", "scales"], ["y"], mode=mode,
                                       coordinate_transformation_mode="align_corners")],
                     {"x": (FLOAT, [1, 2, 7, 9])}, {"y": FLOAT}, 18,
                     {"scales": np.array([1, 1, 0.7, 1.5], np.float32)})
    model.producer_name = "pytorch"
    x = noise(1, 2, 7, 9)
    made = check(model, {"x": x})
    np.testing.assert_array_equal(run(made, {"x": x})[0][..., -1, -1], x[..., -1, -1])
