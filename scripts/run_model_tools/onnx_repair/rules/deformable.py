"""Convolution at places that the network itself computes."""

from __future__ import annotations

import numpy as np

from run_model_tools.onnx_repair.refusal import Refused
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.sampling import place_type, sampled_at
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
    # Planes of a part of the channels share their places.
    every = (batch * parts, taps * pixels)
    moved = reshaped(walk, cast(walk, offsets, place_type(x)), (batch, parts, taps, 2, pixels))
    at = [reshaped(walk, graph.op(
        "Add", graph.op("Gather", moved, np.array(axis), axis=3),
        _regular(node, w.shape, out, axis).astype(moved.dtype)), every) for axis in (0, 1)]
    factor = None if mask is None else reshaped(walk, cast(walk, mask, place_type(x)), every)
    total = sampled_at(walk, reshaped(walk, x, (batch * parts, channels // parts, *x.shape[2:])),
                       at, factor=factor)
    samples = reshaped(walk, total, (batch, groups, channels // groups * taps, pixels))
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
