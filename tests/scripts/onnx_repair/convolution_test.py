"""Rules for convolutions and poolings, held to ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from repaired_models import check, matches, noise, one, operators

from run_model_tools.onnx_model import read_model
from run_model_tools.onnx_repair.reference import REPAIRED


@pytest.mark.parametrize("pads, ceil, dilations, count", [
    ([1, 0, 2, 1], 0, [1, 1], 0), ([1, 0, 1, 0], 1, [1, 1], 0), ([0, 0, 0, 0], 1, [1, 1], 0),
    ([1, 1, 1, 1], 0, [2, 1], 1)])
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
def test_poolings(op, pads, ceil, dilations, count):
    attrs = {"count_include_pad": count} if op == "AveragePool" else {}
    matches(op, [noise(1, 2, 10, 8)], opset=19, kernel_shape=[3, 2], strides=[2, 3], pads=pads,
            ceil_mode=ceil, dilations=dilations, **attrs)


@pytest.mark.parametrize("attrs, shape, who", [
    ({"strides": [3, 2]}, (1, 1, 2, 4), REPAIRED),
    ({"strides": [1, 1], "pads": [0, 0, 0, 1]}, (1, 1, 5, 8), REPAIRED),
    ({"strides": [1, 1]}, (1, 1, 5, 8), "onnxruntime")])
def test_windows_that_begin_behind_the_picture_do_not_count(attrs, shape, who,
                                                             tmp_path):
    """ONNX Runtime 1.20 has them in its result; later ones, PyTorch and the definition do not."""
    model, inputs = one("MaxPool", [noise(1, 1, 5, 8)], kernel_shape=[1, 1], ceil_mode=1, **attrs)
    onnx.save(model, str(tmp_path / "pool.onnx"))
    (have,), by = read_model(tmp_path / "pool.onnx").run_by(inputs)
    rows, columns = attrs["strides"]
    assert (have.shape, by) == (shape, who)
    np.testing.assert_array_equal(have, inputs["i0"][..., ::rows, ::columns])


@pytest.mark.parametrize("attrs, last", [
    ({}, 7.5), ({"pads": [1, 1]}, 4.0), ({"dilations": [2]}, 6.0),
    ({"pads": [0, 1], "auto_pad": "NOTSET"}, 5.0)])
def test_what_rounding_up_adds_counts_for_no_mean(attrs, last, tmp_path):
    """By hand, as PyTorch and ONNX Runtime 1.21; 1.20 divides by the whole window."""
    row = np.arange(1, 9, dtype=np.float32).reshape(1, 1, 8)
    model, inputs = one("AveragePool", [row], opset=19, kernel_shape=[3], strides=[2], ceil_mode=1,
                        count_include_pad=1, **attrs)
    onnx.save(model, str(tmp_path / "pool.onnx"))
    (have,), by = read_model(tmp_path / "pool.onnx").run_by(inputs)
    assert (by, have[0, 0, -1]) == (REPAIRED, last)


@pytest.mark.parametrize("attrs, passes", [
    ({"kernel_shape": [9, 9], "pads": [4] * 4}, 2),
    ({"kernel_shape": [1, 16], "strides": [2, 1]}, 1),
    ({"kernel_shape": [7, 6], "strides": [2, 1], "dilations": [1, 2], "pads": [2, 0, 1, 3],
      "ceil_mode": 1}, 2),
    ({"kernel_shape": [6, 6], "strides": [3, 2], "auto_pad": "SAME_LOWER"}, 2),
    ({"kernel_shape": [4, 4], "strides": [4, 4]}, 1)])
def test_large_maxima_are_found_axis_by_axis(attrs, passes):
    x = noise(2, 1, 19, 17)
    x[1, 0, 5, 6:9] = np.inf, -np.inf, -1e30
    made = check(*one("MaxPool", [x], **attrs))
    assert operators(made).count("MaxPool") == passes


def test_places_of_maxima():
    for order in (0, 1):
        matches("MaxPool", [noise(2, 2, 7, 6)], outputs=2, kernel_shape=[3, 3], strides=[2, 2],
                pads=[1, 1, 1, 1], storage_order=order)


@pytest.mark.parametrize("attrs", [
    {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]},
    {"strides": [2, 3], "output_shape": [10, 12]}, {"strides": [2, 2], "auto_pad": "SAME_UPPER"},
    {"dilations": [2, 2]}, {"strides": [3, 3], "pads": [0, 1, 2, 0], "group": 2},
    {"strides": [2, 2], "dilations": [2, 3], "output_padding": [1, 1], "pads": [4, 0, 1, 5]}])
@pytest.mark.parametrize("channels", [3, 5])
def test_transposed_convolutions(attrs, channels):
    matches("ConvTranspose", [noise(2, 4, 5, 4), noise(4, channels, 3, 3), noise(
        channels * attrs.get("group", 1))], constants=(1, 2), **attrs)


@pytest.mark.parametrize("channels, operator", [(1, "Conv"), (4, "Conv"), (5, "ConvTranspose")])
@pytest.mark.parametrize("size, attrs", [
    (16, {"strides": [8]}), (3, {"strides": [4], "pads": [1, 2], "output_padding": [3]}),
    (5, {"strides": [2], "output_shape": [27]})])
def test_transposed_convolutions_to_few_channels(channels, operator, size, attrs):
    """Make all elements of a cell as channels, which a kernel has in one block."""
    made = matches("ConvTranspose", [noise(1, 6, 9), noise(6, channels, size)], constants=(1,),
                   **attrs)
    assert operator in {node.op_type for node in made.graph.node}


def test_transposed_convolutions_in_groups_along_three_axes():
    """Each is one of its own, since TVM has none with groups."""
    model, inputs = one("ConvTranspose", [noise(1, 4, 3, 4, 5), noise(4, 3, 3, 2, 2), noise(6)],
                        constants=(1, 2), group=2, strides=[2, 1, 2], pads=[1, 0, 0, 0, 1, 0])
    made = check(model, inputs)
    assert all(a.i == 1 for node in made.graph.node if node.op_type == "ConvTranspose"
               for a in node.attribute if a.name == "group")


@pytest.mark.parametrize("attrs, planes", [
    ({"pads": [1, 1, 0, 2, 1, 1], "strides": [2, 1, 2]}, True), ({"dilations": [2, 1, 2]}, True),
    ({"auto_pad": "SAME_UPPER", "strides": [1, 2, 1]}, True), ({"group": 2}, True),
    ({"pads": [40, 0, 0, 40, 0, 0], "kernel_shape": [9, 1, 1]}, False)])
def test_convolutions_along_three_axes_are_of_planes(attrs, planes):
    """But where that copies the input more than eight times."""
    kernel = attrs.get("kernel_shape", [3, 2, 3])
    arrays = [noise(2, 4, 9, 6, 7), noise(6, 4 // attrs.get("group", 1), *kernel), noise(6)]
    made = matches("Conv", arrays, constants=(1, 2), **attrs)
    kernels = [a.ints for node in made.graph.node if node.op_type == "Conv"
               for a in node.attribute if a.name == "kernel_shape"]
    assert {len(kernel) for kernel in kernels} == {2 if planes else 3}
    # Groups have one for each plane of the window.
    assert len(kernels) == (3 if attrs.get("group") else 1)
