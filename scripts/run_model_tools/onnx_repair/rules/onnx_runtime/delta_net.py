"""GatedDeltaNet of ONNX Runtime (com.microsoft): attention with a state, of words one behind the
other, with what makes decays and rates of them in it."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import Refused, invalid
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.attention import repeated
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.linear_attention import summed_in_state, update_rule
from run_model_tools.onnx_repair.rules.onnx_runtime import DOMAIN
from run_model_tools.onnx_repair.rules.reductions import reduce
from run_model_tools.onnx_repair.rules.shapes import transposed
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk

_LEAST = 1e-12
"""What is added to the squared length of queries and keys before they are divided by it."""


@rule("GatedDeltaNet", domain=DOMAIN, ignored=("chunk_size",))
def gated_delta_net(walk: Walk, node: Node) -> list[Value]:
    graph, attrs = walk.graph, node.attrs
    kind = update_rule(node)
    if attrs.get("state_update_capacity", 0) or any(node.wanted[2:]):
        raise Refused("it gives what changes the state step by step (state_update)")
    past = node.get(6)
    batch = _batch(node, past)
    q, k, v = (_by_heads(walk, x, batch) for x in _queries_keys_values(walk, node, past))
    if attrs.get("qk_l2_norm", 0):
        q, k = _of_length_one(walk, q), _of_length_one(walk, k)
    q = graph.op("Mul", q, attrs.get("scale") or 1 / math.sqrt(q.shape[3]))
    groups = v.shape[1] // k.shape[1]
    if v.shape[1] % k.shape[1] or q.shape[1] != k.shape[1]:
        raise invalid(f"it has {q.shape[1]} heads of queries, {k.shape[1]} of keys and "
                      f"{v.shape[1]} of values")
    if groups > 1:
        q, k = repeated(walk, q, groups), repeated(walk, k, groups)
    decay = _decay(walk, node, batch) if kind.startswith("gated") else None
    rate = _rate(walk, node, batch) if kind.endswith("delta") else None
    state = None if past is None else transposed(walk, past, [0, 1, 3, 2])
    y, state = summed_in_state(walk, q, k, v, decay, rate, state)
    given = node.tensor(0)
    tokens = given.shape[:-2] if node.get(1) is not None else given.shape[:-1]
    y = reshaped(walk, transposed(walk, y, [0, 2, 1, 3]), (*tokens, y.shape[1], y.shape[3]))
    results = [cast(walk, y, given.elem_type), transposed(walk, state, [0, 1, 3, 2])]
    return results[:max(node.outputs, 1)]


def _batch(node: Node, past: Value | None) -> int:
    """How many texts of as many words each there are."""
    query, lengths = node.tensor(0), node.get(3)
    if query.rank == (4 if node.get(1) is not None else 3):
        return query.shape[0]
    if past is None and lengths is None:
        raise invalid("it has neither lengths of texts (cu_seqlens) nor a state, which say how "
                      "many texts there are")
    if lengths is not None:
        ends = node.ints(3, "cu_seqlens")
        if ends is None or len(set(np.diff(ends))) != 1:
            raise Refused("its texts have lengths of their own (cu_seqlens), or such that are not "
                          "known", "give it texts of one length, and --freeze these.")
        return len(ends) - 1
    assert past is not None
    return past.shape[0]


def _queries_keys_values(walk: Walk, node: Node, past: Value | None) -> list[Value]:
    """With an axis for heads; without keys, the queries hold all three."""
    query, key, value = node.tensor(0), node.get(1), node.get(2)
    if key is not None and value is not None:
        return [query, key, value]
    if past is None:
        raise invalid("it has no state, which would say how its queries are divided into heads")
    _, heads, of_values, of_keys = past.shape
    widths = [(query.shape[-1] - heads * of_values) // 2] * 2 + [heads * of_values]
    parts = walk.graph.ops("Split", [query, np.array(widths)], 3, axis=query.rank - 1)
    return [reshaped(walk, x, (*x.shape[:-1], x.shape[-1] // size, size))
            for x, size in zip(parts, (of_keys, of_keys, of_values))]


def _by_heads(walk: Walk, x: Value, batch: int) -> Value:
    """[words of all texts, heads, size] -> [batch, heads, words, size], float32."""
    heads, size = x.shape[-2:]
    x = cast(walk, x, TensorProto.FLOAT)
    return transposed(walk, reshaped(walk, x, (batch, x.size // (batch * heads * size), heads,
                                               size)), [0, 2, 1, 3])


def _of_length_one(walk: Walk, x: Value) -> Value:
    graph = walk.graph
    squares = reduce(walk, "ReduceSum", graph.op("Mul", x, x), [3])
    return graph.op("Div", x, graph.op("Sqrt", graph.op("Add", squares, _LEAST)))


def _gate(walk: Walk, node: Node, index: int, batch: int) -> Value:
    """A number for each head, or for each feature of one: like _by_heads()."""
    x = node.tensor(index)
    tokens = node.tensor(0).rank - (2 if node.get(1) is not None else 1)
    if x.rank == tokens + 1:
        x = reshaped(walk, x, (*x.shape, 1))
    return _by_heads(walk, x, batch)


def _decay(walk: Walk, node: Node, batch: int) -> Value:
    graph, activation = walk.graph, node.attrs.get("gate_activation") or "none"
    made = _gate(walk, node, 4, batch)
    if activation == "none":
        return made
    if activation not in ("softplus", "sigmoid", "kda"):
        raise invalid(f"its gate_activation is '{activation}', and none, softplus, sigmoid and "
                      "kda are known")
    logarithm, bias = (node.tensor(i) for i in (7, 8))
    heads = made.shape[1]
    power = graph.op("Exp", reshaped(walk, logarithm, (1, heads, 1, 1)))
    made = graph.op("Add", made, reshaped(walk, bias, (1, heads, 1, bias.size // heads)))
    if activation == "softplus":
        return graph.op("Neg", graph.op("Mul", walk.node_in("Softplus", 1, [made]), power))
    bound = float(node.attrs.get("gate_lower_bound", -5.0))
    return graph.op("Mul", graph.op("Sigmoid", graph.op("Mul", made, power)), bound)


def _rate(walk: Walk, node: Node, batch: int) -> Value:
    activation = node.attrs.get("beta_activation") or "none"
    if activation not in ("none", "sigmoid"):
        raise invalid(f"its beta_activation is '{activation}', and none and sigmoid are known")
    made = _gate(walk, node, 5, batch)
    return walk.graph.op("Sigmoid", made) if activation == "sigmoid" else made
