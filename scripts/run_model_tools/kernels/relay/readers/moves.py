"""Reshapes, transposes and cuts as views (views.py): what reads them reads the tensor in its
order, and nothing is moved before something needs it moved."""

from __future__ import annotations

from run_model_tools.kernels.relay import nodes as relay
from run_model_tools.kernels.relay.arithmetic import is_elementwise
from run_model_tools.kernels.relay.graph import operator, shape_of
from run_model_tools.kernels.relay.readers.network import Network, Value, integers
from run_model_tools.kernels.relay.whole_numbers import bounds_of
from run_model_tools.kernels.tensors import Blocked, Tensor
from run_model_tools.kernels.views import View, constant_tensor, of_blocks, whole


def view_of(net: Network, value: Value) -> View | None:
    """A float32 value as a view of what it lies in; None for any other."""
    if isinstance(value, View):
        return value
    if isinstance(value, Blocked):
        seen = of_blocks(value) if value.tensors[0].dtype == "float32" else None
        return view_of(net, net.plain(value)) if seen is None else seen
    if isinstance(value, relay.Constant):
        data = value.data.numpy()
        return whole(constant_tensor(data)) if data.dtype == "float32" else None
    if isinstance(value, Tensor) and value.dtype == "float32" and 0 not in value.shape:
        return whole(value)
    return None


def _reshape(net: Network, expr: relay.Call) -> Value:
    value, shape = net.values[expr.args[0]], shape_of(expr)
    if isinstance(value, relay.Constant):
        return None
    view = view_of(net, value)
    if view is None:
        return net.reshaped(net.plain(value), shape) if -1 not in shape else None
    seen = view.reshape(shape)
    return whole(net.plain(view)).reshape(shape) if seen is None else seen


def _transpose(net: Network, expr: relay.Call) -> Value:
    value = net.values[expr.args[0]]
    view = None if isinstance(value, relay.Constant) else view_of(net, value)
    if view is None:
        return None
    count = len(view.axes)
    axes = [a % count for a in integers(expr.attrs.axes or ())] or list(range(count))[::-1]
    return view.transpose(axes)


def _strided_slice(net: Network, expr: relay.Call) -> Value:
    value, attrs = net.values[expr.args[0]], expr.attrs
    view = None if isinstance(value, relay.Constant) else view_of(net, value)
    if view is None or str(attrs.slice_mode) not in ("end", "size"):
        return None
    begin, strides = integers(attrs.begin), integers(attrs.strides or ())
    axes = integers(attrs.axes) if attrs.axes is not None else tuple(range(len(begin)))
    shape = shape_of(expr)
    for index, axis in enumerate(axes):
        axis %= len(shape)
        step = strides[0 if len(strides) == 1 else index] if strides else 1
        size = view.shape[axis]
        first = begin[index] + (size if begin[index] < 0 else 0)
        count = shape[axis]
        if step < 1 or count < 1 or not 0 <= first <= first + (count - 1) * step < size:
            return None
        cut = view.cut(axis, first, count, step)
        if cut is None:
            return None
        view = cut
    return view if view.shape == shape else None


def _split(net: Network, expr: relay.Call) -> Value:
    value = net.values[expr.args[0]]
    view = None if isinstance(value, relay.Constant) else view_of(net, value)
    if view is None:
        return None
    axis = int(expr.attrs.axis) % len(view.axes)
    size, what = view.shape[axis], expr.attrs.indices_or_sections
    if not hasattr(what, "__len__"):
        ends = [size * (i + 1) // int(what) for i in range(int(what))]
    else:
        ends = [int(i) for i in what] + [size]
    parts = [view.cut(axis, a, b - a) if a < b <= size else None
             for a, b in zip([0, *ends[:-1]], ends)]
    return None if any(part is None for part in parts) else parts


def _take(net: Network, expr: relay.Call) -> Value:
    """One constant place of an axis."""
    value, index = net.values[expr.args[0]], net.values[expr.args[1]]
    view = None if isinstance(value, relay.Constant) else view_of(net, value)
    if (view is None or not isinstance(index, relay.Constant) or expr.attrs.axis is None
            or index.data.numpy().size != 1 or int(expr.attrs.batch_dims) != 0):
        return None
    axis = int(expr.attrs.axis) % len(view.axes)
    at = int(index.data.numpy().reshape(()))
    at += view.shape[axis] if at < 0 else 0
    if not 0 <= at < view.shape[axis]:
        return None
    cut = view.cut(axis, at, 1)
    return None if cut is None else cut.reshape(shape_of(expr))


def _broadcast_to(net: Network, expr: relay.Call) -> Value:
    """Where arithmetic reads it, which broadcasts what it reads anyway."""
    value, shape = net.values[expr.args[0]], shape_of(expr)
    view = None if isinstance(value, relay.Constant) else view_of(net, value)
    if (view is None or min(shape) < 1 or len(view.axes) > len(shape)
            or not all(is_elementwise(user) for user in net.users[expr])):
        return None
    return view.broadcast(shape)


def _tile(net: Network, expr: relay.Call) -> Value:
    value, shape = net.values[expr.args[0]], shape_of(expr)
    view = None if isinstance(value, relay.Constant) else view_of(net, value)
    return None if view is None or min(shape) < 1 else view.tiled(shape)


def cast(net: Network, expr: relay.Call) -> Value:
    """Nothing, of whole numbers of float32 that went through types which have them all."""
    if str(expr.checked_type.dtype) != "float32":
        return None
    source, types = expr.args[0], []
    while operator(source) in ("cast", "reshape") and (
            str(source.checked_type.dtype) != "float32"):
        types.append(str(source.checked_type.dtype))
        source = source.args[0]
    if isinstance(source, relay.Constant) or str(source.checked_type.dtype) != "float32":
        return None
    bounds = bounds_of(source)
    if bounds is None or not all(bounds.within(dtype) for dtype in types):
        return None
    known = view_of(net, net.values.get(source))
    return None if known is None else known.reshape(shape_of(expr))


READERS = {"broadcast_to": _broadcast_to,
           **dict.fromkeys(("reshape", "squeeze", "expand_dims", "nn.batch_flatten"), _reshape),
           "transpose": _transpose, "strided_slice": _strided_slice, "split": _split,
           "take": _take, "tile": _tile}
