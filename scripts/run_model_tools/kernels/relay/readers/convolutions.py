"""Convolutions and fully connected layers, with what epilogues.py found after them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from run_model_tools.kernels.convolutions.convolution import Convolution, without_idle_taps
from run_model_tools.kernels.epilogues import Epilogue
from run_model_tools.kernels.pictures.resampling import Axis
from run_model_tools.kernels.plan import ConvolutionStep, DenseStep
from run_model_tools.kernels.products.dense import Dense
from run_model_tools.kernels.registry import can_convolve, can_multiply
from run_model_tools.kernels.relay import nodes as relay
from run_model_tools.kernels.relay.graph import shape_of
from run_model_tools.kernels.relay.readers.elementwise import arranged
from run_model_tools.kernels.relay.readers.network import Network, Value, integers
from run_model_tools.kernels.relay.readers.places import resampled
from run_model_tools.kernels.tensors import Blocked, Tensor

_MOST_VECTORS = 8
"""For which a fully connected layer in bytes or in half precision reads its weights again."""
_MOST_PLANES = 8
"""Channels of a picture that is read as it is; more are cheaper to bring into blocks."""


def _convolution(net: Network, epilogue: Epilogue) -> Value:
    call, attrs = epilogue.call, epilogue.call.attrs
    weight = call.args[1]
    if (str(attrs.data_layout) != "NCHW" or str(attrs.kernel_layout) != "OIHW"
            or not isinstance(weight, relay.Constant)
            or str(call.checked_type.dtype) != "float32"
            or str(attrs.out_dtype) not in ("", "float32") or len(shape_of(call)) != 4
            or min(shape_of(call)) < 1):
        return None
    weight, bias = _weight_and_bias(epilogue, weight.data.numpy())
    conv = Convolution(
        weight, bias, (), (), strides=integers(attrs.strides),
        padding=integers(attrs.padding), dilation=integers(attrs.dilation),
        groups=int(attrs.groups), low=epilogue.low, high=epilogue.high,
        expression=epilogue.expression)
    conv = without_idle_taps(conv, shape_of(call.args[0])[2:])
    data = net.values[call.args[0]]
    if (isinstance(data, Tensor) and data.shape[2:] == conv.kernel == (1, 1)
            and conv.groups == 1 and not any(conv.padding)):
        return _convolution_of_vector(net, conv, data, epilogue)
    if conv.groups > 1 and conv.groups == weight.shape[0] and weight.shape[1] == 1:
        return _depthwise(net, conv, data, epilogue)
    return _dense_convolution(net, conv, data, epilogue)


def _dense_convolution(net: Network, conv: Convolution, data: Value, epilogue: Epilogue) -> Value:
    """A convolution that sums over channels: any order of them will do within a group."""
    if isinstance(data, Tensor) and data.shape[1] <= _MOST_PLANES:
        planar = replace(conv, input_shapes=(data.shape_of_one,))
        if conv.groups == 1 and can_convolve(planar, net.isa):
            return _add_convolution(net, planar, [data], epilogue)
    source = net.blocked(data)
    if source is None:
        return None
    depth = conv.weight.shape[1]
    groups = np.arange(source.channels).reshape(conv.groups, depth)
    rank = np.argsort(source.storage_order())
    within = np.argsort(rank[groups], axis=1)
    order = np.take_along_axis(groups, within, 1).reshape(-1)
    weight = conv.weight.reshape(conv.groups, -1, depth, *conv.kernel)
    weight = np.take_along_axis(weight, within[:, None, :, None, None], 2)
    conv = replace(conv, weight=np.ascontiguousarray(weight.reshape(conv.weight.shape)))
    arranged = source.take(order)
    conv = replace(conv, input_shapes=tuple(t.shape_of_one for t in arranged.tensors),
                   input_lanes=arranged.pieces())
    if not can_convolve(conv, net.isa):
        return None
    return _add_convolution(net, conv, list(arranged.tensors), epilogue)


def _convolution_of_vector(net: Network, conv: Convolution, data: Tensor,
                           epilogue: Epilogue) -> Value:
    """A 1x1 convolution after a global pooling is a fully connected layer."""
    dense = Dense(conv.weight[:, :, 0, 0], conv.bias, conv.low, conv.high,
                  conv.expression)
    if epilogue.residual is not None or not can_multiply(dense, net.isa):
        return None
    batch = data.shape[0]
    vector = net.reshaped(data, (batch, conv.input_channels))
    output = Tensor((batch, conv.output_channels))
    net.plan.steps.append(DenseStep([vector], output, dense))
    return net.reshaped(output, (batch, conv.output_channels, 1, 1))


def _depthwise(net: Network, conv: Convolution, data: Value, epilogue: Epilogue) -> Value:
    """A convolution of each channel by itself: it keeps the blocks of its input."""
    source = net.blocked(data)
    if source is None or source.channels != conv.output_channels:
        return None
    pieces, places = source.whole_blocks()
    count = len(pieces) * source.lanes
    weight = np.zeros((count, *conv.weight.shape[1:]), np.float32)
    weight[places] = conv.weight
    bias = np.zeros(count, np.float32)
    bias[places] = conv.bias
    if conv.expression:
        conv = replace(conv, expression=conv.expression.placed(places, count))
    conv = replace(conv, weight=weight, bias=bias, groups=count, input_lanes=pieces,
                   unused=count - len(places),
                   input_shapes=tuple(t.shape_of_one for t in source.tensors))
    if not can_convolve(conv, net.isa):
        return None
    return _add_convolution(net, conv, list(source.tensors), epilogue, places)


def _transposed(net: Network, epilogue: Epilogue) -> Value:
    """A transposed convolution: output row y is at place (y + padding) % stride of a grid whose
    cells are (y + padding) // stride.  One convolution makes all places of a cell, as channels."""
    call, attrs = epilogue.call, epilogue.call.attrs
    weight, shape = call.args[1], shape_of(call)
    if (str(attrs.data_layout) != "NCHW" or str(attrs.kernel_layout) != "IOHW"
            or not isinstance(weight, relay.Constant) or len(shape) != 4 or min(shape) < 1
            or str(call.checked_type.dtype) != "float32"
            or int(attrs.groups) != 1 or integers(attrs.dilation) != (1, 1)):
        return None
    strides, padding = integers(attrs.strides), integers(attrs.padding)
    weight, bias = _weight_and_bias(epilogue, weight.data.numpy().swapaxes(0, 1))
    blocks = -(-shape[1] // net.isa.lanes)
    places = blocks * net.isa.lanes
    taps = [-(-k // s) for k, s in zip(weight.shape[2:], strides)]
    # [place down][place across][output][input][tap][tap]; zeros where there is no channel or tap.
    whole = np.zeros((*strides, places, weight.shape[1], *taps), np.float32)
    for i, j in np.ndindex(*weight.shape[2:]):
        whole[i % strides[0], j % strides[1], :shape[1], :, taps[0] - 1 - i // strides[0],
              taps[1] - 1 - j // strides[1]] = weight[:, :, i, j]
    cells = [(p + size - 1) // s + 1 for p, size, s in zip(padding, shape[2:], strides)]
    after = [max(0, n - size) for n, size in zip(cells, shape_of(call.args[0])[2:])]
    every = (np.arange(math.prod(strides))[:, None] * places + np.arange(shape[1])).reshape(-1)
    spread = np.zeros(math.prod(strides) * places, np.float32)
    spread[every] = np.tile(bias, math.prod(strides))
    expression = epilogue.expression
    if expression:
        tiled = replace(expression, channels=tuple(
            np.tile(values, math.prod(strides)) for values in expression.channels))
        expression = tiled.placed(every, len(spread))
    conv = Convolution(
        whole.reshape(-1, weight.shape[1], *taps), spread, (), (),
        padding=(taps[0] - 1, taps[1] - 1, *after), low=epilogue.low, high=epilogue.high,
        expression=expression)
    made = _dense_convolution(net, conv, net.values[call.args[0]], Epilogue([call]))
    if made is None:
        return None
    axes = []
    for size, stride, before, step in zip(shape[2:], strides, padding, (strides[1], 1)):
        at = np.arange(size) + before
        axes.append(Axis((at // stride)[:, None], blocks=at % stride * step * blocks))
    return resampled(net, made.take(np.arange(shape[1])), axes)


def _add_convolution(net: Network, conv: Convolution, tensors: list[Tensor], epilogue: Epilogue,
                     places: np.ndarray | None = None) -> Value:
    channels = conv.output_channels
    places = np.arange(channels) if places is None else places
    output = Tensor((tensors[0].shape[0], *conv.output_shape(net.isa.lanes)[1:]))
    result = Blocked((output,), np.stack([np.zeros(len(places), int), places], 1))
    if epilogue.residual is not None:
        residual = net.blocked(net.values[epilogue.residual])
        assert residual is not None, "it has the output's shape"
        conv = replace(conv, residual=True)
        tensors = [*tensors, arranged(net, residual, result).tensors[0]]
    net.plan.steps.append(ConvolutionStep(tensors, output, conv))
    return result


def _dense(net: Network, epilogue: Epilogue) -> Value:
    call = epilogue.call
    data, weight = net.values[call.args[0]], call.args[1]
    shape = shape_of(call)
    if (isinstance(weight, relay.Constant) and 1 <= shape[0] <= _MOST_VECTORS and len(shape) == 2
            and str(weight.data.dtype) == "float32" and epilogue.residual is None):
        dense = Dense(*_weight_and_bias(epilogue, weight.data.numpy()), epilogue.low,
                      epilogue.high, epilogue.expression)
        if can_multiply(dense, net.isa):
            output = Tensor(shape)
            net.plan.steps.append(DenseStep([net.plain(data)], output, dense))
            return output
    return None


def _weight_and_bias(epilogue: Epilogue, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both float32, scaled as the epilogue says."""
    if epilogue.scale is not None:
        weight = weight * epilogue.scale.reshape(-1, *(1,) * (weight.ndim - 1))
    bias = np.zeros(len(weight)) if epilogue.bias is None else epilogue.bias
    return np.ascontiguousarray(weight, np.float32), np.ascontiguousarray(bias, np.float32)


EPILOGUES = {"nn.conv2d": _convolution, "nn.conv2d_transpose": _transposed, "nn.dense": _dense}
