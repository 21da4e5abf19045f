"""1 x 1 convolution with stride 1 as a product of matrices (c/f32-conv-pointwise.c.in)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from run_model_tools.kernels.channels import Channels, all_channels, lines_ahead, vector_tiles
from run_model_tools.kernels.convolutions.convolution import Convolution
from run_model_tools.kernels.half import weights as half_weights
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, Phase
from run_model_tools.kernels.parts import Units, best_parts, rounded
from run_model_tools.kernels.tiles import (
    best_tiles,
    bias_and_constants,
    channel_runs,
    common_defines,
    even,
    vectors,
)

_NEAR_BYTES = 24 << 10
"""Of the first-level cache, what one side of the product may take."""
_PART_BYTES = 16 << 10
"""The same of a part of it, beside the inputs that stream past."""
_CHUNK_BYTES = 64 << 10
"""Of the second-level cache, which has 512 KiB where it is small; or half of what the weights have,
which are read again for each chunk.  For 256 to 128 channels of 57 x 57 and 80 x 80 pixels 24 to 96
KiB took about as long as each other, and 0.8 of the time of all of a task's pixels."""
_MANY_BYTES = 4 << 20
"""Of weights, from which on parts were measured to be faster: 9.4 MB (3072 to 768 channels, 7 x 7
pixels) took 0.83 of the time on two cores of 512 KiB, 1.6 MB as long as before."""


def is_product(conv: Convolution) -> bool:
    """Whether all pixels are alike, so that rows do not matter."""
    return conv.kernel == (1, 1) and conv.strides == (1, 1) and not any(conv.padding)


def options(conv: Convolution, isa: Isa) -> list[dict]:
    """Parameters worth trying, best guess first: the register tile [pixels, vectors], how many
    parts the [pixels, channels] are cut in, and which loop is the outer one."""
    if conv.planar or conv.groups > 1 or not is_product(conv):
        return []
    pixels, count = math.prod(conv.output_size), vectors(conv.output_channels, isa)
    return options_of_tiles(conv, isa, best_tiles(isa, pixels, count))


def options_of_tiles(conv: Convolution, isa: Isa, tiles: Sequence[tuple[int, int]]) -> list[dict]:
    """options() with these register tiles only."""
    found: list[dict] = []
    for tile in tiles:
        depth = _depth(conv, isa, tile[1])
        for parts in _parts(conv, isa, tile)[:3]:
            one = {"tile": list(tile), "parts": list(parts)}
            if depth > 1:
                found.append({**one, "outside": "channels", "depth": depth})
            found += [{**one, "outside": outside} for outside in _outside(conv, isa, tile)]
    return found


def make(conv: Convolution, isa: Isa, tile: list[int], parts: list[int], outside: str,
         depth: int = 1) -> Layer:
    """`outside`: "channels" or "pixels"; `depth`: in how many parts the input channels are summed
    up."""
    conv, scales = half_weights.scaled(conv, isa)
    channels = all_channels(conv, isa, vector_tiles(conv, isa, tile, parts))
    return layer("pointwise", conv, isa, channels, tile, parts, outside, scales, depth)


def layer(kernel: str, conv: Convolution, isa: Isa, channels: Channels, tile: list[int],
          parts: list[int], outside: str, scales: np.ndarray | None, depth: int = 1) -> Layer:
    """The layer of kernel `kernel`, that reads these channels; `scales`: half_weights.scaled()'s.
    """
    pixels = math.prod(conv.output_size)
    tiles = rounded(pixels, tile[0], parts[0])
    defines = {**common_defines(conv, isa),
               **channels.defines(math.prod(conv.input_size) * isa.lanes, isa.lanes),
               **tiles.defines("PIXEL", "PIXELS"),
               **vector_tiles(conv, isa, tile, parts).defines("VECTOR", "VECTORS"),
               "PIXELS": pixels, "PIXEL_PARTS": parts[0], "CHANNEL_PARTS": parts[1],
               "CHANNELS_OUTSIDE": outside == "channels", "DEPTH_PARTS": depth}
    per_task = -(-tiles.tiles // parts[0])
    chunk = per_task
    if outside == "channels":
        chunk = even(per_task, _chunk(conv, isa, tile[0])).largest
    defines["CHUNK_TILES"] = chunk
    lines = lines_ahead(conv, isa, tile[1], min(chunk, tiles.tiles // parts[0]))
    if lines and outside == "channels" and depth == 1:
        defines["AHEAD_LINES"] = lines
    return Layer(f"conv2d_{kernel}", "f32-conv-pointwise.c.in", defines,
                 (Phase("pointwise", math.prod(parts)),), conv.layer_inputs(isa.lanes, isa.number),
                 (channels.weights, bias_and_constants(conv, isa, scales)),
                 conv.output_shape(isa.lanes), isa.number,
                 variant=isa.variant(*tile),
                 note={"kernel": kernel, "tile": list(tile), "parts": list(parts),
                       "outside": outside, **({"depth": depth} if depth > 1 else {}),
                       "multiply_adds": conv.multiply_adds})


def _parts(conv: Convolution, isa: Isa, tile: tuple[int, int]) -> list[tuple[int, int]]:
    pixels, count = math.prod(conv.output_size), vectors(conv.output_channels, isa)
    units: dict[int, Units] = {}
    vectors_: dict[int, list[int]] = {}
    for parts in (1, 2, 4, 8, 16):
        if parts <= pixels:
            units[parts] = [(len(r),) for r in rounded(pixels, tile[0], parts).spread()]
        if parts <= count:
            vectors_[parts] = [len(r) for r in rounded(count, tile[1], parts).spread()]
    return best_parts(isa, conv.multiply_adds, units, vectors_)


def _outside(conv: Convolution, isa: Isa, tile: tuple[int, int]) -> list[str]:
    """The outer loop.  Inside of it, one tile of it stays in the nearest cache, or the next one's
    weights are fetched."""
    weights = conv.input_channels * tile[1] * isa.lanes * isa.number_bytes
    if weights <= _NEAR_BYTES or lines_ahead(conv, isa, tile[1], 1):
        return ["channels", "pixels"]
    return ["pixels", "channels"]


def _chunk(conv: Convolution, isa: Isa, pixels: int) -> int:
    """How many tiles of `pixels` stay in the second-level cache, with what is made of them."""
    of_one = (conv.input_channels + conv.output_channels) * pixels * isa.number_bytes
    most = max(_CHUNK_BYTES, conv.weight.size * isa.number_bytes // 2)
    return max(4, most // of_one)


def _depth(conv: Convolution, isa: Isa, count: int) -> int:
    """In how many parts to sum up the input channels, so that a part's weights of a tile of `count`
    vectors stay in the nearest cache; 1 where that gains nothing, or parts would not be whole
    blocks of one tensor."""
    runs, order = channel_runs(conv.input_lanes)
    weights = len(order) * count * isa.lanes * isa.number_bytes
    if (isa.half or conv.groups > 1 or len(runs) != 1 or runs[0].count != isa.lanes
            or conv.weight.size * isa.number_bytes < _MANY_BYTES):
        return 1
    return -(-weights // _PART_BYTES)
