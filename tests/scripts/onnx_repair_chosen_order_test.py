"""Chosen rows as detectors go on with them, and as outputs, held to ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx_repair_test import noise, run

from run_model_tools.compiling.graph_file import with_rows_counted
from run_model_tools.errors import ToolError
from run_model_tools.onnx_repair.repair import counted_outputs, repair

ROWS = 8
CONSTANTS = "".join(f"{name} = Constant<value_ints = {numbers}>() " for name, numbers in {
    "zero": [0], "one": [1], "two": [2], "minus": [-1], "four": [4], "five": [5], "eight": [8],
    "end": [1 << 62], "pair": [-1, 2], "square": [-1, 2, 2]}.items())
PLACES = """scores = Gather<axis = 1>(x, zero) flat = Reshape(scores, minus)
    none = CastLike(zero, flat) keep = Greater(flat, none) z = NonZero(keep)
    t = Transpose<perm = [1, 0]>(z) at = Squeeze(t, one) """
CHOSEN = PLACES + "c = Gather(x, at) s = Shape(c) n = Slice(s, zero, one) "
BEST = CHOSEN + """column = GatherND(flat, t) count = Concat<axis = 0>(five, n)
    k = ReduceMin<keepdims = 1>(count) best, order = TopK(column, k) """


def model(nodes, outputs, opset=17, rows=ROWS):
    made = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}]> g (float[{rows}, 4] x) => (float[1] none) '
        f"{{ {CONSTANTS} {nodes} }}")
    del made.graph.output[:]
    # Which type each has, ONNX infers.
    kinds = {v.name: v.type for v in onnx.shape_inference.infer_shapes(made).graph.value_info}
    for name in outputs:
        made.graph.output.add(name=name, type=kinds[name])
        made.graph.output[-1].type.tensor_type.ClearField("shape")
    return made


def same(made):
    """That both give the same, for some, all and none of the rows; gives the repaired model."""
    ours = repair(made, {}, counts=True)
    counted = counted_outputs(ours)
    shape = [d.dim_value for d in made.graph.input[0].type.tensor_type.shape.dim]
    for seed in range(8):
        x = noise(*shape) if not seed else np.random.default_rng(seed).standard_normal(
            shape).astype(np.float32)
        x = [x, np.abs(x), -np.abs(x)][min(seed, 2)] if seed < 3 else x
        have = with_rows_counted(run(ours, {"x": x}), counted)
        for name, want, one in zip(made.graph.output, run(made, {"x": x}), have, strict=True):
            assert want.shape == one.shape and want.dtype == one.dtype, name.name
            np.testing.assert_allclose(one, want, rtol=1e-5, atol=1e-6)
    return ours


@pytest.mark.parametrize("nodes, outputs", [
    (CHOSEN, "c at s z t"), (CHOSEN + "y = ReduceSum(c, zero)", "c y"),
    (BEST + "rows = Gather(c, order)", "best order rows"),
    (BEST + "rows = Gather(c, order) w = Sigmoid(rows) p = Add(order, one)", "w p"),
    (CHOSEN + """column = GatherND(flat, t) best, order = TopK(column, n) rows = Gather(c, order)
        zeros = Mul(order, minus) ones = Sub(zeros, one) last = Gather(rows, ones)""", "last"),
    (CHOSEN + """column = GatherND(flat, t) zero_ = CastLike(zero, flat) u = Div(column, zero_)
        v = Neg(u) most, first = TopK(v, n) least, same = TopK<largest = 0>(u, n)""",
     "most first least same"),
    (CHOSEN + """second = Gather<axis = 1>(c, one) f = Reshape(second, minus)
        is = Less(f, none) z2 = NonZero(is) t2 = Transpose<perm = [1, 0]>(z2) a2 = Squeeze(t2, one)
        c2 = Gather(c, a2) back = Gather(at, a2)""", "c2 a2 back"),
    (BEST + """rows = Gather(c, order) both = Concat<axis = 0>(c, rows)
        first = Slice(both, zero, five) some = Slice(both, two, five)
        all = Slice(both, zero, end)""", "both first some all"),
    (CHOSEN + """a = Reshape(c, square) b = Reshape(c, minus) p = Reshape(c, pair)
        f = Flatten<axis = 2>(a) w = Unsqueeze(c, zero)""", "a b p f w"),
    (CHOSEN + """zeros = ConstantOfShape(s) h = Slice(x, zero, one) wide = Expand(h, s)
        i = Squeeze(n, zero) from = Squeeze(zero, zero) by = Squeeze(one, zero)
        each = Range(from, i, by)""", "zeros wide each"),
    (CHOSEN + """pads = Constant<value_ints = [1, 0, 2, 0]>() p = Pad(c, pads)
        around = Cast<to = 1>(p)
        first = Gather(around, zero) ends = Concat<axis = 0>(minus, one, zero)
        some = Gather(around, ends) sums = CumSum(c, zero)
        back = CumSum<exclusive = 1, reverse = 1>(c, zero)""", "around first some sums back"),
    (CHOSEN + """from = Sub(minus, t) y = ScatterND(x, from, c)
        half = Div(t, two) sum = ScatterND<reduction = "add">(x, half, c)
        most = ArgMax<axis = 1, keepdims = 1>(c) v = GatherND<batch_dims = 1>(c, most)
        u = GatherND<batch_dims = 1>(c, most) line = GatherND(flat, from)""", "y sum v u line"),
    (CHOSEN + """later = Slice(c, one, end) before = Slice(c, zero, minus) d = Sub(later, before)
        inner = Slice(c, one, minus)""", "before d inner"),
    (CHOSEN + """wide = Constant<value_ints = [1, 4]>() again = Expand(c, wide)
        from = Sub(minus, t) m = Expand(from, s) y = ScatterElements(x, m, again)
        sum = ScatterElements<axis = 0, reduction = "add">(x, m, c)""", "again y sum"),
    (CHOSEN + """left = Slice(c, zero, two, one) right = Slice(c, two, four, one)
        y = Concat<axis = 1>(right, left) l, r = Split<axis = 1>(c)
        best = ArgMax<axis = 1, keepdims = 0>(c)""", "y l r best"),
    (CHOSEN + """a = Reshape(c, square) b = Transpose<perm = [0, 2, 1]>(a)
        pads = Constant<value_ints = [0, 1, 0, 0, 0, 2]>() p = Pad(a, pads)
        q = Cast<to = 1>(p)
        by = Constant<value_floats = [1.0, 2.0, 3.0]>() w = Resize<mode = "nearest">(a, , by)
        r = Cast<to = 1>(w)""",
     "b q r"),
    (CHOSEN + """lack = Sub(eight, n) pads = Concat<axis = 0>(zero, zero, lack, zero)
        y = Pad(c, pads) v = Identity(y)""", "v"),
    ("f = Gather<axis = 1>(x, zero) n = Sub(f, f) m = Greater(f, n) q = Reshape(m, minus) "
     "c = Compress<axis = 0>(x, q)", "c"),
    ("u = Unsqueeze(x, zero)" + PLACES + "c = Gather<axis = 1>(u, at) y = Squeeze(c, zero)",
     "c y")])
def test_rows_and_their_places(nodes, outputs):
    same(model(nodes, outputs.split()))


def test_outputs_of_as_many_rows_share_their_count():
    ours = same(model(BEST + "rows = Gather(c, order)", ["best", "rows", "c", "k"]))
    assert counted_outputs(ours) == [4, 0, 4, 0, 5, 0, -1, 0]
    assert [v.name for v in ours.graph.output][4:] == ["rows of best", "rows of c"]


OF_CLASS = """scores{c} = Gather<axis = 1>(x, class{c}) keep{c} = Greater(scores{c}, least)
    z{c} = NonZero(keep{c}) t{c} = Transpose<perm = [1, 0]>(z{c})
    column{c} = GatherND(scores{c}, t{c}) c{c} = GatherND(x, t{c}) s{c} = Shape(column{c})
    count{c} = Concat<axis = 0>(three, s{c}) k{c} = ReduceMin<keepdims = 1>(count{c})
    best{c}, order{c} = TopK(column{c}, k{c}) rows{c} = Gather(c{c}, order{c})
    each{c} = Shape(best{c}) label{c} = ConstantOfShape<value = int64[1] {{{c}}}>(each{c}) """


@pytest.mark.parametrize("classes", [[0, 1, 2, 3], [3, 1, 0, 2, 1], [2, 0, 1]])
def test_what_is_chosen_class_by_class_is_chosen_at_once(classes):
    """As torchvision's SSD is exported, with a branch for each of 90 classes."""
    nodes = "three = Constant<value_ints = [3]>() least = Constant<value_float = 0.0>() "
    nodes += "".join(
        f"class{c} = Constant<value_int = {c}>() " + OF_CLASS.format(c=c) for c in set(classes))
    nodes += "".join(f"{joined} = Concat<axis = 0>({', '.join(f'{one}{c}' for c in classes)}) "
                     for joined, one in (("b", "best"), ("r", "rows"), ("l", "label")))
    ours = same(model(nodes, "brl", rows=400))
    assert sum(node.op_type == "TopK" for node in ours.graph.node) == (
        1 if len(classes) > 3 else 3)


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


@pytest.mark.parametrize("nodes, output", [
    (CHOSEN + """pads = Constant<value_ints = [-1, 0, 0, 0]>() p = Pad(c, pads)
        y = Cast<to = 1>(p)""", "y"),
    (BEST + "rows = Gather(c, order) y = Add(rows, c)", "y"),
    (BEST + "y = Concat<axis = 1>(c, x)", "y"), (CHOSEN + "y = Gather<axis = 1>(c, at)", "y"),
    (CHOSEN + "from = Sub(minus, t) rest = Slice(c, one, end) y = ScatterND(x, from, rest)", "y")])
def test_what_cannot_be_followed_is_refused(nodes, output):
    with pytest.raises(ToolError, match="NonZero, opset 17.: the shape of its result depends"):
        repair(model(nodes, [output]), {}, counts=True)
