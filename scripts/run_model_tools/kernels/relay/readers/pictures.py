"""What moves pictures of a batch, of values in blocks: windows of it (WindowStep)."""

from __future__ import annotations

import numpy as np

from run_model_tools.kernels.layer import Window
from run_model_tools.kernels.plan import WindowStep
from run_model_tools.kernels.relay import nodes as relay
from run_model_tools.kernels.relay.graph import shape_of
from run_model_tools.kernels.relay.nodes import writing
from run_model_tools.kernels.relay.readers import elementwise
from run_model_tools.kernels.relay.readers.network import Network, Value, integers
from run_model_tools.kernels.tensors import Blocked, Tensor, plain


def taken(net: Network, data: Blocked, window: Window, pictures: int) -> Blocked:
    """So many pictures of a window of `data`."""
    return Blocked(tuple(_seen(net, tensor, window, pictures) for tensor in data.tensors),
                   data.places)


def _seen(net: Network, tensor: Tensor, window: Window, pictures: int) -> Tensor:
    maker = net.windows.get(tensor)
    if maker is not None and window.is_inside(pictures):
        tensor, window = maker.inputs[0], window.of(maker.window)
    places = window.places(pictures)
    output = Tensor((pictures, *tensor.shape[1:]), tensor.dtype)
    step = WindowStep([tensor], output,
                      lambda x: writing.pictures(x, window.count, places), "strided_slice",
                      window=window)
    net.plan.steps.append(step)
    net.windows[output] = step
    return output


def padded(net: Network, expr: relay.Expr) -> Value:
    """Pictures before and after those that there are: zeros, or the nearest one again."""
    data, attrs = net.values[expr.args[0]], expr.attrs
    widths, mode = [integers(pair) for pair in attrs.pad_width], str(attrs.pad_mode)
    if not isinstance(data, Blocked) or not data.is_float or len(widths) != 4 or min(
            widths[0]) < 0 or any(map(any, widths[1:])):
        return None
    value = expr.args[1] if len(expr.args) > 1 else None
    is_zero = isinstance(value, relay.Constant) and not value.data.numpy().any()
    if mode != "edge" and not (mode == "constant" and is_zero):
        return None
    window = Window(-widths[0][0], 1, data.batch, mode == "edge")
    return taken(net, data, window, shape_of(expr)[0])


def sliced(net: Network, data: Blocked, places: np.ndarray) -> Blocked | None:
    """The pictures at these places, in equal steps."""
    step = int(places[1] - places[0]) if len(places) > 1 else 1
    if step < 1:
        return None
    return taken(net, data, Window(int(places[0]), step, data.batch), len(places))


def cut(net: Network, expr: relay.Expr) -> Value:
    """(N, s * C, H, W) -> (N * s, C, H, W) and the other way round, where blocks stay whole."""
    data, shape = net.values[expr.args[0]], shape_of(expr)
    if (not isinstance(data, Blocked) or not data.is_float or len(shape) != 4
            or shape[2:] != data.size or shape[1] % data.lanes or data.channels % data.lanes):
        return None
    if not data.is_plain:
        row = Tensor((data.batch, data.channels // data.lanes, *data.size, data.lanes))
        data = elementwise.arranged(net, data, plain(row, data.channels))
    tensor = net.reshaped(data.tensors[0], (shape[0], shape[1] // data.lanes, *data.size,
                                            data.lanes))
    return Blocked((tensor,), np.stack([np.zeros(shape[1], int), np.arange(shape[1])], 1))
