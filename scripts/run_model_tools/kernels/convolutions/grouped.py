"""Convolution in groups, by the code for all channels (c/f32-conv-pointwise.c.in,
c/f32-conv-direct.c.in).

A tile of output vectors reads the input channels of the groups that it has channels of, see
channels.grouped_channels().  So groups need not fill vectors: only a vector that several groups
share does more than it must.
"""

from __future__ import annotations

from types import ModuleType

from run_model_tools.kernels.channels import grouped_channels, inputs_of_vectors, vector_tiles
from run_model_tools.kernels.convolutions import direct, pointwise
from run_model_tools.kernels.convolutions.convolution import Convolution
from run_model_tools.kernels.half import weights as half_weights
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer
from run_model_tools.kernels.tiles import even, register_tiles, tile_cost, vectors


def options(conv: Convolution, isa: Isa) -> list[dict]:
    """Parameters worth trying, best guess first; those of pointwise.py or direct.py."""
    if conv.planar or conv.groups == 1 or conv.depthwise:
        return []
    count = vectors(conv.output_channels, isa)

    def cost(tile: tuple[int, int]) -> float:
        """Of a pixel, on average."""
        return sum(
            tile_cost(isa, tile[0], len(part)) / tile[0] * len(inputs_of_vectors(conv, part, isa))
            for part in even(count, tile[1]).ranges())
    fitting = [tile for tile in register_tiles(isa) if tile[1] <= count] or [isa.tile]
    return _kernel(conv).options_of_tiles(conv, isa, sorted(fitting, key=cost)[:2])


def make(conv: Convolution, isa: Isa, tile: list[int], parts: list[int], outside: str) -> Layer:
    """A layer with these parameters."""
    kernel = _kernel(conv)
    conv, scales = half_weights.scaled(conv, isa)
    channels = grouped_channels(conv, isa, vector_tiles(conv, isa, tile, parts))
    return kernel.layer("grouped", conv, isa, channels, tile, parts, outside, scales)


def _kernel(conv: Convolution) -> ModuleType:
    return pointwise if pointwise.is_product(conv) else direct
