"""The direct kernel against the convolution's definition, over a sweep of shapes."""

from __future__ import annotations

import re

import numpy as np

from layer_runner import on_every_machine
from random_convolutions import Case, check, choose, random_conv
from run_model_tools.kernels.convolutions import direct
from run_model_tools.kernels.convolutions.convolution import Convolution, plain_lanes
from run_model_tools.kernels.isa import AVX2, AVX512, Isa

ZOO = ({"kernel": (3, 3), "strides": (2, 2), "padding": (1, 1, 1, 1), "size": (28, 30)},
       {"kernel": (3, 3), "strides": (1, 1), "padding": (1, 1, 1, 1), "size": (5, 33)},
       {"kernel": (1, 1), "strides": (2, 2), "padding": (0, 0, 0, 0), "size": (14, 13)},
       {"kernel": (5, 5), "strides": (1, 1), "padding": (2, 2, 2, 2), "size": (7, 7)})


def draw(rng: np.random.Generator, isas: tuple[Isa, ...], count: int, zoo: int) -> list[Case]:
    convs = []
    for isa in isas:
        convs += [(random_conv(rng, isa.lanes), isa) for _ in range(count)]
        convs += [(random_conv(rng, isa.lanes, dilation=(1, 1), **fixed), isa)
                  for fixed in ZOO[:zoo]]
    return choose(rng, direct, convs)


def test_functions_say_what_they_are():
    """Type, algorithm, register tile, instruction set; then what tells it from other layers'
    code."""
    weight = np.ones((32, 16, 3, 3), np.float32)
    conv = Convolution(weight, np.zeros(32, np.float32), ((1, 1, 30, 30, 16),), plain_lanes(16, 16))
    options = {"tile": [14, 2], "parts": [4, 1], "outside": "channels"}
    layer = direct.make(conv, AVX512, **options)
    assert re.fullmatch(r"run_model_f32_conv_direct_14x2_avx512_[0-9a-f]{12}_0", layer.symbol(0))
    assert f"int {layer.symbol(0)}(" in layer.c_source()
    assert direct.make(conv, AVX512, **options).symbol(0) == layer.symbol(0)
    assert direct.make(conv, AVX512, **{**options, "parts": [2, 1]}).symbol(0) != layer.symbol(0)


@on_every_machine
def test_equals_the_definition(tmp_path, machine):
    cases = draw(machine.rng(), machine.isas, machine.count(6), machine.count(4))
    check(direct, cases, tmp_path, machine.toolchain)


def test_padding_wider_than_a_tile_takes_a_copy(tmp_path):
    rng = np.random.default_rng(4)
    wide = random_conv(rng, 8, kernel=(3, 3), strides=(1, 1), dilation=(12, 12),
                       padding=(12, 12, 12, 12), size=(20, 20), channels=[9, 8], outputs=24)
    layer = direct.make(wide, AVX2, **direct.options(wide, AVX2)[0])
    assert [phase.kernel for phase in layer.phases] == ["padded_copy", "direct"]
    check(direct, [(wide, AVX2, direct.options(wide, AVX2)[0])], tmp_path)


def test_refuses_what_it_cannot_do():
    rng = np.random.default_rng(5)
    assert direct.options(random_conv(rng, 8, channels=[3], planar=True), AVX2) == []
    assert direct.options(random_conv(rng, 8, channels=[8], outputs=8, groups=2), AVX2) == []
