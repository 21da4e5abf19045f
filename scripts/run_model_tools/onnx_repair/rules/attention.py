"""Attention as one operator (opset 23): products, a mask and a softmax."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import Refused
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import reshaped
from run_model_tools.onnx_repair.rules.shapes import concatenated, expanded, transposed
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk


@rule("Attention")
def attention(walk: Walk, node: Node) -> list[Value | None]:
    graph = walk.graph
    q, k, v = node.tensor(0), node.tensor(1), node.tensor(2)
    mask, past_k, past_v = node.get(3), node.get(4), node.get(5)
    if node.outputs > 3 and node.wanted[3]:
        raise Refused("its output of products before the softmax is used")
    flat = q.rank == 3
    if flat:
        q = in_heads(walk, q, node.attrs["q_num_heads"])
        k, v = (in_heads(walk, t, node.attrs["kv_num_heads"]) for t in (k, v))
    if past_k is not None and past_v is not None:
        k, v = concatenated(walk, [past_k, k], 2), concatenated(walk, [past_v, v], 2)
    presents = [k, v]
    groups = q.shape[1] // k.shape[1]
    if groups > 1:
        k, v = (repeated(walk, t, groups) for t in (k, v))
    scale = node.attrs.get("scale") or 1 / math.sqrt(q.shape[-1])
    scores = graph.op("MatMul", graph.op("Mul", q, scale), transposed(walk, k, [0, 1, 3, 2]))
    lowest = graph.like(float(np.finfo(q.dtype).min), q)
    if mask is not None:
        scores = (graph.op("Where", mask, scores, lowest)
                  if mask.elem_type == TensorProto.BOOL else graph.op("Add", scores, mask))
    if node.attrs.get("is_causal", 0):
        queries, keys = scores.shape[-2:]
        seen = np.tri(queries, keys, keys - k.shape[2] + (
            past_k.shape[2] if past_k is not None else 0), dtype=np.bool_)
        scores = graph.op("Where", graph.constant(seen), scores, lowest)
    cap = float(node.attrs.get("softcap", 0.0))
    if cap:
        scores = graph.op("Mul", graph.op("Tanh", graph.op("Div", scores, cap)), cap)
    y = graph.op("MatMul", graph.op("Softmax", scores, axis=-1), v)
    if flat:
        y = transposed(walk, y, [0, 2, 1, 3])
        y = reshaped(walk, y, (*y.shape[:2], y.shape[2] * y.shape[3]))
    return [y, *presents]


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


@rule("RotaryEmbedding")
def rotary_embedding(walk: Walk, node: Node) -> Value:
    """Pairs of features turned by angles of their positions; the rest of a head stays."""
    graph = walk.graph
    x, cosine, sine, places = node.tensor(0), node.tensor(1), node.tensor(2), node.get(3)
    flat = x.rank == 3
    if flat:
        x = in_heads(walk, x, node.attrs["num_heads"])
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
