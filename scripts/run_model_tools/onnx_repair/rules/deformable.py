"""Convolution at places that the network itself computes."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import Refused
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.sampling import stored
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk


@rule("DeformConv")
def deform_conv(walk: Walk, node: Node) -> Value:
    """Every tap of every output is sampled; the samples are multiplied with the weights."""
    graph = walk.graph
    x, w, offsets, bias, mask = (node.get(i) for i in range(5))
    assert x is not None and w is not None and offsets is not None
    if x.rank != 4:
        raise Refused(f"it convolves over {x.rank - 2} axes, and two are possible")
    batch, channels = x.shape[:2]
    taps, out = int(np.prod(w.shape[2:])), offsets.shape[2:]
    parts, groups = node.attrs.get("offset_group", 1), node.attrs.get("group", 1)
    pixels = int(np.prod(out))
    moved = reshaped(walk, offsets, (batch, parts, taps, 2, pixels))
    corners: list[tuple[Value, Value]] = []
    axes = [_corners(walk, graph.op("Add", graph.op("Gather", moved, np.array(axis), axis=3),
                                    _regular(node, w.shape, out, axis).astype(x.dtype)),
                     x.shape[2 + axis]) for axis in (0, 1)]
    for row, row_weight in axes[0]:
        for column, column_weight in axes[1]:
            corners.append((graph.op("Add", graph.op("Mul", row, x.shape[3]), column),
                            graph.op("Mul", row_weight, column_weight)))
    planes = np.arange(batch * channels).reshape(batch, parts, channels // parts, 1, 1)
    flat, total = reshaped(walk, x, (x.size,)), None
    for place, weight in corners:
        index = graph.op("Add", _wide(walk, cast(walk, place, TensorProto.INT64)),
                         planes * (x.shape[2] * x.shape[3]))
        term = graph.op("Mul", graph.op("Gather", flat, index, axis=0), _wide(walk, weight))
        total = term if total is None else graph.op("Add", total, term)
    assert total is not None
    if mask is not None:
        total = graph.op("Mul", total, reshaped(walk, mask, (batch, parts, 1, taps, pixels)))
    samples = reshaped(walk, stored(walk, total),
                       (batch, groups, channels // groups * taps, pixels))
    weights = reshaped(walk, w, (1, groups, w.shape[0] // groups, w.size // w.shape[0]))
    made = reshaped(walk, graph.op("MatMul", weights, samples), (batch, w.shape[0], *out))
    return made if bias is None else graph.op("Add", made, reshaped(walk, bias, (1, -1, 1, 1)))


def _regular(node: Node, kernel: tuple[int, ...], out: tuple[int, ...], axis: int) -> np.ndarray:
    """Where the taps lie along an axis if nothing moves them: [taps, pixels]."""
    stride = (node.attrs.get("strides") or [1, 1])[axis]
    dilation = (node.attrs.get("dilations") or [1, 1])[axis]
    before = (node.attrs.get("pads") or [0] * 4)[axis]
    tap = np.indices(kernel[2:]).reshape(2, -1, 1)[axis] * dilation
    return tap + np.indices(out).reshape(2, 1, -1)[axis] * stride - before


def _corners(walk: Walk, at: Value, extent: int) -> list[tuple[Value, Value]]:
    """(place inside, weight) of the elements on both sides; what lies outside counts nothing."""
    graph = walk.graph
    at = stored(walk, at)
    first = graph.op("Floor", at)
    ratio = graph.op("Sub", at, first)
    found = []
    for place, weight in ((first, graph.op("Add", graph.op("Neg", ratio), 1)),
                          (graph.op("Add", first, 1), ratio)):
        inside = graph.op("Clip", place, graph.like(0, place), graph.like(extent - 1, place))
        found.append((inside, graph.op("Where", graph.op("Equal", inside, place), weight,
                                       graph.like(0, weight))))
    return found


def _wide(walk: Walk, value: Value) -> Value:
    """With an axis for the channels of a part."""
    return walk.graph.op("Unsqueeze", value, np.array([2]))
