"""Loops with an iteration for each of some chosen rows, whose tensors may have other extents each
time: held to ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from chosen_rows import CHOSEN, model, same
from tvm_outputs import compiled_outputs, same_as_onnxruntime

from run_model_tools.errors import ToolError
from run_model_tools.onnx_repair.repair import repair
from small_networks import network

CONSTANTS = "".join(f"{name} = Constant<value_ints = {numbers}>() " for name, numbers in {
    "six": [6], "seven": [7], "empty": [0, 6, 7], "tile": [1, 1, 2, 2], "both": [0, 1],
    "none_": [0]}.items())
LOOP = CONSTANTS + """many = Squeeze(n, zero) list = ConstantOfShape(empty)
    y = Loop(many, , list) <body = b (int64 i, bool go, float[k, 6, 7] before) => (
        bool on, float[m, 6, 7] after) {{ on = Identity(go) row = Gather(c, i) {body}
        one_more = Unsqueeze(picture, none_) after = Concat<axis = 0>(before, one_more) }}>"""
# As torchvision puts masks into the picture, which here may lie outside.
PASTED = """factor = Constant<value_float = 3.0>() large = Mul(row, factor)
    whole = Cast<to = 7>(large)
    left = Slice(whole, zero, one) top = Slice(whole, one, two)
    lengths = Slice(whole, two, four) lengths_ = Abs(lengths) sides = Add(lengths_, one)
    h = Slice(sides, zero, one) w = Slice(sides, one, two)
    mask = Reshape(row, tile) sizes = Concat<axis = 0>(one, one, sides)
    wide = Resize<mode = "{mode}", coordinate_transformation_mode = "{coordinates}"{more}>(
        mask, , , sizes)
    plain = Squeeze(wide, both)
    x0 = Max(left, zero) right = Add(left, w) x1 = Min(right, seven)
    y0 = Max(top, zero) bottom = Add(top, h) y1 = Min(bottom, six)
    y_from = Sub(y0, top) y_to = Sub(y1, top) lines = Slice(plain, y_from, y_to, zero, one)
    x_from = Sub(x0, left) x_to = Sub(x1, left) part = Slice(lines, x_from, x_to, one)
    shape = Shape(part) width = Slice(shape, one, two)
    above_ = Concat<axis = 0>(y0, width) above = ConstantOfShape(above_)
    rest_y = Sub(six, y1) below_ = Concat<axis = 0>(rest_y, width) below = ConstantOfShape(below_)
    high = Concat<axis = 0>(above, part, below) column = Slice(high, zero, six, zero)
    before_ = Concat<axis = 0>(six, x0) ahead = ConstantOfShape(before_)
    rest_x = Sub(seven, x1) after_ = Concat<axis = 0>(six, rest_x) behind = ConstantOfShape(after_)
    all = Concat<axis = 1>(ahead, column, behind) picture = Slice(all, zero, seven, one)"""


@pytest.mark.parametrize("mode, coordinates, more", [
    ("linear", "half_pixel", ""), ("cubic", "half_pixel", ", cubic_coeff_a = -0.5"),
    ("linear", "align_corners", ""), ("nearest", "asymmetric", ', nearest_mode = "floor"')])
def test_masks_are_put_into_a_picture(mode, coordinates, more):
    body = PASTED.format(mode=mode, coordinates=coordinates, more=more)
    ours = same(model(CHOSEN + LOOP.format(body=body), ["y"]))
    assert not any(node.op_type == "Loop" for node in ours.graph.node)


@pytest.mark.parametrize("body", [
    # Iterations depend on each other, on how many there were, and a row is of no known length.
    "last = Gather(before, none_) s_ = ReduceSum<keepdims = 0>(last) shape = Constant<value_ints = "
    "[6, 7]>() p = Expand(s_, shape) picture = Identity(p)",
    "shape = Constant<value_ints = [6, 7]>() f = Cast<to = 1>(i) picture = Expand(f, shape)",
    PASTED.format(mode="cubic", coordinates="half_pixel", more=", exclude_outside = 1"),
    PASTED.format(mode="linear", coordinates="half_pixel", more="").replace(
        "ConstantOfShape(below_)", "ConstantOfShape<value = float[1] {1.0}>(below_)")])
def test_other_loops_are_refused(body):
    with pytest.raises(ToolError, match="NonZero, opset 17.: the shape of its result depends"):
        repair(model(CHOSEN + LOOP.format(body=body), ["y"]), {}, counts=True)


#: Resize's attributes.
RESIZES = {"cubic": 'mode = "cubic", cubic_coeff_a = -0.75', "linear": 'mode = "linear"',
           "pytorch": 'mode = "cubic", coordinate_transformation_mode = "pytorch_half_pixel"'}


def largest_of_resized(resize: str) -> onnx.ModelProto:
    """As torchvision finds points, with the place and the number there."""
    return network(f"""(float[5, 2, 3, 4] x, int64[5, 2] sizes) => (
            int64[n, 2] places, float[n, 2] best) {{
        one = ReduceMax<axes = [1, 2, 3], keepdims = 0>(x)
        keep = Greater(one, least)
        planes = Compress<axis = 0>(x, keep) sides = Compress<axis = 0>(sizes, keep)
        shape = Shape(planes) n = Gather(shape, none) p = ConstantOfShape<value = int64[1] {{0}}>(
            empty) b = ConstantOfShape(empty)
        places, best = Loop(n, yes, p, b) <body = b (int64 i, bool go, int64[k, 2] places_before,
                float[k, 2] before) => (bool on, int64[m, 2] places_after, float[m, 2] after) {{
            on = Identity(go)
            plane = Gather(planes, i) size = Gather(sides, i) each = Unsqueeze(plane, zero)
            shape_ = Constant<value_ints = [1, 2]>() to = Concat<axis = 0>(shape_, size)
            large = Resize<{resize}>(each, , , to) map = Squeeze(large, zero)
            flat = Reshape(map, two) place = ArgMax<axis = 1, keepdims = 0>(flat)
            w = Gather(size, one_) column = Mod(place, w) begin = Sub(place, column)
            line = Div(begin, w) of_lines = Gather<axis = 1>(map, line)
            of_columns = Gather<axis = 2>(of_lines, column) all = Reshape(of_columns, minus)
            number = Gather(all, mine)
            places_row = Unsqueeze(place, zero) row = Unsqueeze(number, zero)
            places_after = Concat<axis = 0>(places_before, places_row)
            after = Concat<axis = 0>(before, row) }}>
    }}""", {"least": np.float32(2), "none": 0, "one_": 1, "zero": [0], "minus": [-1],
            "two": [2, -1], "empty": [0, 2], "mine": [0, 7], "yes": np.bool_(True)}, 17)


def test_the_largest_element_of_each_resized_plane(tmp_path):
    x = np.random.default_rng(8).integers(-3, 2, (5, 2, 3, 4)).astype(np.float32)
    x[:4, :, 1, 1:3] = 4  # Of equal ones the first.
    sizes = np.array([[3, 4], [200, 130], [1, 1], [7, 64], [5, 5]])
    compiled_outputs(tmp_path, {name: (largest_of_resized(resize), [{"x": x, "sizes": sizes}])
                                for name, resize in RESIZES.items()})
    for name in RESIZES:
        places, _ = same_as_onnxruntime(tmp_path / name, 1e-5)
        assert len(places) == 4 and places[0].tolist() == [5, 5]
