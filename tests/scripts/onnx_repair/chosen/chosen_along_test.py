"""What works along the axis of chosen rows, wherever that lies, held to ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from chosen_test import MASKS, PLACES, masked, model

from run_model_tools.errors import ToolError
from run_model_tools.onnx_repair.repair import repair

CONSTANTS = "".join(f"{name} = Constant<value_ints = {numbers}>() " for name, numbers in {
    "zero": [0], "one": [1], "two": [2], "both": [0, 1], "four": [4], "table": [6, 4],
    "square": [4, 4], "minus": [-1], "end": [-(1 << 62)]}.items())
ROWS = PLACES + CONSTANTS + """t = Transpose<perm = [1, 0]>(c) w = Unsqueeze(c, zero)
    all = Reshape(x, table) few = Slice(all, zero, four, zero) a = Abs(c) """


@pytest.mark.parametrize("nodes", [
    "s = Softmax<axis = 0>(c) p = Mul(s, c) y = ReduceSum<keepdims = 0>(p, zero)",
    "s = LogSoftmax<axis = 1>(t) y = ReduceSum(s, one)",
    "y = ReduceMean<keepdims = 0>(t, one)", "y = ReduceLogSumExp(c, zero)",
    "y = ReduceLogSum<keepdims = 0>(a, zero)", "y = ReduceMax(w, one)", "y = ReduceMean(w)",
    "y = ReduceSum<keepdims = 0>(w, both)", "y = MatMul(t, c)",
    "k = MatMul(all, t) s = Softmax<axis = -1>(k) y = MatMul(s, c)",
    "k = MatMul(all, t) r = ReduceMax<keepdims = 0>(k, one) y = Sigmoid(r)",
    """k = Einsum<equation = "qd, kd -> qk">(all, c) s = Softmax<axis = -1>(k)
    y = Einsum<equation = "qk,kd->qd">(s, c)""",
    "y = Einsum<equation = \"nd,ne->de\">(c, a)",
    """wide = Unsqueeze(c, one) tall = Unsqueeze(c, two) v = MatMul(wide, tall)
    u = MatMul(tall, wide) p = Mul(u, v) y = ReduceSum<keepdims = 0>(p, zero)""",
    "n = ReduceSum<keepdims = 0>(few, one) v = MatMul(c, n) y = ReduceSum(v)",
    "n = ReduceSum<keepdims = 0>(few, one) v = MatMul(n, t) y = ReduceMax(v)",
    """n = ReduceSum<keepdims = 0>(few, one) tall = Unsqueeze(c, two) v = MatMul(n, tall)
    y = ReduceSum<keepdims = 0>(v, zero)""",
    "v = MatMul(w, few) y = ReduceSum(v, one)",
    "k = Constant<value_ints = [3, 1, 1]>() v = Expand(w, k) y = ReduceMean(v, one)",
    "b = Slice(c, minus, end, zero, minus) y = Gather(b, zero)"])
def test_others_change_nothing(nodes):
    masked(model(ROWS + nodes), MASKS[1:])


@pytest.mark.parametrize("nodes", [
    "y = ArgMax<axis = 0>(c)", "y = ArgMin<axis = 0, keepdims = 0>(a)",
    "y = ArgMax<axis = 1, select_last_index = 1>(t)", "y = ReduceMax<keepdims = 0>(at, zero)",
    "y = ReduceMin(at)"])
def test_places_are_counted_among_the_chosen_rows(nodes):
    masked(model(ROWS + nodes, output="int64[] y"), MASKS[1:])


def test_the_best_row():
    masked(model(ROWS + """b = Gather<axis = 1>(c, one) k = ArgMax<axis = 0, keepdims = 0>(b)
        y = Gather(c, k)"""), MASKS[1:])


def test_infinite_numbers_that_are_not_chosen_reach_no_product():
    x = np.where(np.arange(6)[:, None] == 0, np.inf, np.ones((6, 4))).astype(np.float32)
    masked(model(ROWS + "y = MatMul(t, c)"), MASKS[2:3], x=x.reshape(2, 3, 4))


def test_products_of_all_pairs_are_refused():
    """They have two axes of chosen rows."""
    with pytest.raises(ToolError, match="NonZero"):
        repair(model(ROWS + "k = MatMul(c, t) y = ReduceSum(k)"), {})
