"""Quantized convolution by tiles of bytes (Intel's AMX): kernels/c/u8s8-conv-amx.c.in."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from run_model_tools.kernels.int8.convolution import (
    blocks_of,
    copy_defines,
    padded_size,
    per_channel,
    picture_input,
    places_of,
    tasks_of,
)
from run_model_tools.kernels.int8.quantized import QuantizedConvolution
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, Phase
from run_model_tools.kernels.tiled_matmul import Steps

# What an instruction multiplies: so many rows with so many columns.
_ROWS, _COLUMNS = 16, 16
# What a task should compute at least, in multiply-adds: some microseconds.
_LEAST_TASK = 1 << 23
# Nanoseconds on a Sapphire Rapids: two tiles multiplied, their share of loads from the second cache
# included; a vector of words multiplied by VNNI's instructions; 16 bytes put in a row.
_TILE_TIME, _VECTOR_TIME, _COPY_TIME = 9.0, 0.25, 0.8


def options(quantized: QuantizedConvolution, isa: Isa) -> list[dict[str, object]]:
    """One set of no parameters where it is faster than without tiles, else none."""
    if not can_compute(quantized, isa):
        return []
    conv, plan = quantized.convolution, _Plan.of(quantized)
    blocks = -(-conv.output_channels // isa.lanes)
    by_tiles = plan.tiles * blocks * len(plan.runs) * plan.steps.count * _TILE_TIME
    by_tiles += plan.padded[0] * plan.padded[1] * plan.pixel_bytes / 16 * _COPY_TIME
    height, width = conv.output_size
    words = -(-conv.weight.shape[1] // 4) * conv.kernel[0] * conv.kernel[1]
    return [{}] if by_tiles < height * width * blocks * words * _VECTOR_TIME else []


def can_compute(quantized: QuantizedConvolution, isa: Isa) -> bool:
    """Whether there is a layer for it: of one group, and of a picture or of blocks."""
    conv = quantized.convolution
    if not isa.amx or conv.groups != 1:
        return False
    return not conv.planar or (not conv.residual and conv.weight.shape[1] <= 4
                               and conv.dilation[1] == 1 and conv.input_size != (1, 1))


@dataclass(frozen=True)
class _Plan:
    """Where the bytes that tiles multiply lie in the first phase's rows."""

    padded: tuple[int, int]
    """Rows and pixels of the input with its border."""
    strides: tuple[int, int]
    """From one output pixel's first byte to the next one's, in rows and pixels."""
    pixel_bytes: int
    runs: list[int]
    """Of each run of bytes, the first one's offset from the pixel's."""
    run_bytes: int
    across: int
    """Positions of a row of the output."""
    tile_rows: int
    tiles: int

    @staticmethod
    def of(quantized: QuantizedConvolution) -> _Plan:
        """That of a layer with one group."""
        conv = quantized.convolution
        height, width = conv.output_size
        strides, padded = conv.strides, padded_size(conv)
        if conv.kernel == (1, 1) and not conv.planar:
            # Only pixels that are read are copied.
            strides, padded = (1, 1), (height, width)
        pixel_bytes = 4 if conv.planar else _COLUMNS * len(blocks_of(conv))
        columns = [0] if conv.dilation[1] == 1 else [x * conv.dilation[1]
                                                     for x in range(conv.kernel[1])]
        runs = [(y * conv.dilation[0] * padded[1] + x) * pixel_bytes
                for y, x in itertools.product(range(conv.kernel[0]), columns)]
        if strides == (1, 1):
            across, tile_rows = padded[1], _ROWS
        else:
            parts = -(-width // _ROWS)
            tile_rows = -(-width // parts)
            across = parts * tile_rows
        return _Plan(padded, strides, pixel_bytes, runs,
                     pixel_bytes * (conv.kernel[1] if len(columns) == 1 else 1), across, tile_rows,
                     -(-((height - 1) * across + width) // tile_rows))

    @property
    def steps(self) -> Steps:
        """Of each run."""
        return Steps(self.run_bytes)

    @property
    def shared_bytes(self) -> int:
        """All that tiles read, also beyond the last pixel."""
        row, column = divmod((self.tiles - 1) * self.tile_rows, self.across)
        column += self.tile_rows - 1
        last = (row * self.strides[0] * self.padded[1] + column * self.strides[1])
        read = last * self.pixel_bytes + self.runs[-1] + self.steps.bytes
        return max(read, self.padded[0] * self.padded[1] * self.pixel_bytes)

    def defines(self) -> dict[str, object]:
        """The C code's macros."""
        return {"PADDED_HEIGHT": self.padded[0], "PADDED_WIDTH": self.padded[1],
                "PIXEL_BYTES": self.pixel_bytes, "ROW_BYTES": self.padded[1] * self.pixel_bytes,
                "STRIDE_Y": self.strides[0], "STRIDE_X": self.strides[1],
                "ACROSS": self.across, **self.steps.defines(self.tile_rows, self.runs)}


def make(quantized: QuantizedConvolution, isa: Isa) -> Layer:
    """The layer, of which options() offers one."""
    quantized.check()
    conv, lanes = quantized.convolution, isa.lanes
    plan = _Plan.of(quantized)
    height, width = conv.output_size
    blocks = -(-conv.output_channels // lanes)
    chunks, pairs = -(-blocks // 2), -(-plan.tiles // 2)
    weights = _packed(quantized, plan)
    work = conv.multiply_adds / pairs / chunks
    task_pairs, task_chunks = tasks_of(pairs, chunks, work, weights.nbytes / chunks,
                                       plan.shared_bytes / pairs, _LEAST_TASK)
    if conv.planar:
        first, constants, defines = picture_input(quantized)
    else:
        first, constants, defines = _interleaved(quantized, plan)
    tasks = -(-pairs // task_pairs) * -(-chunks // task_chunks)
    return Layer(
        kind="conv2d_int8", template="u8s8-conv-amx.c.in",
        defines=isa.dot_defines() | quantized.output_defines() | defines | plan.defines() | {
            "OUTPUT_HEIGHT": height, "OUTPUT_WIDTH": width, "OUTPUT_BLOCKS": blocks,
            "TASK_PAIRS": task_pairs, "TASK_CHUNKS": task_chunks},
        phases=(first, Phase("int8_tiles", tasks)), inputs=quantized.layer_inputs(lanes),
        constants=(weights, *per_channel(quantized, isa, 2 * chunks), *constants),
        output_shape=conv.output_shape(lanes), output_dtype=quantized.output_dtype,
        shared_bytes=plan.shared_bytes, variant=f"{2 * plan.tile_rows}x2_{isa.name}amx",
        note={"kernel": "int8_tiled_convolution", "multiply_adds": conv.multiply_adds})


def _packed(quantized: QuantizedConvolution, plan: _Plan) -> np.ndarray:
    """int8 [chunk of two blocks][run][word][block][channel][4], which is one dimension here."""
    conv, weight = quantized.convolution, quantized.weight
    outputs, _, *kernel = weight.shape
    blocks = -(-outputs // _COLUMNS)
    if conv.planar:
        places = list(range(weight.shape[1]))
    else:
        order = {key: i * _COLUMNS for i, key in enumerate(blocks_of(conv))}
        places = [order[tensor, block] + lane for tensor, block, lane in places_of(conv)]
        if len(set(places)) != len(places):
            raise ValueError("a lane is read twice")
    taps = np.zeros((*kernel, plan.pixel_bytes, blocks * _COLUMNS), np.int8)
    taps[:, :, places, :outputs] = weight.transpose(2, 3, 1, 0)
    runs = np.zeros((len(plan.runs), plan.steps.bytes, blocks * _COLUMNS), np.int8)
    runs[:, :plan.run_bytes] = taps.reshape(len(plan.runs), plan.run_bytes, -1)
    words = runs.reshape(-1, 4, blocks, _COLUMNS).transpose(0, 2, 3, 1)
    return np.concatenate([words[:, i:i + 2].reshape(-1) for i in range(0, blocks, 2)])


def _interleaved(quantized: QuantizedConvolution, plan: _Plan,
                 ) -> tuple[Phase, tuple[np.ndarray, ...], dict[str, object]]:
    """The phase that makes rows of blocks, its constants and macros."""
    conv = quantized.convolution
    rows = max(1, min(-(-plan.padded[0] // 4), 16384 // (plan.padded[1] * plan.pixel_bytes)))
    steps = conv.strides if conv.kernel == (1, 1) else (1, 1)
    return Phase("int8_interleave", -(-plan.padded[0] // rows)), (), copy_defines(quantized) | {
        "COPY_ROWS": rows, "COPY_STRIDE_Y": steps[0], "COPY_STRIDE_X": steps[1]}
