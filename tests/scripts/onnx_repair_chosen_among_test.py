"""Parts of a tensor with as many rows as is computed, as experts get their tokens."""

from __future__ import annotations

import pytest
from onnx_repair_chosen_order_test import model, same

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
