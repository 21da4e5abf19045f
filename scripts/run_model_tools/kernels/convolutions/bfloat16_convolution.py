"""Convolution whose products are of bfloat16, by tiles: kernels/c/bf16-conv-amx.c.in."""

from __future__ import annotations

from run_model_tools.kernels.convolutions.convolution import (
    Convolution,
    blocks_of,
    border_defines,
    copied_blocks,
    places_of,
)
from run_model_tools.kernels.convolutions.tiled_convolution import Plan, can_read
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, Phase
from run_model_tools.kernels.tiles import bfloat16_bits, bias_and_constants, common_defines

# Nanoseconds on a Sapphire Rapids: a vector of float32 multiplied and added.
_VECTOR_TIME = 0.22


def options(conv: Convolution, isa: Isa) -> list[dict]:
    """One set of no parameters where it is faster than with float32, else none."""
    if not isa.bfloat16 or not can_read(conv, isa):
        return []
    height, width = conv.output_size
    numbers = conv.weight.shape[1] * conv.kernel[0] * conv.kernel[1]
    plan = Plan.of(conv, 2)
    return [{}] if plan.nanoseconds < height * width * plan.blocks * numbers * _VECTOR_TIME else []


def make(conv: Convolution, isa: Isa) -> Layer:
    """The layer, of which options() offers one: float32 in blocks as of any convolution."""
    plan = Plan.of(conv, 2)
    weights = plan.packed(conv, bfloat16_bits(conv.weight))
    second, defines = plan.tasks(conv, weights.nbytes)
    tasks, copying = plan.copies(conv)
    if conv.planar:
        first = Phase("bfloat16_picture", tasks)
        copying["PICTURE_CHANNELS"] = conv.weight.shape[1]
    else:
        first = Phase("bfloat16_interleave", tasks)
        copying |= copied_blocks(conv) | {"COPY_LANES": _lanes_read(conv)}
    return Layer(
        kind="conv2d_bf16", template="bf16-conv-amx.c.in",
        defines=common_defines(conv, isa) | border_defines(conv) | copying | defines | {
            "BFLOAT16": 1},
        phases=(first, second), inputs=conv.layer_inputs(isa.lanes),
        constants=(weights, bias_and_constants(conv, isa)),
        output_shape=conv.output_shape(isa.lanes), shared_bytes=plan.shared_bytes,
        variant=f"{2 * plan.tile_rows}x2_{isa.name}bf16amx",
        note={"kernel": "bfloat16_convolution", "multiply_adds": conv.multiply_adds})


def _lanes_read(conv: Convolution) -> list[int]:
    """Of each block that it reads, the bits of the lanes."""
    lanes = dict.fromkeys(blocks_of(conv), 0)
    for tensor, block, lane in places_of(conv):
        lanes[tensor, block] |= 1 << lane
    return list(lanes.values())
