"""The different rows of a tensor, and where they are: chosen rows (rows.py) once all are
sorted."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import Refused, data_dependent
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.chosen.rows import chosen
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.indexing import sliced
from run_model_tools.onnx_repair.rules.reductions import reduce
from run_model_tools.onnx_repair.rules.shapes import concatenated, transposed
from run_model_tools.onnx_repair.values import Chosen, Node, Value
from run_model_tools.onnx_repair.walk import Walk

_WIDEST = 64
"""Numbers in a row, by each of which all are sorted."""


@rule("Unique")
def unique(walk: Walk, node: Node) -> list[Value | Chosen]:
    """(the rows, the first place of each, of each place which row it has, how often each is there).

    Without an axis, each number is a row.
    """
    graph, x = walk.graph, node.tensor(0)
    refused = data_dependent("the shape of its result")
    if walk.is_open or not x.size:
        raise refused
    axis = node.attrs["axis"] % x.rank if "axis" in node.attrs else 0
    if "axis" in node.attrs:
        rows = transposed(walk, x, [axis, *(i for i in range(x.rank) if i != axis)])
    else:
        rows = reshaped(walk, x, (x.size,))
    count = rows.shape[0]
    wide = reshaped(walk, rows, (count, rows.size // count))
    if wide.shape[1] > _WIDEST:
        raise Refused(f"its rows are of {wide.shape[1]} numbers, and {_WIDEST} are the most",
                      "end the network before it (compile_model --outputs) and do the rest in the "
                      "program.")
    order, in_order = _sorted(walk, wide)
    begins = _differs(walk, in_order)
    # Of each in order, which of the different ones it is.
    which = graph.op("Sub", graph.op("CumSum", cast(walk, begins, TensorProto.INT64),
                                     np.array(0)), 1)
    zeros = graph.constant(np.zeros(count, np.int64))
    ones = graph.constant(np.ones(count, np.int64))
    times = graph.op("ScatterElements", zeros, which, ones, axis=0, reduction="add")
    mask, places = begins, order
    found = graph.op("Gather", rows, order, axis=0)
    times = graph.op("Gather", times, which, axis=0)
    if not node.attrs.get("sorted", 1):
        # As they come: a row is the first of its kind, or has an earlier one's number.
        to = graph.op("Where", begins, which, graph.like(count, which))
        room = graph.constant(np.zeros(count + 1, np.int64))
        earliest = graph.op("Gather", graph.op("ScatterElements", room, to, order, axis=0), which,
                            axis=0)
        earliest, times = (graph.op("ScatterElements", zeros, order, value, axis=0)
                           for value in (earliest, times))
        places = graph.constant(np.arange(count))
        mask, found = graph.op("Equal", earliest, places), rows
        ordinals = graph.op("Sub", graph.op("CumSum", cast(walk, mask, TensorProto.INT64),
                                         np.array(0)), 1)
        inverse = graph.op("Gather", ordinals, earliest, axis=0)
    else:
        inverse = graph.op("ScatterElements", zeros, order, which, axis=0)
    different, first, often = (chosen(walk, node, value, mask, refused)
                               for value in (found, places, times))
    different.along = axis
    made: list[Value | Chosen] = [different, first, inverse, often]
    return made[:max(node.outputs, 1)]


def _sorted(walk: Walk, rows: Value) -> tuple[Value, Value]:
    """The places of rows in ascending order, of equal ones the first first, and these rows."""
    graph, (count, width) = walk.graph, rows.shape
    order: Value | None = None
    in_order, every = rows, graph.constant([count], np.int64)
    for column in reversed(range(width)):
        key = reshaped(walk, sliced(walk, in_order, {1: range(column, column + 1)}), (count,))
        _, places = walk.node_in("TopK", 11, [key, every], 2, largest=0)
        order = places if order is None else graph.op("Gather", order, places, axis=0)
        in_order = graph.op("Gather", rows, order, axis=0)
    assert order is not None
    return order, in_order


def _differs(walk: Walk, rows: Value) -> Value:
    """Of each row whether it differs from the one before it."""
    graph, count = walk.graph, rows.shape[0]
    first = graph.constant([True])
    if count == 1:
        return first
    before, after = (sliced(walk, rows, {0: range(n, count - 1 + n)}) for n in (0, 1))
    differs = cast(walk, graph.op("Not", graph.op("Equal", before, after)), TensorProto.INT32)
    differs = cast(walk, reduce(walk, "ReduceMax", differs, [1], False), TensorProto.BOOL)
    return concatenated(walk, [first, differs], 0)
