"""Attention whose keys are summed up in a state (opset 27, and ONNX Runtime's own): as products of
matrices for many steps at once; and the convolution before it, which goes on where it ended."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import Refused, invalid
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.attention import in_heads, repeated
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.indexing import sliced
from run_model_tools.onnx_repair.rules.onnx_runtime import DOMAIN
from run_model_tools.onnx_repair.rules.reductions import reduce
from run_model_tools.onnx_repair.rules.shapes import concatenated, transposed
from run_model_tools.onnx_repair.rules.triangular import inverse_of_unit_lower
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk

_STEPS, _STEPS_OF_FEATURES = 64, 16
"""That are computed at once; with a decay for each feature, what is between two steps is a row."""
_RULES = ("linear", "gated", "delta", "gated_delta")


@rule("LinearAttention", ignored=("chunk_size",))
@rule("LinearAttention", domain=DOMAIN, ignored=("chunk_size",))
def linear_attention(walk: Walk, node: Node) -> list[Value]:
    """S_t = d_t S_(t-1) + k_t u_t, y_t = q_t S_t, where u_t is the value or, by the delta rule, its
    difference from what the state has for the key."""
    graph = walk.graph
    kind = update_rule(node)
    _check_plain(node, state_window=0)
    heads, of_keys = (int(node.attrs.get(name) or 0) for name in ("q_num_heads", "kv_num_heads"))
    q, k, v = (node.tensor(i) for i in range(3))
    # Some values may share a key, as Qwen 3.5's do.
    size = q.shape[2] // max(heads, 1)
    keys = k.shape[2] // max(size, 1)
    if min(heads, of_keys, keys) < 1 or (heads * size, keys * size) != (q.shape[2], k.shape[2]) \
            or max(heads, of_keys) % min(heads, of_keys) or of_keys % keys:
        raise invalid(f"its {q.shape[2]} and {k.shape[2]} features cannot be divided among {heads} "
                      f"and {of_keys} heads")
    kind_of_result = q.elem_type
    past, decay, rate = (node.get(i) for i in (3, 4, 5))
    decay = node.tensor(4) if kind.startswith("gated") else None
    rate = node.tensor(5) if kind.endswith("delta") else None
    q, k, v = (in_heads(walk, _wide(walk, x), n)
               for x, n in ((q, heads), (k, keys), (v, of_keys)))
    k = repeated(walk, k, of_keys // keys) if keys < of_keys else k
    q = graph.op("Mul", q, node.attrs.get("scale") or 1 / math.sqrt(q.shape[-1]))
    decay = None if decay is None else in_heads(walk, _wide(walk, decay), of_keys)
    if rate is not None:
        rate = in_heads(walk, _wide(walk, rate), rate.shape[2])
    if heads < of_keys:
        q = repeated(walk, q, of_keys // heads)
    state = None if past is None else _wide(walk, past)
    y, state = summed_in_state(walk, q, k, v, decay, rate, state)
    y = transposed(walk, y, [0, 2, 1, 3])
    y = reshaped(walk, y, (*y.shape[:2], y.shape[2] * y.shape[3]))
    kind_of_state = kind_of_result if past is None else past.elem_type
    return [cast(walk, y, kind_of_result), cast(walk, state, kind_of_state)][:max(node.outputs, 1)]


def update_rule(node: Node) -> str:
    kind = node.attrs.get("update_rule", "gated_delta")
    if kind not in _RULES:
        raise invalid(f"its update_rule is '{kind}', and {', '.join(_RULES)} are known")
    return kind


def summed_in_state(walk: Walk, q: Value, k: Value, v: Value, decay: Value | None,
                    rate: Value | None, state: Value | None) -> tuple[Value, Value]:
    """(results, the state behind the last step) of all [batch, heads, steps, size]."""
    batch, heads, steps, size = k.shape
    if state is None:
        state = walk.graph.constant(np.zeros((batch, heads, size, v.shape[-1]), q.dtype))
    together = _STEPS if decay is None or decay.shape[-1] == 1 else _STEPS_OF_FEATURES
    parts = []
    for start in range(0, steps, together):
        some = [x if x is None else sliced(walk, x, {2: range(start, min(start + together, steps))})
                for x in (q, k, v, decay, rate)]
        part, state = _some_steps(walk, some, state)
        parts.append(part)
    return concatenated(walk, parts, 2), state


def _wide(walk: Walk, x: Value) -> Value:
    return cast(walk, x, TensorProto.FLOAT) if x.elem_type == TensorProto.FLOAT16 else x


def _check_plain(node: Node, **expected: int) -> None:
    """Refuses what only other devices than CPUs have."""
    for name, value in expected.items():
        if node.attrs.get(name, value) != value:
            raise Refused(f"its attribute '{name}' is {node.attrs[name]}, and {value} is known")


def _some_steps(walk: Walk, given: list[Value | None], state: Value) -> tuple[Value, Value]:
    """(results [batch, heads, steps, size], the state behind them)."""
    graph = walk.graph
    q, k, u, decay, rate = given
    assert q is not None and k is not None and u is not None
    steps, groups = k.shape[2], q.shape[1] // k.shape[1]
    before = k  # With what is left of the state before the first step.
    sums: Value | None = None
    if decay is not None:
        # Of all steps up to each.
        sums = graph.op("MatMul", graph.constant(np.tri(steps), k.dtype), decay)
        before = graph.op("Mul", k, graph.op("Exp", sums))
    if rate is not None:
        u = graph.op("Mul", rate, graph.op("Sub", u, graph.op("MatMul", before, state)))
        if steps > 1:
            mixed = graph.op("Mul", rate, _products(walk, k, k, sums, -1))
            u = graph.op("MatMul", inverse_of_unit_lower(walk, mixed), u)
    keys, values, was, decays = (x if x is None or groups == 1 else repeated(walk, x, groups)
                                 for x in (k, u, state, sums))
    assert keys is not None
    made = graph.op("MatMul", _products(walk, q, keys, decays, 0), values)
    if decays is not None:
        q = graph.op("Mul", q, graph.op("Exp", decays))
    made = graph.op("Add", made, graph.op("MatMul", q, was))
    if sums is not None:
        end = sliced(walk, sums, {2: range(steps - 1, steps)})
        k = graph.op("Mul", k, graph.op("Exp", graph.op("Sub", end, sums)))
        state = graph.op("Mul", state, transposed(walk, graph.op("Exp", end), [0, 1, 3, 2]))
    return made, graph.op("Add", state, graph.op("MatMul", transposed(walk, k, [0, 1, 3, 2]), u))


def _products(walk: Walk, a: Value, b: Value, sums: Value | None, last: int) -> Value:
    """Of each row of a with those of b up to `last` places behind it, which have decayed since."""
    graph, steps = walk.graph, a.shape[2]
    seen = graph.constant(np.tri(steps, k=last, dtype=np.bool_))
    if sums is None:
        made = graph.op("MatMul", a, transposed(walk, b, [0, 1, 3, 2]))
        return graph.op("Where", seen, made, graph.like(0, made))
    each, others = (graph.op("Unsqueeze", sums, np.array([axis])) for axis in (3, 2))
    since = graph.op("Sub", each, others)
    since = graph.op("Where", graph.op("Unsqueeze", seen, np.array([2])), since,
                     graph.like(-np.inf, since))
    since = graph.op("Exp", since)
    if sums.shape[3] == 1:
        return graph.op("Mul", graph.op("MatMul", a, transposed(walk, b, [0, 1, 3, 2])),
                        reshaped(walk, since, since.shape[:4]))
    pairs = graph.op("Mul", graph.op("Mul", graph.op("Unsqueeze", a, np.array([3])),
                                     graph.op("Unsqueeze", b, np.array([2]))), since)
    return reduce(walk, "ReduceSum", pairs, [4], False)


@rule("CausalConvWithState")
@rule("CausalConvWithState", domain=DOMAIN)
def convolution_with_state(walk: Walk, node: Node) -> list[Value]:
    """Along a row, each channel by itself, of the steps up to each."""
    graph = walk.graph
    x, weight, bias, past = node.tensor(0), node.tensor(1), node.get(2), node.get(3)
    _check_plain(node, ndim=1, state_window=0, state_update_capacity=0, state_channels_last=-1,
                 state_length=0, input_channel_offset=0, input_channels=0)
    last = bool(node.attrs.get("channels_last", 0))
    activation, rate = node.attrs.get("activation", "none"), int(node.attrs.get("dilation", 1))
    if activation not in ("none", "silu", "swish"):
        raise invalid(f"its activation is '{activation}', and none, silu and swish are known")
    if x.rank != 3 or any(node.wanted[2:]):
        raise Refused("it is along more than one axis, or gives more than results and state")
    if last:
        x = transposed(walk, x, [0, 2, 1])
        past = None if past is None else transposed(walk, past, [0, 2, 1])
    before = (weight.shape[2] - 1) * rate
    if past is None:
        past = graph.constant(np.zeros((*x.shape[:2], before), x.dtype))
    whole = concatenated(walk, [past, x], 2) if before else x
    y = walk.node_in("Conv", 11, [whole, weight, bias], group=x.shape[1], dilations=[rate])
    if activation != "none":
        y = graph.op("Mul", y, graph.op("Sigmoid", y))
    end = whole.shape[2]
    results = [y, sliced(walk, whole, {2: range(end - before, end)})]
    if last:
        results = [transposed(walk, t, [0, 2, 1]) for t in results]
    return results[:max(node.outputs, 1)]
