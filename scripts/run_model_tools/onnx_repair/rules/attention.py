"""Attention as one operator (opset 23), and the caches of its keys."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import invalid
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.reductions import reduce
from run_model_tools.onnx_repair.rules.shapes import concatenated, expanded, transposed
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk

_OPSET_OF_MODIFIERS = 26
"""Of what stands in a FlexAttention, whose domain has another count."""


@rule("Attention", ignored=("softmax_precision",))
def attention(walk: Walk, node: Node) -> list[Value | None]:
    """A query that may look at no key gives zeros.

    The cap comes before the mask, also in what qk_matmul_output_mode calls 1 and 2, as in ONNX 1.23
    and ONNX Runtime 1.32.
    """
    graph = walk.graph
    q, k, v = node.tensor(0), node.tensor(1), node.tensor(2)
    past_k, past_v = node.get(4), node.get(5)
    wants_products, mode = any(node.wanted[3:]), node.attrs.get("qk_matmul_output_mode", 0)
    if wants_products and mode not in range(4):
        raise invalid(f"its qk_matmul_output_mode is {mode}, and 0 to 3 are known")
    flat = q.rank == 3
    q = _with_heads(walk, node, q, "q_num_heads")
    k, v = (_with_heads(walk, node, t, "kv_num_heads") for t in (k, v))
    before = 0
    if past_k is not None and past_v is not None:
        before = past_k.shape[2]
        k, v = concatenated(walk, [past_k, k], 2), concatenated(walk, [past_v, v], 2)
    presents = [k, v]
    groups = q.shape[1] // k.shape[1]
    if groups > 1:
        k, v = (repeated(walk, t, groups) for t in (k, v))
    scale = node.attrs.get("scale") or 1 / math.sqrt(q.shape[-1])
    scores = graph.op("MatMul", graph.op("Mul", q, scale), transposed(walk, k, [0, 1, 3, 2]))
    products = [scores]
    cap = float(node.attrs.get("softcap", 0.0))
    if cap:
        scores = graph.op("Mul", graph.op("Tanh", graph.op("Div", scores, cap)), cap)
    products.append(scores)
    bias, seen = _seen(walk, node, scores.shape[-2:], before)
    if bias is not None:
        scores = graph.op("Add", scores, bias)
    products.append(scores)
    if seen is not None:
        products[2] = graph.op("Where", seen, scores, graph.like(-np.inf, q))
        scores = graph.op("Where", seen, scores, graph.like(float(np.finfo(q.dtype).min), q))
    products.append(graph.op("Softmax", scores, axis=-1))
    y = graph.op("MatMul", products[3], v)
    sighted = _any_key(walk, bias, seen)
    if sighted is not None:
        y, products[3] = (graph.op("Where", sighted, t, graph.like(0, t)) for t in (y, products[3]))
    if flat:
        y = transposed(walk, y, [0, 2, 1, 3])
        y = reshaped(walk, y, (*y.shape[:2], y.shape[2] * y.shape[3]))
    return [y, *presents, products[mode] if wants_products else None][:max(node.outputs, 1)]


@rule("FlexAttention", domain="ai.onnx.preview", ignored=("softmax_precision",))
def flexible_attention(walk: Walk, node: Node) -> Value:
    """Scores and weights may go through functions of the model's."""
    graph = walk.graph
    q, k, v = node.tensor(0), node.tensor(1), node.tensor(2)
    groups = q.shape[1] // k.shape[1]
    if groups > 1:
        k, v = (repeated(walk, t, groups) for t in (k, v))
    scale = node.attrs.get("scale") or 1 / math.sqrt(q.shape[-1])
    scores = graph.op("Mul", graph.op("MatMul", q, transposed(walk, k, [0, 1, 3, 2])), scale)
    scores = _changed(walk, node, "score_mod", scores)
    return graph.op("MatMul", _changed(walk, node, "prob_mod", graph.op(
        "Softmax", scores, axis=-1)), v)


def _changed(walk: Walk, node: Node, name: str, x: Value) -> Value:
    """By the subgraph of this name, which computes in its input's type."""
    body = node.attrs.get(name)
    if body is None:
        return x
    inside = body.input[0].type.tensor_type.elem_type or x.elem_type
    (made,) = walk.subgraph(body, node, [cast(walk, x, inside)],
                            {"": _OPSET_OF_MODIFIERS})
    assert isinstance(made, Value)
    return cast(walk, made, x.elem_type)


def _seen(walk: Walk, node: Node, extents: tuple[int, ...],
          before: int) -> tuple[Value | None, Value | None]:
    """(what is added to the scores, at which keys queries look); None: nothing, and at all.

    extents: how many queries and keys there are, the last axes of both; before: so many keys are
    those of a cache.
    """
    graph = walk.graph
    queries, keys = extents
    mask, filled = node.get(3), node.get(6)
    places = graph.constant(np.arange(keys))
    bias: Value | None = None
    allowed: list[Value] = []
    if mask is not None:
        is_bool = mask.elem_type == TensorProto.BOOL
        if mask.shape[-1] < keys and (mask.shape[-1] > 1 or node.opset >= 24):
            rest = np.full((*mask.shape[:-1], keys - mask.shape[-1]),
                           False if is_bool else -np.inf, mask.dtype)
            mask = concatenated(walk, [mask, graph.constant(rest)], mask.rank - 1)
        if is_bool:
            allowed.append(mask)
        else:
            bias = mask
    last = graph.constant(np.arange(before, before + queries).reshape(queries, 1))
    if filled is not None:
        # Of a cache that is kept outside: so many keys of each sample are there.
        filled = reshaped(walk, cast(walk, filled, TensorProto.INT64), (filled.size, 1, 1, 1))
        allowed.append(graph.op("Less", places, filled))
        last = graph.op("Add", graph.op("Sub", filled, queries), last)
    if node.attrs.get("is_causal", 0):
        allowed.append(graph.op("LessOrEqual", places, last))
    left, right = (node.attrs.get(f"{side}_window_size", -1) for side in ("left", "right"))
    if left >= 0:
        allowed.append(graph.op("GreaterOrEqual", places, graph.op("Sub", last, left)))
    if right >= 0:
        allowed.append(graph.op("LessOrEqual", places, graph.op("Add", last, right)))
    seen: Value | None = None
    for one in allowed:
        seen = one if seen is None else graph.op("And", seen, one)
    return bias, seen


