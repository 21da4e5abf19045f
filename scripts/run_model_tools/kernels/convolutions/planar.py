"""Convolution of a planar picture, a network's first layer (c/f32-conv-planar.c.in)."""

from __future__ import annotations

import numpy as np

from run_model_tools.kernels.convolutions.convolution import Convolution
from run_model_tools.kernels.half import weights as half_weights
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, Phase
from run_model_tools.kernels.tiles import (
    best_tiles,
    bias_and_constants,
    common_defines,
    even,
    packed_weights,
    vectors,
)


def options(conv: Convolution, isa: Isa) -> list[dict]:
    """Parameters worth trying, best guess first: the register tile [columns, vectors] and in how
    many parts the rows are cut."""
    if not conv.planar or conv.groups > 1:
        return []
    if isa.half and conv.kernel[1] > half_weights.RUN_PRODUCTS:
        return []
    tiles = best_tiles(isa, conv.output_size[1], vectors(conv.output_channels, isa))
    most = max(1, min(28, conv.output_size[0], conv.multiply_adds // 500_000))  # 5 us on one core
    parts = [n for n in (16, 28, 8, 4, 2, 1) if n <= most]
    # Parts of equal size first.
    parts.sort(key=lambda n: (conv.output_size[0] % n != 0 and conv.output_size[0] < 8 * n))
    return [{"tile": list(tile), "parts": n} for tile in tiles for n in parts[:2]]


def make(conv: Convolution, isa: Isa, tile: list[int], parts: int,
         most_rows: int | None = None) -> Layer:
    """A layer with these parameters.  `most_rows`: of a part, if those are not equal parts of the
    output's rows."""
    height, width = conv.input_size
    out_height, out_width = conv.output_size
    top, left, _, _ = conv.padding
    planes = conv.input_channels
    parts = min(parts, out_height)
    conv, scales = half_weights.scaled(conv, isa)
    columns = even(out_width, tile[0])
    vector_tiles = even(vectors(conv.output_channels, isa), tile[1])
    # [plane][tap] is the order of tiles.packed_weights() if planes are made a part of the height.
    rows = conv.weight.reshape(conv.output_channels, 1, planes * conv.kernel[0], conv.kernel[1])
    weights = np.concatenate([packed_weights(rows, [0], v, isa.lanes)
                              for v in vector_tiles.ranges()])
    defines = {**common_defines(conv, isa), **columns.defines("COLUMN", "COLUMNS"),
               **vector_tiles.defines("VECTOR", "VECTORS"), "PLANES": planes,
               "INPUT_HEIGHT": height, "INPUT_WIDTH": width, "OUTPUT_HEIGHT": out_height,
               "OUTPUT_WIDTH": out_width, "KERNEL_HEIGHT": conv.kernel[0],
               "KERNEL_WIDTH": conv.kernel[1], "STRIDE_Y": conv.strides[0],
               "STRIDE_X": conv.strides[1], "DILATION_Y": conv.dilation[0],
               "DILATION_X": conv.dilation[1], "PAD_TOP": top, "PAD_LEFT": left, "ROW_PARTS": parts}
    # A half vector of eight takes half the time where one of sixteen is done in two steps.
    if isa.lanes == 16 and vector_tiles.tiles == 1 and 0 < conv.output_channels % 16 <= 8:
        defines["LAST_HALF"] = 1
    scratch = 0
    # Of numbers in half precision the copy is what rounds them.
    if any(conv.padding) or isa.half:
        padded_width = ((out_width - 1) * conv.strides[1]
                        + (conv.kernel[1] - 1) * conv.dilation[1] + 1)
        padded_rows = (((most_rows or -(-out_height // parts)) - 1) * conv.strides[0]
                       + (conv.kernel[0] - 1) * conv.dilation[0] + 1)
        defines.update(PADDED_WIDTH=padded_width, PADDED_ROWS=padded_rows)
        scratch = planes * padded_rows * padded_width * isa.number_bytes
    return Layer("conv2d_planar", "f32-conv-planar.c.in", defines, (Phase("planar", parts),),
                 conv.layer_inputs(isa.lanes, isa.number),
                 (weights.astype(isa.number), bias_and_constants(conv, isa, scales)),
                 conv.output_shape(isa.lanes), isa.number, scratch_bytes=scratch,
                 variant=isa.variant(*tile),
                 note={"kernel": "planar", "tile": list(tile), "parts": parts,
                       "multiply_adds": conv.multiply_adds})
