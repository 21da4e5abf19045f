"""Layers of bytes: convolutions and fully connected ones by the kernel that offers to compute them,
and casts between bytes and float32."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from run_model_tools.kernels.convolutions.convolution import Convolution
from run_model_tools.kernels.int8 import convolution, depthwise, tiled_convolution, winograd
from run_model_tools.kernels.int8.quantized import Quantization, QuantizedConvolution
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, Phase
from run_model_tools.kernels.products.dense import Dense

_KERNELS = (depthwise, tiled_convolution, winograd, convolution)
"""Of convolutions; the first that offers to compute one does."""


def can_convolve(conv: QuantizedConvolution, isa: Isa) -> bool:
    """Whether there is a kernel for it."""
    return any(kernel.options(conv, isa) for kernel in _KERNELS)


def make_convolution(conv: QuantizedConvolution, isa: Isa) -> Layer | None:
    """The layer, if there is a kernel for it."""
    for kernel in _KERNELS:
        offered = kernel.options(conv, isa)
        if offered:
            return kernel.make(conv, isa, **offered[0])
    return None


def of_one_pixel(dense: Dense) -> Convolution:
    """A fully connected layer as a convolution, whose channels are the vector's numbers."""
    weight = dense.weight[:, :, None, None]
    return Convolution(weight, dense.bias, ((1, weight.shape[1], 1, 1),), (), low=dense.low,
                       high=dense.high)


def make_dense(conv: QuantizedConvolution, isa: Isa) -> Layer:
    """The layer of what of_one_pixel() made; its vector has two dimensions, as the dense one's."""
    layer = convolution.make(conv, isa, **convolution.options(conv, isa)[0])
    return replace(layer, kind="dense_int8", inputs=((layer.inputs[0][0][:2], "float32"),))


def make_cast(shape: tuple[int, ...], quantization: Quantization, to_float: bool,
              isa: Isa, exactly: bool = False) -> Layer:
    """The layer that makes float32 of a blocked tensor of bytes, or the other way.

    exactly: with the roundings of a quantized graph.
    """
    _, blocks, height, width, lanes = shape
    each = min(height * width, max(256, -(-blocks * height * width // 8)))
    scales = quantization.scales(range(blocks * lanes))
    factors = scales if to_float else 1 / scales
    offsets = -quantization.zero_point * scales if to_float else np.full(
        len(scales), quantization.zero_point)
    defines: dict[str, object] = isa.defines() | {"PIXELS": height * width, "TASK_PIXELS": each}
    if to_float:
        defines["TO_FLOAT"] = 1
    if exactly:
        factors = scales
        defines["BYTE_ZERO"] = quantization.zero_point
    kinds = ("uint8", "float32") if to_float else ("float32", "uint8")
    return Layer(kind="dequantize" if to_float else "quantize", template="f32-u8-cast.c.in",
                 defines=defines, phases=(Phase("int8_cast", blocks * -(-height * width // each)),),
                 inputs=((tuple(shape), kinds[0]),),
                 constants=(factors.astype(np.float32), offsets.astype(np.float32)),
                 output_shape=tuple(shape), output_dtype=kinds[1], variant=isa.variant(),
                 note={"kernel": "int8_cast"})
