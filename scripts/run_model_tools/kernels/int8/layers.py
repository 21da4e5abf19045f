"""Which kernel computes a convolution of bytes, and casts between bytes and float32."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from run_model_tools.kernels.int8 import convolution, depthwise, tiled_convolution, winograd
from run_model_tools.kernels.int8.quantized import Quantization, QuantizedConvolution
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, Phase


def kernel_for(conv: QuantizedConvolution, isa: Isa) -> ModuleType | None:
    """The first kernel that offers to compute it."""
    return next((kernel for kernel in (depthwise, tiled_convolution, winograd, convolution)
                 if kernel.options(conv, isa)), None)


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
