"""Inverses (com.microsoft) and determinants of small matrices."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import Refused, invalid
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.indexing import sliced
from run_model_tools.onnx_repair.rules.onnx_runtime import DOMAIN
from run_model_tools.onnx_repair.rules.reductions import reduce
from run_model_tools.onnx_repair.rules.shapes import concatenated, expanded
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk

_LARGEST = 32
"""Each row is a dozen operators."""
_EXPANDED = 4
"""Rows up to which a determinant is the sum of its products."""


@rule("Inverse", domain=DOMAIN)
def inverse(walk: Walk, node: Node) -> Value:
    """By Gauss and Jordan, beside the unit matrix, in float64: in float32 what is left of an
    almost singular matrix is another number for each order of steps."""
    x = node.tensor(0)
    n = _extent(x, "inverse")
    rows = _in_float64(walk, x)
    batch = rows.shape[0]
    unit = walk.graph.constant(np.broadcast_to(np.eye(n), (batch, n, n)))
    rows = concatenated(walk, [rows, unit], 2)
    for column in range(n):
        rows, *_ = _cleared(walk, rows, column)
    made = sliced(walk, rows, {2: range(n, 2 * n)})
    return reshaped(walk, cast(walk, made, x.elem_type), x.shape)


@rule("Det")
def determinant(walk: Walk, node: Node) -> Value:
    """Laplace's expansion of matrices up to 4x4; of larger ones what Gauss divides by, in float64.
    """
    x = node.tensor(0)
    graph = walk.graph
    n = _extent(x, "determinant")
    if n <= _EXPANDED:
        return _expanded(walk, [[_entry(walk, x, i, j) for j in range(n)] for i in range(n)])
    rows = _in_float64(walk, x)
    total: Value | None = None
    for column in range(n):
        rows, divisor, moved = _cleared(walk, rows, column)
        # Without a number but 0 there, all that follows would be 0/0.
        rows = graph.op("Where", graph.op("Equal", divisor, 0), graph.like(0, rows), rows)
        divisor = graph.op("Where", moved, graph.op("Neg", divisor), divisor)
        total = divisor if total is None else graph.op("Mul", total, divisor)
    assert total is not None
    return reshaped(walk, cast(walk, total, x.elem_type), x.shape[:-2])


def _extent(x: Value, what: str) -> int:
    """Of matrices that are square and not too large."""
    if x.rank < 2 or x.shape[-1] != x.shape[-2]:
        raise invalid(f"its matrices are {list(x.shape)}, which are not square")
    n = x.shape[-1]
    if n > _LARGEST:
        raise Refused(f"it is the {what} of {n}x{n} matrices, and {_LARGEST}x{_LARGEST} are the "
                      "largest possible", "leave it to the program.")
    return n


def _in_float64(walk: Walk, x: Value) -> Value:
    """[matrices, rows, columns]"""
    n = x.shape[-1]
    return cast(walk, reshaped(walk, x, (x.size // (n * n), n, n)), TensorProto.DOUBLE)


def _cleared(walk: Walk, rows: Value, column: int) -> tuple[Value, Value, Value]:
    """The rows with a column of the unit matrix, after the row with its largest number has changed
    its place with the one that is to have a 1 there; that number; and whether rows changed places.
    """
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
    divisor = sliced(walk, row, {2: range(column, column + 1)})
    row = graph.op("Div", row, divisor)
    moved = graph.op("Not", graph.op("Equal", largest, graph.like(column, largest)))
    return (graph.op("Where", here, row, graph.op("Sub", rows, graph.op("Mul", numbers(), row))),
            divisor, moved)


def _entry(walk: Walk, x: Value, i: int, j: int) -> Value:
    row = walk.graph.op("Gather", x, np.array(i), axis=x.rank - 2)
    return walk.graph.op("Gather", row, np.array(j), axis=row.rank - 1)


def _expanded(walk: Walk, rows: list[list[Value]]) -> Value:
    if len(rows) == 1:
        return rows[0][0]
    total: Value | None = None
    for j, entry in enumerate(rows[0]):
        minor = _expanded(walk, [row[:j] + row[j + 1:] for row in rows[1:]])
        term = walk.graph.op("Mul", entry, minor)
        total = term if total is None else walk.graph.op("Sub" if j % 2 else "Add", total, term)
    assert total is not None
    return total
