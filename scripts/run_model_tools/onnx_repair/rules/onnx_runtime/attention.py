"""Transformers as ONNX Runtime's optimiser writes them (com.microsoft): embeddings, attention."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import Refused, invalid
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.attention import in_heads
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.matmul import product
from run_model_tools.onnx_repair.rules.onnx_runtime import DOMAIN
from run_model_tools.onnx_repair.rules.reductions import reduce
from run_model_tools.onnx_repair.rules.shapes import concatenated, transposed
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk

WITHOUT_ROTATION = ("rotary_embedding_dim",)
"""Attributes of rotated queries, which are refused."""
_UNSEEN = -10000.0
"""What is added to scores of places that the mask leaves out, unless the node says."""


@rule("EmbedLayerNormalization", domain=DOMAIN, ignored=("mask_index_type",))
def embed_layer_normalization(walk: Walk, node: Node) -> list[Value | None]:
    return embedded(walk, node, node.get(8), lambda tensor, _: tensor)


def embedded(walk: Walk, node: Node, places: Value | None,
             in_floats: Callable[[Value, int], Value]) -> list[Value | None]:
    """Sums of rows of tables, normalised; in_floats gives the numbers of input 2 + i, or of rows of
    it, from what the file has for them."""
    graph = walk.graph
    ids, segments = node.tensor(0), node.get(1)
    if places is None:
        places = graph.constant(np.arange(ids.shape[1])[None])

    def rows(index: int, of: Value) -> Value:
        return in_floats(graph.op("Gather", node.tensor(index), of, axis=0), index - 2)

    total = graph.op("Add", rows(2, ids), rows(3, places))
    if segments is not None and node.get(4) is not None:
        total = graph.op("Add", total, rows(4, segments))
    y = walk.node_in("LayerNormalization", 17, [
        total, in_floats(node.tensor(5), 3), in_floats(node.tensor(6), 4)], 1,
        epsilon=float(node.attrs.get("epsilon", 1e-12)))
    mask = node.get(7)
    if mask is None:
        lengths = graph.constant(np.zeros(ids.shape[0], np.int32))
    else:
        lengths = reduce(walk, "ReduceSum", mask, [1], keepdims=False)
    return [y, lengths, total][:max(node.outputs, 1)]


@rule("Attention", domain=DOMAIN, ignored=WITHOUT_ROTATION)
def attention(walk: Walk, node: Node) -> list[Value | None]:
    """Queries, keys and values by one product with the weights of all three."""
    made = product(walk, node.tensor(0), node.tensor(1))
    bias = node.get(2)
    if bias is not None:
        made = walk.graph.op("Add", made, bias)
    return attended_to_itself(walk, node, made, node.get(3), node.get(4), node.get(5))


def attended_to_itself(walk: Walk, node: Node, packed: Value, mask: Value | None,
                       past: Value | None, added: Value | None) -> list[Value | None]:
    """Of queries, keys and values side by side; past: [2, batch, heads, length, size] of the keys
    and values of earlier steps."""
    graph = walk.graph
    if node.attrs.get("past_present_share_buffer", 0):
        raise Refused("its keys and values of all steps share their memory")
    if node.attrs.get("do_rotary", 0):
        raise Refused("it rotates queries and keys by their places")
    sizes = node.attrs.get("qkv_hidden_sizes") or [packed.shape[2] // 3] * 3
    q, k, v = (in_heads(walk, part, node.attrs["num_heads"]) for part in graph.ops(
        "Split", [packed, np.array(sizes)], 3, axis=2))
    if past is not None:
        k, v = (concatenated(walk, [graph.op("Gather", past, index, axis=0), new], 2)
                for index, new in ((graph.constant(0), k), (graph.constant(1), v)))
    results: list[Value | None] = [_attended(walk, node, q, k, v, mask, added)]
    if any(node.wanted[1:]):
        results.append(concatenated(walk, [reshaped(walk, t, (1, *t.shape)) for t in (k, v)], 0))
    return results


@rule("MultiHeadAttention", domain=DOMAIN)
def multi_head_attention(walk: Walk, node: Node) -> list[Value | None]:
    graph = walk.graph
    q, k, v, bias = node.tensor(0), node.get(1), node.get(2), node.get(3)
    past_k, past_v = node.get(6), node.get(7)
    heads = node.attrs["num_heads"]
    if any(node.wanted[3:]):
        raise Refused("its output of products before the softmax is used")
    if q.rank == 5 and k is None and v is None:
        q, k, v = _unpacked(walk, q, 3)
    elif k is not None and k.rank == 5 and v is None:
        if bias is not None:
            raise Refused("its keys and values are packed into one, with a bias")
        k, v = _unpacked(walk, k, 2)
    if k is None or v is None or q.rank != 3:
        raise Refused(f"its queries have the shape {list(q.shape)}, and there are no keys or "
                      "values beside them")
    if bias is not None:
        wide = [q.shape[2], k.shape[2] if k.rank == 3 else 0, v.shape[2] if v.rank == 3 else 0]
        parts = graph.ops("Split", [bias, np.array([n for n in wide if n])],
                          sum(n > 0 for n in wide), axis=0)
        q = graph.op("Add", q, parts[0])
        if k.rank == 3:
            k = graph.op("Add", k, parts[1])
        if v.rank == 3:
            v = graph.op("Add", v, parts[-1])
    q, k, v = (t if t.rank == 4 else in_heads(walk, t, heads) for t in (q, k, v))
    if past_k is not None and past_v is not None:
        k, v = concatenated(walk, [past_k, k], 2), concatenated(walk, [past_v, v], 2)
    results: list[Value | None] = [_attended(walk, node, q, k, v, node.get(4), node.get(5)), k, v]
    return results[:max(node.outputs, 1)]


def _unpacked(walk: Walk, packed: Value, parts: int) -> list[Value]:
    """[batch, length, heads * size] of each part of [batch, length, heads, parts, size]."""
    batch, length, heads, found, size = packed.shape
    if found != parts:
        raise invalid(f"it packs {found} tensors into one, and {parts} are expected")
    return [reshaped(walk, walk.graph.op("Gather", packed, np.array(i), axis=3),
                     (batch, length, heads * size)) for i in range(parts)]


@rule("RotaryEmbedding", domain=DOMAIN)
def rotary_embedding(walk: Walk, node: Node) -> Value:
    x, places, cosine, sine = (node.tensor(i) for i in range(4))
    if node.attrs.get("is_packed_batching", 0) or float(node.attrs.get("scale", 1.0)) != 1:
        raise Refused("it packs batches, or scales")
    width = node.attrs.get("rotary_embedding_dim", 0)
    heads = node.attrs.get("num_heads", 0)
    if x.rank == 3 and not heads:
        heads = x.shape[2] // (2 * cosine.shape[1])
    if places.size == 1:  # Where the first one is.
        steps = np.arange(x.shape[-2], dtype=places.dtype)
        places = walk.graph.op("Add", reshaped(walk, places, (1, 1)), steps[None])
        places = walk.graph.op("Expand", places, np.array([x.shape[0], x.shape[-2]]))
    return walk.node_in("RotaryEmbedding", 23, [x, cosine, sine, places], 1,
                        interleaved=node.attrs.get("interleaved", 0), rotary_embedding_dim=width,
                        num_heads=heads)


@rule("MRotaryEmbedding", domain=DOMAIN)
def rotary_embedding_of_pictures(walk: Walk, node: Node) -> Value:
    """Each pair of features is turned by one of three places: in time, and down and across a
    picture."""
    graph = walk.graph
    x, places, cosine, sine = (node.tensor(i) for i in range(4))
    if node.attrs.get("is_packed_batching", 0) or float(node.attrs.get("scale", 1.0)) != 1:
        raise Refused("it packs batches, or scales")
    pairs, sections = cosine.shape[1], list(node.attrs["mrope_section"])
    by = np.repeat(np.arange(3), sections)
    if node.attrs.get("mrope_layout", 0):  # One after the other, as far as there are some.
        at = np.arange(pairs)
        by = sum((at % 3 == n) * (at < 3 * sections[n]) * n for n in (1, 2))
    if len(sections) != 3 or np.shape(by) != (pairs,):
        raise invalid(f"its sections are {sections}, of {pairs} pairs of features")

    def chosen(table: Value) -> Value:
        rows = graph.op("Gather", table, places, axis=0)
        made = graph.op("Gather", rows, np.array(0), axis=0)
        for n in (1, 2):
            made = graph.op("Where", graph.constant(by == n),
                            graph.op("Gather", rows, np.array(n), axis=0), made)
        return made

    return walk.node_in("RotaryEmbedding", 23, [x, chosen(cosine), chosen(sine)], 1,
                        interleaved=node.attrs.get("interleaved", 0),
                        rotary_embedding_dim=node.attrs.get("rotary_embedding_dim", 0),
                        num_heads=node.attrs.get("num_heads", 0) or (
                            x.shape[2] // (2 * pairs) if x.rank == 3 else 0))


def _attended(walk: Walk, node: Node, q: Value, k: Value, v: Value, mask: Value | None,
              added: Value | None) -> Value:
    """[batch, length, heads * size] of what is [batch, heads, length, size]."""
    graph = walk.graph
    scale = float(node.attrs.get("scale") or 0) or 1 / math.sqrt(q.shape[-1])
    scores = graph.op("MatMul", graph.op("Mul", q, scale), transposed(walk, k, [0, 1, 3, 2]))
    unseen = float(node.attrs.get("mask_filter_value", _UNSEEN))
    if mask is not None:
        hidden = graph.op("Where", _seen(walk, mask, q.shape[0], k.shape[2]),
                          graph.like(0, q), graph.like(unseen, q))
        scores = graph.op("Add", scores, hidden)
    if added is not None:
        scores = graph.op("Add", scores, added)
    if node.attrs.get("unidirectional", 0):
        queries, keys = scores.shape[-2:]
        earlier = np.tri(queries, keys, keys - queries, dtype=np.bool_)
        scores = graph.op("Where", graph.constant(earlier), scores,
                          graph.like(float(np.finfo(q.dtype).min), q))
    y = transposed(walk, graph.op("MatMul", graph.op("Softmax", scores, axis=-1), v),
                   [0, 2, 1, 3])
    return reshaped(walk, y, (*y.shape[:2], y.shape[2] * y.shape[3]))


def _seen(walk: Walk, mask: Value, batch: int, keys: int) -> Value:
    """Which keys count, by a mask of numbers for each of them or by how many do of a batch."""
    graph = walk.graph
    if mask.shape == (batch,):
        return graph.op("Less", np.arange(keys, dtype=mask.dtype).reshape(1, 1, 1, keys),
                        reshaped(walk, mask, (batch, 1, 1, 1)))
    seen = graph.op("Greater", cast(walk, mask, TensorProto.INT32), 0)
    if mask.shape == (batch, keys):
        return reshaped(walk, seen, (batch, 1, 1, keys))
    if mask.rank == 3 and mask.shape[0] == batch and mask.shape[2] == keys:
        return reshaped(walk, seen, (batch, 1, *mask.shape[1:]))
    raise Refused(f"its mask has the shape {list(mask.shape)}")
