"""Chosen rows along other axes than the first, as detectors of points end, held to ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from chosen_test import model
from repaired_models import noise, run

from run_model_tools.errors import ToolError
from run_model_tools.onnx_repair.repair import counted_outputs, repair

MASKS = [np.arange(12).reshape(3, 4) % n == 0 for n in (1, 2, 5, 20)]
INPUTS = "float[1, 2, 3, 4] x, bool[3, 4] m"
PLACES = """
    all = Constant<value_ints = [-1]>() zero = Constant<value_ints = [0]>()
    one = Constant<value_ints = [1]>() first = Constant<value_int = 0>()
    z = NonZero(m) at = Transpose<perm = [1, 0]>(z) """
TWO_LISTS = """{} r = Squeeze(zr, zero) c = Squeeze(zc, zero)
    width = Constant<value_int = 4>() row = Mul(r, width) place = Add(row, c)
    lines = Constant<value_ints = [2, -1]>() flat = Reshape(x, lines)"""
AHEAD = "both = Constant<value_ints = [0, -2]>() up = Unsqueeze(place, both) "
"""As PyTorch writes scores.unsqueeze(0).unsqueeze(0), which a suppression takes."""
SAMPLES = """
    least = Constant<value_ints = [-9223372036854775807]>()
    flipped = Slice(at, all, least, one, all)
    p = Cast<to = 1>(flipped) lead = Unsqueeze(p, zero)
    scale = Constant<value_floats = [0.6, 0.9]>() half = Mul(lead, scale) moved = Sub(half, scale)
    across = Constant<value_ints = [%s]>() grid = Reshape(moved, across)
    s = GridSample<align_corners = 1>(x, grid) """
NORMALISED = """
    flat = Constant<value_ints = [1, 2, -1]>() d = Reshape(s, flat)
    n = ReduceL2<keepdims = 1>(d, one) shape = Shape(d) wide = Expand(n, shape) unit = Div(d, wide)
    found = Gather(unit, first) """


def same(nodes, masks=MASKS, output="float[] y"):
    """That both give the same for each mask."""
    made = model(nodes, inputs=INPUTS, output=output)
    ours = repair(made, {}, counts=True)
    counted = counted_outputs(ours)
    for mask in masks:
        inputs = {"x": noise(1, 2, 3, 4), "m": mask}
        (want,), (have, *counts) = run(made, inputs), run(ours, inputs)
        for count in counts:
            have = have.take(np.arange(count.item()), counted[1])
        assert want.shape == have.shape and want.dtype == have.dtype
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("lists", [
    "zr, zc = Split(z, even)", "zr, zc = Split<num_outputs = 2>(z)",
    "back = Transpose<perm = [1, 0]>(at) zr = Slice(back, zero, one, zero) "
    "zc = Slice(back, one, two, zero)"])
@pytest.mark.parametrize("found, kind", [
    ("y = Gather<axis = 1>(flat, place)", "float"),
    ("up = Unsqueeze(place, zero) y = Mul(up, up)", "int64"),
    (AHEAD + "y = Mul(up, up)", "int64"),
    (AHEAD + "w = Mul(up, up) y = Squeeze(w, both)", "int64"),
    (AHEAD + "w = Mul(up, up) v = Squeeze(w, zero) y = Squeeze(v, zero)", "int64"),
    ("pair = Concat<axis = 0>(zr, zc) y = Add(pair, pair)", "int64")])
def test_places_as_lists_for_each_axis(lists, found, kind):
    """x[tuple(x.nonzero().t())], as both of PyTorch's exporters write it."""
    ends = "even = Constant<value_ints = [1, 1]>() two = Constant<value_ints = [2]>() "
    same(PLACES + TWO_LISTS.format(ends + lists) + found, output=f"{kind}[] y")


@pytest.mark.parametrize("ahead", ["zero", "one"])
@pytest.mark.parametrize("resized", [
    "scales = Constant<value_floats = [1.0, 1.0, 2.0, 1.5]>() "
    "y = Resize<mode = \"linear\">(p, , scales)",
    "begin = Shape<start = 0, end = 2>(p) sides = Constant<value_ints = [5, 3]>() "
    "sizes = Concat<axis = 0>(begin, sides) y = Resize<mode = \"nearest\">(p, , , sizes)"])
def test_pictures_of_another_size_at_chosen_places(ahead, resized):
    """Masks, which lie along the axis of the channels (masks[None]) or that of the batch."""
    same(PLACES + TWO_LISTS.format("zr, zc = Split<num_outputs = 2>(z)") + f"""
        found = Gather<axis = 1>(flat, place) line = Transpose<perm = [1, 0]>(found)
        picture = Constant<value_ints = [-1, 2, 1]>() q = Reshape(line, picture)
        p = Unsqueeze(q, {ahead}) {resized}""", MASKS[:-1])


