"""Quantized layers in whole numbers, and every float32 rounding of kernels/c/int8.h: equal
bytes."""

from __future__ import annotations

import numpy as np

import reference
from run_model_tools.kernels.int8.quantized import QuantizedConvolution


def fused(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """float32 a * b + c with one rounding.

    The product is exact in float64.  The sum is rounded to odd there, so that rounding it again, to
    float32, cannot meet a tie that is none.
    """
    product = np.asarray(a, np.float32).astype(np.float64) * np.asarray(b, np.float32)
    addend = np.asarray(c, np.float32).astype(np.float64)
    total = product + addend
    part = total - product
    error = (product - (total - part)) + (addend - part)
    even = (total.view(np.int64) & 1) == 0
    towards = np.where(error > 0, np.inf, -np.inf)
    total = np.where((error != 0) & even, np.nextafter(total, towards), total)
    return total.astype(np.float32)


def picture_bytes(quantized: QuantizedConvolution, picture: np.ndarray) -> np.ndarray:
    """A float32 (channels, height, width) as the first layer makes bytes of it."""
    result = np.empty(picture.shape, np.uint8)
    for c, q in zip(range(len(picture)), quantized.inputs):
        value = fused(picture[c], np.float32(1 / q.scale), np.float32(q.zero_point))
        result[c] = np.rint(np.clip(value, np.float32(0), np.float32(255)))
    return result


def sums(quantized: QuantizedConvolution, tensors: list[np.ndarray]) -> np.ndarray:
    """int64 (output channels, height, width): weights times (bytes - zero points)."""
    conv = quantized.convolution
    x = (picture_bytes(quantized, tensors[0][0]) if conv.planar
         else reference.input_channels(conv, tensors))
    zeros = np.array([q.zero_point for q in quantized.channel_inputs], np.float64)[:len(x)]
    # float64 holds these whole numbers exactly.
    return reference.correlate(conv, x.astype(np.float64) - zeros[:, None, None],
                               quantized.weight.astype(np.float64)).astype(np.int64)


def convolve(quantized: QuantizedConvolution, tensors: list[np.ndarray]) -> np.ndarray:
    """The result as (output channels, height, width), of the output's type."""
    conv = quantized.convolution
    per_channel = (slice(None), None, None)
    value = fused(sums(quantized, tensors).astype(np.float32), quantized.scale[per_channel],
                  quantized.bias[per_channel])
    if conv.residual:
        residual = reference.unblocked(tensors[-1], conv.output_channels)
        value = fused(residual.astype(np.float32), quantized.residual_scale[per_channel], value)
    low, high = quantized.bounds
    value = np.minimum(np.maximum(value, low), high)
    return value if quantized.output is None else np.rint(value).astype(np.uint8)
