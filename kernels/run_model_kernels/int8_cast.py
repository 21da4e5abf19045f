"""Between float32 and bytes: kernels/c/int8_cast.h."""

from __future__ import annotations

import math

from run_model_kernels.isa import Isa
from run_model_kernels.layer import Layer, Phase
from run_model_kernels.quantized import Quantization


def make(shape: tuple[int, ...], quantization: Quantization, to_float: bool, isa: Isa) -> Layer:
    """The layer that makes float32 of a blocked tensor of bytes, or the other way."""
    elements = math.prod(shape)
    each = max(4096, -(-elements // 8)) // isa.lanes * isa.lanes
    scale, zero = quantization.scale, quantization.zero_point
    defines: dict[str, object] = isa.defines() | {
        "ELEMENTS": elements, "TASK_ELEMENTS": each,
        "FACTOR": float(scale if to_float else 1 / scale),
        "OFFSET": float(-zero * scale if to_float else zero)}
    if to_float:
        defines["TO_FLOAT"] = 1
    kinds = ("uint8", "float32") if to_float else ("float32", "uint8")
    return Layer(kind="dequantize" if to_float else "quantize", header="int8_cast.h",
                 defines=defines, phases=(Phase("int8_cast", -(-elements // each)),),
                 inputs=((tuple(shape), kinds[0]),), constants=(), output_shape=tuple(shape),
                 output_dtype=kinds[1], note={"kernel": "int8_cast"})
