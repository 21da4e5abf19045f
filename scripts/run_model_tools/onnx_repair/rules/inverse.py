"""Inverses of small matrices (com.microsoft)."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import Refused, invalid
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.indexing import sliced
from run_model_tools.onnx_repair.rules.reductions import reduce
from run_model_tools.onnx_repair.rules.shapes import concatenated, expanded
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk

_LARGEST = 32
"""Each row is a dozen operators."""


@rule("Inverse", domain="com.microsoft")
def inverse(walk: Walk, node: Node) -> Value:
    """By Gauss and Jordan, beside the unit matrix, in float64: in float32 what is left of an
    almost singular matrix is another number for each order of steps."""
    x = node.tensor(0)
    if x.rank < 2 or x.shape[-1] != x.shape[-2]:
        raise invalid(f"its matrices are {list(x.shape)}, which are not square")
    n = x.shape[-1]
    if n > _LARGEST:
        raise Refused(f"it is the inverse of {n}x{n} matrices, and {_LARGEST}x{_LARGEST} are the "
                      "largest possible", "leave it to the program.")
    batch = x.size // (n * n)
    unit = walk.graph.constant(np.broadcast_to(np.eye(n), (batch, n, n)))
    rows = concatenated(walk, [cast(walk, reshaped(walk, x, (batch, n, n)), TensorProto.DOUBLE),
                               unit], 2)
    for column in range(n):
        rows = _cleared(walk, rows, column)
    made = sliced(walk, rows, {2: range(n, 2 * n)})
    return reshaped(walk, cast(walk, made, x.elem_type), x.shape)


def _cleared(walk: Walk, rows: Value, column: int) -> Value:
    """The rows with a column of the unit matrix, after the row with its largest number has changed
    its place with the one that is to have a 1 there."""
    graph = walk.graph
    n = rows.shape[1]
    at = graph.constant(np.arange(n).reshape(1, n, 1))
    here = graph.constant(np.arange(n).reshape(1, n, 1) == column)

    def numbers() -> Value:
        return sliced(walk, rows, {2: range(column, column + 1)})

    left = graph.op("Where", graph.constant(np.arange(n).reshape(1, n, 1) >= column),
                    graph.op("Abs", numbers()), graph.like(-1, rows))
    is_it = graph.op("Equal", left, reduce(walk, "ReduceMax", left, [1]))
    largest = reduce(walk, "ReduceMin", graph.op("Where", is_it, at, graph.like(n - 1, at)), [1])
    order = graph.op("Where", here, largest, graph.op("Where", graph.op("Equal", at, largest),
                                                      graph.like(column, at), at))
    rows = graph.op("GatherElements", rows, expanded(walk, order, rows.shape), axis=1)
    row = sliced(walk, rows, {1: range(column, column + 1)})
    row = graph.op("Div", row, sliced(walk, row, {2: range(column, column + 1)}))
    return graph.op("Where", here, row, graph.op("Sub", rows, graph.op("Mul", numbers(), row)))
