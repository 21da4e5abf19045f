"""Which layers store transformed weights, and which transform them while they run."""

from __future__ import annotations

import numpy as np
import pytest

from run_model_tools.kernels import registry
from run_model_tools.kernels.convolutions import winograd, winograd_bytes
from run_model_tools.kernels.convolutions.convolution import Convolution, plain_lanes
from run_model_tools.kernels.isa import AVX2, AVX512, NEON64, Isa


def square(size: int, channels: int, isa: Isa) -> Convolution:
    """A padded 3x3 convolution of a picture of size x size."""
    return Convolution(
        weight=np.ones((channels, channels, 3, 3), np.float32), bias=np.zeros(channels, np.float32),
        input_shapes=((1, channels // isa.lanes, size, size, isa.lanes),),
        input_lanes=tuple(plain_lanes(channels, isa.lanes, 0)), padding=(1, 1, 1, 1))


def growth(conv: Convolution, isa: Isa) -> float:
    """How many times the bytes of the kernels the chosen layer's constants have."""
    layer = registry.make_convolution(conv, isa)
    return sum(constant.nbytes for constant in layer.constants) / conv.weight.nbytes


RESNET = {56: 64, 28: 128, 14: 256, 7: 512}


@pytest.mark.parametrize(("goal", "stored"), [
    ("speed", {56, 28}), ("balance", set()), ("size", set())])
@pytest.mark.parametrize("isa", [AVX512, AVX2, NEON64], ids=lambda isa: isa.name)
def test_weights_of_many_channels_are_not_stored_transformed(
        isa: Isa, goal: str, stored: set[int]) -> None:
    with winograd_bytes.goal(goal):
        for size, channels in RESNET.items():
            conv = square(size, channels, isa)
            assert registry.chosen(conv, isa)[0] == "winograd"
            assert (growth(conv, isa) > 1.1) == (size in stored), size


@pytest.mark.parametrize("isa", [AVX512, NEON64], ids=lambda isa: isa.name)
def test_the_goal_of_size_offers_no_transformed_weights(isa: Isa) -> None:
    conv = square(56, 64, isa)
    with winograd_bytes.goal("size"):
        assert all("taps" in offered for offered in winograd.options(conv, isa))
    assert any("taps" not in offered for offered in winograd.options(conv, isa))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_pictures_too_small_for_it_are_computed_by_definition(size: int) -> None:
    assert winograd.options(square(size, 256, AVX512), AVX512) == []


def test_taps_are_transformed_in_pieces_that_the_cache_holds() -> None:
    for isa in (AVX512, AVX2, NEON64):
        for offered in winograd.options(square(14, 256, isa), isa):
            if "taps" in offered:
                layer = winograd.make(square(14, 256, isa), isa, **offered)
                assert layer.scratch_bytes < 1 << 20
