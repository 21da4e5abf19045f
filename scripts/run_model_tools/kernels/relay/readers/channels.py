"""What moves channels only, and reshapes: steps that cost nothing when run."""

from __future__ import annotations

import numpy as np
import tvm
from tvm import relay

from run_model_tools.kernels.relay.graph import operator, shape_of
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
    if isinstance(what, (tvm.tir.IntImm, int)):
        ends = [data.channels * (i + 1) // int(what) for i in range(int(what))]
    else:
        ends = [int(i) for i in what] + [data.channels]
    return [data.take(range(a, b)) for a, b in zip([0, *ends[:-1]], ends)]


def _strided_slice(net: Network, expr: relay.Expr) -> Value:
    data = net.values[expr.args[0]]
    attrs, shape, source = expr.attrs, shape_of(expr), shape_of(expr.args[0])
    if (not isinstance(data, Blocked) or str(attrs.slice_mode) not in ("end", "size")
            or source[2:] != shape[2:] or source[0] != shape[0]):
        return None
    axes = ([int(a) for a in attrs.axes] if attrs.axes is not None
            else list(range(len(attrs.begin))))
    if 1 not in axes:
        return data if shape == source else None
    at = axes.index(1)
    strides = [int(s) for s in attrs.strides or ()]
    step = strides[at] if at < len(strides) else strides[0] if len(strides) == 1 else 1
    begin = int(attrs.begin[at])
    if step != 1:
        return None
    begin += source[1] if begin < 0 else 0
    return data.take(range(begin, begin + shape[1]))


def _reshape(net: Network, expr: relay.Expr) -> Value:
    return net.reshaped(net.plain(net.values[expr.args[0]]), shape_of(expr))


def _reshape_or_shuffle(net: Network, expr: relay.Expr) -> Value:
    shuffled = _shuffle(net, expr)
    return _reshape(net, expr) if shuffled is None else shuffled


def _shuffle(net: Network, expr: relay.Expr) -> Value:
    """Channel shuffle's end: (1, C, H, W) -> (1, g, C/g, H, W) -> axes 1, 2 swapped -> back."""
    transpose = expr.args[0]
    if operator(transpose) != "transpose" or operator(transpose.args[0]) != "reshape":
        return None
    first = transpose.args[0]
    data = net.values[first.args[0]]
    middle, shape = shape_of(first), shape_of(expr)
    if (not isinstance(data, Blocked) or len(middle) != 5 or middle[0] != 1
            or integers(transpose.attrs.axes or ()) != (0, 2, 1, 3, 4)
            or shape != (1, data.channels, *data.size)
            or middle[1] * middle[2] != data.channels or middle[3:] != data.size):
        return None
    return data.take(np.arange(data.channels).reshape(middle[1:3]).T.reshape(-1))


READERS = {"concatenate": _concatenate, "split": _split, "strided_slice": _strided_slice,
           "nn.batch_flatten": _reshape, "squeeze": _reshape, "expand_dims": _reshape,
           "reshape": _reshape_or_shuffle}