@pytest.mark.parametrize("taken", [
    "kept = Transpose<perm = [1, 0]>(z2) y = GatherND(at, kept)",
    "line = Transpose<perm = [1, 0]>(z2) kept = Squeeze(line, one) up = Unsqueeze(kept, all) "
    "y = GatherND(at, up)"])
def test_rows_of_rows(taken):
    """places[far from the edge], of which there may be none."""
    same(PLACES + """column = Constant<value_int = 1>() c = Gather<axis = 1>(at, column)
        edge = Constant<value_int = 2>() inside = Less(c, edge) z2 = NonZero(inside) """ + taken,
         output="int64[] y")


@pytest.mark.parametrize("shape", ["1, 1, -1, 2", "1, -1, 1, 2"])
@pytest.mark.parametrize("end", [
    "y = Identity(s)", NORMALISED + "y = Transpose<perm = [1, 0]>(found)",
    NORMALISED + "y = ReduceMax<keepdims = 0>(unit, one)"])
def test_what_a_picture_has_at_chosen_points(shape, end):
    # ONNX Runtime takes no empty grid.
    same(PLACES + SAMPLES % shape + end, MASKS[:-1] + [np.arange(12).reshape(3, 4) == 7])


WRITTEN = PLACES + """
    p = Cast<to = 1>(at) %s extents = Shape(q) count = Gather(extents, first)
    number = Unsqueeze(count, zero) two = Constant<value_ints = [2]>()
    room = Concat<axis = 0>(one, number, two) x0 = ConstantOfShape(room)
    by = Constant<value_int = 1>() row = Range(first, count, by) %s
    nothing = Unsqueeze(zero, zero) both = Add(nothing, row) wide = Shape(both)
    of = Expand(nothing, wide) which = Expand(own, wide)
    of_ = Unsqueeze(of, all) which_ = Unsqueeze(which, all)
    to = Concat<axis = -1>(of_, which_) rows = Concat<axis = 0>(wide, two) new = Reshape(q, rows)
    y = ScatterND(x0, to, new)"""
ONE_BY_ONE = "own = Identity(row)"


@pytest.mark.parametrize("order", ["q = Identity(p)", """
    weights = Constant<value_floats = [1.0, 0.1]>() heavy = Mul(p, weights)
    s = ReduceSum<keepdims = 0>(heavy, one) most = Constant<value_ints = [3]>()
    v, i = TopK<axis = 0>(s, most) q = Gather(p, i)"""])
def test_rows_are_written_to_a_picture_of_a_batch(order):
    """y = zeros(1, len(q), 2); y[0, :len(q)] = q, as PyTorch writes it."""
    same(WRITTEN % (order, ONE_BY_ONE), MASKS[:3])


def test_rows_that_are_written_in_another_order_are_refused():
    made = model(WRITTEN % ("q = Identity(p)", "last = Sub(count, by) own = Sub(last, row)"),
                 inputs=INPUTS)
    with pytest.raises(ToolError, match="NonZero"):
        repair(made, {}, counts=True)


@pytest.mark.parametrize("end", [
    "r = Constant<value_int = 2>() y = CumSum(d, r)",
    "k = Constant<value_ints = [1, 1, 5]>() y = Expand(d, k)"])
def test_what_mixes_such_rows_is_refused(end):
    nodes = PLACES + SAMPLES % "1, 1, -1, 2" + """
        flat = Constant<value_ints = [1, 2, -1]>() d = Reshape(s, flat) """ + end
    with pytest.raises(ToolError, match="NonZero"):
        repair(model(nodes, inputs=INPUTS), {}, counts=True)


@pytest.mark.parametrize("end", [
    "y = Identity(both)", "y = ReduceMax<keepdims = 0>(both, axes)",
    "back = Transpose<perm = [0, 2, 1]>(both) near = MatMul(known, both) share = Softmax(near) "
    "y = MatMul(share, back)"])
@pytest.mark.parametrize("parts", ["known, d", "d, known", "d, known, d"])
def test_known_rows_and_chosen_ones_behind_each_other(parts, end):
    """What is known beside the words of a mask, as keys of attention."""
    same(PLACES + SAMPLES % "1, 1, -1, 2" + f"""
        axes = Constant<value_ints = [2]>() tail = Constant<value_ints = [1, 2, -1]>()
        square = Constant<value_ints = [1, 2, 12]>() d = Reshape(s, tail)
        few = Reshape(x, square) two = Constant<value_ints = [2]>()
        known = Slice(few, zero, two, two) both = Concat<axis = 2>({parts}) {end}""")
