"""Convolution of any kernel size, stride and dilation by its definition
(c/f32-conv-direct.c.in)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from run_model_tools.kernels.channels import Channels, all_channels, vector_tiles
from run_model_tools.kernels.convolutions.convolution import Convolution
from run_model_tools.kernels.half import weights as half_weights
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, Phase
from run_model_tools.kernels.parts import best_parts, rounded
from run_model_tools.kernels.tiles import (
    Even,
    best_tiles,
    bias_and_constants,
    common_defines,
    even,
    vectors,
)


def options(conv: Convolution, isa: Isa) -> list[dict]:
    """Parameters worth trying, best guess first: the register tile [columns, vectors], how many
    parts the [rows, channels] are cut in, and which loop is the outer one."""
    if conv.planar or conv.groups > 1:
        return []
    count = vectors(conv.output_channels, isa)
    return options_of_tiles(conv, isa, best_tiles(isa, conv.output_size[1], count))


def options_of_tiles(conv: Convolution, isa: Isa, tiles: Sequence[tuple[int, int]]) -> list[dict]:
    """options() with these register tiles only."""
    return [{"tile": list(tile), "parts": list(parts), "outside": outside} for tile in tiles
            for parts in _parts(conv, isa, tile)[:3] for outside in ("channels", "rows")]


def make(conv: Convolution, isa: Isa, tile: list[int], parts: list[int], outside: str) -> Layer:
    """`outside`: "channels" or "rows"."""
    conv, scales = half_weights.scaled(conv, isa)
    channels = all_channels(conv, isa, vector_tiles(conv, isa, tile, parts))
    return layer("direct", conv, isa, channels, tile, parts, outside, scales)


def layer(kernel: str, conv: Convolution, isa: Isa, channels: Channels, tile: list[int],
          parts: list[int], outside: str, scales: np.ndarray | None) -> Layer:
    """The layer of kernel `kernel`, that reads these channels; `scales`: half_weights.scaled()'s.
    """
    height, width = conv.input_size
    top, left, _, right = conv.padding
    columns = even(conv.output_size[1], tile[0])
    phases = [Phase("direct", math.prod(parts))]
    first_blocks = None
    shared_bytes = 0
    defines = {**common_defines(conv, isa), **columns.defines("COLUMN", "COLUMNS"),
               **vector_tiles(conv, isa, tile, parts).defines("VECTOR", "VECTORS")}
    if _reaches_past_edge_tiles(conv, columns):
        blocks = [shape[1] for shape in conv.input_shapes]
        defines.update(PADDED=1, PADDED_BLOCKS=blocks, SOURCE_WIDTH=width, PADDED_LEFT=left)
        width, left = width + left + right, 0
        phases.insert(0, Phase("padded_copy", sum(blocks)))
        first_blocks = [sum(blocks[:i]) for i in range(len(blocks))]
        shared_bytes = sum(blocks) * height * width * isa.lanes * isa.number_bytes
    defines |= {
        **channels.defines(height * width * isa.lanes, isa.lanes, first_blocks),
        "INPUT_HEIGHT": height, "INPUT_WIDTH": width, "OUTPUT_HEIGHT": conv.output_size[0],
        "OUTPUT_WIDTH": conv.output_size[1], "KERNEL_HEIGHT": conv.kernel[0],
        "KERNEL_WIDTH": conv.kernel[1], "STRIDE_Y": conv.strides[0], "STRIDE_X": conv.strides[1],
        "DILATION_Y": conv.dilation[0], "DILATION_X": conv.dilation[1], "PAD_TOP": top,
        "PAD_LEFT": left, "ROW_PARTS": parts[0], "CHANNEL_PARTS": parts[1],
        "CHANNELS_OUTSIDE": outside == "channels"}
    return Layer(f"conv2d_{kernel}", "f32-conv-direct.c.in", defines, tuple(phases),
                 conv.layer_inputs(isa.lanes, isa.number),
                 (channels.weights, bias_and_constants(conv, isa, scales)),
                 conv.output_shape(isa.lanes), isa.number, shared_bytes=shared_bytes,
                 variant=isa.variant(*tile),
                 note={"kernel": kernel, "tile": list(tile), "parts": list(parts),
                       "outside": outside, "multiply_adds": conv.multiply_adds})


def _reaches_past_edge_tiles(conv: Convolution, columns: Even) -> bool:
    """Whether some column that is neither in the first nor the last tile reads outside of the
    picture, or a tap reads nothing inside of it for a whole tile."""
    width, stride = conv.input_size[1], conv.strides[1]
    left = conv.padding[1]
    reach = (conv.kernel[1] - 1) * conv.dilation[1]
    before = max(0, -(-left // stride))
    after = conv.output_size[1] - min(conv.output_size[1], -(-(width + left - reach) // stride))
    first, last = (len(r) for r in (columns.ranges()[0], columns.ranges()[-1]))
    if columns.tiles == 1:
        return before + after >= first
    return before >= first or after >= last


def _parts(conv: Convolution, isa: Isa, tile: tuple[int, int]) -> list[tuple[int, int]]:
    rows, count = conv.output_size[0], vectors(conv.output_channels, isa)
    row = tuple(len(r) for r in even(conv.output_size[1], tile[0]).ranges())
    numbers = (1, 2, 4, 8, 16)
    return best_parts(isa, conv.multiply_adds, {n: [row] * rows for n in numbers if n <= rows},
                      {n: [len(r) for r in rounded(count, tile[1], n).spread()]
                       for n in numbers if n <= count})
