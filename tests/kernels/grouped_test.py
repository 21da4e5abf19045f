"""The grouped kernel against the convolution's definition, over a sweep of shapes."""

from __future__ import annotations

import layer_runner
import numpy as np
import pytest
from random_convolutions import check, choose, random_conv

from run_model_tools.kernels import grouped
from run_model_tools.kernels.convolution import Convolution
from run_model_tools.kernels.isa import AVX2, AVX512, NEON32, NEON64, Isa


def draw(seed: int, isas: list[Isa], count: int) -> list[tuple[Convolution, Isa, dict]]:
    rng = np.random.default_rng(seed)
    convs = []
    for isa in isas:
        for number in range(2 * count):
            groups = int(rng.integers(2, 6))
            # Every other one as a product of matrices.
            fixed = {"kernel": (1, 1), "strides": (1, 1),
                     "padding": (0, 0, 0, 0)} if number % 2 else {}
            fixed["channels"] = [groups * int(rng.integers(1, isa.lanes)), groups]
            convs.append((random_conv(rng, isa.lanes, groups=groups,
                                      outputs=groups * int(rng.integers(2, isa.lanes + 4)),
                                      **fixed),
                          isa))
    return choose(rng, grouped, convs)


def test_native(tmp_path):
    check(grouped, draw(1, [AVX512, AVX2, NEON64], 4), tmp_path)


@pytest.mark.full
def test_sanitized(tmp_path):
    check(grouped, draw(2, [AVX512, NEON32], 2), tmp_path, layer_runner.SANITIZED)


@pytest.mark.slow
@pytest.mark.parametrize("name, isa", layer_runner.OTHER_MACHINES)
def test_other_machines(tmp_path, name, isa):
    check(grouped, draw(3, [isa], 1), tmp_path, getattr(layer_runner, name))


def test_each_vector_reads_its_groups_only():
    rng = np.random.default_rng(4)
    conv = random_conv(rng, 8, kernel=(1, 1), strides=(1, 1), padding=(0, 0, 0, 0), groups=3,
                       channels=[24], outputs=60, scattered=False)
    layer = grouped.make(conv, AVX2, tile=[12, 1], parts=[1, 1], outside="pixels")
    # A group has 20 outputs: only the vector of 16 ... 23 has some of two groups.
    assert layer.defines["TILE_DEPTH"] == [8, 8, 16, 8, 8, 8, 8, 8]


def test_refuses_what_it_cannot_do():
    rng = np.random.default_rng(5)
    assert grouped.options(random_conv(rng, 8, channels=[8]), AVX2) == []
    depthwise = random_conv(rng, 8, channels=[8], outputs=8, groups=8)
    assert grouped.options(depthwise, AVX2) == []
