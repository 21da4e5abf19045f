"""Convolutions whose weights are made while the network runs: of each group a product of matrices,
weights [channels][taps of all inputs] with the picture seen as [taps of all inputs][pixels]."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from run_model_tools.kernels.pictures.resampling import taken
from run_model_tools.kernels.plan import ProductStep
from run_model_tools.kernels.products import matmul
from run_model_tools.kernels.products.matmul import Product
from run_model_tools.kernels.relay import nodes as relay
from run_model_tools.kernels.relay.graph import shape_of
from run_model_tools.kernels.relay.readers.moves import view_of
from run_model_tools.kernels.relay.readers.network import Network, Value, integers
from run_model_tools.kernels.relay.readers.places import resampled
from run_model_tools.kernels.tensors import Tensor
from run_model_tools.kernels.views import Axis, View, whole

_FEWEST_CHANNELS = 4
"""Of a group's result: with fewer, packing the pixels takes longer than multiplying them."""


def _convolution(net: Network, expr: relay.Call) -> Value:
    attrs, shape = expr.attrs, shape_of(expr)
    data, weight = (net.values[a] for a in expr.args)
    if (str(attrs.data_layout) != "NCHW" or str(attrs.kernel_layout) != "OIHW"
            or isinstance(weight, relay.Constant) or len(shape) != 4 or min(shape) < 1
            or str(expr.checked_type.dtype) != "float32"):
        return None
    groups = int(attrs.groups)
    channels, depth, *taps = shape_of(expr.args[1])
    if channels // groups < _FEWEST_CHANNELS:
        return None
    strides, dilation = integers(attrs.strides), integers(attrs.dilation)
    pixels, kernels = _padded(net, data, integers(attrs.padding)), view_of(net, weight)
    if pixels is None or kernels is None:
        return None
    apart = (shape[0], groups, depth, *pixels.shape[2:])
    split = pixels.reshape(apart) or whole(net.plain(pixels)).reshape(apart)
    kernels = kernels.reshape((groups, channels // groups, depth, *taps))
    if split is None or kernels is None:
        return None
    samples, group, inputs, *places = split.axes
    # Along rows and columns: where the window of a pixel begins, and its taps from there on.
    begins, steps = [], []
    for axis, size, count, stride, step in zip(places, shape[2:], taps, strides, dilation):
        distance = axis[0][1] if axis else 0
        begins.append(_factor(size, stride * distance))
        steps.append(_factor(count, step * distance))
    right = replace(split, axes=(samples + group, steps[0] + steps[1] + inputs,
                                 begins[0] + begins[1]))
    every, made, within, down, across = kernels.axes
    left = replace(kernels, axes=(_factor(shape[0], 0) + every, made, down + across + within))
    product = Product(replace(left, scale=1.0), replace(right, scale=1.0),
                      left.scale * right.scale)
    if not matmul.options(product, net.isa):
        return None
    output = Tensor(product.shape)
    net.plan.steps.append(ProductStep(matmul.inputs_of(product), output, product))
    return whole(output).reshape(shape)


def _factor(count: int, stride: int) -> Axis:
    return ((count, stride),) if count != 1 else ()


def _padded(net: Network, data: Value, padding: tuple[int, ...]) -> View | None:
    """A picture with zeros around it, in which rows and columns are each equally far apart."""
    if any(padding):
        blocked = net.blocked(data)
        if blocked is None:
            return None
        top, left, bottom, right = padding
        places = [np.arange(-before, size + after) for before, size, after in zip(
            (top, left), blocked.size, (bottom, right))]
        data = resampled(net, blocked, [taken(np.where((at < 0) | (at >= size), -1, at))
                                        for at, size in zip(places, blocked.size)])
    view = None if data is None else view_of(net, data)
    if view is not None and any(len(axis) > 1 for axis in view.axes[2:]):
        view = whole(net.plain(view))
    return view


READERS = {"nn.conv2d": _convolution}
