"""1 x 1 convolution with stride 1 as a product of matrices (c/pointwise.h)."""

from __future__ import annotations

import math

import numpy as np

from .convolution import Convolution
from .isa import Isa
from .layer import Layer, Phase
from .tiles import (Even, best_tiles, channel_runs, common_defines, even, packed_weights, padded_bias,
                    run_defines, vectors)

_NEAR_BYTES = 24 << 10
"""Of the first-level cache, what one side of the product may take."""


def options(conv: Convolution, isa: Isa) -> list[dict]:
    """Parameters worth trying, best guess first: the register tile [pixels, vectors], how many parts
    the [pixels, channels] are cut in, and which loop is the outer one."""
    if (conv.planar or conv.groups > 1 or conv.kernel != (1, 1) or conv.strides != (1, 1)
            or any(conv.padding)):
        return []
    found = []
    for tile in best_tiles(isa, math.prod(conv.output_size), vectors(conv.output_channels, isa)):
        pixel_tiles, vector_tiles = _cut(conv, isa, tile)
        for parts in _parts(conv, pixel_tiles, vector_tiles):
            for outside in _outside(conv, isa, tile):
                found.append({"tile": list(tile), "parts": list(parts), "outside": outside})
    return found


def make(conv: Convolution, isa: Isa, tile: list[int], parts: list[int], outside: str) -> Layer:
    """`outside`: "channels" or "pixels"."""
    pixel_tiles, vector_tiles = _cut(conv, isa, tile)
    pixel_parts, channel_parts = (min(parts[0], pixel_tiles.tiles), min(parts[1], vector_tiles.tiles))
    runs, order = channel_runs(conv.input_lanes, isa.lanes)
    weights = np.concatenate([packed_weights(conv.weight, order, vectors_, isa.lanes)
                              for vectors_ in vector_tiles.ranges()])
    defines = {**common_defines(conv, isa),
               **run_defines(runs, math.prod(conv.input_size) * isa.lanes, isa.lanes),
               **pixel_tiles.defines("PIXEL", "PIXELS"), **vector_tiles.defines("VECTOR", "VECTORS"),
               "TAPS": 1, "RUNS": len(runs), "DEPTH": len(order),
               "PIXELS": math.prod(conv.output_size), "PIXEL_PARTS": pixel_parts,
               "CHANNEL_PARTS": channel_parts, "CHANNELS_OUTSIDE": outside == "channels"}
    return Layer("conv2d_pointwise", "pointwise.h", defines,
                 (Phase("pointwise", pixel_parts * channel_parts),), conv.layer_inputs(isa.lanes),
                 (weights.astype(np.float32), padded_bias(conv, isa.lanes)),
                 conv.output_shape(isa.lanes),
                 note={"kernel": "pointwise", "tile": list(tile), "parts": list(parts),
                       "outside": outside, "multiply_adds": conv.multiply_adds})


def _cut(conv: Convolution, isa: Isa, tile: tuple[int, int] | list[int]) -> tuple[Even, Even]:
    return (even(math.prod(conv.output_size), tile[0]),
            even(vectors(conv.output_channels, isa), tile[1]))


def _parts(conv: Convolution, pixel_tiles: Even, vector_tiles: Even) -> list[tuple[int, int]]:
    """Parts in each direction, so that each has the same work: what is larger is cut, weights or
    activations."""
    most = max(1, min(16, conv.multiply_adds // 500_000))  # 5 us on one core
    def fair(tiles: int) -> list[int]:
        return sorted({n for n in (1, 2, 4, 8, 16) if n <= min(most, tiles)}, key=lambda n: -n)
    by_pixels = [(n, 1) for n in fair(pixel_tiles.tiles)]
    by_channels = [(1, n) for n in fair(vector_tiles.tiles)]
    pixels_first = math.prod(conv.output_size) >= conv.output_channels
    found = by_pixels[:2] + by_channels[:2] if pixels_first else by_channels[:2] + by_pixels[:2]
    return list(dict.fromkeys(found))


def _outside(conv: Convolution, isa: Isa, tile: tuple[int, int]) -> list[str]:
    """The outer loop.  Inside of it, one tile of it stays in the nearest cache."""
    weights = conv.input_channels * tile[1] * isa.lanes * 4
    return ["channels", "pixels"] if weights <= _NEAR_BYTES else ["pixels", "channels"]
