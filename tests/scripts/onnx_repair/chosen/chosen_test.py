"""Rows of which only the run time knows how many there are, held to ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from repaired_models import noise, operators, repaired, run

from run_model_tools.errors import ToolError
from run_model_tools.onnx_repair.repair import repair

MASKS = ([0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1], [0, 1, 0, 0, 1, 1], [1, 0, 0, 0, 0, 0])


def model(nodes, opset=18, inputs="float[2, 3, 4] x, bool[2, 3] m", output="float[] y"):
    made = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}]> g ({inputs}) => ({output}) {{ {nodes} }}')
    made.graph.output[0].type.tensor_type.ClearField("shape")
    return made


def masked(made, masks=MASKS, **more):
    """That both give the same for each mask; gives the repaired model."""
    ours = repaired(made)
    for mask in masks:
        inputs = {"x": noise(2, 3, 4), "m": np.array(mask, bool).reshape(2, 3), **more}
        (want,), (have,) = run(made, inputs), run(ours, inputs)
        assert want.shape == have.shape and want.dtype == have.dtype
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)
    return ours


PLACES = "z = NonZero(m) at = Transpose<perm = [1, 0]>(z) c = GatherND(x, at)"
EVERY = """axis = Constant<value_ints = [-1]>() wide = Unsqueeze(m, axis) shape = Shape(x)
    each = Expand(wide, shape) z2 = NonZero(each) all = Transpose<perm = [1, 0]>(z2)"""
COUNT = """flat_m = Reshape(m, axis) ones = Cast<to = 7>(flat_m)
    none = Constant<value_ints = [0]>() count = ReduceSum(ones, none)"""


@pytest.mark.parametrize("change", [
    "d = Sigmoid(c)", "k = Constant<value_floats = [1.0, 2.0, 3.0, 4.0]>() d = Mul(c, k)",
    "b = Constant<value_float = 0.5>() e = Sub(b, c) d = Max(c, e)",
    "w = Constant<value_floats = [1.0, 2.0, 3.0, 4.0, -1.0, 0.0, 1.0, 2.0, 3.0, 1.0, 0.5, 0.2, 0.1,"
    " 1.0, 0.0, 1.0]>() f = Constant<value_ints = [4, 4]>() v = Reshape(w, f) d = MatMul(c, v)",
    "w = Constant<value_floats = [1.0, 2.0, 3.0, 4.0]>() d = LayerNormalization(c, w)",
    "d = Softmax<axis = -1>(c)",
    "a = Constant<value_ints = [1]>() s = ReduceMax(c, a) d = Sub(c, s)"])
def test_rows_are_changed_where_they_are(change):
    """x[m] = f(x[m]), as both of PyTorch's exporters write it."""
    masked(model(f"{PLACES} {change} y = ScatterND(x, at, d)"))
    masked(model(f"""{PLACES} {change} {EVERY} flat = Reshape(d, axis) zero = Constant<value = int64
        {{0}}>() many = Shape(all) count = Gather(many, zero) none = Constant<value_ints = [0]>()
        end = Unsqueeze(count, none) cut = Slice(flat, none, end, none)
        y = ScatterND(x, all, cut)"""))
    masked(model(f"""{PLACES} {change} {EVERY} {COUNT} rest = Constant<value_ints = [4]>()
        to = Concat<axis = 0>(count, rest) same = Expand(d, to) flat = Reshape(same, axis)
        y = ScatterND(x, all, flat)"""))


def test_what_leads_to_an_assignment_is_one_choice():
    assert operators(masked(model(f"{PLACES} d = Abs(c) y = ScatterND(x, at, d)"))) == [
        "Reshape", "Abs", "Reshape", "Reshape", "Where"]


def test_one_row_is_written_to_all_places():
    masked(model(f"""{EVERY} {COUNT} rest = Constant<value_ints = [4]>()
        to = Concat<axis = 0>(count, rest) rows = Expand(r, to) flat = Reshape(rows, axis)
        y = ScatterND(x, all, flat)""", inputs="float[2, 3, 4] x, bool[2, 3] m, float[4] r"),
        r=noise(4) + 9)


@pytest.mark.parametrize("length, masks", [(24, MASKS), (8, MASKS[::3])])
def test_places_get_the_first_numbers(length, masks):
    """x.masked_scatter(m, s); s may have fewer numbers than x."""
    made = model(f"""{EVERY} many = Shape(all) none = Constant<value_ints = [0]>()
        count = Gather(many, none) first = Slice(s, none, count, none)
        y = ScatterND(x, all, first)""",
        inputs=f"float[2, 3, 4] x, bool[2, 3] m, float[{length}] s")
    ours = masked(made, masks, s=noise(length) + 9)
    if length < 24:
        (have,) = run(ours, {"x": noise(2, 3, 4), "m": np.ones((2, 3), bool), "s": noise(length)})
        assert np.isnan(have).sum() == 24 - length  # ONNX Runtime fails.


