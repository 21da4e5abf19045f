"""Quantized depthwise convolution: kernels/c/u8s8-dwconv.c.in."""

from __future__ import annotations

import math

import numpy as np

from run_model_tools.kernels.convolutions.convolution import Convolution
from run_model_tools.kernels.int8.convolution import per_channel
from run_model_tools.kernels.int8.quantized import QuantizedConvolution
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, Phase

# Outputs of a row that int8.h makes bytes of at once.
_STORED_TOGETHER = 4


def options(quantized: QuantizedConvolution, isa: Isa) -> list[dict[str, object]]:
    """Parameter sets worth trying, best guess first."""
    conv = quantized.convolution
    if not conv.depthwise or conv.planar or any(p.first for p in conv.input_lanes):
        return []
    if math.prod(conv.kernel) > 49:
        return []
    group = _word_group(conv, isa)[0]
    columns = -(-min(_STORED_TOGETHER, conv.output_size[1]) // group) * group
    sums = 16 if isa.registers >= 32 else 8
    return [{"rows": max(1, min(sums // columns, conv.output_size[0])), "columns": columns}]


def _reach(conv: Convolution) -> int:
    """Columns from an output's first tap to its last one."""
    return (conv.kernel[1] - 1) * conv.dilation[1] + 1


def _word_group(conv: Convolution, isa: Isa) -> tuple[int, int]:
    """(outputs, words): how many neighbouring outputs of a row find all their taps in so many
    words of four columns; (1, 0) where taps are multiplied one by one."""
    if isa.widens_bytes and isa.multiplies_lanes:
        return 1, 0
    reach = _reach(conv)
    words = -(-reach // 4)
    return (4 * words - reach) // conv.strides[1] + 1, words


def _packed(quantized: QuantizedConvolution, isa: Isa) -> np.ndarray:
    """The weights in the order in which u8s8-dwconv.c.in reads them."""
    conv, lanes, places = quantized.convolution, isa.lanes, quantized.output_lanes
    blocks = len(conv.input_lanes)
    height, width = conv.kernel
    group, words = _word_group(conv, isa)
    if words:
        packed = np.zeros((blocks * lanes, height, group, words * 4), np.int8)
        for output in range(group):
            for tap in range(width):
                packed[places, :, output, output * conv.strides[1] + tap * conv.dilation[1]] = (
                    quantized.weight[:, 0, :, tap])
        packed = packed.reshape(blocks, lanes, height, group, words, 4).transpose(0, 2, 3, 4, 1, 5)
        if isa.widens_bytes:
            packed = packed.reshape(*packed.shape[:-1], 2, 2).transpose(0, 1, 2, 3, 6, 4, 5)
    else:
        packed = np.zeros((blocks * lanes, height, width), np.int8)
        packed[places] = quantized.weight[:, 0]
        packed = packed.reshape(blocks, lanes, height, width).transpose(0, 2, 3, 1)
    return packed.reshape(-1).astype(np.int16 if isa.widens_bytes else np.int8)


def make(quantized: QuantizedConvolution, isa: Isa, rows: int, columns: int) -> Layer:
    """The layer, `rows` x `columns` outputs at a time."""
    quantized.check()
    conv, lanes = quantized.convolution, isa.lanes
    blocks = len(conv.input_lanes)
    height, width = conv.kernel
    group, words = _word_group(conv, isa)
    input_rows = (rows - 1) * conv.strides[0] + (height - 1) * conv.dilation[0] + 1
    copied = (columns - group) * conv.strides[1] + (4 * words or _reach(conv))
    narrow = conv.output_size[1] <= 2 * columns
    if narrow:
        copied += max(0, conv.output_size[1] - columns) * conv.strides[1]
    out_height, out_width = conv.output_size
    steps = -(-out_height // rows)
    bands = max(1, min(steps, round(16 / blocks)))
    task_steps = -(-steps // bands)
    defines = isa.dot_defines() | quantized.output_defines() | {
        "BLOCK_TENSOR": [p.tensor for p in conv.input_lanes],
        "BLOCK_INDEX": [p.block for p in conv.input_lanes],
        "BLOCK_FILL": [quantized.inputs[p.tensor].zero_point for p in conv.input_lanes],
        "TAPS_Y": height, "TAPS_X": width, "STRIDE_Y": conv.strides[0], "STRIDE_X": conv.strides[1],
        "DILATION_Y": conv.dilation[0], "DILATION_X": conv.dilation[1],
        "PAD_TOP": conv.padding[0], "PAD_LEFT": conv.padding[1],
        "IN_HEIGHT": conv.input_size[0], "IN_WIDTH": conv.input_size[1],
        "OUT_HEIGHT": out_height, "OUT_WIDTH": out_width,
        "ROWS": rows, "COLUMNS": columns, "GROUP": group, "WORDS": words,
        "TASK_STEPS": task_steps} | ({"NARROW": 1} if narrow else {}) | (
            {"WIDE_WEIGHTS": 1} if isa.widens_bytes else {})
    return Layer(
        kind="depthwise_int8", template="u8s8-dwconv.c.in", defines=defines,
        phases=(Phase("int8_depthwise", blocks * -(-steps // task_steps)),),
        inputs=quantized.layer_inputs(lanes),
        constants=(_packed(quantized, isa),
                   *per_channel(quantized, isa, blocks, quantized.output_lanes)),
        output_shape=(1, blocks, out_height, out_width, lanes), output_dtype=quantized.output_dtype,
        scratch_bytes=(conv.input_size[1] + input_rows * copied) * lanes,
        variant=isa.variant_of_bytes(rows, columns),
        note={"kernel": "int8_depthwise", "rows": rows, "columns": columns,
              "multiply_adds": conv.multiply_adds})
