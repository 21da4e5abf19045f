"""Chosen rows in an order of their own: the chosen ones before all others, and the largest ones.

Detectors end so (torchvision's, and those that were exported with NonMaxSuppression).
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.rules.chosen.counts import numbers_of
from run_model_tools.onnx_repair.rules.chosen.masks import count_of, is_same
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.values import Chosen, Node, Value
from run_model_tools.onnx_repair.walk import Walk


def in_front(walk: Walk, one: Chosen) -> Chosen:
    """The same rows, with those that are chosen before all others."""
    if one.first:
        return one
    graph, count = walk.graph, one.rows.shape[0]
    mask = reshaped(walk, one.mask, (count,))
    ordinal = graph.op("CumSum", cast(walk, mask, TensorProto.INT64), np.array(0))
    every, found = graph.constant(np.arange(count)), count_of(walk, one)
    to = graph.op("Where", mask, graph.op("Sub", ordinal, 1),
                  graph.op("Sub", graph.op("Add", every, found), ordinal))
    places = graph.op("ScatterElements", every, to, every, axis=0)
    return one.but(rows=graph.op("Gather", one.rows, places, axis=0), first=True,
                   mask=first_places(walk, count, found))


def first_places(walk: Walk, most: int, count: Value) -> Value:
    """A mask of the first `count` of `most` places."""
    count = reshaped(walk, cast(walk, count, TensorProto.INT64), (1,))
    return walk.graph.op("Less", walk.graph.constant(np.arange(most)), count)


def largest(walk: Walk, node: Node, one: Chosen) -> list[Chosen]:
    """A TopK of chosen numbers."""
    if one.rows.rank != 1 or one.lead:
        raise one.why
    k, count = node.tensor(1), one.rows.shape[0]
    number = numbers_of(walk, k)[0]
    most = count if number.most is None else min(number.most, count)
    if most < 0:
        raise one.why
    top = bool(node.attrs.get("largest", 1))
    places = walk.node_in("TopK", 11, [
        sort_keys(walk, one.rows, reshaped(walk, one.mask, (count,)), top),
        walk.graph.constant([most], np.int64)], 2, largest=int(top))[1]
    if number.of is not None and is_same(walk, one, number.of):
        mask = walk.graph.op("Gather", reshaped(walk, one.mask, (count,)), places, axis=0)
    else:
        wanted = walk.graph.op("Min", reshaped(walk, cast(walk, k, TensorProto.INT64), ()),
                               count_of(walk, one))
        mask = first_places(walk, most, wanted)
    values = one.but(rows=walk.graph.op("Gather", one.rows, places, axis=0), mask=mask, first=True)
    return [values, values.but(rows=places, of=one, column=None)]


def sort_keys(walk: Walk, x: Value, mask: Value, top: bool) -> Value:
    """What to sort numbers by so that those of the mask come before all others, infinite ones too.
    """
    graph, sign = walk.graph, -1 if top else 1
    if x.is_float:
        bound, last = float(np.finfo(x.dtype).max), np.inf
    else:
        x = cast(walk, x, TensorProto.INT64)
        bound, last = np.iinfo(np.int64).max - 1, np.iinfo(np.int64).max
    bounded = graph.op("Max" if top else "Min", x, graph.like(sign * bound, x))
    return graph.op("Where", mask, bounded, graph.like(sign * last, x))
