"""Where what tiles of Intel's AMX multiply lies in convolutions (kernels/c/amx_convolution.h)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from run_model_tools.kernels.convolutions.convolution import (
    Convolution,
    blocks_of,
    padded_size,
    places_of,
)
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Phase
from run_model_tools.kernels.parts import tasks_of
from run_model_tools.kernels.products.tiled_matmul import Steps

# What an instruction multiplies: so many rows with so many columns.
_ROWS, _COLUMNS = 16, 16
# What a task should compute at least, in multiply-adds of bytes: some microseconds.
_LEAST_TASK = 1 << 23
# Nanoseconds on a Sapphire Rapids: two tiles multiplied, their share of loads from the second cache
# included; 16 numbers put in a row.
_TILE_TIME, _COPY_TIME = 9.0, 0.8


def can_read(conv: Convolution, isa: Isa) -> bool:
    """Whether tiles can be made of what it reads: of one group, and of a picture or of blocks."""
    if not isa.amx or conv.groups != 1:
        return False
    if conv.planar:
        return (not conv.residual and conv.weight.shape[1] <= 4 and conv.dilation[1] == 1
                and conv.input_size != (1, 1))
    places = places_of(conv)
    return len(set(places)) == len(places)


@dataclass(frozen=True)
class Plan:
    """Where the numbers that tiles multiply lie in the first phase's rows."""

    number_bytes: int
    """1: bytes; 2: bfloat16."""
    padded: tuple[int, int]
    """Rows and pixels of the input with its border."""
    strides: tuple[int, int]
    """From one output pixel's first byte to the next one's, in rows and pixels."""
    pixel_bytes: int
    runs: list[int]
    """Of each run of bytes, the first one's offset from the pixel's."""
    steps: Steps
    """Of each run."""
    across: int
    """Positions of a row of the output."""
    tile_rows: int
    tiles: int
    blocks: int
    """Of the output."""

    @staticmethod
    def of(conv: Convolution, number_bytes: int) -> Plan:
        """That of a layer which can_read()."""
        height, width = conv.output_size
        strides, padded = conv.strides, padded_size(conv)
        if conv.kernel == (1, 1) and not conv.planar:
            # Only pixels that are read are copied.
            strides, padded = (1, 1), (height, width)
        joined = conv.dilation[1] == 1
        pixel_bytes, steps = _pixel(conv, number_bytes, conv.kernel[1] if joined else 1)
        columns = [0] if joined else [x * conv.dilation[1] for x in range(conv.kernel[1])]
        runs = [(y * conv.dilation[0] * padded[1] + x) * pixel_bytes
                for y, x in itertools.product(range(conv.kernel[0]), columns)]
        if strides == (1, 1):
            across, tile_rows = padded[1], _ROWS
        else:
            parts = -(-width // _ROWS)
            tile_rows = -(-width // parts)
            across = parts * tile_rows
        return Plan(number_bytes, padded, strides, pixel_bytes, runs, steps, across, tile_rows,
                    -(-((height - 1) * across + width) // tile_rows),
                    -(-conv.output_channels // _COLUMNS))

    @property
    def shared_bytes(self) -> int:
        """All that tiles read, also beyond the last pixel."""
        row, column = divmod((self.tiles - 1) * self.tile_rows, self.across)
        column += self.tile_rows - 1
        last = (row * self.strides[0] * self.padded[1] + column * self.strides[1])
        read = last * self.pixel_bytes + self.runs[-1] + self.steps.bytes
        return max(read, self.padded[0] * self.padded[1] * self.pixel_bytes)

    @property
    def nanoseconds(self) -> float:
        """What both phases take."""
        products = self.tiles * self.blocks * len(self.runs) * self.steps.count * _TILE_TIME
        numbers = self.padded[0] * self.padded[1] * self.pixel_bytes / self.number_bytes
        return products + numbers / 16 * _COPY_TIME

    def tasks(self, conv: Convolution, weight_bytes: int) -> tuple[Phase, dict[str, object]]:
        """The second phase and all macros but those of what is copied and stored."""
        chunks, pairs = -(-self.blocks // 2), -(-self.tiles // 2)
        task_pairs, task_chunks = tasks_of(
            pairs, chunks, conv.multiply_adds / pairs / chunks, weight_bytes / chunks,
            self.shared_bytes / pairs, _LEAST_TASK // self.number_bytes)
        height, width = conv.output_size
        return (Phase("tiles_convolve", -(-pairs // task_pairs) * -(-chunks // task_chunks)), {
            "PADDED_HEIGHT": self.padded[0], "PADDED_WIDTH": self.padded[1],
            "PIXEL_BYTES": self.pixel_bytes, "ROW_BYTES": self.padded[1] * self.pixel_bytes,
            "STRIDE_Y": self.strides[0], "STRIDE_X": self.strides[1], "ACROSS": self.across,
            "OUTPUT_HEIGHT": height, "OUTPUT_WIDTH": width, "OUTPUT_BLOCKS": self.blocks,
            "TASK_PAIRS": task_pairs, "TASK_CHUNKS": task_chunks,
            **self.steps.defines(self.tile_rows, self.runs)})

    def copies(self, conv: Convolution) -> tuple[int, dict[str, object]]:
        """Tasks of a first phase that makes rows of blocks, and its macros."""
        rows = max(1, min(-(-self.padded[0] // 4), 16384 // (self.padded[1] * self.pixel_bytes)))
        steps = conv.strides if conv.kernel == (1, 1) else (1, 1)
        return -(-self.padded[0] // rows), {
            "COPY_ROWS": rows, "COPY_STRIDE_Y": steps[0], "COPY_STRIDE_X": steps[1]}

    def packed(self, conv: Convolution, weight: np.ndarray) -> np.ndarray:
        """Weights (as many as `conv` has, in the type that is multiplied) in one dimension:
        [chunk of two blocks][run][word][block][channel][number of a word]."""
        outputs, _, *kernel = weight.shape
        if conv.planar:
            places = list(range(weight.shape[1]))
        else:
            order = {key: i * _COLUMNS for i, key in enumerate(blocks_of(conv))}
            places = [order[tensor, block] + lane for tensor, block, lane in places_of(conv)]
        numbers = self.pixel_bytes // self.number_bytes
        taps = np.zeros((*kernel, numbers, self.blocks * _COLUMNS), weight.dtype)
        taps[:, :, places, :outputs] = weight.transpose(2, 3, 1, 0)
        taps = taps.reshape(len(self.runs), -1, self.blocks * _COLUMNS)
        runs = np.zeros((len(self.runs), self.steps.bytes // self.number_bytes, taps.shape[2]),
                        weight.dtype)
        runs[:, :taps.shape[1]] = taps
        words = runs.reshape(-1, 4 // self.number_bytes, self.blocks, _COLUMNS)
        words = words.transpose(0, 2, 3, 1)
        return np.concatenate([words[:, i:i + 2].reshape(-1) for i in range(0, self.blocks, 2)])


def _pixel(conv: Convolution, number_bytes: int, together: int) -> tuple[int, Steps]:
    """Bytes of a pixel, and the steps of a run of so many together."""
    if conv.planar:
        sizes = [4 * number_bytes]
    else:
        count = len(blocks_of(conv))
        # An odd number of blocks may take fewer steps with one more.
        sizes = [_COLUMNS * number_bytes * blocks for blocks in (count, count + number_bytes - 1)]
    found = [(size, Steps(together * size, exact=number_bytes > 1)) for size in sizes]
    return min(found, key=lambda one: (one[1].count, one[0]))
