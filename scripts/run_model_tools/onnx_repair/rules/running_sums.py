"""Sums and products that run along an axis: each of all elements up to its place."""

from __future__ import annotations

import numpy as np

from run_model_tools.onnx_repair.refusal import Refused
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.indexing import sliced
from run_model_tools.onnx_repair.rules.padding import padded
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk


@rule("CumSum")
def cum_sum(walk: Walk, node: Node) -> Value:
    x = node.tensor(0)
    axis = (node.ints(1, "the axis") or [0])[0] % x.rank
    return walk.graph.op("CumSum", x, np.array(axis, np.int64),
                         exclusive=node.attrs.get("exclusive", 0),
                         reverse=node.attrs.get("reverse", 0))


@rule("CumProd")
def cum_prod(walk: Walk, node: Node) -> Value:
    """Products of 1, 2, 4 ... elements that end at each place."""
    x = node.tensor(0)
    axis = (node.ints(1, "the axis") or [0])[0] % x.rank
    reverse, extent = node.attrs.get("reverse", 0), x.shape[axis]
    if walk.is_open:
        raise Refused("how often it multiplies depends on an extent that is open",
                      "give it a size with --shape, without --dynamic.")

    def moved(made: Value, by: int) -> Value:
        made = padded(walk, made, {axis: (0, by) if reverse else (by, 0)}, value=1)
        return sliced(walk, made, {axis: range(by, by + extent) if reverse else range(extent)})

    made = moved(x, 1) if node.attrs.get("exclusive", 0) else x
    by = 1
    while by < extent:
        made = walk.graph.op("Mul", made, moved(made, by))
        by *= 2
    return made