@pytest.mark.parametrize("op", ["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare"])
@pytest.mark.parametrize("axes, keepdims", [([0], 0), ([0, 1], 1)])
def test_reductions_over_chosen_rows(op, axes, keepdims):
    """ONNX Runtime 1.20 fails where there is nothing to take the maximum of."""
    masked(model(f"""{PLACES} a = Constant<value_ints = {axes}>()
        y = Reduce{op}<keepdims = {keepdims}>(c, a)"""), MASKS[op == "Max":])


def test_rows_that_are_not_chosen_do_no_harm():
    """Whole numbers are divided by 0 in them, and they are no places of a table."""
    made = model("""z = NonZero(i) at = Transpose<perm = [1, 0]>(z) c = GatherND(i, at)
        t = Constant<value_int = 12>() d = Div(t, c) y = ScatterND(i, at, d)""",
        inputs="int64[6] i", output="int64[6] y")
    made = repaired(made), made
    inputs = {"i": np.array([0, 3, -4, 0, 12, 1])}
    np.testing.assert_array_equal(*(run(m, inputs)[0] for m in made))
    made = model("""c = Compress<axis = 0>(i, m) y = Identity(c)""", inputs="int64[6] i, bool[6] m")
    with pytest.raises(ToolError, match="Compress"):
        repair(made, {})


@pytest.mark.parametrize("nodes", [
    "y = Identity(c)", "s = Shape(c) y = ConstantOfShape(s)", "y = CumSum(c, zero)",
    "y = Concat<axis = 0>(c, c)", "d = Abs(c) y = ScatterND(x, other, d)",
    "y = Add(c, x)"])
def test_what_depends_on_how_many_rows_there_are_is_refused(nodes):
    more = "zero = Constant<value_int = 0>() n = Not(m) zn = NonZero(n) other = Transpose(zn)"
    with pytest.raises(ToolError, match="NonZero, opset 18.: the shape of its result depends"):
        repair(model(f"{PLACES} {more} {nodes}"), {})


BAG = """rows = Gather(w, i) {weighed} some = Slice({of}, start, end)
    a = Constant<value_ints = [0]>() y = Reduce{op}<keepdims = 0>({summed}, a)"""


@pytest.mark.parametrize("op", ["Sum", "Mean", "Min"])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("weighed", ["", "one = Constant<value_ints = [1]>() "
                                         "p2 = Unsqueeze(p, one) weighed = Mul(rows, p2)"])
def test_bags_of_embeddings(op, late, weighed):
    """A part of a table's rows, or rows for a part of the numbers."""
    nodes = BAG.format(weighed=weighed, of="weighed" if weighed else "rows", op=op, summed="some")
    if late and not weighed:
        nodes = BAG.format(weighed="", of="i", op=op, summed="emb").replace(
            "a = Con", "emb = Gather(w, some) a = Con")
    made = model(nodes, inputs="int64[7] i, float[9, 4] w, float[7] p, int64[1] start, "
                               "int64[1] end")
    ours, fixed = repaired(made), {"i": np.array([8, 0, 3, 3, 5, 1, 7]), "w": noise(9, 4),
                                   "p": noise(7)}
    for start, end in ((0, 7), (2, 5), (3, 3), (-4, -1), (5, 1 << 60), (6, 2), (-99, 4)):
        inputs = {**fixed, "start": np.array([start]), "end": np.array([end])}
        (want,), (have,) = run(made, inputs), run(ours, inputs)
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)


def test_parts_of_a_length_that_nobody_knows_are_refused():
    made = model("y = Slice(x, start, end)", inputs="float[7] x, int64[1] start, int64[1] end")
    with pytest.raises(ToolError, match=r"where it starts \('start'\) is known at run time only"):
        repair(made, {})


def bags(body, state="", first="", after=""):
    """A loop over six bags, whose iteration number `at` gives `row` of the numbers from `start` on,
    before `end`."""
    return model(f"""times = Constant<value_int = 6>() go = Constant<value_int = 1>()
        yes = Cast<to = 9>(go) {after} = Loop(times, yes{first}) <body = iteration (int64 at,
        bool c {state}) => ({body[0]}) {{
            none = Constant<value_ints = [0]>() one = Constant<value_int = 1>()
            next = Add(at, one) f = Gather(offsets, at) l = Gather(offsets, next)
            start = Unsqueeze(f, none) end = Unsqueeze(l, none)
            some = Slice(i, start, end, none) emb = Gather(w, some)
            row = ReduceSum<keepdims = 0>(emb, none) d = Identity(c) {body[1]}
        }}>""", inputs="int64[7] i, float[9, 4] w, int64[7] offsets")


@pytest.mark.parametrize("made, count", [
    (bags(("bool d, float[4] row", ""), after="y"), 1),
    (bags(("bool d, float[4] sum, float[4] other", "sum = Add(s, row) other = Mul(row, sum)"),
          ", float[4] s", ", zeros", "last, y"), 6)])
