"""The 1 x 1 kernel against the convolution's definition, over a sweep of shapes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from layer_runner import on_every_machine
from random_convolutions import Case, check, choose, random_conv
from run_model_tools.kernels.convolutions import pointwise
from run_model_tools.kernels.convolutions.convolution import Convolution, Lanes, plain_lanes
from run_model_tools.kernels.isa import AVX2, Isa


def draw(rng: np.random.Generator, isas: tuple[Isa, ...], count: int) -> list[Case]:
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


@on_every_machine
def test_equals_the_definition(tmp_path, machine):
    cases = draw(machine.rng(), machine.isas, machine.count(4))
    check(pointwise, cases, tmp_path, machine.toolchain)


@on_every_machine
def test_parts_of_the_input_channels_add_up(tmp_path, machine):
    rng, cases = machine.rng(), []
    for isa in machine.isas:
        for blocks, depth in ((4, 2), (5, 3), (3, 3)):
            conv = random_conv(rng, isa.lanes, kernel=(1, 1), strides=(1, 1), padding=(0, 0, 0, 0),
                               channels=[blocks * isa.lanes], scattered=False)
            parameters = pointwise.options(conv, isa)[0]
            cases.append((conv, isa, {**parameters, "outside": "channels", "depth": depth}))
    check(pointwise, cases, tmp_path, machine.toolchain)


def test_many_weights_are_read_in_parts():
    conv = Convolution(np.ones((768, 3072, 1, 1), np.float32), np.zeros(768, np.float32),
                       ((1, 384, 7, 7, 8),), plain_lanes(3072, 8))
    guess = pointwise.options(conv, AVX2)[0]
    # 16 output channels' weights of a part in half of 32 KiB.
    assert guess["depth"] == 3072 * 8 * guess["tile"][1] * 4 / 16384
    few = replace(conv, weight=conv.weight[:192])
    assert all("depth" not in parameters for parameters in pointwise.options(few, AVX2))


def test_large_pictures_are_gone_through_in_chunks():
    """Of 64 KiB, or of half of the weights if these are more."""
    def chunk(inputs: int, outputs: int) -> tuple[int, int]:
        conv = Convolution(np.ones((outputs, inputs, 1, 1), np.float32),
                           np.zeros(outputs, np.float32), ((1, inputs // 8, 80, 80, 8),),
                           plain_lanes(inputs, 8))
        tile, parts = [6, 2], [8, 1]
        made = pointwise.make(conv, AVX2, tile=tile, parts=parts, outside="channels")
        tiles = made.defines["CHUNK_TILES"]
        assert tiles < 6400 / 6 / 8
        return tiles * 6 * (inputs + outputs) * 4, 4 * conv.weight.size

    size, weights = chunk(256, 128)
    assert 32 << 10 < size <= 64 << 10 and weights // 2 <= 64 << 10
    size, weights = chunk(512, 512)
    assert weights // 4 < size <= weights // 2


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
