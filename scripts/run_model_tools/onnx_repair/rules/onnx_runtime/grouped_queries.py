"""GroupQueryAttention of ONNX Runtime (com.microsoft): language models with a cache of keys."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import Refused
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.attention import in_heads, repeated
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.indexing import sliced
from run_model_tools.onnx_repair.rules.onnx_runtime import DOMAIN
from run_model_tools.onnx_repair.rules.padding import padded
from run_model_tools.onnx_repair.rules.reductions import reduce
from run_model_tools.onnx_repair.rules.shapes import concatenated, expanded, transposed
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk


@rule("GroupQueryAttention", domain=DOMAIN)
def group_query_attention(walk: Walk, node: Node) -> list[Value | None]:
    """A query sees the keys up to its own place, which begins after those of earlier steps.

    Of how many these are at run time, the nearest number that there is room for is taken.
    """
    graph, attrs = walk.graph, node.attrs
    heads, of_keys = attrs["num_heads"], attrs["kv_num_heads"]
    interleaved = attrs.get("rotary_interleaved", 0)  # Of nothing where nothing is turned.
    if attrs.get("kv_cache_bit_width", 0) or any(
            attrs.get(f"{of}_quant_type", "NONE") != "NONE" for of in "kv") or any(
            node.get(index) is not None for index in (12, 13)):
        raise Refused("its cache is quantised")
    if node.get(16) is not None:
        raise Refused("it says how many of the new keys count (query_seqlens)")
    if not attrs.get("causal", 1) or attrs.get("qk_output", 0):
        raise Refused("its queries see keys behind their places, or its products are an output")
    q, k, v = _queries_keys_values(walk, node, heads, of_keys)
    q, k = (_normalised(walk, node, x, of, weight) for x, of, weight in (
        (q, "q", node.get(14)), (k, "k", node.get(15))))
    batch, _, new, size = q.shape
    past_keys, past_values = node.get(3), node.get(4)
    room = past_keys.shape[2] if past_keys is not None else 0
    total = _total(node, room)
    if attrs.get("sliding_window_cache", 0) and total > room:
        raise Refused(f"its cache has room for {room} of {total} keys, and drops the oldest",
                      "give it room for all of them by --shape.")
    earlier = _earlier(walk, node, new, total, room)
    places = graph.op("Add", earlier, np.arange(new)[None])
    if attrs.get("do_rotary", 0):
        cosine, sine = node.tensor(7), node.tensor(8)
        positions = node.get(9) or places
        q, k = (walk.node_in("RotaryEmbedding", 23, [x, cosine, sine, positions], 1,
                             interleaved=interleaved,
                             rotary_embedding_dim=2 * cosine.shape[1]) for x in (q, k))
    put = _with_earlier if earlier.array is None else _with_known
    keys, values = (put(walk, x, past, earlier, total)
                    for x, past in ((k, past_keys), (v, past_values)))
    scale = float(attrs.get("scale") or 0) or 1 / math.sqrt(size)
    scores = graph.op("MatMul", graph.op("Mul", q, scale),
                      transposed(walk, repeated(walk, keys, heads // of_keys), [0, 1, 3, 2]))
    cap = float(attrs.get("softcap", 0.0))
    if cap > 0:
        scores = graph.op("Mul", graph.op("Tanh", graph.op("Div", scores, cap)), cap)
    bias = node.get(10)
    if bias is not None:
        scores = graph.op("Add", scores, padded(walk, bias, {3: (0, keys.shape[2] - total)}))
    seen = _seen(walk, places, keys.shape[2], attrs.get("local_window_size", -1))
    lowest = graph.like(float(np.finfo(q.dtype).min), q)
    scores = graph.op("Where", seen, scores, lowest)
    y = graph.op("MatMul", _weights(walk, scores, node.get(11), attrs.get("smooth_softmax", 0)),
                 repeated(walk, values, heads // of_keys))
    if bias is not None:
        # Of a query whose every key the bias leaves out.
        sighted = graph.op("Greater", reduce(walk, "ReduceMax", scores, [3]), lowest)
        y = graph.op("Where", sighted, y, graph.like(0, y))
    y = reshaped(walk, transposed(walk, y, [0, 2, 1, 3]), (batch, new, heads * size))
    results: list[Value | None] = [y, keys, values]
    return results[:node.outputs]


def _total(node: Node, room: int) -> int:
    """How many keys there are at most: what the cache has room for, if only the run time knows, as
    in files for the graphs of WebGPU, which count them by the mask."""
    given = node.get(6)
    if room and given is not None and given.array is None and given.known is None \
            and node.get(10) is None:
        return room
    total = node.ints(6, "total_sequence_length")
    if total is None or len(total) != 1:
        raise Refused("it does not say how many keys there are (total_sequence_length)")
    return total[0]


def _weights(walk: Walk, scores: Value, sinks: Value | None, smooth: int) -> Value:
    """The softmax of the scores; beside them may stand one of nothing, whose weight is lost: each
    head's own, or where it is smooth 0."""
    if sinks is None and smooth <= 0:
        return walk.graph.op("Softmax", scores, axis=-1)
    batch, heads, queries, keys = scores.shape
    sinks = walk.graph.like(0, scores) if sinks is None else reshaped(walk, sinks, (1, heads, 1, 1))
    wide = concatenated(walk, [scores, expanded(walk, sinks, (batch, heads, queries, 1))], 3)
    return sliced(walk, walk.graph.op("Softmax", wide, axis=-1), {3: range(keys)})


