"""Depthwise convolution of any kernel, stride, dilation and padding (kernels/c/f32-dwconv.c.in)."""

from __future__ import annotations

import math

import numpy as np

from run_model_tools.kernels.convolutions.convolution import Convolution
from run_model_tools.kernels.half import weights as half_weights
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, Phase
from run_model_tools.kernels.pictures.window import cuts, group_widths
from run_model_tools.kernels.tiles import common_defines


def options(conv: Convolution, isa: Isa) -> list[dict]:
    """Parameter sets worth trying, the best guess first.

    `columns`: output columns that are computed together, 0 for each by itself; `strips`: how many
    parts a plane's rows are cut into; `tasks`: parallel tasks.
    """
    if not conv.depthwise or conv.planar or any(piece.first for piece in conv.input_lanes):
        return []
    if isa.half and not half_weights.fits_one_run(conv):
        return []
    widths = column_groups(conv, isa)
    blocks, height = len(conv.input_lanes), conv.output_size[0]
    operations = blocks * isa.lanes * math.prod(conv.output_size) * math.prod(conv.kernel)
    return [{"columns": columns, "strips": strips, "tasks": tasks}
            for columns in widths[:2] or [0] for strips, tasks in cuts(blocks, height, operations)]


def column_groups(conv: Convolution, isa: Isa) -> list[int]:
    """How many columns may be computed at once, the best first (group_widths())."""
    # A group's registers: its sums, a row of weights, an input and two bounds.
    most = max(2, min(8, isa.registers - conv.kernel[1] - 3))
    return group_widths(conv.output_size[1], conv.input_size[1], conv.kernel[1], conv.strides[1],
                        conv.dilation[1], conv.padding[1], most)


def make(conv: Convolution, isa: Isa, columns: int, strips: int, tasks: int) -> Layer:
    """The layer.  Its output has a block for each of `conv.input_lanes`, the same lanes used."""
    blocks = len(conv.input_lanes)
    height, width = conv.output_size
    conv, scales = half_weights.scaled_with_bias(conv, isa)
    defines = {
        **common_defines(conv, isa, isa.lanes),
        "BLOCKS": blocks,
        "BLOCK_TENSOR": [piece.tensor for piece in conv.input_lanes],
        "BLOCK_INDEX": [piece.block for piece in conv.input_lanes],
        "IN_HEIGHT": conv.input_size[0], "OUT_HEIGHT": height,
        "STRIPS": strips, "TASKS": tasks, **row_defines(conv, isa, columns),
        "STRIDE_Y": conv.strides[0], "DILATION_Y": conv.dilation[0], "PAD_TOP": conv.padding[0],
    }
    if not columns:
        defines["PLAIN"] = 1
    shape = (1, blocks, height, width, isa.lanes)
    inputs = [(tuple(s), isa.number) for s in conv.input_shapes]
    return Layer(
        kind="conv2d_depthwise", template="f32-dwconv.c.in", defines=defines,
        phases=(Phase("depthwise", tasks),),
        inputs=tuple(inputs + [(shape, isa.number)] * conv.residual),
        constants=(packed_weights(conv, isa, scales),), output_shape=shape,
        output_dtype=isa.number,
        variant=isa.variant(*[columns] if columns else []),
        note={"kernel": "depthwise", "columns": columns, "strips": strips, "tasks": tasks,
              "multiply_adds": conv.multiply_adds})


def row_defines(conv: Convolution, isa: Isa, columns: int) -> dict[str, object]:
    """depthwise_row.h's macros."""
    taps = math.prod(conv.kernel)
    return {
        "TAPS_Y": conv.kernel[0], "TAPS_X": conv.kernel[1], "STRIDE_X": conv.strides[1],
        "DILATION_X": conv.dilation[1], "PAD_LEFT": conv.padding[1],
        "IN_WIDTH": conv.input_size[1], "OUT_WIDTH": conv.output_size[1], "COLUMNS": columns,
        "RESIDENT_WEIGHTS": columns + taps + 4 <= isa.registers,
    }


def packed_weights(conv: Convolution, isa: Isa, scales: np.ndarray | None = None) -> np.ndarray:
    """[blocks][taps, then in float32 the bias, the constants by channel, the scales][lanes]; zeros
    where a block has no channel."""
    taps = math.prod(conv.kernel)
    constants = [conv.bias, *(conv.expression.channels if conv.expression else ())]
    if scales is not None:
        constants.append(scales)
    packed = np.zeros((len(conv.input_lanes), taps + len(constants), isa.lanes), np.float32)
    channel = 0
    for block, piece in enumerate(conv.input_lanes):
        channels = slice(channel, channel + piece.count)
        packed[block, :taps, :piece.count] = conv.weight[channels].reshape(piece.count, -1).T
        for index, values in enumerate(constants):
            packed[block, taps + index, :piece.count] = values[channels]
        channel += piece.count
    if not isa.half:
        return packed
    as_numbers = [packed[:, :taps].astype(np.float16), packed[:, taps:].view(np.float16)]
    return np.concatenate([part.reshape(len(packed), -1) for part in as_numbers], 1)
