"""What moves channels only, of values in blocks: steps that cost nothing when run."""

from __future__ import annotations

from typing import Any

import numpy as np

from run_model_tools.kernels.pictures import resampling
from run_model_tools.kernels.relay import nodes as relay
from run_model_tools.kernels.relay.graph import operator, shape_of
from run_model_tools.kernels.relay.readers import pictures, places
from run_model_tools.kernels.relay.readers.network import Network, Value, integers
from run_model_tools.kernels.tensors import Blocked, concatenate


def _concatenate(net: Network, expr: relay.Expr) -> Value:
    values = net.values[expr.args[0]]
    if int(expr.attrs.axis) % 4 != 1 or len(shape_of(expr)) != 4:
        return None
    if not any(isinstance(v, Blocked) for v in values):
        return None
    blocked = [b for b in map(net.blocked, values) if b is not None]
    return concatenate(blocked) if len(blocked) == len(values) else None


def _split(net: Network, expr: relay.Expr) -> Value:
    data = net.values[expr.args[0]]
    if not isinstance(data, Blocked) or int(expr.attrs.axis) % 4 != 1:
        return None
    what = expr.attrs.indices_or_sections
    if not hasattr(what, "__len__"):
        ends = [data.channels * (i + 1) // int(what) for i in range(int(what))]
    else:
        ends = [int(i) for i in what] + [data.channels]
    return [data.take(range(a, b)) for a, b in zip([0, *ends[:-1]], ends)]


def _strided_slice(net: Network, expr: relay.Expr) -> Value:
    data = net.values[expr.args[0]]
    shape, source = shape_of(expr), shape_of(expr.args[0])
    if not isinstance(data, Blocked):
        return None
    indices = slice_indices(expr.attrs, source, shape)
    if indices is None:
        return None
    if not np.array_equal(indices[0], np.arange(source[0])):
        data = pictures.sliced(net, data, indices[0])
        if data is None:
            return None
    if shape[1] != source[1] or not np.array_equal(indices[1], np.arange(source[1])):
        data = data.take(indices[1])
    return places.resampled(net, data, [resampling.taken(at) for at in indices[2:]])


def slice_indices(attrs: Any, source: tuple[int, ...], shape: tuple[int, ...]
                  ) -> list[np.ndarray] | None:
    """Along each axis, which of the input's indices strided_slice takes; None where its attributes
    do not say it plainly."""
    count = len(attrs.begin)
    axes = list(integers(attrs.axes)) if attrs.axes is not None else list(range(count))
    strides = list(integers(attrs.strides or ()))
    if str(attrs.slice_mode) == "size" or strides == [1] or not strides:
        strides = [1] * count
    if len(strides) != count or len(axes) != count:
        return None
    result = [np.arange(extent) for extent in source]
    for axis, begin, stride in zip(axes, integers(attrs.begin), strides):
        extent = source[axis]
        begin += extent if begin < 0 else 0
        begin = min(max(begin, 0), extent) if stride > 0 else min(max(begin, -1), extent - 1)
        result[axis] = begin + stride * np.arange(shape[axis])
        if len(result[axis]) and not 0 <= result[axis].min() <= result[axis].max() < extent:
            return None
    if tuple(map(len, result)) != shape:
        return None
    return result


def _reshape(net: Network, expr: relay.Expr) -> Value:
    shuffled = _shuffle(net, expr)
    return pictures.cut(net, expr) if shuffled is None else shuffled


def _shuffle(net: Network, expr: relay.Expr) -> Value:
    """Channel shuffle's end: (1, C, H, W) -> (1, g, C/g, H, W) -> axes 1, 2 swapped -> back."""
    transpose = expr.args[0]
    if operator(transpose) != "transpose" or operator(transpose.args[0]) != "reshape":
        return None
    first = transpose.args[0]
    data = net.values[first.args[0]]
    middle, shape = shape_of(first), shape_of(expr)
    if (not isinstance(data, Blocked) or len(middle) != 5 or middle[0] != data.batch
            or integers(transpose.attrs.axes or ()) != (0, 2, 1, 3, 4)
            or shape != (data.batch, data.channels, *data.size)
            or middle[1] * middle[2] != data.channels or middle[3:] != data.size):
        return None
    return data.take(np.arange(data.channels).reshape(middle[1:3]).T.reshape(-1))


READERS = {"concatenate": _concatenate, "split": _split, "strided_slice": _strided_slice,
           "reshape": _reshape}
