"""Normalisations: over the batch's statistics, channels, groups or the last axes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import Refused
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.reductions import reduce
from run_model_tools.onnx_repair.rules.shapes import expanded, reshaped_from, volume_of
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk


@rule("BatchNormalization", "SpatialBN")
def batch_normalization(walk: Walk, node: Node) -> list[Value | None]:
    graph = walk.graph
    x, scale, bias, mean, variance = (node.tensor(i) for i in range(5))
    epsilon = float(node.attrs.get("epsilon", 1e-5))
    if not node.attrs.get("spatial", 1) and scale.rank > 1:
        raise Refused("it normalises every place by itself (spatial=0)")
    trains = node.attrs.get("training_mode", 0) or (
        # Which outputs are named says so, whoever reads them.
        node.opset < 7 and not node.attrs.get("is_test", 0) and any(node.proto.output[1:]))
    if not trains:
        kind = x.elem_type
        parameters = [cast(walk, v, kind) for v in (scale, bias, mean, variance)]
        known = [v.array for v in parameters if v.array is not None]
        if walk.is_open and x.rank > 1 and len(known) == len(parameters):
            # Two operators on numbers, which become part of what computes x.
            of_scale, of_bias, of_mean, of_variance = (np.float64(array) for array in known)
            factor = of_scale / np.sqrt(of_variance + epsilon)
            shape = (1, scale.size, *[1] * (x.rank - 2))
            scaled, shift = (numbers.reshape(shape).astype(known[0].dtype)
                             for numbers in (factor, of_bias - of_mean * factor))
            return [graph.op("Add", graph.op("Mul", x, scaled), shift)]
        if x.rank == 1:
            x = reshaped(walk, x, (1, x.size))
        return [graph.op("BatchNormalization", x, *parameters, epsilon=epsilon)]
    axes = [i for i in range(x.rank) if i != 1]
    shape = (1, scale.size, *[1] * (x.rank - 2))
    here = reduce(walk, "ReduceMean", x, axes)
    centred = graph.op("Sub", x, here)
    spread = reduce(walk, "ReduceMean", graph.op("Mul", centred, centred), axes)
    y = graph.op("Div", centred, graph.op("Sqrt", graph.op("Add", spread, epsilon)))
    y = graph.op("Add", graph.op("Mul", y, reshaped(walk, scale, shape)),
                 reshaped(walk, bias, shape))
    momentum = node.attrs.get("momentum", 0.9)
    running = []
    for old, new in ((mean, here), (variance, spread)):
        new = cast(walk, reshaped(walk, new, old.shape), old.elem_type)
        running.append(graph.op("Add", graph.op("Mul", old, momentum),
                                graph.op("Mul", new, 1 - momentum)))
    return [y, *running]


@rule("InstanceNormalization")
def instance_normalization(walk: Walk, node: Node) -> Value:
    x = node.tensor(0)
    if x.rank < 3:
        raise Refused(f"its input has {x.rank} axes, and 3 are the fewest")
    epsilon = float(node.attrs.get("epsilon", 1e-5))
    scale, bias = node.tensor(1), node.tensor(2)
    # PyTorch's exporter writes groups so: each as a channel of one axis.
    volume = x if x.pictures is not None else reshaped_from(walk, x)
    if (volume is not None and volume.pictures is not None and volume.shape[0] == x.shape[0]
            and volume.shape[1] % x.shape[1] == 0):
        y = _of_volumes(walk, volume, volume.pictures, x.shape[1], epsilon)
        repeats = np.repeat(np.arange(x.shape[1]), volume.shape[1] // x.shape[1])
        y = _scaled(walk, y, *(v if v.size == volume.shape[1] else walk.graph.op(
            "Gather", v, repeats) for v in (scale, bias)))
        return reshaped(walk, y, x.shape)
    return walk.graph.op("InstanceNormalization", x, scale, bias, epsilon=epsilon)


def _in_float32(walk: Walk, node: Node, x: Value) -> Value:
    """Statistics of half-precision values are of float32, where the node does not say otherwise."""
    if x.elem_type == TensorProto.FLOAT16 and node.attrs.get("stash_type", 1) == 1:
        return cast(walk, x, TensorProto.FLOAT)
    return x


def _normalised(walk: Walk, x: Value, mean_of: Callable[[Value], Value],
                epsilon: float) -> tuple[Value, Value, Value]:
    """(x - mean) / deviation, the mean, and one over the deviation."""
    graph = walk.graph
    mean = mean_of(x)
    centred = graph.op("Sub", x, mean)
    variance = mean_of(graph.op("Mul", centred, centred))
    inverse = graph.op("Reciprocal", graph.op("Sqrt", graph.op("Add", variance, epsilon)))
    return graph.op("Mul", centred, inverse), mean, inverse


@rule("LayerNormalization")
def layer_normalization(walk: Walk, node: Node) -> list[Value]:
    graph = walk.graph
    x, scale, bias = node.tensor(0), node.tensor(1), node.get(2)
    axis = node.attrs.get("axis", -1) % x.rank
    epsilon = float(node.attrs.get("epsilon", 1e-5))
    if node.outputs == 1 or not any(node.wanted[1:]):
        wide = _in_float32(walk, node, x)
        scale = cast(walk, scale, wide.elem_type)
        bias = None if bias is None else cast(walk, bias, wide.elem_type)
        return [cast(walk, graph.op("LayerNormalization", wide, scale, bias, axis=axis,
                                    epsilon=epsilon), x.elem_type)]
    axes = list(range(axis, x.rank))
    y, mean, inverse = _normalised(walk, _in_float32(walk, node, x),
                                   lambda v: reduce(walk, "ReduceMean", v, axes), epsilon)
    y = graph.op("Mul", cast(walk, y, x.elem_type), scale)
    return [y if bias is None else graph.op("Add", y, bias), mean, inverse]


@rule("RMSNormalization", "SimplifiedLayerNormalization", ignored=("stash_type",))
def rms_normalization(walk: Walk, node: Node) -> Value:
    graph = walk.graph
    x, scale = node.tensor(0), node.tensor(1)
    wide = _in_float32(walk, node, x)
    axes = list(range(node.attrs.get("axis", -1) % x.rank, x.rank))
    mean = reduce(walk, "ReduceMean", graph.op("Mul", wide, wide), axes)
    root = graph.op("Sqrt", graph.op("Add", mean, float(node.attrs.get("epsilon", 1e-5))))
    return graph.op("Mul", cast(walk, graph.op("Div", wide, root), x.elem_type), scale)


@rule("GroupNormalization")
def group_normalization(walk: Walk, node: Node) -> Value:
    """Until opset 20 there are a scale and a bias for each group, since then for each channel."""
    x, scale, bias = node.tensor(0), node.tensor(1), node.tensor(2)
    groups = node.attrs["num_groups"]
    epsilon = float(node.attrs.get("epsilon", 1e-5))
    per_group = scale.size == groups and node.opset < 21
    if x.pictures is not None and not (per_group and groups != x.shape[1]):
        y = _of_volumes(walk, x, _in_float32(walk, node, x.pictures), groups, epsilon)
        return _scaled(walk, y, scale, bias)
    wide = _in_float32(walk, node, x)
    parts = reshaped(walk, wide, (x.shape[0], groups, x.size // x.shape[0] // groups))
    y, _, _ = _normalised(walk, parts, lambda v: reduce(walk, "ReduceMean", v, [2]), epsilon)
    if per_group and groups != x.shape[1]:
        y = _scaled(walk, cast(walk, y, x.elem_type), scale, bias)
        return reshaped(walk, y, x.shape)
    return _scaled(walk, cast(walk, reshaped(walk, y, x.shape), x.elem_type), scale, bias)


def _of_volumes(walk: Walk, x: Value, pictures: Value, groups: int, epsilon: float) -> Value:
    """A volume's numbers less their group's mean and by their deviation."""
    batch, channels, depth, *_ = x.shape
    apart = (batch, depth, groups, channels // groups)

    def mean(value: Value) -> Value:
        """Of each group, for each picture's channels."""
        of_each = reshaped(walk, reduce(walk, "ReduceMean", value, [2, 3]), apart)
        return reshaped(walk, expanded(walk, reduce(walk, "ReduceMean", of_each, [1, 3]), apart),
                        (batch * depth, channels, 1, 1))

    y, _, _ = _normalised(walk, pictures, mean, epsilon)
    return volume_of(walk, cast(walk, y, x.elem_type), batch)


