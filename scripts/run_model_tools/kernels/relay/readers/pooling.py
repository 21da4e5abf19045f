"""Poolings of pictures; those of a whole picture give vectors."""

from __future__ import annotations

import math

import numpy as np

from run_model_tools.kernels.pictures.pooling import Pooling
from run_model_tools.kernels.plan import PoolingStep
from run_model_tools.kernels.registry import can_pool
from run_model_tools.kernels.relay import nodes as relay
from run_model_tools.kernels.relay.graph import shape_of
from run_model_tools.kernels.relay.readers import planes
from run_model_tools.kernels.relay.readers.network import Network, Value, integers
from run_model_tools.kernels.tensors import Blocked, Tensor


def _window_pool(net: Network, expr: relay.Expr, kind: str, count_padding: bool) -> Value:
    data, attrs = net.values[expr.args[0]], expr.attrs
    window, padding = integers(attrs.pool_size), integers(attrs.padding)
    if not isinstance(data, Blocked) or not data.is_float or str(attrs.layout) != "NCHW":
        return None
    if (kind == "average" and window == data.size and shape_of(expr)[2:] == (1, 1)
            and not any(padding)):
        return _global_average(net, expr, data)
    pieces, places = data.whole_blocks()
    pooling = Pooling(kind, window, tuple(t.shape for t in data.tensors), pieces,
                      strides=integers(attrs.strides), padding=padding,
                      dilation=integers(attrs.dilation), round_up=bool(attrs.ceil_mode),
                      count_padding=count_padding)
    if tuple(pooling.output_size) != shape_of(expr)[2:] or not can_pool(pooling, net.isa):
        return None
    output = Tensor((data.batch, *pooling.output_shape(net.isa.lanes)[1:]))
    net.plan.steps.append(PoolingStep(list(data.tensors), output, pooling))
    return Blocked((output,), np.stack([np.zeros(len(places), int), places], 1))


def _max_pool(net: Network, expr: relay.Expr) -> Value:
    return _window_pool(net, expr, "max", False)


def _average_pool(net: Network, expr: relay.Expr) -> Value:
    return _window_pool(net, expr, "average", bool(expr.attrs.count_include_pad))


def _global_average_pool(net: Network, expr: relay.Expr) -> Value:
    return _global_average(net, expr, net.values[expr.args[0]])


def _adaptive_average_pool(net: Network, expr: relay.Expr) -> Value:
    size = expr.attrs.output_size
    if size is None or any(int(s) != 1 for s in size):
        return None
    return _global_average(net, expr, net.values[expr.args[0]])


def _mean(net: Network, expr: relay.Expr) -> Value:
    if not planes.is_of_planes(expr):
        return None
    if planes.reads_alone(net, expr):
        size = shape_of(expr.args[0])[2:]
        return planes.reduced(net, expr, "sum", 1 / math.prod(size))
    return _global_average(net, expr, net.values[expr.args[0]])


def _global_average(net: Network, expr: relay.Expr, data: Value) -> Value:
    if not isinstance(data, Blocked) or not data.is_float:
        return None
    pooling = Pooling("average", data.size, tuple(t.shape for t in data.tensors), data.pieces(),
                      planar=True)
    if not can_pool(pooling, net.isa):
        return None
    output = Tensor((data.batch, data.channels, 1, 1))
    net.plan.steps.append(PoolingStep(list(data.tensors), output, pooling))
    return net.reshaped(output, shape_of(expr))


READERS = {"nn.max_pool2d": _max_pool, "nn.avg_pool2d": _average_pool,
           "nn.global_avg_pool2d": _global_average_pool,
           "nn.adaptive_avg_pool2d": _adaptive_average_pool, "mean": _mean}
