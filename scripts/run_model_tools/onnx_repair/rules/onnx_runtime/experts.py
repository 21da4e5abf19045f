"""Mixtures of experts as ONNX Runtime has them (com.microsoft.MoE, QMoE)."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import Refused, invalid
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.activations import gelu
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.indexing import sliced
from run_model_tools.onnx_repair.rules.onnx_runtime import DOMAIN
from run_model_tools.onnx_repair.rules.onnx_runtime.bytes import unpacked
from run_model_tools.onnx_repair.rules.reductions import reduce
from run_model_tools.onnx_repair.rules.shapes import transposed
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk

_OF_SWIGLU = ("activation_alpha", "activation_beta", "swiglu_fusion", "swiglu_limit")


@rule("MoE", domain=DOMAIN, ignored=_OF_SWIGLU)
def mixture_of_experts(walk: Walk, node: Node) -> Value:
    attrs = node.attrs
    if attrs.get("use_sparse_mixer", 0) or node.get(6) is not None or node.get(7) is not None:
        raise Refused("its experts are chosen by a sparse mixer, or have a third layer")
    first, second = node.tensor(2), node.tensor(4)
    if first.shape[1] == first.shape[2]:
        raise Refused("its experts' weights are square, and releases of ONNX Runtime differ in "
                      "which axis comes first")
    return _mixed(walk, node, (first, second), (node.get(3), node.get(5)),
                  attrs.get("normalize_routing_weights", 0))


@rule("QMoE", domain=DOMAIN, ignored=(
    *_OF_SWIGLU, "accuracy_level", "normalize_routing_weights"))
def mixture_of_experts_of_few_bits(walk: Walk, node: Node) -> Value:
    """Weights of 2, 4 or 8 bits, as float32.  The shares of the chosen experts are 1 together
    whatever normalize_routing_weights says, as in ONNX Runtime's releases for CPUs."""
    attrs = node.attrs
    if attrs.get("use_sparse_mixer", 0) or any(node.get(index) is not None for index in (
            8, 9, 10, *range(13, len(node.inputs)))):
        raise Refused("its experts are chosen by a sparse mixer or other weights, or have a third "
                      "layer or scales of float8")
    if attrs.get("quant_type", "int") != "int" or attrs.get("weights_prepacked", -1) > 0:
        raise Refused("its weights are no whole numbers, or lie as a GPU wants them")
    layers = [_of_few_bits(walk, node, name, *places)
              for name, places in (("fc1", (2, 3, 11)), ("fc2", (5, 6, 12)))]
    return _mixed(walk, node, (layers[0], layers[1]), (node.get(4), node.get(7)), 1)


def _of_few_bits(walk: Walk, node: Node, name: str, weights: int, scales: int,
                 zeros: int) -> Value:
    """[experts, outputs, inputs]; a scale for each output, or for each block of its inputs."""
    bits = node.attrs.get(f"{name}_expert_weight_bits", node.attrs.get("expert_weight_bits", 4))
    if bits not in (2, 4, 8):
        raise Refused(f"its weights have {bits} bits", "quantise it to 2, 4 or 8 bits.")
    packed, scale = node.constant(weights, "its weights"), node.constant(scales, "its scales")
    zero = node.constant(zeros, "its zero points")
    assert packed is not None and scale is not None
    if packed.shape[:2] != scale.shape[:2]:
        # CUTLASS's have a row for each input.
        raise Refused(f"its weights have {packed.shape[1]} rows and its scales {scale.shape[1]}, "
                      "as they lie for a GPU", "build the model for CPUs or WebGPU.")
    whole = unpacked(packed, bits).astype(np.float32)
    zero = (np.full(scale.shape, 1 << (bits - 1)) if zero is None
            else unpacked(zero, bits)[..., :scale.shape[-1]])
    if scale.ndim < 3:
        scale, zero = scale[..., None], zero[..., None]
    block = node.attrs.get("block_size", 0) or whole.shape[-1]
    if whole.shape[-1] != block * scale.shape[-1] or zero.shape != scale.shape:
        raise invalid(f"its weights have rows of {whole.shape[-1]}, and scales for "
                      f"{scale.shape[-1]} blocks of {block}")
    scale, zero = (np.repeat(v.astype(np.float32), block, -1) for v in (scale, zero))
    return cast(walk, walk.graph.constant((whole - zero) * scale), node.tensor(0).elem_type)


def _mixed(walk: Walk, node: Node, layers: tuple[Value, Value],
           biases: tuple[Value | None, Value | None], normalised: int) -> Value:
    """All experts are asked, since only the run time knows which ones count, and those that do not
    weigh nothing."""
    graph, attrs = walk.graph, node.attrs
    x, scores, (first, second) = node.tensor(0), node.tensor(1), layers
    experts, wide, size = first.shape
    inner = second.shape[2]
    fused = 1 + (attrs.get("activation_type", "relu") == "swiglu")
    if x.shape[-1] != size or wide != fused * inner or second.shape != (experts, size, inner) \
            or scores.shape != (x.size // size, experts):
        raise invalid(f"its weights are {list(first.shape)} and {list(second.shape)}, and its "
                      f"scores {list(scores.shape)}, which do not fit to rows of {x.shape[-1]}")
    rows = reshaped(walk, x, (1, x.size // size, size))
    made = _activated(walk, node, _layer(walk, rows, first, biases[0]))
    made = _layer(walk, made, second, biases[1])
    weights = _weights(walk, scores, attrs.get("k", 1), normalised)
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
