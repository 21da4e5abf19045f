"""Quantized convolution, all but depthwise: kernels/c/u8s8-conv.c.in."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from run_model_tools.kernels.convolutions.convolution import (
    Convolution,
    blocks_of,
    border_defines,
    copied_blocks,
    padded_size,
    places_of,
)
from run_model_tools.kernels.int8.quantized import QuantizedConvolution
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, Phase
from run_model_tools.kernels.parts import tasks_of

# What a task should compute at least, in multiply-adds: about 5 microseconds of VNNI.
_LEAST_TASK = 1 << 20
# What reading an input word for a pixel costs, in products of it with a vector of weights.  Of x86,
# which spreads a word while it loads it, by what ShuffleNet v1's layers of three groups took with
# tiles of one and of two vectors (Zen 3); elsewhere it is an instruction, as a product is.
_X86_WORD_COST, _WORD_COST = 0.3, 1.0


def of_words(isa: Isa) -> Isa:
    """The instruction set as words' register tiles see it: where weights are widened in registers,
    a vector of words takes two."""
    if not isa.is_riscv_vector:
        return isa
    return replace(isa, registers=isa.registers - 4, tile=((isa.registers - 6) // 2, 2))


def largest_tile(isa: Isa) -> tuple[int, int]:
    """(pixels, vectors) of the register tile; see u8s8-conv.c.in for the budget."""
    isa = of_words(isa)
    if isa.registers < 32 and not isa.widens_bytes:
        return (4, 2) if isa.lanes == 8 else (3, 2)
    return isa.tile


def options(quantized: QuantizedConvolution, isa: Isa) -> list[dict[str, Any]]:
    """Parameter sets worth trying, best guess first."""
    conv = quantized.convolution
    if conv.depthwise and conv.groups > 1:
        return []
    if conv.planar and (conv.residual or conv.groups != 1
                        or conv.weight.shape[1] > 4 and not _is_vector(quantized)):
        return []
    if math.prod(conv.output_size) == 1:
        return [{"tile": [1, 1], "vectors": 8 if isa.registers >= 32 else 4}]
    pixels, vectors = _best_tile(quantized, isa)
    height, width = _plane(conv, isa)
    if width >= pixels or height == 1:
        rows, columns = 1, -(-width // -(-width // pixels))
    else:
        columns = width
        rows = min(max(1, pixels // width), height)
    return [{"tile": [rows, columns], "vectors": vectors}]


def _best_tile(quantized: QuantizedConvolution, isa: Isa) -> tuple[int, int]:
    """(pixels, vectors) of the register tile.  A chunk of channels multiplies the inputs of all
    groups that it has channels of, most of them by zeros: few vectors make fewer such products."""
    conv = quantized.convolution
    pixels, vectors = largest_tile(isa)
    if conv.groups == 1:
        return pixels, vectors

    def cost(tile: tuple[int, int]) -> float:
        chunks = range(0, conv.output_channels, tile[1] * isa.lanes)
        words = sum(len(_words_of(conv, range(first, min(first + chunks.step,
                                                         conv.output_channels)),
                                  isa.word_numbers)) for first in chunks)
        return words * (tile[1] + (_X86_WORD_COST if isa.lanes >= 8 else _WORD_COST))
    return min([(pixels, vectors), (pixels * vectors, 1)], key=cost)


def _words_of(conv: Convolution, channels: range, numbers: int) -> list[tuple[int, int, int]]:
    """(tensor, block, word of so many numbers of the block) that some output channels need, in
    order."""
    per_group, depth = conv.output_channels // conv.groups, conv.weight.shape[1]
    wanted = range(channels[0] // per_group * depth, (channels[-1] // per_group + 1) * depth)
    where = places_of(conv)
    return sorted({(tensor, block, lane // numbers)
                   for tensor, block, lane in map(where.__getitem__, wanted)})


def copy_defines(quantized: QuantizedConvolution) -> dict[str, object]:
    """The macros of a phase that copies blocks with their border."""
    conv = quantized.convolution
    return border_defines(conv) | copied_blocks(conv) | {
        "COPY_FILL": [quantized.inputs[tensor].zero_point for tensor, _ in blocks_of(conv)]}


def _is_vector(quantized: QuantizedConvolution) -> bool:
    """Whether it is a fully connected layer, of a float32 vector."""
    conv = quantized.convolution
    return (conv.planar and conv.input_size == (1, 1) and conv.kernel == (1, 1)
            and len(set(quantized.inputs)) == 1 and not any(conv.padding))


def _plane(conv: Convolution, isa: Isa) -> tuple[int, int]:
    """Rows and columns of the output; rows are not told apart where output pixel i reads pixel i
    of the input, or of a copy, which holds only what 1x1 convolutions read."""
    height, width = conv.output_size
    as_it_is = conv.strides == (1, 1) and not any(conv.padding)
    if conv.kernel == (1, 1) and not conv.planar and (as_it_is or isa.widens_bytes):
        return 1, height * width
    return height, width


@dataclass
class _Words:
    """Input words that a chunk of output channels needs, and their weights."""

    pieces: list[tuple[int, int, int]]
    """(source, byte offset, words)"""
    weights: np.ndarray
    """int8 [tap][word][channel of the chunk][number of the word]"""


def make(quantized: QuantizedConvolution, isa: Isa, tile: list[int], vectors: int) -> Layer:
    """The layer with a register tile of `tile` (rows, columns) pixels and `vectors` of channels."""
    quantized.check()
    conv = quantized.convolution
    lanes, chunk = isa.lanes, vectors * isa.lanes
    if _is_vector(quantized):
        source: _Bytes | _Picture | _Vector = _Vector(quantized, isa)
    else:
        source = _Picture(quantized, isa) if conv.planar else _Bytes(quantized, isa)
    blocks = -(-conv.output_channels // lanes)
    chunks = -(-blocks // vectors)
    weights, chunk_defines = _packed(
        [source.words(range(c * chunk, min((c + 1) * chunk, conv.output_channels)))
         for c in range(chunks)], lanes)
    height, width = _plane(conv, isa)
    tiles = -(-height // tile[0]) * -(-width // tile[1])
    task_tiles, task_chunks = tasks_of(
        tiles, chunks, conv.multiply_adds / tiles / chunks,
        weights.size / chunks, source.bytes / tiles, _LEAST_TASK)
    defines = isa.dot_defines() | quantized.output_defines() | source.defines | chunk_defines | {
        "OUTPUT_HEIGHT": height, "OUTPUT_WIDTH": width, "OUTPUT_BLOCKS": blocks,
        "TILE_ROWS": tile[0], "TILE_COLUMNS": tile[1], "CHUNK_VECTORS": vectors,
        "TASK_TILES": task_tiles, "TASK_CHUNKS": task_chunks}
    if isa.widens_bytes:
        defines["WORDS_OF_TWO"] = 1
    output_shape = conv.output_shape(lanes)
    if isinstance(source, _Vector):
        output_shape = (1, conv.output_channels)
        if conv.output_channels % lanes:
            defines["OUTPUT_COUNT"] = conv.output_channels
    tasks = -(-tiles // task_tiles) * -(-chunks // task_chunks)
    return Layer(
        kind="conv2d_int8", template="u8s8-conv.c.in", defines=defines,
        phases=(*source.phases, Phase("int8_convolve", tasks)),
        inputs=quantized.layer_inputs(lanes),
        constants=(weights, *per_channel(quantized, isa, chunks * vectors),
                   *source.constants),
        output_shape=output_shape, output_dtype=quantized.output_dtype,
        shared_bytes=source.shared_bytes,
        variant=isa.variant_of_bytes(tile[0] * tile[1], vectors),
        note={"kernel": "int8_convolution", "tile": list(tile), "vectors": vectors,
              "multiply_adds": conv.multiply_adds})


def _packed(chunks: list[_Words], lanes: int) -> tuple[np.ndarray, dict[str, object]]:
    """The weights of all chunks behind each other, and the macros that say where each chunk's
    weights and input words are; chunks that need the same words share their pieces."""
    pieces: list[tuple[int, int, int]] = []
    first_and_end, offsets = [], []
    packed: list[np.ndarray] = []
    known: dict[tuple, int] = {}
    for need in chunks:
        key = tuple(need.pieces)
        if key not in known:
            known[key] = len(pieces)
            pieces += need.pieces
        first_and_end += [known[key], known[key] + len(need.pieces)]
        offsets.append(sum(p.size for p in packed))
        missing = -need.weights.shape[2] % lanes
        packed.append(in_words(np.pad(need.weights, ((0, 0), (0, 0), (0, missing), (0, 0))), lanes))
    defines: dict[str, object] = {
        "PIECE_OFFSET": [p[1] for p in pieces] or [0], "PIECE_WORDS": [p[2] for p in pieces] or [0],
        "CHUNK_PIECES": first_and_end, "CHUNK_WEIGHTS": offsets}
    if any(p[0] for p in pieces):
        defines["PIECE_SOURCE"] = [p[0] for p in pieces]
    return np.concatenate(packed), defines


def in_words(weights: np.ndarray, lanes: int) -> np.ndarray:
    """In one dimension, weights [...][output channel][number of a word] as c/words.h has them."""
    if lanes == 4 and weights.shape[-1] == 2:
        weights = weights.reshape(*weights.shape[:-2], -1, lanes, 2).swapaxes(-1, -2)
    return np.ascontiguousarray(weights).reshape(-1)


def per_channel(quantized: QuantizedConvolution, isa: Isa, blocks: int,
                places: Sequence[int] | None = None) -> list[np.ndarray]:
    """The constants of each output channel, in so many blocks: see u8s8-conv.c.in.  places: where
    the channels lie in these, if not one after the other."""
    weight_sum = quantized.weight.astype(np.int64).sum(axis=(1, 2, 3))
    start = (quantized.start + isa.dot_offset * weight_sum).astype(np.int32)
    made = []
    for values in (start, quantized.scale, quantized.bias, quantized.residual_scale):
        if len(values):
            full = np.zeros(blocks * isa.lanes, values.dtype)
            full[range(len(values)) if places is None else places] = values
            made.append(full)
    return made


class _Bytes:
    """Input tensors of bytes; with padding they are copied with a border to shared memory, and
    always where words are of int16."""

    phases: tuple[Phase, ...] = ()
    shared_bytes = 0
    constants: tuple[np.ndarray, ...] = ()

    def __init__(self, quantized: QuantizedConvolution, isa: Isa):
        self.quantized = quantized
        conv = quantized.convolution
        (height, width), strides, step = padded_size(conv), conv.strides, (1, 1)
        used = blocks_of(conv)
        pixel = isa.lanes
        self.word_numbers = isa.word_numbers
        self.defines: dict[str, object] = {}
        copied = any(conv.padding)
        if isa.widens_bytes:
            copied, pixel = True, 2 * isa.lanes
            if conv.kernel == (1, 1):
                (height, width), strides, step = conv.output_size, (1, 1), strides
        plane = height * width * pixel
        if copied:
            self.places = {key: (0, i * plane) for i, key in enumerate(used)}
            rows = max(1, min(-(-height // 4), 16384 // (width * pixel)))
            self.defines |= copy_defines(quantized) | {
                "PADDED_HEIGHT": height, "PADDED_WIDTH": width, "COPY_ROWS": rows,
                "COPY_STRIDE_Y": step[0], "COPY_STRIDE_X": step[1]}
            self.phases = (Phase("int8_pad", len(used) * -(-height // rows)),)
            self.shared_bytes = len(used) * plane
        else:
            self.places = {(tensor, block): (tensor, block * plane) for tensor, block in used}
        self.bytes = len(used) * plane
        row = width * pixel
        self.taps = list(itertools.product(range(conv.kernel[0]), range(conv.kernel[1])))
        self.defines |= {
            "ROW_BYTES": row, "PIXEL_BYTES": pixel,
            "STRIDE_Y": strides[0], "STRIDE_X": strides[1], "TAPS": len(self.taps),
            "TAP_OFFSET": [y * conv.dilation[0] * row + x * conv.dilation[1] * pixel
                           for y, x in self.taps]}

    def words(self, channels: range) -> _Words:
        """For some output channels: the words of all input channels of their groups."""
        conv = self.quantized.convolution
        weight = self.quantized.weight
        per_group = conv.output_channels // conv.groups
        depth = weight.shape[1]
        groups = range(channels[0] // per_group, channels[-1] // per_group + 1)
        where = places_of(conv)
        numbers = self.word_numbers
        index = {key: i for i, key in enumerate(_words_of(conv, channels, numbers))}
        packed = np.zeros((len(self.taps), len(index), len(channels), numbers), np.int8)
        for group in groups:
            rows = [c for c in channels if c // per_group == group]
            part = weight[rows].reshape(len(rows), depth, -1)
            for i in range(depth):
                tensor, block, lane = where[group * depth + i]
                at = packed[:, index[tensor, block, lane // numbers], rows[0] - channels[0]:
                            rows[-1] - channels[0] + 1, lane % numbers]
                if at.any():
                    raise ValueError("a lane is read twice")
                at[...] = part[:, i].T
        pieces: list[tuple[int, int, int]] = []
        for tensor, block, word in index:
            source, offset = self.places[tensor, block]
            offset += 4 * word
            last = pieces[-1] if pieces else None
            if last and last[0] == source and last[1] + 4 * last[2] == offset:
                pieces[-1] = (source, last[1], last[2] + 1)
            else:
                pieces.append((source, offset, 1))
        return _Words(pieces, packed)


def picture_input(quantized: QuantizedConvolution,
                  ) -> tuple[Phase, tuple[np.ndarray, ...], dict[str, object]]:
    """The phase that makes a float32 picture words (picture_bytes.h), its constants and macros."""
    conv = quantized.convolution
    channels = conv.input_shapes[0][1]
    padded_height, padded_width = padded_size(conv)
    rows = -(-padded_height // 16)
    inputs = quantized.inputs[:channels]
    return (Phase("int8_picture", -(-padded_height // rows)),
            (np.array([1 / q.scale for q in inputs], np.float32),
             np.array([q.zero_point for q in inputs], np.float32)),
            border_defines(conv) | {
                "PICTURE_CHANNELS": channels, "PADDED_HEIGHT": padded_height,
                "PADDED_WIDTH": padded_width, "COPY_ROWS": rows})


class _Picture:
    """A float32 picture of up to four channels: a first phase makes words of its pixels."""

    def __init__(self, quantized: QuantizedConvolution, isa: Isa):
        self.quantized = quantized
        conv = quantized.convolution
        padded_height, padded_width = padded_size(conv)
        two = isa.widens_bytes
        self.word_numbers = isa.word_numbers
        self.pixel_numbers = conv.weight.shape[1] if two else 4
        pixel = self.pixel_numbers * (2 if two else 1)
        row = padded_width * pixel
        self.bytes = padded_height * row
        # Of an odd number of numbers the last word reads one more.
        self.shared_bytes = self.bytes + (4 if two else 0)
        first, self.constants, self.defines = picture_input(quantized)
        self.phases = (first,)
        # Without dilation a row of taps is one run of words.
        self.joined = conv.dilation[1] == 1
        offsets = [y * conv.dilation[0] * row + x * conv.dilation[1] * pixel
                   for y in range(conv.kernel[0])
                   for x in range(1 if self.joined else conv.kernel[1])]
        self.defines |= {
            "ROW_BYTES": row, "PIXEL_BYTES": pixel, "STRIDE_Y": conv.strides[0],
            "STRIDE_X": conv.strides[1], "TAPS": len(offsets), "TAP_OFFSET": offsets}

    def words(self, channels: range) -> _Words:
        conv = self.quantized.convolution
        part = self.quantized.weight[channels[0]:channels[-1] + 1]
        taps = np.zeros((*conv.kernel, self.pixel_numbers, len(channels)), np.int8)
        taps[:, :, :part.shape[1]] = part.transpose(2, 3, 1, 0)
        runs = taps.reshape(conv.kernel[0] if self.joined else conv.kernel[0] * conv.kernel[1],
                            -1, len(channels))
        runs = np.pad(runs, ((0, 0), (0, -runs.shape[1] % self.word_numbers), (0, 0)))
        packed = runs.reshape(len(runs), -1, self.word_numbers, len(channels))
        return _Words([(0, 0, packed.shape[1])], packed.transpose(0, 1, 3, 2))


class _Vector:
    """A float32 vector, which a first phase makes bytes; the output is a vector too."""

    def __init__(self, quantized: QuantizedConvolution, isa: Isa):
        self.quantized = quantized
        channels = quantized.convolution.input_channels
        self.word_numbers = isa.word_numbers
        self.bytes = self.shared_bytes = -(-channels // 4) * 4 * (4 // self.word_numbers)
        self.phases = (Phase("int8_vector", 1),)
        self.constants: tuple[np.ndarray, ...] = ()
        quantization = quantized.inputs[0]
        self.defines: dict[str, object] = {
            "VECTOR_CHANNELS": channels, "VECTOR_FACTOR": 1 / quantization.scale,
            "VECTOR_OFFSET": float(quantization.zero_point), "PADDED_HEIGHT": 1, "ROW_BYTES": 0,
            "PIXEL_BYTES": 0, "STRIDE_Y": 1, "STRIDE_X": 1, "TAPS": 1, "TAP_OFFSET": [0]}

    def words(self, channels: range) -> _Words:
        part = self.quantized.weight[channels[0]:channels[-1] + 1, :, 0, 0]
        full = np.pad(part, ((0, 0), (0, -part.shape[1] % 4)))
        packed = full.reshape(len(channels), -1, self.word_numbers).transpose(1, 0, 2)[None]
        return _Words([(0, 0, packed.shape[1])], packed)
