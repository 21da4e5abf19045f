"""Convolutions, with every padding worked out from the shapes."""

from __future__ import annotations

import numpy as np

from run_model_tools.onnx_repair.refusal import Refused
from run_model_tools.onnx_repair.rules import rule, volumes
from run_model_tools.onnx_repair.rules.elementwise import reshaped
from run_model_tools.onnx_repair.rules.indexing import sliced
from run_model_tools.onnx_repair.rules.padding import padded
from run_model_tools.onnx_repair.rules.pooling import window_of
from run_model_tools.onnx_repair.rules.shapes import concatenated, pictures_of, transposed
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk


@rule("Conv")
def conv(walk: Walk, node: Node) -> Value:
    return convolved(walk, node, node.tensor(0), node.tensor(1), node.get(2))


def convolved(walk: Walk, node: Node, x: Value, weight: Value, bias: Value | None) -> Value:
    """A convolution by the node's attributes."""
    _check_rank(x)
    window = window_of(node, x.shape[2:], list(weight.shape[2:]))
    pads = [*window.before, *window.padded]
    if any(p < 0 for p in pads):
        n = len(window.before)
        x = padded(walk, x, {i + 2: (b, a) for i, (b, a) in enumerate(zip(
            window.before, window.padded))})
        pads = [0] * (2 * n)
    group = node.attrs.get("group", 1)
    if x.rank == 5 and not walk.is_open:
        made = volumes.convolved(walk, x, weight, bias, window.strides, window.dilations,
                                 pads, group)
        if made is not None:
            return made
    return walk.graph.op(
        "Conv", x, weight, bias, kernel_shape=window.kernel, strides=window.strides,
        dilations=window.dilations, pads=pads, group=group)


def _check_rank(x: Value) -> None:
    if not 3 <= x.rank <= 5:
        raise Refused(f"it convolves over {x.rank - 2} axes, and 1 to 3 are possible")


_FEW_CHANNELS = 4
"""Made by a transposed convolution: kernels make channels in blocks of up to 16."""


@rule("ConvTranspose")
def conv_transpose(walk: Walk, node: Node) -> Value:
    """As one without dilation, whose result is cropped, or padded where pads are below 0."""
    x, weight, bias = node.tensor(0), node.tensor(1), node.get(2)
    _check_rank(x)
    n = x.rank - 2
    strides = list(node.attrs.get("strides") or [1] * n)
    weight = _spread(weight, node.attrs.get("dilations") or [1] * n, walk)
    kernel = list(weight.shape[2:])
    before, after = _cropped(node, x.shape[2:], strides, kernel)
    group = node.attrs.get("group", 1)
    if n == 3 and group == 1 and weight.array is not None and not walk.is_open:
        return _of_planes(walk, x, weight.array, bias, strides, before, after)
    return _spread_by(walk, x, weight, bias, strides, before, after, group)