def _scaled(walk: Walk, x: Value, scale: Value, bias: Value) -> Value:
    if x.pictures is not None:
        return volume_of(walk, _scaled(walk, x.pictures, scale, bias), x.shape[0])
    shape = (1, scale.size, *[1] * (x.rank - 2))
    return walk.graph.op("Add", walk.graph.op("Mul", x, reshaped(walk, scale, shape)),
                         reshaped(walk, bias, shape))


@rule("MeanVarianceNormalization")
def mean_variance_normalization(walk: Walk, node: Node) -> Value:
    graph = walk.graph
    x = node.tensor(0)
    axes = [a % x.rank for a in node.attrs.get("axes", [0, 2, 3])]
    if node.opset < 9 and node.attrs.get("across_channels", 0):
        axes = sorted({*axes, 1})
    centred = graph.op("Sub", x, reduce(walk, "ReduceMean", x, axes))
    variance = reduce(walk, "ReduceMean", graph.op("Mul", centred, centred), axes)
    return graph.op("Div", centred, graph.op("Add", graph.op("Sqrt", variance), 1e-9))


@rule("LpNormalization")
def lp_normalization(walk: Walk, node: Node) -> Value:
    graph = walk.graph
    x = node.tensor(0)
    axes = [node.attrs.get("axis", -1) % x.rank]
    if node.attrs.get("p", 2) == 1:
        norm = reduce(walk, "ReduceSum", graph.op("Abs", x), axes)
    else:
        norm = graph.op("Sqrt", reduce(walk, "ReduceSum", graph.op("Mul", x, x), axes))
    # Where all are 0, the result is 0.
    zero = graph.op("Equal", norm, 0)
    return graph.op("Div", x, graph.op("Where", zero, graph.like(1, x), norm))


@rule("LRN")
def lrn(walk: Walk, node: Node) -> Value:
    """Sums over neighbouring channels: those of a window that is rounded down before."""
    graph = walk.graph
    x = node.tensor(0)
    size = node.attrs["size"]
    alpha, beta, bias = (float(node.attrs.get(k, d)) for k, d in (
        ("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0)))
    if size % 2 and x.rank == 4:
        return graph.op("LRN", x, size=size, alpha=alpha, beta=beta, bias=bias)
    channels = np.arange(x.shape[1])
    distance = channels[None, :] - channels[:, None]
    near = (distance >= -((size - 1) // 2)) & (distance <= size // 2)
    flat = reshaped(walk, graph.op("Mul", x, x), (*x.shape[:2], x.size // x.shape[0]
                                                  // x.shape[1]))
    total = reshaped(walk, graph.op("MatMul", near.astype(x.dtype), flat), x.shape)
    base = graph.op("Add", graph.op("Mul", total, alpha / size), bias)
    return graph.op("Div", x, graph.op("Pow", base, beta))
