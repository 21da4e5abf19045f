"""The different rows of a tensor, held to ONNX Runtime."""

from __future__ import annotations

import pytest
from chosen_rows import model, same

from run_model_tools.errors import ToolError
from run_model_tools.onnx_repair.repair import counted_outputs, repair

NUMBERS = """half = Constant<value_ints = [2]>() f = CastLike(half, x) h = Div(x, f)
    r = Round(h) n = Cast<to = 7>(r) narrow = Slice(n, zero, two, one) """


@pytest.mark.parametrize("nodes", [
    "a, b_, c_, d = Unique(r)", "a, b_, c_, d = Unique<sorted = 0>(n)",
    "a, b_, c_, d = Unique<axis = 0>(narrow)",
    "a, b_, c_, d = Unique<axis = 0, sorted = 0>(narrow)",
    "a, b_, c_, d = Unique<axis = -1>(n)",
    """u, b_, c_, often = Unique(n) a = Mul(u, often) later = Slice(a, one, end)
    d = Add(later, one)"""])
def test_different_rows_and_their_places(nodes):
    same(model(NUMBERS + nodes, ["a", "b_", "c_", "d"]))


def test_how_many_there_are():
    same(model(NUMBERS + """u = Unique(n) s = Shape<end = 1>(u) one_ = Squeeze(s, zero)
        y = Add(n, one_)""", ["y"]))


def test_all_that_is_said_of_the_rows_has_one_count():
    made = repair(model(NUMBERS + "a, b_, c_, d = Unique(n)", ["a", "b_", "c_", "d"]), {},
                  counts=True)
    assert counted_outputs(made) == [4, 0, 4, 0, -1, 0, 4, 0]


def test_wide_rows_are_refused():
    with pytest.raises(ToolError, match="rows are of 80 numbers"):
        repair(model(NUMBERS + "a = Unique<axis = 1>(n)", ["a"], rows=80), {}, counts=True)