def _spread_by(walk: Walk, x: Value, weight: Value, bias: Value | None, strides: list[int],
               before: list[int], after: list[int], group: int) -> Value:
    """A transposed convolution.  before, after: what is not wanted of the whole result; below 0:
    more is wanted."""
    graph = walk.graph
    n, kernel = len(strides), list(weight.shape[2:])
    if (n < 3 and weight.array is not None and weight.shape[1] <= _FEW_CHANNELS
            and max(strides) > 1 and group == 1 and not walk.is_open):
        return _of_cells(walk, x, weight.array, bias, strides, before, after)
    pads = [max(b, 0) for b in before] + [max(a, 0) for a in after]
    # TVM has no groups along three axes.
    parts = group if n == 3 else 1
    size = x.shape[1] // parts
    made = concatenated(walk, [graph.op(
        "ConvTranspose", *(sliced(walk, t, {axis: range(i * size, (i + 1) * size)})
                           for t, axis in ((x, 1), (weight, 0))),
        kernel_shape=kernel, strides=strides, pads=pads, group=group // parts)
        for i in range(parts)], 1)
    made = padded(walk, made, {i + 2: (max(-b, 0), max(-a, 0))
                               for i, (b, a) in enumerate(zip(before, after))})
    return made if bias is None else graph.op("Add", made, reshaped(
        walk, bias, (1, bias.size, *[1] * n)))


def _of_planes(walk: Walk, x: Value, weight: np.ndarray, bias: Value | None, strides: list[int],
               before: list[int], after: list[int]) -> Value:
    """A transposed convolution over three axes as one over the last two, of the planes that a
    plane's elements go to."""
    graph = walk.graph
    batch, _, depth, *_ = x.shape
    stride = strides[0]
    wanted = (depth - 1) * stride + weight.shape[2] - before[0] - after[0]
    weight, planes = volumes.planes_behind(weight, stride, before[0])
    cells = -(-wanted // stride)
    first = min(planes[0], 0)
    pads = -first, max(cells + planes[-1] - depth, 0)
    seen = volumes.windows(walk, pictures_of(walk, x), batch, pads,
                           [plane - first for plane in planes], 1, cells)
    if bias is not None:
        bias = concatenated(walk, [bias] * stride, 0)
    made = _spread_by(walk, concatenated(walk, seen, 1), graph.constant(weight), bias, strides[1:],
                      before[1:], after[1:], 1)
    return volumes.from_cells(walk, made, batch, stride, wanted)


def _of_cells(walk: Walk, x: Value, weight: np.ndarray, bias: Value | None, strides: list[int],
              before: list[int], after: list[int]) -> Value:
    """A transposed convolution as one that makes all elements of a cell, as large as the strides,
    as channels, which are then put side by side.  Element o of the whole result is place o % stride
    of cell o // stride.  before, after: what is not wanted of it; below 0: more is wanted."""
    graph = walk.graph
    n, made, kernel = len(strides), weight.shape[1], weight.shape[2:]
    taps = [-(-k // s) for k, s in zip(kernel, strides)]
    weight = np.pad(weight, [(0, 0), (0, 0), *((0, t * s - k) for t, s, k in zip(
        taps, strides, kernel))])
    weight = weight.reshape(-1, made, *(e for pair in zip(taps, strides) for e in pair))
    # [place along each axis][output][input][tap along each axis]
    weight = np.flip(weight, range(2, 2 + 2 * n, 2)).transpose(
        *range(3, 3 + 2 * n, 2), 1, 0, *range(2, 2 + 2 * n, 2))
    first = [b // s for b, s in zip(before, strides)]
    wanted = [(e - 1) * s + k - b - a
              for e, s, k, b, a in zip(x.shape[2:], strides, kernel, before, after)]
    cells = [-(-(b + w) // s) - f for b, w, s, f in zip(before, wanted, strides, first)]
    # From the first cell on those that see the input, and beyond them such of the bias alone.
    pads = [t - 1 - f for t, f in zip(taps, first)]
    pads += [c + f - e for c, f, e in zip(cells, first, x.shape[2:])]
    x = padded(walk, x, {i + 2: (min(pads[i], 0), min(pads[n + i], 0)) for i in range(n)})
    if bias is not None:
        bias = concatenated(walk, [bias] * int(np.prod(strides)), 0)
    y = graph.op("Conv", x, graph.constant(weight.reshape(-1, x.shape[1], *taps)), bias,
                 kernel_shape=taps, strides=[1] * n, dilations=[1] * n,
                 pads=[max(p, 0) for p in pads], group=1)
    y = reshaped(walk, y, (x.shape[0], *strides, made, *cells))
    y = transposed(walk, y, [0, n + 1, *(a for i in range(n) for a in (n + 2 + i, 1 + i))])
    y = reshaped(walk, y, (x.shape[0], made, *(c * s for c, s in zip(cells, strides))))
    return sliced(walk, y, {i + 2: range(b - f * s, b - f * s + w) for i, (b, f, s, w) in enumerate(
        zip(before, first, strides, wanted))})


def _spread(weight: Value, dilations: list[int], walk: Walk) -> Value:
    """The kernel with zeros between its elements."""
    if all(d == 1 for d in dilations):
        return weight
    for axis, dilation in enumerate(dilations, 2):
        extent = weight.shape[axis]
        apart = reshaped(walk, weight, (*weight.shape[:axis + 1], 1, *weight.shape[axis + 1:]))
        wide = padded(walk, apart, {axis + 1: (0, dilation - 1)})
        weight = reshaped(walk, wide, (*weight.shape[:axis], extent * dilation,
                                       *weight.shape[axis + 1:]))
        weight = sliced(walk, weight, {axis: range((extent - 1) * dilation + 1)})
    return weight


def _cropped(node: Node, extents: tuple[int, ...], strides: list[int],
             kernel: list[int]) -> tuple[list[int], list[int]]:
    """How much of the whole result is not wanted before and behind; below 0: more is wanted."""
    n = len(extents)
    extra = list(node.attrs.get("output_padding") or [0] * n)
    auto = node.attrs.get("auto_pad", "NOTSET")
    given = node.attrs.get("output_shape")
    wanted = given
    if given is None and auto in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [e * s for e, s in zip(extents, strides)]
    if wanted is None:
        pads = [0] * (2 * n) if auto == "VALID" else list(node.attrs.get("pads") or [0] * (2 * n))
        return pads[:n], [p - x for p, x in zip(pads[n:], extra)]
    before, after = [], []
    for e, s, k, x, w in zip(extents, strides, kernel, extra, list(wanted)[-n:]):
        whole = (e - 1) * s + k
        total = whole + x - w
        if given is not None:
            # ONNX Runtime has what is wanted beyond the whole result behind it.
            total = max(total, 0)
        before.append(total // 2 if auto == "SAME_UPPER" else total - total // 2)
        after.append(whole - before[-1] - w)
    return before, after


@rule("Col2Im")
def col2im(walk: Walk, node: Node) -> Value:
    """Columns laid over each other: the sum of each kernel place's elements, spread and shifted."""
    graph = walk.graph
    x = node.tensor(0)
    image = node.ints(1, "the picture's shape") or []
    block = node.ints(2, "the block's shape") or []
    n = len(image)
    strides = node.attrs.get("strides") or [1] * n
    dilations = node.attrs.get("dilations") or [1] * n
    pads = node.attrs.get("pads") or [0] * (2 * n)
    taps = int(np.prod(block))
    channels = x.shape[1] // taps
    wide = [e + pads[i] + pads[n + i] for i, e in enumerate(image)]
    counts = [(w - (k - 1) * d - 1) // s + 1
              for w, k, d, s in zip(wide, block, dilations, strides)]
    places = np.zeros((taps, *counts), np.int64)
    for index, at in enumerate(np.ndindex(*block)):
        flat = np.zeros(counts, np.int64)
        for axis in range(n):
            line = at[axis] * dilations[axis] + np.arange(counts[axis]) * strides[axis]
            flat = flat * wide[axis] + line.reshape([-1 if a == axis else 1 for a in range(n)])
        places[index] = flat
    columns = reshaped(walk, x, (x.shape[0], channels, taps * int(np.prod(counts))))
    zeros = graph.op("Expand", graph.like(0, x), np.array([*columns.shape[:2], np.prod(wide)]))
    where = graph.op("Expand", places.reshape(1, 1, -1), np.array(columns.shape))
    made = reshaped(walk, graph.op("ScatterElements", zeros, where, columns, axis=2,
                                   reduction="add"), (*columns.shape[:2], *wide))
    return padded(walk, made, {i + 2: (-pads[i], -pads[n + i]) for i in range(n)})
