"""The first layer's kernel against the convolution's definition, over a sweep of shapes."""

from __future__ import annotations

import numpy as np
import pytest

from layer_runner import on_every_machine
from random_convolutions import Case, check, choose, random_conv
from run_model_tools.kernels.convolutions import planar
from run_model_tools.kernels.isa import AVX2, AVX512, Isa

# The first with an output vector that is half full.
ZOO = ({"kernel": (3, 3), "strides": (2, 2), "padding": (1, 1, 1, 1), "size": (32, 30),
        "outputs": 24},
       {"kernel": (3, 3), "strides": (2, 2), "padding": (0, 0, 0, 0), "size": (31, 32)},
       {"kernel": (7, 7), "strides": (2, 2), "padding": (3, 3, 3, 3), "size": (32, 32)})


def draw(rng: np.random.Generator, isas: tuple[Isa, ...], count: int, zoo: int) -> list[Case]:
    convs = []
    for isa in isas:
        convs += [(random_conv(rng, isa.lanes, planar=True, channels=[int(rng.integers(1, 5))]),
                   isa)
                  for _ in range(count)]
        convs += [(random_conv(rng, isa.lanes, planar=True, channels=[3], dilation=(1, 1),
                               **fixed), isa)
                  for fixed in ZOO[:zoo]]
    return choose(rng, planar, convs)


@on_every_machine
def test_equals_the_definition(tmp_path, machine):
    cases = draw(machine.rng(), machine.isas, machine.count(4), machine.count(3))
    check(planar, cases, tmp_path, machine.toolchain)


@pytest.mark.parametrize("outputs, half", [(24, True), (8, True), (25, False), (32, False)])
def test_half_a_vector(outputs, half):
    conv = random_conv(np.random.default_rng(5), 16, planar=True, channels=[3], outputs=outputs,
                       size=(9, 40))
    layer = planar.make(conv, AVX512, tile=[14, 2], parts=1)
    assert ("LAST_HALF" in layer.defines) == half


def test_refuses_what_it_cannot_do():
    rng = np.random.default_rng(4)
    assert planar.options(random_conv(rng, 8, channels=[3]), AVX2) == []
    assert planar.options(random_conv(rng, 8, planar=True, channels=[4], outputs=4, groups=2),
                          AVX2) == []
