"""Convolution by its definition, in float64, on blocked activations."""

from __future__ import annotations

import numpy as np

from run_model_tools.kernels.convolutions.convolution import Convolution


def input_channels(conv: Convolution, tensors: list[np.ndarray]) -> np.ndarray:
    """The (channels, height, width) that the convolution reads, in the order of its weight."""
    if conv.planar:
        return tensors[0][0]
    pieces = [tensors[p.tensor][0, p.block, :, :, p.first:p.first + p.count]
              for p in conv.input_lanes]
    return np.concatenate([np.moveaxis(p, -1, 0) for p in pieces])


def correlate(conv: Convolution, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Sums of products, (output channels, height, width), of float64 `x` and `weight`.

    Of whole numbers they are exact while they stay below 2**53.
    """
    top, left, bottom, right = conv.padding
    x = np.pad(x, [(0, 0), (top, bottom), (left, right)])
    height, width = conv.output_size
    out = np.zeros((conv.output_channels, height, width))
    per_group = conv.output_channels // conv.groups
    depth = weight.shape[1]
    for group in range(conv.groups):
        rows = slice(group * per_group, (group + 1) * per_group)
        channels = x[group * depth:(group + 1) * depth]
        for i in range(conv.kernel[0]):
            for j in range(conv.kernel[1]):
                y0, x0 = i * conv.dilation[0], j * conv.dilation[1]
                window = channels[:, y0:y0 + (height - 1) * conv.strides[0] + 1:conv.strides[0],
                                  x0:x0 + (width - 1) * conv.strides[1] + 1:conv.strides[1]]
                out[rows] += np.einsum("oc,chw->ohw", weight[rows, :, i, j], window, optimize=True)
    return out


def convolve(conv: Convolution, tensors: list[np.ndarray], lanes: int) -> np.ndarray:
    """The result as (output channels, height, width), float64.

    `tensors`: the inputs and, if the convolution adds one, the residual.
    """
    out = correlate(conv, input_channels(conv, tensors).astype(np.float64),
                    conv.weight.astype(np.float64))
    out += conv.bias.astype(np.float64)[:, None, None]
    residual = [unblocked(tensors[-1], conv.output_channels)] if conv.residual else []
    if conv.expression:
        return conv.expression.evaluate([out, *residual])
    return np.clip(sum(residual, out), conv.low, conv.high)


def blocked(planes: np.ndarray, lanes: int) -> np.ndarray:
    """(channels, height, width) -> [1][blocks][height][width][lanes], with zeros at the end."""
    padded = np.pad(planes, [(0, -len(planes) % lanes), (0, 0), (0, 0)])
    return np.moveaxis(padded.reshape(-1, lanes, *planes.shape[1:]), 1, -1)[None]


def unblocked(tensor: np.ndarray, channels: int) -> np.ndarray:
    """[1][blocks][height][width][lanes] -> (channels, height, width)."""
    _, blocks, height, width, lanes = tensor.shape
    return np.moveaxis(tensor[0], -1, 1).reshape(blocks * lanes, height, width)[:channels]
