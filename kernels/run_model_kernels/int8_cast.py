"""Between float32 and bytes: kernels/c/int8_cast.h."""

from __future__ import annotations

import numpy as np

from run_model_kernels.isa import Isa
from run_model_kernels.layer import Layer, Phase
from run_model_kernels.quantized import Quantization


def make(shape: tuple[int, ...], quantization: Quantization, to_float: bool, isa: Isa) -> Layer:
    """The layer that makes float32 of a blocked tensor of bytes, or the other way."""
    _, blocks, height, width, lanes = shape
    each = min(height * width, max(256, -(-blocks * height * width // 8)))
    scales = quantization.scales(range(blocks * lanes))
    factors = scales if to_float else 1 / scales
    offsets = -quantization.zero_point * scales if to_float else np.full(
        len(scales), quantization.zero_point)
    defines: dict[str, object] = isa.defines() | {"PIXELS": height * width, "TASK_PIXELS": each}
    if to_float:
        defines["TO_FLOAT"] = 1
    kinds = ("uint8", "float32") if to_float else ("float32", "uint8")
    return Layer(kind="dequantize" if to_float else "quantize", header="int8_cast.h",
                 defines=defines, phases=(Phase("int8_cast", blocks * -(-height * width // each)),),
                 inputs=((tuple(shape), kinds[0]),),
                 constants=(factors.astype(np.float32), offsets.astype(np.float32)),
                 output_shape=tuple(shape), output_dtype=kinds[1], note={"kernel": "int8_cast"})
