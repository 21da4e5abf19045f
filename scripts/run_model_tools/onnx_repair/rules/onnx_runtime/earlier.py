"""Operators that exporters took from ONNX Runtime (com.microsoft) before ONNX had them, and
distances, which scikit-learn's converter takes from there."""

from __future__ import annotations

import numpy as np

from run_model_tools.onnx_repair.refusal import Refused
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import reshaped
from run_model_tools.onnx_repair.rules.onnx_runtime import DOMAIN
from run_model_tools.onnx_repair.rules.reductions import reduce
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk

_SAME_IN = {"GatherND": 13, "GridSample": 16, "Pad": 13, "Trilu": 14}
"""The opset of ONNX that has the operator with the same inputs and attributes."""


@rule(*_SAME_IN, domain=DOMAIN)
def as_in_onnx(walk: Walk, node: Node) -> Value:
    return walk.node_in(node.op, _SAME_IN[node.op], node.inputs, 1, **node.attrs.but())


@rule("ExpandDims", domain=DOMAIN)
def expand_dims(walk: Walk, node: Node) -> Value:
    """One axis more; which one is an input."""
    x, axes = node.tensor(0), node.ints(1, "the place of its new axis")
    if axes is None or len(axes) != 1:
        raise Refused("it does not say where its new axis is", None, "invalid")
    return walk.graph.op("Unsqueeze", x, np.array(axes))


@rule("CDist", domain=DOMAIN)
def distances(walk: Walk, node: Node) -> Value:
    """[rows of a, rows of b], by their differences: squares of small ones of large numbers would
    be lost in a product."""
    graph = walk.graph
    a, b = node.tensor(0), node.tensor(1)
    metric = node.attrs.get("metric", "sqeuclidean")
    if metric not in ("euclidean", "sqeuclidean"):
        raise Refused(f"it measures distances by '{metric}'")
    apart = graph.op("Sub", reshaped(walk, a, (a.shape[0], 1, a.shape[1])),
                     reshaped(walk, b, (1, *b.shape)))
    made = reduce(walk, "ReduceSum", graph.op("Mul", apart, apart), [2], keepdims=False)
    return graph.op("Sqrt", made) if metric == "euclidean" else made
