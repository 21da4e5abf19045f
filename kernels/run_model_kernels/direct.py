"""Convolution of any kernel size, stride and dilation by its definition (c/direct.h)."""

from __future__ import annotations

import math

import numpy as np

from .convolution import Convolution
from .isa import Isa
from .layer import Layer, Phase
from .tiles import (Even, best_tiles, channel_runs, common_defines, even, packed_weights, padded_bias,
                    run_defines, vectors)


def options(conv: Convolution, isa: Isa) -> list[dict]:
    """Parameters worth trying, best guess first: the register tile [columns, vectors], how many parts
    the [rows, channels] are cut in, and which loop is the outer one."""
    if conv.planar or conv.groups > 1:
        return []
    found = []
    for tile in best_tiles(isa, conv.output_size[1], vectors(conv.output_channels, isa)):
        for parts in _parts(conv, even(vectors(conv.output_channels, isa), tile[1])):
            for outside in ("channels", "rows"):
                found.append({"tile": list(tile), "parts": list(parts), "outside": outside})
    return found


def make(conv: Convolution, isa: Isa, tile: list[int], parts: list[int], outside: str) -> Layer:
    """`outside`: "channels" or "rows"."""
    vector_tiles = even(vectors(conv.output_channels, isa), tile[1])
    runs, order = channel_runs(conv.input_lanes, isa.lanes)
    weights = np.concatenate([packed_weights(conv.weight, order, vectors_, isa.lanes)
                              for vectors_ in vector_tiles.ranges()])
    geometry = direct_geometry(conv, isa, tile, parts, outside, vector_tiles)
    defines = {**geometry.defines, "RUNS": len(runs), "DEPTH": len(order),
               **run_defines(runs, geometry.block_floats, isa.lanes, geometry.first_blocks)}
    return Layer("conv2d_direct", "direct.h", defines, geometry.phases,
                 conv.layer_inputs(isa.lanes),
                 (weights.astype(np.float32), padded_bias(conv, isa.lanes)),
                 conv.output_shape(isa.lanes), shared_bytes=geometry.shared_bytes,
                 note={"kernel": "direct", "tile": list(tile), "parts": list(parts),
                       "outside": outside, "multiply_adds": conv.multiply_adds})


class direct_geometry:  # pylint: disable=invalid-name
    """What direct.h wants to know but for the channels."""

    def __init__(self, conv: Convolution, isa: Isa, tile: list[int], parts: list[int], outside: str,
                 vector_tiles: Even) -> None:
        height, width = conv.input_size
        top, left, bottom, right = conv.padding
        columns = even(conv.output_size[1], tile[0])
        row_parts = min(parts[0], conv.output_size[0])
        channel_parts = min(parts[1], vector_tiles.tiles)
        self.phases: tuple[Phase, ...] = (Phase("direct", row_parts * channel_parts),)
        self.first_blocks: list[int] | None = None
        self.shared_bytes = 0
        defines = {**common_defines(conv, isa), **columns.defines("COLUMN", "COLUMNS"),
                   **vector_tiles.defines("VECTOR", "VECTORS")}
        if _reaches_past_edge_tiles(conv, columns):
            blocks = [shape[1] for shape in conv.input_shapes]
            defines.update(PADDED=1, PADDED_BLOCKS=blocks, SOURCE_HEIGHT=height, SOURCE_WIDTH=width,
                           PADDED_TOP=top, PADDED_LEFT=left)
            height, width, top, left = height + top + bottom, width + left + right, 0, 0
            self.phases = (Phase("padded_copy", sum(blocks)), *self.phases)
            self.first_blocks = [sum(blocks[:i]) for i in range(len(blocks))]
            self.shared_bytes = sum(blocks) * height * width * isa.lanes * 4
        self.block_floats = height * width * isa.lanes
        self.defines = {
            **defines, "TAPS": math.prod(conv.kernel), "INPUT_HEIGHT": height, "INPUT_WIDTH": width,
            "OUTPUT_HEIGHT": conv.output_size[0], "OUTPUT_WIDTH": conv.output_size[1],
            "KERNEL_HEIGHT": conv.kernel[0], "KERNEL_WIDTH": conv.kernel[1],
            "STRIDE_Y": conv.strides[0], "STRIDE_X": conv.strides[1],
            "DILATION_Y": conv.dilation[0], "DILATION_X": conv.dilation[1],
            "PAD_TOP": top, "PAD_LEFT": left, "ROW_PARTS": row_parts, "CHANNEL_PARTS": channel_parts,
            "CHANNELS_OUTSIDE": outside == "channels"}


def _reaches_past_edge_tiles(conv: Convolution, columns: Even) -> bool:
    """Whether some column that is neither in the first nor the last tile reads outside of the picture,
    or a tap reads nothing inside of it for a whole tile."""
    width, stride = conv.input_size[1], conv.strides[1]
    left = conv.padding[1]
    reach = (conv.kernel[1] - 1) * conv.dilation[1]
    before = max(0, -(-left // stride))
    after = conv.output_size[1] - min(conv.output_size[1], -(-(width + left - reach) // stride))
    first, last = (len(r) for r in (columns.ranges()[0], columns.ranges()[-1]))
    if columns.tiles == 1:
        return before + after >= first
    return before >= first or after >= last


def _parts(conv: Convolution, vector_tiles: Even) -> list[tuple[int, int]]:
    most = max(1, min(16, conv.multiply_adds // 500_000))  # 5 us on one core
    rows = [n for n in (16, 8, 4, 2, 1) if n <= min(most, conv.output_size[0])
            and (conv.output_size[0] % n == 0 or conv.output_size[0] >= 8 * n or n == 1)]
    channels = [n for n in (8, 4, 2) if n <= min(most, vector_tiles.tiles)]
    by_rows, by_channels = [(n, 1) for n in rows], [(1, n) for n in channels]
    if math.prod(conv.output_size) * conv.strides[0] * conv.strides[1] >= 4 * conv.output_channels:
        return list(dict.fromkeys(by_rows[:2] + by_channels[:1]))
    return list(dict.fromkeys(by_channels[:2] + by_rows[:1]))
