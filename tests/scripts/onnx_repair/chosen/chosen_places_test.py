"""What is taken and written at places of chosen rows, held to ONNX Runtime."""

from __future__ import annotations

import pytest
from chosen_rows import BEST, CHOSEN, PLACES, model, same
from repaired_models import operators

from run_model_tools.errors import ToolError
from run_model_tools.onnx_repair.repair import repair


@pytest.mark.parametrize("nodes, outputs", [
    (CHOSEN, "c at s z t"),
    (CHOSEN + "y = ReduceSum(c, zero)", "c y"),
    (CHOSEN + """second = Gather<axis = 1>(c, one) f = Reshape(second, minus)
        is = Less(f, none) z2 = NonZero(is) t2 = Transpose<perm = [1, 0]>(z2) a2 = Squeeze(t2, one)
        c2 = Gather(c, a2) back = Gather(at, a2)""", "c2 a2 back"),
    (CHOSEN + """from = Sub(minus, t) y = ScatterND(x, from, c)
        half = Div(t, two) sum = ScatterND<reduction = "add">(x, half, c)
        most = ArgMax<axis = 1, keepdims = 1>(c) v = GatherND<batch_dims = 1>(c, most)
        u = GatherND<batch_dims = 1>(c, most) line = GatherND(flat, from)""", "y sum v u line"),
    (CHOSEN + """wide = Constant<value_ints = [1, 4]>() again = Expand(c, wide)
        from = Sub(minus, t) m = Expand(from, s) y = ScatterElements(x, m, again)
        sum = ScatterElements<axis = 0, reduction = "add">(x, m, c)""", "again y sum"),
    ("f = Gather<axis = 1>(x, zero) n = Sub(f, f) m = Greater(f, n) q = Reshape(m, minus) "
     "c = Compress<axis = 0>(x, q)", "c"),
    ("u = Unsqueeze(x, zero)" + PLACES + "c = Gather<axis = 1>(u, at) y = Squeeze(c, zero)",
     "c y")])
def test_rows_and_their_places(nodes, outputs):
    same(model(nodes, outputs.split()))


def test_functions_of_numbers_leave_rows_apart():
    """The angles of a point cloud's edges among them."""
    names = ("Atan Asinh Sinh Cosh Celu Shrink Softsign HardSwish Mish ThresholdedRelu Acos Asin "
             "Atanh").split()
    few = "halves = Constant<value_float = 0.2>() small = Mul(c, halves) bounded = Tanh(small) "
    nodes = " ".join(f"y{n} = {name}(bounded)" for n, name in enumerate(names))
    same(model(CHOSEN + few + nodes, [f"y{n}" for n in range(len(names))], 18))


@pytest.mark.parametrize("nodes, output", [
    (CHOSEN + """pads = Constant<value_ints = [-1, 0, 0, 0]>() p = Pad(c, pads)
        y = Cast<to = 1>(p)""", "y"),
    (BEST + "rows = Gather(c, order) y = Add(rows, c)", "y"),
    (BEST + "y = Concat<axis = 1>(c, x)", "y"), (CHOSEN + "y = Gather<axis = 1>(c, at)", "y"),
    (CHOSEN + "from = Sub(minus, t) rest = Slice(c, one, end) y = ScatterND(x, from, rest)", "y")])
def test_what_cannot_be_followed_is_refused(nodes, output):
    with pytest.raises(ToolError, match="NonZero, opset 17.: the shape of its result depends"):
        repair(model(nodes, [output]), {}, counts=True)


@pytest.mark.parametrize("update", [
    "u = Neg(d)",
    "i = Cast<to = 7>(good) m = ReduceSum(i) e = Concat<axis = 0>(m, four)"
    "h = Constant<value_float = 0.5>() u = Expand(h, e)",
    "i = Cast<to = 7>(good) m = ReduceSum<keepdims = 0>(i) j = Reshape(m, minus)"
    "e = Concat<axis = 0>(j, four) f = Gather(x, zero) u = Expand(f, e)"])
def test_some_of_the_chosen_rows_are_written(update):
    """As PyTorch exports y = x[a]; y[b] = f(y[b])."""
    nodes = f"""first = Gather<axis = 1>(c, two) of = Reshape(first, minus)
        level = Constant<value_float = 0.3>() good = Less(of, level) p = NonZero(good)
        places = Transpose<perm = [1, 0]>(p) where = Squeeze(places, one) d = Gather(c, where)
        {update} y = ScatterND(c, places, u) w = Mul(y, c)"""
    made = same(model(CHOSEN + nodes, ["y", "w"]))
    assert "ScatterND" not in operators(made)
