"""Depthwise convolution of any kernel, stride, dilation and padding (kernels/c/depthwise.h)."""

from __future__ import annotations

import math

import numpy as np

from .convolution import Convolution
from .isa import Isa
from .layer import Layer, Phase

_TASK_MULTIPLY_ADDS = 200_000
"""About 5 µs of one core of a desktop processor: less is not worth a thread's while."""


def options(conv: Convolution, isa: Isa) -> list[dict]:
    """Parameter sets worth trying, the best guess first.

    `columns`: output columns that are computed together, 0 for each by itself; `strips`: how many parts
    a plane's rows are cut into; `tasks`: parallel tasks.
    """
    if not conv.depthwise or conv.planar or any(piece.first for piece in conv.input_lanes):
        return []
    widths = _columns(conv, isa)
    return [{"columns": columns, "strips": strips, "tasks": tasks}
            for columns in widths[:2] for strips, tasks in _cuts(conv, isa)]


def make(conv: Convolution, isa: Isa, columns: int, strips: int, tasks: int) -> Layer:
    """The layer.  Its output has a block for each of `conv.input_lanes`, with the same lanes used."""
    blocks = len(conv.input_lanes)
    height, width = conv.output_size
    defines = {
        **isa.defines(), **conv.clamp_defines(),
        "BLOCKS": blocks,
        "BLOCK_TENSOR": [piece.tensor for piece in conv.input_lanes],
        "BLOCK_INDEX": [piece.block for piece in conv.input_lanes],
        "IN_HEIGHT": conv.input_size[0], "OUT_HEIGHT": height,
        "STRIPS": strips, "TASKS": tasks, **row_defines(conv, isa, columns),
        "STRIDE_Y": conv.strides[0], "DILATION_Y": conv.dilation[0], "PAD_TOP": conv.padding[0],
    }
    if not columns:
        defines["PLAIN"] = 1
    if conv.residual:
        defines["RESIDUAL"] = len(conv.input_shapes)
    shape = (1, blocks, height, width, isa.lanes)
    inputs = [(tuple(s), "float32") for s in conv.input_shapes]
    return Layer(
        kind="conv2d_depthwise", header="depthwise.h", defines=defines,
        phases=(Phase("depthwise", tasks),),
        inputs=tuple(inputs + [(shape, "float32")] * conv.residual),
        constants=(packed_weights(conv, isa),), output_shape=shape,
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


def packed_weights(conv: Convolution, isa: Isa) -> np.ndarray:
    """[blocks][taps, then the bias][lanes]; zeros where a block has no channel."""
    packed = np.zeros((len(conv.input_lanes), math.prod(conv.kernel) + 1, isa.lanes), np.float32)
    channel = 0
    for block, piece in enumerate(conv.input_lanes):
        channels = slice(channel, channel + piece.count)
        packed[block, :-1, :piece.count] = conv.weight[channels].reshape(piece.count, -1).T
        packed[block, -1, :piece.count] = conv.bias[channels]
        channel += piece.count
    return packed


def _columns(conv: Convolution, isa: Isa) -> list[int]:
    """Group widths that are possible, those that leave the fewest columns to do twice first."""
    width = conv.output_size[1]
    most = min(8, isa.registers - conv.kernel[1] - 3)
    possible = [c for c in range(1, min(most, width) + 1) if fits(conv, c)]
    return sorted(possible, key=lambda c: (-(-width // c)) * (c + 1)) or [0]


def fits(conv: Convolution, columns: int) -> bool:
    """Whether groups of `columns` columns keep the edges to the first and the last group."""
    width, in_width = conv.output_size[1], conv.input_size[1]
    stride, pad = conv.strides[1], conv.padding[1]
    extent = (conv.kernel[1] - 1) * conv.dilation[1]
    left = sum(x * stride < pad for x in range(width))
    right = sum(x * stride - pad + extent >= in_width for x in range(width))
    if columns == width:
        return True
    if width < columns or max(left, right) > columns:
        return False
    # The last group may begin within the left edge, which it checks as well; those between may not.
    return width <= 2 * columns or width - 2 * columns >= left


def _cuts(conv: Convolution, isa: Isa) -> list[tuple[int, int]]:
    """(strips, tasks): equal work for up to 4 threads, strips whose input fits half a first-level cache."""
    blocks, height = len(conv.input_lanes), conv.output_size[0]
    work = blocks * isa.lanes * math.prod(conv.output_size) * math.prod(conv.kernel)
    tasks = max(1, min(16, work // _TASK_MULTIPLY_ADDS))
    tasks = tasks // 4 * 4 or tasks
    cuts = []
    for strips in (4, 2, 1, 8):
        if strips <= height and strips * blocks >= tasks:
            cuts.append((strips, tasks))
    return cuts or [(min(height, tasks), min(tasks, min(height, tasks) * blocks))]
