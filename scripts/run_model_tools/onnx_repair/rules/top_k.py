"""TopK: the largest or smallest elements along an axis, in their order."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import cast
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import RELAX, Walk

_MOST_RANKED = 64
"""Elements of a row of which a TopK counts ranks, where the importer has no function that sorts: so
many comparisons are vectors, and fewer than a heap takes (inside_tvm/operators/sorted_rows.py)."""


@rule("TopK")
def top_k(walk: Walk, node: Node) -> list[Value]:
    """Of equal ones those that come first.  A NaN, of which ONNX says nothing, is as large as
    infinity: every rank has to occur once."""
    graph = walk.graph
    x = node.tensor(0)
    k = node.attrs["k"] if node.opset < 10 else (node.ints(1, "the number k") or [0])[0]
    axis = node.attrs.get("axis", -1) % x.rank
    n = x.shape[axis]
    perm = [i for i in range(x.rank) if i != axis] + [axis]
    rows = graph.op("Transpose", x, perm=perm) if axis != x.rank - 1 else x
    largest = node.attrs.get("largest", 1)
    sorts = walk.importer == RELAX or n > _MOST_RANKED
    keys = rows
    if rows.is_float and (walk.importer == RELAX or not sorts):  # Ours does so itself.
        keys = graph.op("Where", graph.op("IsNaN", rows), graph.like(np.inf, rows), rows)
    if k and sorts:
        places = graph.ops("TopK", [keys, np.array([k])], 2, axis=rows.rank - 1,
                           largest=largest)[1]
    else:
        places = _by_ranks(walk, keys, k, bool(largest))
    found = [graph.op("GatherElements", rows, places, axis=rows.rank - 1), places]
    if axis != x.rank - 1:
        found = [graph.op("Transpose", f, perm=list(np.argsort(perm))) for f in found]
    return found


def _by_ranks(walk: Walk, keys: Value, k: int, largest: bool) -> Value:
    """The places by each element's rank: how many others go before it."""
    graph, n = walk.graph, keys.shape[-1]
    own = graph.op("Unsqueeze", keys, np.array([keys.rank]))
    other = graph.op("Unsqueeze", keys, np.array([keys.rank - 1]))
    ahead = graph.op("Greater" if largest else "Less", other, own)
    earlier = graph.op("Less", graph.constant(np.arange(n, dtype=np.int32).reshape(1, n)),
                       np.arange(n, dtype=np.int32).reshape(n, 1))
    before = graph.op("Or", ahead, graph.op("And", graph.op("Equal", other, own), earlier))
    ranks = graph.op("ReduceSum", cast(walk, before, TensorProto.INT32),
                     np.array([keys.rank]), keepdims=0)
    here = graph.op("Equal", graph.op("Unsqueeze", ranks, np.array([keys.rank - 1])),
                    np.arange(k, dtype=np.int32).reshape(k, 1))
    places = graph.op("Where", here, np.arange(n), graph.constant(0, np.int64))
    return graph.op("ReduceSum", places, np.array([keys.rank]), keepdims=0)
