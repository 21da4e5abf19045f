"""Poolings, with every padding worked out from the shapes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import Refused
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import reshaped
from run_model_tools.onnx_repair.rules.indexing import from_begin, sliced
from run_model_tools.onnx_repair.rules.padding import padded
from run_model_tools.onnx_repair.rules.reductions import best_place, reduce
from run_model_tools.onnx_repair.rules.shapes import concatenated, volume_of
from run_model_tools.onnx_repair.rules.volumes import windows
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk


@dataclass
class Window:
    """How windows lie on the spatial axes."""

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    before: list[int]
    after: list[int]
    """What the windows need behind the picture, which rounding up may make more than the pads."""
    padded: list[int]
    """The pads behind the picture that the model names."""
    extents: list[int]
    """Of the picture."""
    out: list[int]

    @property
    def pads(self) -> list[int]:
        return [*self.before, *self.after]

    @property
    def is_dilated(self) -> bool:
        return any(d != 1 for d in self.dilations)

    def is_padded(self, axis: int) -> bool:
        return self.before[axis] > 0 or self.after[axis] > 0


def window_of(node: Node, extents: tuple[int, ...], kernel: list[int]) -> Window:
    """The windows of a pooling or convolution by its attributes."""
    n = len(extents)
    strides = list(node.attrs.get("strides") or [1] * n)
    dilations = list(node.attrs.get("dilations") or [1] * n)
    auto = node.attrs.get("auto_pad", "NOTSET")
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        out = [-(-e // s) for e, s in zip(extents, strides)]
        total = [max((o - 1) * s + r - e, 0)
                 for o, s, r, e in zip(out, strides, reach, extents)]
        small = [t // 2 for t in total]
        large = [t - s for t, s in zip(total, small)]
        before, after = (small, large) if auto == "SAME_UPPER" else (large, small)
        return Window(kernel, strides, dilations, before, after, after, list(extents), out)
    pads = [0] * (2 * n) if auto == "VALID" else list(node.attrs.get("pads") or [0] * (2 * n))
    before, after = pads[:n], pads[n:]
    out, needed = [], []
    for e, b, a, r, s in zip(extents, before, after, reach, strides):
        room = e + b + a - r
        if room < 0:
            raise Refused(f"its window of {list(kernel)} is larger than its input {list(extents)} "
                          "with its pads", "look at the shapes given with --shape.", "invalid")
        count = room // s + 1
        if node.attrs.get("ceil_mode", 0):
            count = -(-room // s) + 1
            # A window has to begin in the picture or in the pads before it.
            count -= (count - 1) * s >= e + b
        out.append(count)
        needed.append(max(a, (count - 1) * s + r - e - b))
    return Window(kernel, strides, dilations, before, needed, after, list(extents), out)


@rule("MaxPool")
def max_pool(walk: Walk, node: Node) -> list[Value | None]:
    x = node.tensor(0)
    window = window_of(node, x.shape[2:], node.attrs["kernel_shape"])
    if node.outputs > 1 and node.wanted[1]:
        column_major = node.attrs.get("storage_order", 0)
        pooled, places = _max_pool_with_places(walk, x, window, column_major)
        places.counts_in = None if column_major else x.shape
        return [pooled, places]
    _check_rank(x)
    sees_all = all(p < k for p, k in zip(window.pads, window.kernel * 2))
    if x.pictures is not None and sees_all and (
            window.dilations[0] == 1 or not window.is_padded(0)):
        return [_of_planes(walk, x, node.op, window)]
    is_bytes = x.elem_type in (TensorProto.INT8, TensorProto.UINT8)
    if (x.is_float or is_bytes) and sees_all:
        # Bytes are whole numbers of steps of 1, of which the layers of bytes know poolings.
        grid = (walk.graph.constant(np.float32(1)), walk.graph.like(0, x))
        made = walk.graph.op("DequantizeLinear", x, *grid) if is_bytes else x
        for part in _one_after_the_other(window):
            made = walk.graph.op(
                "MaxPool", made, kernel_shape=part.kernel, strides=part.strides, pads=part.pads,
                dilations=part.dilations if part.is_dilated else None)
        made = _trimmed(walk, made, window)
        return [walk.graph.op("QuantizeLinear", made, *grid) if is_bytes else made]
    lowest = -np.inf if x.is_float else np.iinfo(x.dtype).min
    taps = _taps(walk, x, window, lowest)
    result = taps[0]
    for tap in taps[1:]:
        result = walk.graph.op("Max", result, tap)
    return [result]


def _of_planes(walk: Walk, x: Value, op: str, window: Window) -> Value:
    """The maximum or, where no plane is padded, the mean of windows over three axes: of those over
    the last two of each plane.  A plane in the padding is as good as the nearest one, which is in
    its window too."""
    assert x.pictures is not None
    flat = x.pictures
    if max(*window.kernel[1:], *window.strides[1:]) > 1:
        flat = walk.node_in(op, 18, [flat], kernel_shape=window.kernel[1:],
                            strides=window.strides[1:], dilations=window.dilations[1:],
                            pads=[*window.before[1:], *window.after[1:]])
        flat = sliced(walk, flat, {i + 1: range(window.out[i]) for i in (1, 2)})
    seen = windows(walk, flat, x.shape[0], (window.before[0], window.after[0]),
                   [k * window.dilations[0] for k in range(window.kernel[0])], window.strides[0],
                   window.out[0], "edge")
    made = walk.node_in("Max" if op == "MaxPool" else "Mean", 13, [*seen])
    return volume_of(walk, made, x.shape[0])


def _one_after_the_other(window: Window) -> list[Window]:
    """Large windows that overlap are looked through axis by axis, where that is less work by far:
    of 5x5 in half the time, of 13x13 in a fifth."""
    axes = [axis for axis in range(len(window.kernel))
            if window.kernel[axis] > 1 or window.strides[axis] > 1]
    # For each element of the result; one that lies between two passes is written and read.
    looked_at = sum((window.kernel[axis] + 2) * prod(window.strides[axis + 1:]) for axis in axes)
    if 3 * looked_at > 2 * prod(window.kernel):
        return [window]

    def along(axis: int) -> Window:
        def kept(values: list[int], neutral: int) -> list[int]:
            return [v if i == axis else neutral for i, v in enumerate(values)]

        return replace(window, kernel=kept(window.kernel, 1), strides=kept(window.strides, 1),
                       dilations=kept(window.dilations, 1), before=kept(window.before, 0),
                       after=kept(window.after, 0))

    return [along(axis) for axis in axes]


def _check_rank(x: Value) -> None:
    if not 3 <= x.rank <= 5:
        raise Refused(f"it pools over {x.rank - 2} axes, and 1 to 3 are possible")


def _trimmed(walk: Walk, x: Value, window: Window) -> Value:
    """Without windows more than there are, which pads behind the picture may make room for."""
    return sliced(walk, x, {i + 2: range(o) for i, o in enumerate(window.out)
                            if x.shape[i + 2] != o})


def _taps(walk: Walk, x: Value, window: Window, fill: float) -> list[Value]:
    """For each place in the window the elements that lie there."""
    wide = padded(walk, x, {i + 2: (b, a) for i, (b, a) in enumerate(zip(
        window.before, window.after))}, value=fill)
    return [sliced(walk, wide, {
        i + 2: range(k * d, k * d + (o - 1) * s + 1, s)
        for i, (k, d, o, s) in enumerate(zip(place, window.dilations, window.out,
                                             window.strides))})
            for place in product(*map(range, window.kernel))]


def _max_pool_with_places(walk: Walk, x: Value, window: Window,
                          column_major: int) -> tuple[Value, Value]:
    graph = walk.graph
    lowest = -np.inf if x.is_float else np.iinfo(x.dtype).min
    taps = [graph.op("Unsqueeze", t, np.array([0])) for t in _taps(walk, x, window, lowest)]
    stacked = concatenated(walk, taps, 0)
    best = best_place(walk, stacked, 0)
    # Where each place of the window lies in the picture, for each window.
    n = len(window.kernel)
    grids = np.zeros((len(taps), *window.out), np.int64)
    weights = np.ones(n, np.int64)
    order = range(n) if column_major else range(n - 1, -1, -1)
    step = 1
    for axis in order:
        weights[axis], step = step, step * window.extents[axis]
    for index, place in enumerate(product(*map(range, window.kernel))):
        for axis in range(n):
            at = (np.arange(window.out[axis]) * window.strides[axis] - window.before[axis]
                  + place[axis] * window.dilations[axis])
            grids[index] += weights[axis] * at.reshape([-1 if a == axis else 1
                                                        for a in range(n)])
    flat = graph.op("Unsqueeze", best, np.array([0]))
    table = graph.op("Expand", grids.reshape(len(taps), 1, 1, *window.out),
                     np.array([len(taps), *x.shape[:2], *window.out]))
    places = graph.op("Squeeze", graph.op("GatherElements", table, flat, axis=0), np.array([0]))
    planes = np.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], *[1] * n) * step
    return reduce(walk, "ReduceMax", stacked, [0], False), graph.op("Add", places, planes)


@rule("AveragePool")
def average_pool(walk: Walk, node: Node) -> Value:
    x = node.tensor(0)
    _check_rank(x)
    window = window_of(node, x.shape[2:], node.attrs["kernel_shape"])
    counts_pads = bool(node.attrs.get("count_include_pad", 0)) and any(window.pads)
    exact = window.after == window.padded and all(
        p < k for p, k in zip(window.pads, window.kernel * 2))
    if x.pictures is not None and not any(window.pads) and not window.is_dilated:
        return _of_planes(walk, x, node.op, window)
    if exact and not window.is_dilated:
        return _trimmed(walk, walk.graph.op(
            "AveragePool", x, kernel_shape=window.kernel, strides=window.strides,
            pads=window.pads, count_include_pad=int(counts_pads)), window)
    counts = _counts(window, counts_pads)
    return walk.graph.op("Mul", window_sum(walk, x, window), (1 / counts).astype(x.dtype))


def _counts(window: Window, with_pads: bool) -> np.ndarray:
    """How many elements of the picture each window covers, and of the pads that the model names;
    never of what rounding up adds behind these, as in PyTorch and in ONNX Runtime since 1.21."""
    counts = np.ones((1, 1, *window.out))
    for axis, out in enumerate(window.out):
        least, end = 0, window.extents[axis]
        if with_pads:
            least, end = -window.before[axis], end + window.padded[axis]
        first = (np.arange(out) * window.strides[axis] - window.before[axis])[:, None]
        at = first + np.arange(window.kernel[axis]) * window.dilations[axis]
        one = ((at >= least) & (at < end)).sum(1)
        counts = counts * one.reshape([-1 if a == axis + 2 else 1
                                       for a in range(counts.ndim)])
    return counts


def window_sum(walk: Walk, x: Value, window: Window) -> Value:
    """The sum of each window; nothing counts for 0."""
    if window.is_dilated:
        taps = _taps(walk, x, window, 0)
        result = taps[0]
        for tap in taps[1:]:
            result = walk.graph.op("Add", result, tap)
        return result
    wide = padded(walk, x, {i + 2: (b, a) for i, (b, a) in enumerate(zip(
        window.before, window.after))})
    mean = walk.graph.op("AveragePool", wide, kernel_shape=window.kernel, strides=window.strides)
    return walk.graph.op("Mul", _trimmed(walk, mean, window), float(np.prod(window.kernel)))


@rule("LpPool")
def lp_pool(walk: Walk, node: Node) -> Value:
    graph = walk.graph
    x = node.tensor(0)
    _check_rank(x)
    p = node.attrs.get("p", 2)
    window = window_of(node, x.shape[2:], node.attrs["kernel_shape"])
    powers = graph.op("Mul", x, x) if p == 2 else graph.op("Pow", graph.op("Abs", x), float(p))
    total = window_sum(walk, powers, window)
    # Sums of small numbers by averages may fall below 0.
    return graph.op("Sqrt", total) if p == 2 else graph.op("Pow", total, 1 / p)


@rule("GlobalAveragePool", "GlobalMaxPool")
def global_pool(walk: Walk, node: Node) -> Value:
    x = node.tensor(0)
    op = "ReduceMean" if node.op == "GlobalAveragePool" else "ReduceMax"
    return reduce(walk, op, x, list(range(2, x.rank)))


@rule("GlobalLpPool")
def global_lp_pool(walk: Walk, node: Node) -> Value:
    graph = walk.graph
    x = node.tensor(0)
    p = float(node.attrs.get("p", 2))
    powers = graph.op("Pow", graph.op("Abs", x), p)
    return graph.op("Pow", reduce(walk, "ReduceSum", powers, list(range(2, x.rank))), 1 / p)


@rule("MaxUnpool")
def max_unpool(walk: Walk, node: Node) -> Value:
    """Each element at the place of its maximum, counted in the unpooled tensor as it was."""
    graph = walk.graph
    x, places = node.tensor(0), node.tensor(1)
    kernel = node.attrs["kernel_shape"]
    n = len(kernel)
    strides = node.attrs.get("strides") or [1] * n
    pads = node.attrs.get("pads") or [0] * (2 * n)
    natural = [(e - 1) * s + k - pads[i] - pads[n + i]
               for i, (e, s, k) in enumerate(zip(x.shape[2:], strides, kernel))]
    wanted = node.ints(2, "the output's shape")
    shape = (*x.shape[:2], *natural)
    if wanted is not None and places.counts_in == tuple(wanted):
        shape = tuple(wanted)
    elif places.counts_in not in (None, shape):
        raise Refused(f"its places are those of a pooling of {list(places.counts_in or ())}, and "
                      f"it makes {list(shape)} of them", "give it that shape as output_shape.")
    size = int(np.prod(shape))
    zeros = graph.op("Expand", graph.like(0, x), np.array([size], np.int64))
    if places.counts_in is None:
        places = from_begin(walk, places, size)
    flat = graph.op("ScatterElements", zeros, reshaped(walk, places, (places.size,)),
                    reshaped(walk, x, (x.size,)), axis=0)
    made = reshaped(walk, flat, shape)
    if wanted is None or shape == tuple(wanted):
        return made
    return padded(walk, made, {a: (0, w - d) for a, (w, d) in enumerate(zip(wanted, made.shape))})
