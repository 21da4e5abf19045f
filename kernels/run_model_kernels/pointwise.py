"""1 x 1 convolution with stride 1 as a product of matrices (c/pointwise.h)."""

from __future__ import annotations

import math

from .channels import Channels, all_channels
from .convolution import Convolution
from .isa import Isa
from .layer import Layer, Phase
from .tiles import Even, best_tiles, common_defines, even, padded_bias, vectors

_NEAR_BYTES = 24 << 10
"""Of the first-level cache, what one side of the product may take."""


def is_product(conv: Convolution) -> bool:
    """Whether all pixels are alike, so that rows do not matter."""
    return conv.kernel == (1, 1) and conv.strides == (1, 1) and not any(conv.padding)


def options(conv: Convolution, isa: Isa) -> list[dict]:
    """Parameters worth trying, best guess first: the register tile [pixels, vectors], how many parts
    the [pixels, channels] are cut in, and which loop is the outer one."""
    if conv.planar or conv.groups > 1 or not is_product(conv):
        return []
    pixels, count = math.prod(conv.output_size), vectors(conv.output_channels, isa)
    return options_of_tiles(conv, isa, best_tiles(isa, pixels, count))


def options_of_tiles(conv: Convolution, isa: Isa, tiles: list[tuple[int, int]]) -> list[dict]:
    """The same for these register tiles only."""
    return [{"tile": list(tile), "parts": list(parts), "outside": outside} for tile in tiles
            for parts in _parts(conv, *_cut(conv, isa, tile)) for outside in _outside(conv, isa, tile)]


def make(conv: Convolution, isa: Isa, tile: list[int], parts: list[int], outside: str) -> Layer:
    """`outside`: "channels" or "pixels"."""
    channels = all_channels(conv, isa, _cut(conv, isa, tile)[1])
    return layer("pointwise", conv, isa, channels, tile, parts, outside)


def layer(kernel: str, conv: Convolution, isa: Isa, channels: Channels, tile: list[int],
          parts: list[int], outside: str) -> Layer:
    """The layer of kernel `kernel`, that reads these channels."""
    pixel_tiles, vector_tiles = _cut(conv, isa, tile)
    pixel_parts, channel_parts = min(parts[0], pixel_tiles.tiles), min(parts[1], vector_tiles.tiles)
    defines = {**common_defines(conv, isa),
               **channels.defines(math.prod(conv.input_size) * isa.lanes, isa.lanes),
               **pixel_tiles.defines("PIXEL", "PIXELS"), **vector_tiles.defines("VECTOR", "VECTORS"),
               "PIXELS": math.prod(conv.output_size), "PIXEL_PARTS": pixel_parts,
               "CHANNEL_PARTS": channel_parts, "CHANNELS_OUTSIDE": outside == "channels"}
    return Layer(f"conv2d_{kernel}", "pointwise.h", defines,
                 (Phase("pointwise", pixel_parts * channel_parts),), conv.layer_inputs(isa.lanes),
                 (channels.weights, padded_bias(conv.bias, isa.lanes)), conv.output_shape(isa.lanes),
                 note={"kernel": kernel, "tile": list(tile), "parts": list(parts),
                       "outside": outside, "multiply_adds": conv.multiply_adds})


def _cut(conv: Convolution, isa: Isa, tile: tuple[int, int] | list[int]) -> tuple[Even, Even]:
    return (even(math.prod(conv.output_size), tile[0]),
            even(vectors(conv.output_channels, isa), tile[1]))


def _parts(conv: Convolution, pixel_tiles: Even, vector_tiles: Even) -> list[tuple[int, int]]:
    """Parts in each direction, so that each has the same work: what is larger is cut, weights or
    activations."""
    most = max(1, min(16, conv.multiply_adds // 500_000))  # 5 us on one core

    def numbers(tiles: int) -> list[int]:
        return [n for n in (16, 8, 4, 2, 1) if n <= min(most, tiles)]
    by_pixels = [(n, 1) for n in numbers(pixel_tiles.tiles)]
    by_channels = [(1, n) for n in numbers(vector_tiles.tiles)]
    pixels_first = math.prod(conv.output_size) >= conv.output_channels
    found = by_pixels[:2] + by_channels[:2] if pixels_first else by_channels[:2] + by_pixels[:2]
    return list(dict.fromkeys(found))


def _outside(conv: Convolution, isa: Isa, tile: tuple[int, int]) -> list[str]:
    """The outer loop.  Inside of it, one tile of it stays in the nearest cache."""
    weights = conv.input_channels * tile[1] * isa.lanes * 4
    return ["channels", "pixels"] if weights <= _NEAR_BYTES else ["pixels", "channels"]
