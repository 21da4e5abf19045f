"""Quantized convolution by tiles of bytes: kernels/c/u8s8-conv-amx.c.in."""

from __future__ import annotations

from run_model_tools.kernels.convolutions.tiled_convolution import Plan, can_read
from run_model_tools.kernels.int8.convolution import copy_defines, per_channel, picture_input
from run_model_tools.kernels.int8.quantized import QuantizedConvolution
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, Phase

# Nanoseconds on a Sapphire Rapids: a vector of words multiplied by VNNI's instructions.
_VECTOR_TIME = 0.25


def options(quantized: QuantizedConvolution, isa: Isa) -> list[dict[str, object]]:
    """One set of no parameters where it is faster than without tiles, else none."""
    conv = quantized.convolution
    if not can_read(conv, isa):
        return []
    height, width = conv.output_size
    words = -(-conv.weight.shape[1] // 4) * conv.kernel[0] * conv.kernel[1]
    plan = Plan.of(conv, 1)
    return [{}] if plan.nanoseconds < height * width * plan.blocks * words * _VECTOR_TIME else []


def make(quantized: QuantizedConvolution, isa: Isa) -> Layer:
    """The layer, of which options() offers one."""
    quantized.check()
    conv = quantized.convolution
    plan = Plan.of(conv, 1)
    weights = plan.packed(conv, quantized.weight)
    second, defines = plan.tasks(conv, weights.nbytes)
    if conv.planar:
        first, constants, copying = picture_input(quantized)
    else:
        tasks, copying = plan.copies(conv)
        first, constants = Phase("int8_interleave", tasks), ()
        copying |= copy_defines(quantized)
    return Layer(
        kind="conv2d_int8", template="u8s8-conv-amx.c.in",
        defines=isa.dot_defines() | quantized.output_defines() | copying | defines,
        phases=(first, second), inputs=quantized.layer_inputs(isa.lanes),
        constants=(weights, *per_channel(quantized, isa, 2 * -(-plan.blocks // 2)), *constants),
        output_shape=conv.output_shape(isa.lanes), output_dtype=quantized.output_dtype,
        shared_bytes=plan.shared_bytes, variant=f"{2 * plan.tile_rows}x2_{isa.name}amx",
        note={"kernel": "int8_tiled_convolution", "multiply_adds": conv.multiply_adds})
