"""The grouped kernel against the convolution's definition, over a sweep of shapes."""

from __future__ import annotations

import numpy as np
from layer_runner import on_every_machine
from random_convolutions import Case, check, choose, random_conv

from run_model_tools.kernels import grouped
from run_model_tools.kernels.isa import AVX2, Isa


def draw(rng: np.random.Generator, isas: tuple[Isa, ...], count: int) -> list[Case]:
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


@on_every_machine
def test_equals_the_definition(tmp_path, machine):
    cases = draw(machine.rng(), machine.isas, machine.count(4))
    check(grouped, cases, tmp_path, machine.toolchain)


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