def _any_key(walk: Walk, bias: Value | None, seen: Value | None) -> Value | None:
    """Which queries look at a key at all; None where all do."""
    graph = walk.graph
    if bias is not None:
        finite = graph.op("Greater", bias, graph.like(-np.inf, bias))
        seen = finite if seen is None else graph.op("And", seen, finite)
    if seen is None:
        return None
    found = cast(walk, reduce(walk, "ReduceMax", cast(walk, seen, TensorProto.INT32),
                              [seen.rank - 1]), TensorProto.BOOL)
    return None if found.array is not None and found.array.all() else found


def _with_heads(walk: Walk, node: Node, x: Value, name: str) -> Value:
    """[batch, heads, length, size] of [batch, length, heads * size], which the attribute `name`
    says how to divide; of what has its heads already, beside which the attribute says nothing."""
    count = int(node.attrs.get(name) or 0)
    if x.rank != 3:
        return x
    if count < 1 or x.shape[2] % count:
        raise invalid(f"its attribute '{name}' is {count or 'missing'}, by which the "
                      f"{x.shape[2]} features of its input cannot be divided")
    return in_heads(walk, x, count)


def in_heads(walk: Walk, x: Value, count: int) -> Value:
    """[batch, length, heads * size] -> [batch, heads, length, size]."""
    return transposed(walk, reshaped(walk, x, (*x.shape[:2], count, x.shape[2] // count)),
                      [0, 2, 1, 3])


def repeated(walk: Walk, x: Value, groups: int) -> Value:
    """Each head of keys or values for several heads of queries."""
    batch, heads, length, size = x.shape
    wide = reshaped(walk, x, (batch, heads, 1, length, size))
    return reshaped(walk, expanded(walk, wide, (batch, heads, groups, length, size)),
                    (batch, heads * groups, length, size))


@rule("TensorScatter")
def tensor_scatter(walk: Walk, node: Node) -> Value:
    """A cache in which each sample's update lies from its place on."""
    graph = walk.graph
    cache, update, start = node.tensor(0), node.tensor(1), node.get(2)
    axis = node.attrs.get("axis", -2) % cache.rank
    length, count = cache.shape[axis], update.shape[axis]
    shape = [1] * cache.rank
    shape[axis] = length
    at = graph.constant(np.arange(length).reshape(shape))
    if start is not None:
        start = cast(walk, start, TensorProto.INT64)
        at = graph.op("Sub", at, reshaped(walk, start, (start.size, *[1] * (cache.rank - 1))))
    if node.attrs.get("mode", "linear") == "circular":
        at = graph.op("Mod", at, length, fmod=0)
    written = graph.op("And", graph.op("GreaterOrEqual", at, 0), graph.op("Less", at, count))
    if count > 1:
        places = graph.op("Clip", at, graph.like(0, at), graph.like(count - 1, at))
        update = graph.op("GatherElements", update, expanded(walk, places, cache.shape), axis=axis)
    return graph.op("Where", written, update, cache)


@rule("RotaryEmbedding")
def rotary_embedding(walk: Walk, node: Node) -> Value:
    """Pairs of features turned by angles of their positions; the rest of a head stays."""
    graph = walk.graph
    x, cosine, sine, places = node.tensor(0), node.tensor(1), node.tensor(2), node.get(3)
    flat = x.rank == 3
    x = _with_heads(walk, node, x, "num_heads")
    if places is not None:
        cosine, sine = (graph.op("Gather", t, places, axis=0) for t in (cosine, sine))
    # [batch, 1, length, pairs]
    cosine, sine = (graph.op("Unsqueeze", t, np.array([1])) for t in (cosine, sine))
    width = node.attrs.get("rotary_embedding_dim", 0) or x.shape[-1]
    even, odd = ((np.arange(0, width, 2), np.arange(1, width, 2))
                 if node.attrs.get("interleaved", 0)
                 else (np.arange(width // 2), np.arange(width // 2, width)))
    a, b = (graph.op("Gather", x, at, axis=3) for at in (even, odd))
    turned = [graph.op("Sub", graph.op("Mul", a, cosine), graph.op("Mul", b, sine)),
              graph.op("Add", graph.op("Mul", a, sine), graph.op("Mul", b, cosine))]
    made = concatenated(walk, turned, 3)
    made = graph.op("Gather", made, np.argsort(np.concatenate([even, odd])), axis=3)
    if width < x.shape[-1]:
        made = concatenated(walk, [made, graph.op("Gather", x, np.arange(width, x.shape[-1]),
                                                  axis=3)], 3)
    if flat:
        made = transposed(walk, made, [0, 2, 1, 3])
        made = reshaped(walk, made, (*made.shape[:2], made.shape[2] * made.shape[3]))
    return made
