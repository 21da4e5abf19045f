"""As many chosen rows as a tensor beside them has, or as a shape says, held to ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from chosen_rows import CHOSEN, ROWS, model
from repaired_models import noise, run

from run_model_tools.compiling.graph_file import with_rows_counted
from run_model_tools.errors import ToolError
from run_model_tools.onnx_repair.repair import counted_outputs, repair

FIVE = CHOSEN + "w = Slice(x, two, seven) count = Concat<axis = 0>(n, four) "
SEVEN = "seven = Constant<value_ints = [7]>() "


def chosen_at(places: list[int]) -> np.ndarray:
    """An input of which the model chooses these rows."""
    x = noise(ROWS, 4)
    x[:, 0] = -np.abs(x[:, 0]) - 0.1
    x[places, 0] *= -1
    return x


@pytest.mark.parametrize("nodes, outputs", [
    ("y = Add(c, w) d = Sub(w, c) m = ReduceSum(y, zero)", "y d m"),
    ("d = Mul(c, w) y = ScatterND(x, t, d)", "y"),
    ("y = ScatterND(x, t, w)", "y"),
    ("e = Expand(w, count) y = ScatterND(x, t, e)", "e y"),
    ("five_rows = Constant<value_ints = [5, 2, 2]>() y = Reshape(c, five_rows)", "y"),
    ("flat_rows = Constant<value_ints = [2, 10]>() y = Reshape(c, flat_rows)", "y"),
    ("v = Transpose<perm = [1, 0]>(w) y = MatMul(v, c)", "y")])
def test_as_many_rows_as_are_known(nodes, outputs):
    """As InternVL puts its pictures among a text: text[is_picture] = text[is_picture] * 0 + p."""
    made = model(SEVEN + FIVE + nodes, outputs.split())
    ours = repair(made, {}, counts=True)
    for places in ([0, 1, 2, 3, 4], [3, 4, 5, 6, 7], [0, 2, 3, 5, 7]):
        x = chosen_at(places)
        have = with_rows_counted(run(ours, {"x": x}), counted_outputs(ours))
        for want, one in zip(run(made, {"x": x}), have, strict=True):
            assert want.shape == one.shape
            np.testing.assert_allclose(one, want, rtol=1e-5, atol=1e-6)
    for places in ([1, 2, 3, 6], [0, 1, 2, 4, 5, 6]):  # ONNX Runtime fails.
        for one in run(ours, {"x": chosen_at(places)})[:len(outputs.split())]:
            assert np.isnan(one).any()


@pytest.mark.parametrize("nodes", [
    "wide = Concat<axis = 0>(x, x) y = Add(c, wide)",
    "b = Less(w, c) y = Where(b, c, c)", "k = Cast<to = 7>(c) j = Cast<to = 7>(w) y = Add(k, j)",
    "many = Constant<value_ints = [9, 4]>() y = Reshape(c, many)"])
def test_what_could_not_say_that_they_are_others_is_refused(nodes):
    with pytest.raises(ToolError, match="NonZero, opset 17.: the shape of its result depends"):
        repair(model(SEVEN + FIVE + nodes, ["y"]), {}, counts=True)


@pytest.mark.parametrize("nodes, outputs", [
    ("last = Gather<axis = 1>(parts, minus) ends = Gather<axis = 1>(parts, both)"
     "y = Squeeze(last, one)", "y ends"),
    ("y = ReduceMean<axes = [1]>(parts) d = Mul(parts, parts)", "parts y d"),
    ("other = Neg(x) o = Gather(other, at) p = Reshape(o, halves) y = Add(p, parts)"
     "w = Softmax<axis = 1>(y)", "y w")])
def test_rows_divided_equally_among_a_batch(nodes, outputs):
    """As BART takes the last end of each text: x[ids == end].view(batch, -1, size)[:, -1]."""
    made = model(CHOSEN + "halves = Constant<value_ints = [2, -1, 4]>() parts = Reshape(c, halves)"
                 "both = Constant<value_ints = [0, -1]>()" + nodes, outputs.split())
    ours = repair(made, {}, counts=True)
    for places in ([1, 4], [0, 2, 3, 7], [0, 1, 2, 5, 6, 7], [*range(ROWS)]):
        x = chosen_at(places)
        have = with_rows_counted(run(ours, {"x": x}), counted_outputs(ours))
        for want, one in zip(run(made, {"x": x}), have, strict=True):
            assert want.shape == one.shape
            np.testing.assert_allclose(one, want, rtol=1e-5, atol=1e-6)
    for one in run(ours, {"x": chosen_at([0, 2, 3])})[:len(outputs.split())]:
        assert np.isnan(one).any()
