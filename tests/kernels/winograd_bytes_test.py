"""Which tiles of Winograd's algorithm are worth their bytes."""

from __future__ import annotations

import numpy as np
import pytest

from run_model_tools.kernels import registry, winograd, winograd_bytes
from run_model_tools.kernels.convolution import Convolution, plain_lanes
from run_model_tools.kernels.isa import AVX512, NEON64, Isa


def square(size: int, channels: int = 64, lanes: int = 16) -> Convolution:
    """A padded 3x3 convolution of a picture of size x size."""
    return Convolution(
        weight=np.ones((channels, channels, 3, 3), np.float32), bias=np.zeros(channels, np.float32),
        input_shapes=((1, channels // lanes, size, size, lanes),),
        input_lanes=tuple(plain_lanes(channels, lanes, 0)), padding=(1, 1, 1, 1))


@pytest.mark.parametrize(("goal", "tiles"), [
    ("speed", {7: 6, 14: 6, 28: 6, 56: 6}),
    ("balance", {7: 0, 14: 2, 28: 4, 56: 4}),  # ResNet's pictures
    ("size", {7: 0, 14: 0, 28: 0, 56: 0})])
def test_largest_tile_by_the_size_of_the_picture(goal: str, tiles: dict[int, int]) -> None:
    with winograd_bytes.goal(goal):
        assert {size: winograd_bytes.largest_tile(square(size)) for size in tiles} == tiles
    assert winograd_bytes.largest_tile(square(7)) == 6


def test_bytes_do_not_depend_on_the_channels() -> None:
    with winograd_bytes.goal("balance"):
        assert {winograd_bytes.largest_tile(square(14, channels)) for channels in (16, 512)} == {2}


@pytest.mark.parametrize("isa", [AVX512, NEON64], ids=lambda isa: isa.name)
def test_only_affordable_tiles_are_offered(isa: Isa) -> None:
    conv = square(14, lanes=isa.lanes)
    with winograd_bytes.goal("balance"):
        assert {item["tile"] for item in winograd.options(conv, isa)} == {2}
        assert registry.chosen(conv, isa)[0] == "winograd"
    with winograd_bytes.goal("size"):
        layer = registry.make_convolution(conv, isa)
    assert layer.note["kernel"] == "direct"
    assert sum(constant.nbytes for constant in layer.constants) < 1.1 * conv.weight.nbytes