def test_iterations_are_taken_at_once_where_none_needs_another(made, count):
    made.graph.node.insert(0, onnx.parser.parse_node(
        "zeros = Constant<value_floats = [0.0, 0.0, 0.0, 0.0]>()"))
    ours = repaired(made)
    inside = [node for node in ours.graph.node if node.op_type == "ReduceSum"]
    assert len(inside) == count
    for offsets in ([0, 1, 3, 3, 4, 6, 7], [0] * 7, [7, 6, 5, 4, 3, 2, 0]):
        inputs = {"i": np.array([8, 0, 3, 3, 5, 1, 7]), "w": noise(9, 4),
                  "offsets": np.array(offsets)}
        (want,), (have,) = run(made, inputs), run(ours, inputs)
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("last", ["row", "double"])
def test_bags_in_a_sequence(last):
    """As PyTorch's newer exporter writes them, with the last one computed otherwise."""
    nodes = "none = Constant<value_ints = [0]>() "
    for bag in range(6):
        nodes += f"""f{bag} = Constant<value_ints = [{bag}]>() t{bag} = Constant<value_ints = [
            {bag + 1}]>() start{bag} = Slice(offsets, f{bag}, t{bag})
            u{bag} = Constant<value_ints = [{bag + 2}]>() end{bag} = Slice(offsets, t{bag}, u{bag})
            some{bag} = Slice(x, start{bag}, end{bag}) row{bag} = ReduceSum(some{bag}, none) """
    made = model(nodes + f"""double5 = Add(row5, row5) all = SequenceConstruct(row0, row1, row2,
        row3, row4, {last}5) y = ConcatFromSequence<axis = 0>(all)""",
        inputs="float[7, 4] x, int64[7] offsets")
    ours = repaired(made)
    assert operators(ours).count("ReduceSum") == 1 + (last == "double")
    inputs = {"x": noise(7, 4), "offsets": np.array([0, 1, 3, 3, 4, 6, 7])}
    (want,), (have,) = run(made, inputs), run(ours, inputs)
    np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)


LIST = """start = Gather(offsets, zero) end = Gather(offsets, one) go = Less(start, end)
    nothing = Constant<value_ints = [0, 0]>() first = Constant<value_ints = [1]>()
    last = Slice(nothing, first, first)
    places, reached = Loop(any, go, last, start) <body = iteration (
            int64 t, bool c, int64[] list, int64 at) => (bool goes, int64[] filled, int64 after) {{
        index = Gather(i, at) is_less = Less(index, zero)
        known = If (is_less) <then_branch = t () => (int64 up) {{ up = Add(index, nine) }},
                              else_branch = e () => (int64 same) {{ same = Identity(index) }}>
        is_one = Equal(known, five) counts = Not(is_one) minus = Constant<value_ints = [-1]>()
        filled = If ({keeps}) <{then} = t () => (int64[] longer) {{
                           flat = Reshape({what}, minus) longer = Concat<axis = 0>(list, flat) }},
                       {other} = e () => (int64[] as_it_is) {{ as_it_is = Identity(list) }}>
        after = Add(at, one) goes = Less(after, end)
    }}>
    rows = Gather(w, i) count = Size(places) is_empty = Equal(count, zero)
    y = If (is_empty) <then_branch = t () => (float[1, 4] none) {{ none = Constant<value =
                           float[1, 4] {{0.0, 0.0, 0.0, 0.0}}>() }},
                       else_branch = e () => (float[1, 4] sum) {{ some = Gather(rows, places)
                           axis = Constant<value_ints = [0]>() sum = Reduce{op}(some, axis) }}>"""


def listed(op="Sum", keeps="counts", then="then_branch", other="else_branch", what="at"):
    """The sum of those rows from offsets[0] to offsets[1] whose number is not 5."""
    numbers = "".join(f"{name} = Constant<value_int = {number}>() " for name, number in (
        ("any", 0), ("zero", 0), ("one", 1), ("five", 5), ("nine", 9)))
    made = model(numbers + LIST.format(op=op, keeps=keeps, then=then, other=other, what=what),
                 inputs="int64[7] i, float[9, 4] w, int64[2] offsets",
                 output="float[] y, int64 reached")
    next(node for node in made.graph.node if node.op_type == "Loop").input[0] = ""
    return made


@pytest.mark.parametrize("op", ["Sum", "Mean", "Max"])
@pytest.mark.parametrize("how", [("counts", "then_branch", "else_branch"),
                                 ("is_one", "else_branch", "then_branch")])
def test_a_list_that_a_loop_fills(op, how):
    """As PyTorch's newer exporter writes bags of embeddings with a number that does not count."""
    made = listed(op, *how)
    ours = repaired(made)
    assert "Loop" not in operators(ours)
    for offsets in ([0, 7], [2, 5], [3, 3], [4, 2], [1, 2]):
        inputs = {"i": np.array([8, 5, 3, 5, -4, 1, 7]), "w": noise(9, 4),
                  "offsets": np.array(offsets)}
        for want, have in zip(run(made, inputs), run(ours, inputs), strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)


def test_a_list_of_other_things_is_refused():
    with pytest.raises(ToolError, match="whether the loop goes on"):
        repaired(listed(what="known"))
