"""Mixtures of experts as ONNX Runtime has them (com.microsoft.MoE)."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import Refused, invalid
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.activations import gelu
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.indexing import sliced
from run_model_tools.onnx_repair.rules.reductions import reduce
from run_model_tools.onnx_repair.rules.shapes import transposed
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk


@rule("MoE", domain="com.microsoft", ignored=(
    "activation_alpha", "activation_beta", "swiglu_fusion", "swiglu_limit"))
def mixture_of_experts(walk: Walk, node: Node) -> Value:
    """All experts are asked, since only the run time knows which ones count, and those that do not
    weigh nothing."""
    graph, attrs = walk.graph, node.attrs
    x, scores, first, second = node.tensor(0), node.tensor(1), node.tensor(2), node.tensor(4)
    if attrs.get("use_sparse_mixer", 0) or node.get(6) is not None or node.get(7) is not None:
        raise Refused("its experts are chosen by a sparse mixer, or have a third layer")
    experts, wide, size = first.shape
    inner = second.shape[2]
    fused = 1 + (attrs.get("activation_type", "relu") == "swiglu")
    if x.shape[-1] != size or wide != fused * inner or second.shape != (experts, size, inner) \
            or scores.shape != (x.size // size, experts):
        raise invalid(f"its weights are {list(first.shape)} and {list(second.shape)}, and its "
                      f"scores {list(scores.shape)}, which do not fit to rows of {x.shape[-1]}")
    if wide == size:
        raise Refused("its experts' weights are square, and releases of ONNX Runtime differ in "
                      "which axis comes first")
    rows = reshaped(walk, x, (1, x.size // size, size))
    made = _activated(walk, node, _layer(walk, rows, first, node.get(3)))
    made = _layer(walk, made, second, node.get(5))
    weights = _weights(walk, scores, attrs.get("k", 1), attrs.get("normalize_routing_weights", 0))
    weights = reshaped(walk, transposed(walk, weights, [1, 0]), (experts, rows.shape[1], 1))
    return reshaped(walk, reduce(walk, "ReduceSum", graph.op("Mul", made, weights), [0], False),
                    x.shape)


def _layer(walk: Walk, rows: Value, weights: Value, bias: Value | None) -> Value:
    """[experts, rows, outputs]."""
    made = walk.graph.op("MatMul", rows, transposed(walk, weights, [0, 2, 1]))
    return made if bias is None else walk.graph.op("Add", made, reshaped(
        walk, bias, (bias.shape[0], 1, bias.shape[1])))


def _activated(walk: Walk, node: Node, x: Value) -> Value:
    graph, attrs = walk.graph, node.attrs
    name = attrs.get("activation_type", "relu")
    if name == "gelu":
        return gelu(walk, x, True)
    if name in ("relu", "silu", "identity"):
        return {"relu": lambda: graph.op("Relu", x), "identity": lambda: x,
                "silu": lambda: graph.op("Mul", x, graph.op("Sigmoid", x))}[name]()
    if name != "swiglu" or attrs.get("swiglu_fusion", 0) != 1 or attrs.get(
            "swiglu_limit_after_activation", 0):
        raise Refused(f"its activation is '{name}' in a form that ONNX Runtime has on GPUs only")
    # Gates and what they let through take turns.
    gate, through = (sliced(walk, x, {2: range(i, x.shape[2], 2)}) for i in (0, 1))
    limit = attrs.get("swiglu_limit")
    if limit is not None:
        gate = graph.op("Min", gate, float(limit))
        through = graph.op("Clip", through, graph.like(-limit, x), graph.like(limit, x))
    opened = graph.op("Sigmoid", graph.op("Mul", gate, float(attrs.get("activation_alpha", 1.0))))
    return graph.op("Mul", graph.op("Mul", gate, opened), graph.op(
        "Add", through, float(attrs.get("activation_beta", 0.0))))


def _weights(walk: Walk, scores: Value, k: int, normalised: int) -> Value:
    """[rows, experts]: the softmax of the scores for the k largest of a row, of equal ones the
    last, and 0 for the others."""
    graph = walk.graph
    rows, experts = scores.shape
    own, other = (reshaped(walk, scores, (rows, *shape)) for shape in ((experts, 1), (1, experts)))
    later = graph.constant(~np.tri(experts, experts, dtype=np.bool_))
    ahead = graph.op("Or", graph.op("Greater", other, own), graph.op(
        "And", graph.op("Equal", other, own), later))
    rank = reduce(walk, "ReduceSum", cast(walk, ahead, TensorProto.INT32), [2], False)
    weights = graph.op("Softmax", scores, axis=-1)
    weights = graph.op("Where", graph.op("Less", rank, k), weights, graph.like(0, weights))
    return graph.op("Div", weights, reduce(walk, "ReduceSum", weights, [1])) if normalised \
        else weights
