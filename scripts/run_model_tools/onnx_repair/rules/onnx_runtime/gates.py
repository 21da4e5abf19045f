"""Gates, norms and mixtures of streams of this year's language models, which ONNX Runtime has as
operators of its own."""

from __future__ import annotations

import numpy as np

from run_model_tools.onnx_repair.refusal import Refused, invalid
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.onnx_runtime import DOMAIN
from run_model_tools.onnx_repair.rules.reductions import reduce
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk


@rule("LinearAttentionGate", domain=DOMAIN)
def linear_attention_gate(walk: Walk, node: Node) -> list[Value | None]:
    graph = walk.graph
    a, bias, scale, b = node.tensor(0), node.tensor(1), node.tensor(2), node.get(3)
    soft = walk.node_in("Softplus", 1, [graph.op("Add", cast(walk, a, bias.elem_type), bias)])
    made = [cast(walk, graph.op("Mul", soft, scale), a.elem_type),
            None if b is None else graph.op("Sigmoid", b)]
    return made[:max(node.outputs, 1)]


@rule("GatedRMSNorm", domain=DOMAIN)
def gated_norm(walk: Walk, node: Node) -> Value:
    """Of as many features each as there are scales."""
    graph = walk.graph
    x, scale, gate = node.tensor(0), node.tensor(1), node.tensor(2)
    activation = node.attrs.get("activation", "silu")
    if activation not in ("silu", "swish", "sigmoid"):
        raise invalid(f"its activation is '{activation}', and silu, swish and sigmoid are known")
    y = reshaped(walk, _normalised(walk, node, _in_parts(walk, x, x.size // scale.size), 1e-5),
                 (*x.shape[:-1], x.shape[-1] // scale.size, scale.size))
    y = reshaped(walk, graph.op("Mul", y, scale), x.shape)
    opened = graph.op("Sigmoid", gate)
    return graph.op("Mul", y, opened if activation == "sigmoid" else graph.op("Mul", gate, opened))


@rule("BranchwiseRMSNorm", domain=DOMAIN)
def branchwise_norm(walk: Walk, node: Node) -> Value:
    x, scale = node.tensor(0), node.get(1)
    branches = _branches(node, x)
    y = _normalised(walk, node, reshaped(walk, x, branches), 1e-5)
    if scale is not None:
        shape = branches[-2:] if scale.size > branches[-1] else branches[-1:]
        y = walk.graph.op("Mul", y, cast(walk, reshaped(walk, scale, shape), x.elem_type))
    return reshaped(walk, y, x.shape)


def _normalised(walk: Walk, node: Node, x: Value, epsilon: float) -> Value:
    """Along the last axis."""
    graph = walk.graph
    mean = reduce(walk, "ReduceMean", graph.op("Mul", x, x), [x.rank - 1])
    return graph.op("Div", x, graph.op("Sqrt", graph.op(
        "Add", mean, float(node.attrs.get("epsilon", epsilon)))))


def _in_parts(walk: Walk, x: Value, count: int) -> Value:
    return reshaped(walk, x, (count, x.size // count))


def _branches(node: Node, x: Value) -> tuple[int, ...]:
    """The shape of streams with an axis for these, the last but one."""
    count = int(node.attrs.get("num_branches", 0))
    if count and x.shape[-1] % count:
        raise invalid(f"its {x.shape[-1]} features cannot be divided among {count} branches")
    return (*x.shape[:-1], count, x.shape[-1] // count) if count else x.shape


@rule("HyperConnectionPreMix", domain=DOMAIN)
def streams_to_one(walk: Walk, node: Node) -> Value:
    graph, x, gates = walk.graph, node.tensor(0), node.tensor(1)
    branches = _branches(node, x)
    mixed = graph.op("Mul", reshaped(walk, x, branches), _gates(walk, gates, branches, x))
    made = reduce(walk, "ReduceSum", mixed, [len(branches) - 2], False)
    scale = float(node.attrs.get("reduction_scale", 1.0))
    return made if scale == 1 else graph.op("Mul", made, scale)


@rule("HyperConnectionPostMix", domain=DOMAIN)
def one_to_streams(walk: Walk, node: Node) -> Value:
    graph, x, block, gates = walk.graph, *(node.tensor(i) for i in range(3))
    mix, branches = node.get(3), _branches(node, x)
    streams = reshaped(walk, x, branches)
    if mix is not None:
        order = [*range(mix.rank - 2), mix.rank - 1, mix.rank - 2]
        turned = graph.op("Transpose", cast(walk, mix, x.elem_type), perm=order)
        streams = graph.op("MatMul", turned, streams)
    added = graph.op("Mul", graph.op("Unsqueeze", block, np.array([block.rank - 1])),
                     _gates(walk, gates, branches, x))
    return reshaped(walk, graph.op("Add", streams, added), x.shape)


def _gates(walk: Walk, gates: Value, branches: tuple[int, ...], x: Value) -> Value:
    """One for each branch, or each feature of one."""
    wide = int(np.prod(branches))
    shape = branches if gates.size == wide else (*branches[:-1], 1)
    return reshaped(walk, cast(walk, gates, x.elem_type), shape)


@rule("GatedAdd", domain=DOMAIN)
def gated_sum(walk: Walk, node: Node) -> Value:
    graph, x, y, gate = walk.graph, *(node.tensor(i) for i in range(3))
    weight = node.get(3)
    if weight is not None:
        gate = graph.op("Sigmoid", graph.op("MatMul", gate, weight))
    return graph.op("Add", x, graph.op("Mul", y, gate))


@rule("ScaledSiLU", domain=DOMAIN)
def scaled_silu(walk: Walk, node: Node) -> Value:
    graph, x, scale = walk.graph, node.tensor(0), node.get(1)
    if scale is not None and scale.size != 1:
        raise Refused(f"its scale has {scale.size} numbers")
    by = graph.like(float(node.attrs.get("alpha", 1.0)), x) if scale is None else reshaped(
        walk, cast(walk, scale, x.elem_type), ())
    scaled = graph.op("Mul", x, by)
    return graph.op("Mul", scaled, graph.op("Sigmoid", scaled))
