"""The 1 x 1 kernel against the convolution's definition, over a sweep of shapes."""

from __future__ import annotations

import layer_runner
import numpy as np
import pytest
from random_convolutions import check, choose, random_conv

from run_model_tools.kernels import pointwise
from run_model_tools.kernels.convolution import Convolution, Lanes
from run_model_tools.kernels.isa import AVX2, AVX512, NEON32, NEON64, Isa


def draw(seed: int, isas: list[Isa], count: int) -> list[tuple[Convolution, Isa, dict]]:
    rng = np.random.default_rng(seed)
    convs = []
    for isa in isas:
        plain = {"kernel": (1, 1), "strides": (1, 1), "padding": (0, 0, 0, 0)}
        convs += [(random_conv(rng, isa.lanes, **plain), isa) for _ in range(count)]
        # Of the zoo's kinds: whole blocks, 7 x 7 pixels, one vector and a half.
        convs += [(random_conv(rng, isa.lanes, **plain, size=(7, 7), channels=[4 * isa.lanes],
                               scattered=False), isa),
                  (random_conv(rng, isa.lanes, **plain, outputs=isa.lanes * 3 // 2,
                               channels=[isa.lanes * 3 // 2], scattered=False), isa)]
    return choose(rng, pointwise, convs)


def test_native(tmp_path):
    check(pointwise, draw(1, [AVX512, AVX2, NEON64], 4), tmp_path)


@pytest.mark.full
def test_sanitized(tmp_path):
    check(pointwise, draw(2, [AVX512, NEON32], 4), tmp_path, layer_runner.SANITIZED)


@pytest.mark.slow
@pytest.mark.parametrize("name, isa", layer_runner.OTHER_MACHINES)
def test_other_machines(tmp_path, name, isa):
    check(pointwise, draw(3, [isa], 2), tmp_path, getattr(layer_runner, name))


def test_shuffled_channels_are_read_in_runs():
    # Two tensors of 20 channels, interleaved as a shuffle does.
    pieces = tuple(Lanes(t, c // 8, c % 8, 1) for c in range(20) for t in (0, 1))
    conv = Convolution(np.ones((8, 40, 1, 1), np.float32), np.zeros(8, np.float32),
                       ((1, 3, 5, 5, 8),) * 2, pieces)
    layer = pointwise.make(conv, AVX2, **pointwise.options(conv, AVX2)[0])
    assert layer.defines["RUN_COUNT"] == [8, 4, 8, 4]
    assert layer.defines["RUN_BLOCKS"] == [2, 1, 2, 1]


def test_refuses_what_it_cannot_do():
    rng = np.random.default_rng(4)
    assert pointwise.options(random_conv(rng, 8, kernel=(1, 1), strides=(2, 1)), AVX2) == []
    assert pointwise.options(random_conv(rng, 8, kernel=(3, 1), strides=(1, 1)), AVX2) == []
    assert pointwise.options(random_conv(rng, 8, kernel=(1, 1), strides=(1, 1),
                                         padding=(1, 0, 0, 0)), AVX2) == []
