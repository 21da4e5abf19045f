"""Operators that ONNX Runtime's tools write into diffusion models for GPUs (com.microsoft): its
releases for CPUs have none of them."""

from __future__ import annotations

from run_model_tools.onnx_repair.refusal import invalid
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.activations import gelu
from run_model_tools.onnx_repair.rules.convolution import convolved
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.indexing import sliced
from run_model_tools.onnx_repair.rules.onnx_runtime import DOMAIN
from run_model_tools.onnx_repair.rules.onnx_runtime.fused import channels_first, channels_last
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk


@rule("NhwcConv", domain=DOMAIN, ignored=("kernel_shape",))
def nhwc_conv(walk: Walk, node: Node) -> Value:
    """Pictures and weights both have their channels last."""
    x, weights = (channels_first(walk, node.tensor(i)) for i in (0, 1))
    return channels_last(walk, convolved(walk, node, x, weights, node.get(2)))


@rule("GroupNorm", domain=DOMAIN)
def group_norm(walk: Walk, node: Node) -> Value:
    return _normalised(walk, node, node.tensor(0))


@rule("SkipGroupNorm", domain=DOMAIN)
def skip_group_norm(walk: Walk, node: Node) -> list[Value]:
    """Groups of a sum, whose second part may be one number for each channel of a picture."""
    x, skip, bias = node.tensor(0), node.tensor(3), node.get(4)
    if skip.size == x.shape[0] * _channels(node, x):
        skip = _of_channels(walk, node, x, skip, x.shape[0])
    total = walk.graph.op("Add", x, skip)
    if bias is not None:
        total = walk.graph.op("Add", total, _of_channels(walk, node, x, bias, 1))
    return [_normalised(walk, node, total), total][:node.outputs]


def _is_last(node: Node) -> bool:
    return bool(node.attrs.get("channels_last", 1))


def _channels(node: Node, x: Value) -> int:
    return x.shape[-1 if _is_last(node) else 1]


def _of_channels(walk: Walk, node: Node, x: Value, value: Value, batch: int) -> Value:
    ones = [1] * (x.rank - 2)
    channels = value.size // batch
    return reshaped(walk, value, (batch, *ones, channels) if _is_last(node)
                    else (batch, channels, *ones))


def _normalised(walk: Walk, node: Node, x: Value) -> Value:
    groups = node.attrs["groups"]
    if groups < 1 or _channels(node, x) % groups:
        raise invalid(f"its {_channels(node, x)} channels are no multiple of its {groups} groups")
    made = channels_first(walk, x) if _is_last(node) else x
    factors = [cast(walk, node.tensor(i), x.elem_type) for i in (1, 2)]
    made = walk.node_in("GroupNormalization", 21, [made, *factors], 1, num_groups=groups,
                        epsilon=node.attrs.get("epsilon", 1e-5))
    if node.attrs.get("activation", 0):
        made = walk.graph.op("Mul", made, walk.graph.op("Sigmoid", made))
    return channels_last(walk, made) if _is_last(node) else made


@rule("BiasSplitGelu", domain=DOMAIN)
def bias_split_gelu(walk: Walk, node: Node) -> Value:
    """The first half of the channels, times the second one's GELU."""
    x = walk.graph.op("Add", node.tensor(0), node.tensor(1))
    half = x.shape[-1] // 2
    through, gate = (sliced(walk, x, {x.rank - 1: range(i, i + half)}) for i in (0, half))
    return walk.graph.op("Mul", through, gelu(walk, gate, False))


@rule("BiasAdd", domain=DOMAIN)
def bias_add(walk: Walk, node: Node) -> Value:
    return walk.graph.op("Add", walk.graph.op("Add", node.tensor(0), node.tensor(1)),
                         node.tensor(2))
