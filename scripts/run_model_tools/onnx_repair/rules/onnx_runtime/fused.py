"""Operators of ONNX Runtime's own (com.microsoft), which its optimiser writes into models."""

from __future__ import annotations

from run_model_tools.onnx_repair.refusal import Refused
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.activations import gelu
from run_model_tools.onnx_repair.rules.convolution import convolved
from run_model_tools.onnx_repair.rules.matmul import product
from run_model_tools.onnx_repair.rules.onnx_runtime import DOMAIN
from run_model_tools.onnx_repair.rules.shapes import transposed
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk

_BLOCKED = "com.microsoft.nchwc"


@rule("Gelu", "BiasGelu", "FastGelu", "QuickGelu", domain=DOMAIN)
def gelus(walk: Walk, node: Node) -> Value:
    x = node.tensor(0)
    if node.op == "QuickGelu":
        scaled = walk.graph.op("Mul", x, float(node.attrs.get("alpha", 1.702)))
        return walk.graph.op("Mul", x, walk.graph.op("Sigmoid", scaled))
    bias = node.get(1)
    if bias is not None:
        x = walk.graph.op("Add", x, bias)
    return gelu(walk, x, node.op == "FastGelu")


@rule("GemmFastGelu", domain=DOMAIN)
def product_and_gelu(walk: Walk, node: Node) -> Value:
    made, bias = product(walk, node.tensor(0), node.tensor(1)), node.get(2)
    return gelu(walk, made if bias is None else walk.graph.op("Add", made, bias), True)


@rule("BiasSoftmax", domain=DOMAIN, ignored=("is_inner_broadcast",))
def bias_softmax(walk: Walk, node: Node) -> Value:
    """Over all axes from `axis` on, taken as one."""
    total = walk.graph.op("Add", node.tensor(0), node.tensor(1))
    return walk.node_in("Softmax", 11, [total], 1, axis=node.attrs.get("axis", 1))


@rule("FusedMatMul", "TransposeMatMul", domain=DOMAIN)
def fused_matmul(walk: Walk, node: Node) -> Value:
    values = []
    for value, key in ((node.tensor(0), "A"), (node.tensor(1), "B")):
        axes = list(range(value.rank))
        if node.attrs.get(f"transBatch{key}", 0):
            # The rows' axis is the first, before those of the batch.
            axes = [*axes[1:-1], 0, axes[-1]]
        if node.attrs.get(f"trans{key}", 0):
            axes[-2:] = axes[:-3:-1]
        values.append(transposed(walk, value, axes))
    made = product(walk, *values)
    alpha = float(node.attrs.get("alpha", 1.0))
    return made if alpha == 1 else walk.graph.op("Mul", made, alpha)


@rule("FusedConv", domain=DOMAIN, ignored=("kernel_shape",))
def fused_conv(walk: Walk, node: Node) -> Value:
    made = convolved(walk, node, node.tensor(0), node.tensor(1), node.get(2))
    other = node.get(3)
    if other is not None:
        made = walk.graph.op("Add", made, other)
    return _activated(walk, node, made, node.attrs.get("activation_params", []))


@rule("FusedGemm", domain=DOMAIN)
def fused_gemm(walk: Walk, node: Node) -> Value:
    attrs = {key: node.attrs.get(key) for key in ("alpha", "beta", "transA", "transB")}
    made = walk.node_in("Gemm", 13, node.inputs, 1, **attrs)
    return _activated(walk, node, made, [node.attrs[key] for key in (
        "activation_alpha", "activation_beta", "activation_gamma") if key in node.attrs])


def _activated(walk: Walk, node: Node, made: Value, parameters: list[float]) -> Value:
    name = node.attrs.get("activation", "")
    given = [float(p) for p in parameters]
    names = {"Elu": ("alpha",), "LeakyRelu": ("alpha",), "ThresholdedRelu": ("alpha",),
             "HardSigmoid": ("alpha", "beta"), "Selu": ("alpha", "gamma"),
             "Clip": ("min", "max")}.get(name, ())
    if name == "Clip":
        return walk.graph.op("Clip", made, walk.graph.like(given[0], made),
                             walk.graph.like(given[1], made))
    return walk.node_in(name, 13, [made], 1, **dict(zip(names, given))) if name else made


def channels_first(walk: Walk, x: Value) -> Value:
    return transposed(walk, x, [0, x.rank - 1, *range(1, x.rank - 1)])


def channels_last(walk: Walk, x: Value) -> Value:
    return transposed(walk, x, [0, *range(2, x.rank), 1])


@rule("NhwcMaxPool", domain=DOMAIN)
def nhwc_max_pool(walk: Walk, node: Node) -> Value:
    made = walk.node_in("MaxPool", 12, [channels_first(walk, node.tensor(0))], 1,
                        **{key: node.attrs.get(key) for key in (
                            "auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads",
                            "strides")})
    return channels_last(walk, made)


@rule("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain=DOMAIN)
def skip_layer_normalization(walk: Walk, node: Node) -> list[Value | None]:
    if any(node.wanted[1:3]):
        raise Refused("its mean or deviation is used")
    simple = node.op.startswith("SkipSimplified")
    x, skip, scale = node.tensor(0), node.tensor(1), node.tensor(2)
    shift, bias = (None, node.get(3)) if simple else (node.get(3), node.get(4))
    total = walk.graph.op("Add", x, skip)
    if bias is not None:
        total = walk.graph.op("Add", total, bias)
    epsilon = float(node.attrs.get("epsilon", 1e-12))
    inputs = [total, scale] if simple or shift is None else [total, scale, shift]
    y = walk.node_in("SimplifiedLayerNormalization" if simple else "LayerNormalization", 17,
                     list(inputs), 1, epsilon=epsilon)
    return [y, None, None, total][:max(node.outputs, 1)]


@rule("AveragePool", "Conv", "GlobalAveragePool", "GlobalMaxPool", "MaxPool", "ReorderInput",
      "ReorderOutput", "Upsample", domain=_BLOCKED)
def blocked(_walk: Walk, _node: Node) -> Value:
    raise Refused(
        "ONNX Runtime has optimised this file for one kind of CPU, with channels and weights in "
        "blocks whose size the file does not say",
        "take the file before that, or have it written again with graph_optimization_level = "
        "ORT_ENABLE_EXTENDED.", "machine")
