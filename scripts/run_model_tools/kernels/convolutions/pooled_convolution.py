"""The convolution of a picture and the maximum pooling of what it makes as one layer
(c/f32-conv-planar.c.in with c/planar_pool.h).

A network's first convolution makes its largest tensor: 3 MB of a picture of 224 x 224 where it has
64 channels.  A pooling that follows leaves a quarter of it; so that is all that is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from run_model_tools.kernels import tiles
from run_model_tools.kernels.convolutions import planar
from run_model_tools.kernels.convolutions.convolution import Convolution, all_in_order
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer
from run_model_tools.kernels.pictures import pooling
from run_model_tools.kernels.pictures.pooling import Pooling
from run_model_tools.kernels.pictures.window import rows_of_parts

_MOST_ROWS = 1.15
"""Rows of the convolution that all tasks together may compute, of those there are."""


@dataclass(frozen=True)
class PooledConvolution:
    """A convolution of a planar picture, and a pooling of all of its result, which nothing else
    reads."""

    convolution: Convolution
    pooling: Pooling

    @property
    def convolutions(self) -> Sequence[Convolution]:
        return [self.convolution]

    @property
    def output_size(self) -> tuple[int, int]:
        return self.pooling.output_size


def options(block: PooledConvolution, isa: Isa) -> list[dict]:
    """Parameter sets worth trying, the best guess first; empty if the kernel cannot do it.

    As of planar.py, `parts` being of the pooling's rows.
    """
    conv, pool = block.convolution, block.pooling
    if (conv.residual or pool.kind != "max" or pool.planar or pool.dilation != (1, 1) or isa.half
            or pool.input_shapes != (conv.output_shape(isa.lanes),)
            or not all_in_order(pool.input_lanes, pool.input_shapes[0][1])
            or not pooling.options(pool, isa)):
        return []
    shapes = list(dict.fromkeys(tuple(option["tile"]) for option in planar.options(conv, isa)))
    height = pool.output_size[0]
    parts = [n for n in (4, 8, 2, 1) if 2 * n <= height
             and sum(_rows(block, n)) <= _MOST_ROWS * conv.output_size[0]]
    return [{"tile": list(tile), "parts": n} for tile in shapes for n in parts[:2]]


def make(block: PooledConvolution, isa: Isa, tile: list[int], parts: int) -> Layer:
    """A layer with these parameters."""
    pool = block.pooling
    layer = planar.make(block.convolution, isa, tile, parts, most_rows=max(_rows(block, parts)))
    stored = layer.output_shape[3] * isa.lanes * isa.number_bytes
    # The vectors of the largest tile, and a row.
    vectors = tiles.even(tiles.vectors(block.convolution.output_channels, isa), tile[1]).largest
    return replace(
        layer, kind="conv2d_planar_max_pool2d",
        defines={**layer.defines, "MAX_POOL": 1,
                 "POOL_HEIGHT": pool.output_size[0], "POOL_WIDTH": pool.output_size[1],
                 "POOL_TAPS_Y": pool.window[0], "POOL_TAPS_X": pool.window[1],
                 "POOL_STRIDE_Y": pool.strides[0], "POOL_STRIDE_X": pool.strides[1],
                 "POOL_PAD_TOP": pool.padding[0], "POOL_PAD_LEFT": pool.padding[1]},
        output_shape=pool.output_shape(isa.lanes),
        scratch_bytes=layer.scratch_bytes + (vectors * pool.window[0] + 1) * stored,
        note={**layer.note, "kernel": "planar_max_pool"})


def _rows(block: PooledConvolution, parts: int) -> list[int]:
    """Rows of the convolution that each part of the result's rows needs."""
    pool = block.pooling
    return rows_of_parts(parts, (block.convolution.output_size[0], pool.output_size[0]),
                         pool.window[0], pool.strides[0], pool.padding[0])
