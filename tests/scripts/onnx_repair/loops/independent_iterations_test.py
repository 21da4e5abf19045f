"""Scans whose iterations know nothing of each other become one computation; others are unrolled."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest
from onnx import numpy_helper
from repaired_models import check, noise

POINTS = 30


def scan(body, state="float[4,3]", taken="float[3]", given="float[4]", attrs=""):
    """y of [4,3] rows `x` and all points, of which each iteration takes one."""
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 18]>
        g (float[4,3] x) => ({state} s, float[N, M] y) {{
            s, y = Scan<num_scan_inputs=1{attrs}, body = b ({state} before, {taken} point)
                => ({state} after, {given} d) {{ {body} }}>(x, points)
        }}""")
    points = noise(POINTS, 3)
    model.graph.initializer.append(numpy_helper.from_array(
        points if "scan_input_axes" not in attrs else points.T.copy(), "points"))
    made = check(model, {"x": noise(4, 3) + 1})
    return len(made.graph.node)


@pytest.mark.parametrize("body", [
    "after = Identity(before) a = Sub(before, point) d = ReduceSumSquare<keepdims=0>(a, last)",
    "after = Identity(before) a = Sub(point, before) b = Abs(a) c = Pow(b, three) "
    "e = ReduceSum<keepdims=0>(c, last) d = Pow(e, third)",
    "after = Identity(before) twice = Mul(before, before) a = Max(twice, point) "
    "b = Cast<to=1>(a) w = Greater(b, point) c = Where(w, b, before) "
    "d = ReduceMax<keepdims=0>(c, first)"])
@pytest.mark.parametrize("attrs", ["", ", scan_output_axes=[1]",
                                   ", scan_input_axes=[1], scan_output_axes=[-1]"])
def test_distances_to_all_points_are_computed_at_once(body, attrs):
    given = "float[3]" if "first" in body else "float[4]"
    body = f"{CONSTANTS} {body}"
    assert scan(body, given=given, attrs=attrs) < 20


CONSTANTS = (
    "last = Constant<value_ints=[-1]>() first = Constant<value_ints=[0]>() "
    "three = Constant<value_float=3.0>() third = Constant<value_float=0.333>()")


@pytest.mark.parametrize("body", [
    "after = Add(before, point) d = ReduceSum<keepdims=0>(after, last)",  # They depend on others.
    "after = Identity(before) a = CumSum(point, zero) b = Add(before, a) "
    "d = ReduceMax<keepdims=0>(b, last)"])
def test_other_iterations_follow_each_other(body):
    zero = "zero = Constant<value_int=0>()"
    assert scan(f"{CONSTANTS} {zero} {body}") > POINTS
