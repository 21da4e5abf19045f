"""Parts of a tensor with as many rows as is computed, as experts get their tokens; what is done to
each of chosen rows alone; and some of them, again and at the end."""

from __future__ import annotations

import numpy as np
import pytest
from chosen_rows import CHOSEN, model, same
from repaired_models import noise, run

from run_model_tools.compiling.graph_file import with_rows_counted
from run_model_tools.onnx_repair.repair import counted_outputs, repair

SIZES = """scores = Gather<axis = 1>(x, zero) flat = Reshape(scores, minus)
    half = Constant<value_floats = [0.5]>() high = Greater(flat, half) low_ = Neg(half)
    low = Less(flat, low_) h = Cast<to = 7>(high) l = Cast<to = 7>(low) a = ReduceSum(h)
    b_ = ReduceSum(l) few = Sub(eight, a) rest = Sub(few, b_)
    sizes = Concat<axis = 0>(a, rest, b_) p, q, r = Split<axis = 0>(x, sizes) two_ = Neg(q) """


@pytest.mark.parametrize("nodes, outputs", [
    ("y = Concat<axis = 0>(p, two_, r)", "y"),
    ("wide = ReduceSum(q, one) s = Sigmoid(p) y = Concat<axis = 0>(r, s)", "wide y"),
    ("""wp = Concat<axis = 1>(p, p) wq = Concat<axis = 1>(q, two_) wr = Concat<axis = 1>(r, r)
     whole = Concat<axis = 0>(wp, wq, wr) y = Softmax<axis = 0>(whole)""", "y")])
def test_parts_of_as_many_rows_as_is_computed(nodes, outputs):
    same(model(SIZES + nodes, outputs.split()))


def test_all_of_them_are_as_many_rows_as_were_divided():
    made = same(model(SIZES + "y = Concat<axis = 0>(p, two_, r)", ["y"]))
    assert [d.dim_value for d in made.graph.output[0].type.tensor_type.shape.dim] == [8, 4]


@pytest.mark.parametrize("nodes", [
    "v = CumSum(c, one)", "r = Constant<value_ints = [1, 2]>() v = Tile(c, r)",
    """am = ArgMax<axis = 1>(c) most = GatherElements<axis = 1>(c, am) less = Neg(most)
    v = ScatterElements<axis = 1>(c, am, less)""",
    "v = LpNormalization<axis = 1>(c)", "v = Hardmax<axis = 1>(c)",
    """some = Constant<value_floats = [1.0, 2.0, 3.0, 4.0]>()
    v = BatchNormalization(c, some, some, some, some)"""])
def test_what_a_row_becomes_depends_on_no_other(nodes):
    same(model(CHOSEN + nodes, ["v"]))


@pytest.mark.parametrize("nodes", [
    "r = Constant<value_ints = [3, 2]>() v = Tile(c, r)",
    "from = Neg(two) v = Slice(c, from, end, zero)",
    "a = Slice(c, minus, end) b = Slice(c, zero, minus) v = Concat<axis = 0>(a, b)"])
def test_the_last_rows_and_all_again(nodes):
    same(model(CHOSEN + nodes, ["v"]))


@pytest.mark.parametrize("nodes", [
    "best, i = TopK<axis = 1>(c, two) v = Cast<to = 1>(best)",
    """am = ArgMax<axis = 1, keepdims = 0>(c) numbers = Constant<value_floats = [0.5, 2.0]>()
    w = OneHot(am, four, numbers) v = Cast<to = 1>(w)"""])
def test_what_ends_onnx_runtime_where_there_is_no_row(nodes):
    made = model(CHOSEN + nodes, ["v"])
    ours, x = repair(made, {}, counts=True), noise(8, 4)
    have, = with_rows_counted(run(ours, {"x": x}), counted_outputs(ours))
    np.testing.assert_array_equal(have, run(made, {"x": x})[0])
