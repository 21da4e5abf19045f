"""More or fewer rows than were chosen, and shapes of as many, held to ONNX Runtime."""

from __future__ import annotations

import pytest
from chosen_rows import BEST, CHOSEN, model, same

from run_model_tools.errors import ToolError
from run_model_tools.onnx_repair.repair import repair


@pytest.mark.parametrize("nodes, outputs", [
    (BEST + """rows = Gather(c, order) both = Concat<axis = 0>(c, rows)
        first = Slice(both, zero, five) some = Slice(both, two, five)
        all = Slice(both, zero, end)""", "both first some all"),
    (CHOSEN + """pads = Constant<value_ints = [1, 0, 2, 0]>() p = Pad(c, pads)
        around = Cast<to = 1>(p)
        first = Gather(around, zero) ends = Concat<axis = 0>(minus, one, zero)
        some = Gather(around, ends) sums = CumSum(c, zero)
        back = CumSum<exclusive = 1, reverse = 1>(c, zero)""", "around first some sums back"),
    (CHOSEN + """later = Slice(c, one, end) before = Slice(c, zero, minus) d = Sub(later, before)
        inner = Slice(c, one, minus)""", "before d inner"),
    (CHOSEN + """begins = Constant<value_ints = [0, 1]>() axes = Constant<value_ints = [0, 1]>()
        ends = Concat<axis = 0>(n, minus)
        some = Slice(c, begins, ends, axes) all = Slice(c, begins, ends)
        later = Constant<value_ints = [-3, 1]>() turned = Constant<value_ints = [1, 0]>()
        far = Concat<axis = 0>(end, end) those = Slice(c, later, far, turned)
        whole = Concat<axis = 0>(n, four) zeros = Constant<value_ints = [0, 0]>()
        every = Slice(c, zeros, whole)""",
     "some all those every"),
    (CHOSEN + """shape = Constant<value_ints = [8, 4]>()
        wide = ScatterElements(shape, zero, n) p = Unsqueeze(at, one) i = Expand(p, wide)
        v = Neg(c) y = ScatterElements<axis = -2>(x, i, v)""", "i y"),
    (CHOSEN + """lack = Sub(eight, n) pads = Concat<axis = 0>(zero, zero, lack, zero)
        y = Pad(c, pads) v = Identity(y)""", "v"),
    # As Ultralytics' detectors with suppression inside fill up their boxes.
    (CHOSEN + """lack = Sub(eight, n) numbers = Mul(lack, four)
        pads = Concat<axis = 0>(zero, numbers) all = Reshape(c, minus) p = Pad(all, pads)
        shape = Constant<value_ints = [8, 4]>() y = Reshape(p, shape) more = Mul(four, n)
        ones = Expand(one, more) v = Mul(ones, ones)""", "y v")])
def test_more_and_fewer_rows(nodes, outputs):
    same(model(nodes, outputs.split()))


COUNTED = """more = Slice(x, zero, five) many = Add(n, five) twice = Add(n, n)
    wide = Concat<axis = 0>(many, four) half = Constant<value_float = 0.5>() """


@pytest.mark.parametrize("nodes, outputs", [
    ("both = Concat<axis = 0>(c, more) ones = Expand(half, wide) y = Mul(both, ones)", "ones y"),
    ("ones = Expand(half, wide) both = Concat<axis = 0>(c, more) y = Mul(both, ones)", "y"),
    ("both = Concat<axis = 0>(more, c) ones = Expand(half, wide) y = Mul(both, ones)", "y"),
    ("e = Expand(half, many) w = Concat<axis = 0>(twice, four) both = Concat<axis = 0>(c, c)"
     "y = Expand(half, w) v = Add(both, y)", "e v"),
    ("""m = Mul(x, x) k = Constant<value_ints = [0, 1, 0, 2, 1]>() a = Concat<axis = 0>(at, k)
     v = Concat<axis = 0>(c, more) p = Unsqueeze(a, one) i = Expand(p, wide)
     y = ScatterElements<axis = 0, reduction = "add">(m, i, v)""", "y")])
def test_extents_that_are_sums_of_numbers_of_rows(nodes, outputs):
    """As a graph's edges with a loop at each node are exported."""
    same(model(CHOSEN + COUNTED + nodes, outputs.split()))


@pytest.mark.parametrize("nodes, outputs", [
    (CHOSEN + """a = Reshape(c, square) b = Reshape(c, minus) p = Reshape(c, pair)
        f = Flatten<axis = 2>(a) w = Unsqueeze(c, zero)""", "a b p f w"),
    (CHOSEN + """zeros = ConstantOfShape(s) h = Slice(x, zero, one) wide = Expand(h, s)
        i = Squeeze(n, zero) from = Squeeze(zero, zero) by = Squeeze(one, zero)
        each = Range(from, i, by)""", "zeros wide each"),
    (CHOSEN + """left = Slice(c, zero, two, one) right = Slice(c, two, four, one)
        y = Concat<axis = 1>(right, left) l, r = Split<axis = 1>(c)
        best = ArgMax<axis = 1, keepdims = 0>(c)""", "y l r best"),
    (CHOSEN + """a = Reshape(c, square) b = Transpose<perm = [0, 2, 1]>(a)
        pads = Constant<value_ints = [0, 1, 0, 0, 0, 2]>() p = Pad(a, pads)
        q = Cast<to = 1>(p)
        by = Constant<value_floats = [1.0, 2.0, 3.0]>() w = Resize<mode = "nearest">(a, , by)
        r = Cast<to = 1>(w)""",
     "b q r")])
def test_as_many_rows_in_other_shapes(nodes, outputs):
    same(model(nodes, outputs.split()))


IF_EMPTY = BEST + """rows = Gather(c, order) shape = Shape(rows)
    product = ReduceProd<keepdims = 0>(shape) nothing = Squeeze(zero, zero)
    is_empty = Equal(product, nothing)
    which = If (is_empty) <then_branch = t () => (int64[0] e) {{ e = Slice(zero, one, one) }},
        else_branch = f () => (int64[] found) {{ {found} }}>
    y = Gather({of}, which)"""


def test_a_branch_for_no_rows():
    """As torchvision's batched_nms is exported."""
    found = "z3 = NonZero(best) t3 = Transpose(z3) found = Squeeze(t3, one)"
    same(model(IF_EMPTY.format(found=found, of="rows"), ["y"]))
    with pytest.raises(ToolError, match="they have different shapes|depends on the values"):
        repair(model(IF_EMPTY.format(found="found = Identity(five)", of="x"), ["y"]), {},
               counts=True)
