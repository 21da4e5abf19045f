"""What moves pixels: resizing, flipping, padding that is no convolution's."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from run_model_tools.kernels.pictures.resampling import Axis, Resampling, resized, taken
from run_model_tools.kernels.plan import ResamplingStep
from run_model_tools.kernels.relay import nodes as relay
from run_model_tools.kernels.relay.graph import shape_of
from run_model_tools.kernels.relay.readers import pictures
from run_model_tools.kernels.relay.readers.network import Network, Value, integers
from run_model_tools.kernels.tensors import Blocked, Tensor


def resampled(net: Network, data: Blocked, axes: Sequence[Axis],
              fill: float = 0.0) -> Blocked | None:
    """The channels of `data` with other rows and columns; itself if those are the same, None of
    whole numbers."""
    if all(axis.weights is None and axis.blocks is None
           and np.array_equal(axis.positions[:, 0], np.arange(size))
           for axis, size in zip(axes, data.size)):
        return data
    if not data.is_float:
        return None
    rows, columns = axes
    pieces, found = data.whole_blocks()
    work = Resampling(rows, columns, tuple(t.shape for t in data.tensors), pieces, fill)
    output = Tensor((data.batch, len(pieces), rows.size, columns.size, data.lanes))
    net.plan.steps.append(ResamplingStep(list(data.tensors), output, work))
    return Blocked((output,), np.stack([np.zeros_like(found), found], 1))


def _resize(net: Network, expr: relay.Expr) -> Value:
    data, attrs = net.values[expr.args[0]], expr.attrs
    if (not isinstance(data, Blocked) or str(attrs.layout) != "NCHW"
            or str(expr.checked_type.dtype) != "float32"):
        return None
    axes = [resized(size, target, str(attrs.method), str(attrs.coordinate_transformation_mode),
                    str(attrs.rounding_method), float(attrs.cubic_alpha),
                    bool(attrs.cubic_exclude))
            for size, target in zip(data.size, shape_of(expr)[2:])]
    rows, columns = axes
    if rows is None or columns is None:
        return None
    return resampled(net, data, (rows, columns))


def _upsampling(net: Network, expr: relay.Expr) -> Value:
    data, attrs = net.values[expr.args[0]], expr.attrs
    if (not isinstance(data, Blocked) or str(attrs.layout) != "NCHW"
            or str(attrs.method) != "nearest_neighbor"):
        return None
    size = shape_of(expr)[2:]
    if any(target % source for source, target in zip(data.size, size)):
        return None
    return resampled(net, data, [taken(np.arange(target) // (target // source))
                                 for source, target in zip(data.size, size)])


def _take(net: Network, expr: relay.Expr) -> Value:
    """Rows, columns or channels by constant numbers."""
    data, indices = net.values[expr.args[0]], expr.args[1]
    if (not isinstance(data, Blocked) or not isinstance(indices, relay.Constant)
            or expr.attrs.axis is None or int(expr.attrs.batch_dims) != 0):
        return None
    axis, at = int(expr.attrs.axis) % 4, indices.data.numpy()
    extent = (data.batch, data.channels, *data.size)[axis]
    if axis == 0 or at.ndim != 1 or not len(at) or at.min() < 0 or at.max() >= extent:
        return None
    if axis == 1:
        return data.take(at)
    axes = [taken(at if axis == 2 + i else np.arange(size)) for i, size in enumerate(data.size)]
    return resampled(net, data, axes)


def _reverse(net: Network, expr: relay.Expr) -> Value:
    data, axis = net.values[expr.args[0]], int(expr.attrs.axis) % 4
    if not isinstance(data, Blocked) or axis == 0:
        return None
    if axis == 1:
        return data.take(np.arange(data.channels)[::-1])
    axes = [taken(np.arange(size)[::-1 if axis == 2 + i else 1])
            for i, size in enumerate(data.size)]
    return resampled(net, data, axes)


def _pad(net: Network, expr: relay.Expr) -> Value:
    data, attrs = net.values[expr.args[0]], expr.attrs
    mode = str(attrs.pad_mode)
    widths = [integers(pair) for pair in attrs.pad_width]
    if any(widths[0]):
        return pictures.padded(net, expr)
    if not isinstance(data, Blocked) or len(widths) != 4 or any(map(any, widths[:2])) or any(
            width < 0 for pair in widths for width in pair):
        return None
    value = expr.args[1] if len(expr.args) > 1 else None
    fill = float(value.data.numpy()) if isinstance(value, relay.Constant) else math.nan
    axes = []
    for (before, after), size in zip(widths[2:], data.size):
        at = np.arange(-before, size + after)
        if mode == "constant" and math.isfinite(fill):
            at = np.where((at < 0) | (at >= size), -1, at)
        elif mode == "edge":
            at = np.clip(at, 0, size - 1)
        elif mode == "reflect" and max(before, after) < size:
            at = np.where(at < 0, -at, np.where(at >= size, 2 * (size - 1) - at, at))
        else:
            return None
        axes.append(taken(at))
    return resampled(net, data, axes, fill=fill if mode == "constant" else 0.0)


READERS = {"image.resize2d": _resize, "nn.upsampling": _upsampling, "reverse": _reverse,
           "nn.pad": _pad, "take": _take}