def _queries_keys_values(walk: Walk, node: Node, heads: int, of_keys: int) -> list[Value]:
    """[batch, heads, length, size] of each; without keys, the queries hold all three."""
    q, k, v = node.tensor(0), node.get(1), node.get(2)
    if k is None or v is None:
        size = q.shape[2] // (heads + 2 * of_keys)
        q, k, v = walk.graph.ops("Split", [q, np.array(
            [heads * size, of_keys * size, of_keys * size])], 3, axis=2)
    return [in_heads(walk, q, heads), in_heads(walk, k, of_keys), in_heads(walk, v, of_keys)]


def _normalised(walk: Walk, node: Node, x: Value, of: str, weight: Value | None) -> Value:
    """Each head by itself, before it is turned, as files for GPUs have Qwen 3's."""
    common = float(node.attrs.get("qk_norm_epsilon", 1e-6))
    epsilon = float(node.attrs.get(f"{of}_norm_epsilon", common))
    if weight is None:
        return x
    normalised: Value = walk.node_in("SimplifiedLayerNormalization", 17, [x, weight], 1,
                                     epsilon=epsilon)
    return normalised


def _earlier(walk: Walk, node: Node, new: int, total: int, room: int) -> Value:
    """[batch, 1]: how many keys of the cache, which has room for so many, count."""
    graph, counts = walk.graph, node.get(5)
    if counts is None or counts.size != node.tensor(0).shape[0]:
        raise Refused("it does not say how many keys count (seqlens_k)")
    if new == total:
        # A prompt fills the cache from its beginning.
        return graph.constant(np.zeros((counts.size, 1), np.int64))
    if counts.array is None:
        last = cast(walk, reshaped(walk, counts, (counts.size, 1)), TensorProto.INT64)
        earlier = graph.op("Max", graph.op("Sub", last, new - 1), 0)
        return graph.op("Min", earlier, max(min(room, total - new), 0))
    known = counts.array.reshape(-1, 1).astype(np.int64) + 1 - new
    if np.any(known < 0) or np.any(known + new > total):
        raise Refused(f"of {total} keys {known.max() + new} are to count", None, "invalid")
    if np.any(known > room):
        raise Refused(f"its cache has room for {room} keys and {known.max()} are to be there",
                      None, "invalid")
    return graph.constant(known)


def _seen(walk: Walk, places: Value, keys: int, window: int) -> Value:
    """[batch, 1, queries, keys]: whether the query at a place sees a key."""
    graph = walk.graph
    if places.array is not None:
        behind = places.array[:, None, :, None] - np.arange(keys)
        return graph.constant((behind >= 0) & (behind < window) if window > 0 else behind >= 0)
    batch, queries = places.shape
    distance = graph.op("Sub", reshaped(walk, places, (batch, 1, queries, 1)), np.arange(keys))
    seen = graph.op("GreaterOrEqual", distance, 0)
    return graph.op("And", seen, graph.op("Less", distance, window)) if window > 0 else seen


def _with_earlier(walk: Walk, x: Value, past: Value | None, earlier: Value, total: int) -> Value:
    """The cache with the new keys, or values, behind the earlier ones of each batch, then zeros."""
    graph, zero = walk.graph, walk.graph.like(0, x)
    batch, heads, new, size = x.shape
    room = past.shape[2] if past is not None else 0
    length = max(room, total)
    behind = graph.op("Sub", np.arange(length).reshape(1, 1, length, 1),
                      reshaped(walk, earlier, (batch, 1, 1, 1)))
    if new > 1:
        nearest = graph.op("Min", graph.op("Max", behind, 0), new - 1)
        x = graph.op("GatherElements", x, expanded(walk, nearest, (batch, heads, length, size)),
                     axis=2)
    made = graph.op("Where", graph.op("Less", behind, new), x, zero)
    if past is None:
        return made
    return graph.op("Where", graph.op("Less", behind, 0),
                    padded(walk, past, {2: (0, length - room)}), made)


def _with_known(walk: Walk, x: Value, past: Value | None, earlier: Value, total: int) -> Value:
    """The same, of numbers of earlier ones that are known."""
    graph, numbers = walk.graph, earlier.array
    assert numbers is not None
    batch, heads, new, size = x.shape
    room = past.shape[2] if past is not None else 0
    length = max(room, total)
    parts = [past, x] if past is not None and numbers.any() else [x]
    first = room if len(parts) == 2 else 0
    at = np.arange(length)[None]
    behind = at - numbers
    source = np.where(behind < 0, at, np.where(behind < new, first + behind, first + new))
    if np.any(source == first + new):
        parts.append(graph.constant(np.zeros((batch, heads, 1, size), x.dtype)))
    made = concatenated(walk, parts, 2)
    if made.shape[2] == length and np.all(source == at):
        return made
    index = np.broadcast_to(source[:, None, :, None], (batch, heads, length, size))
    return graph.op("GatherElements", made, graph.constant(np.ascontiguousarray(index)), axis=2)
