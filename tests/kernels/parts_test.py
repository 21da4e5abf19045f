"""How layers are cut into tasks."""

from __future__ import annotations

import numpy as np
import pytest

from random_convolutions import random_conv
from run_model_tools.kernels.convolutions import direct, pointwise
from run_model_tools.kernels.isa import AVX2, AVX512, NEON64
from run_model_tools.kernels.parts import best_parts, rounded

PLAIN = {"kernel": (1, 1), "strides": (1, 1), "padding": (0, 0, 0, 0)}


def test_rounding_gives_each_part_as_many_tiles():
    assert [len(r) for r in rounded(169, 14, 4).ranges()] == [11] * 9 + [10] * 7
    assert rounded(3, 14, 4).tiles == 3


@pytest.mark.parametrize("isa", [AVX512, AVX2, NEON64])
@pytest.mark.parametrize("size, inputs, outputs", [(7, 960, 160), (13, 256, 48), (56, 24, 144)])
def test_two_threads_get_equal_work(isa, size, inputs, outputs):
    rng = np.random.default_rng(1)
    conv = random_conv(rng, isa.lanes, **PLAIN, size=(size, size), channels=[inputs],
                       outputs=outputs, scattered=False)
    layer = pointwise.make(conv, isa, **pointwise.options(conv, isa)[0])
    tasks = layer.phases[0].tasks
    assert tasks % 2 == 0
    defines, work = layer.defines, []
    for task in range(tasks):
        part, channel_part = task % defines["PIXEL_PARTS"], task // defines["PIXEL_PARTS"]
        # As the C code goes by these macros.
        first, end = (n * defines["PIXEL_TILES"] // defines["PIXEL_PARTS"]
                      for n in (part, part + 1))
        pixels = [t * defines["PIXELS"] // defines["PIXEL_TILES"] for t in (first, end)]
        first, end = (n * defines["VECTOR_TILES"] // defines["CHANNEL_PARTS"]
                      for n in (channel_part, channel_part + 1))
        total = (defines["VECTOR_TILES"] * defines["TILE_VECTORS"]
                 + defines["LARGER_VECTOR_TILES"])
        count = [t * total // defines["VECTOR_TILES"] for t in (first, end)]
        work.append((pixels[1] - pixels[0]) * (count[1] - count[0]))
    assert sum(work) == size * size * -(-outputs // isa.lanes)
    assert max(sum(work[:tasks // 2]), sum(work[tasks // 2:])) <= 1.03 * sum(work) / 2


def test_small_layers_are_one_task():
    conv = random_conv(np.random.default_rng(2), 8, **PLAIN, size=(4, 4), channels=[8], outputs=8)
    assert pointwise.options(conv, AVX2)[0]["parts"] == [1, 1]


def test_few_rows_and_many_channels_are_cut_by_channels():
    conv = random_conv(np.random.default_rng(3), 16, kernel=(3, 3), strides=(2, 2), dilation=(1, 1),
                       padding=(1, 1, 1, 1), size=(14, 14), channels=[256], outputs=512)
    assert direct.options(conv, AVX512)[0]["parts"][0] == 1


def test_of_equal_cuts_the_finer_one_is_taken():
    units = {n: [(14,)] * 64 for n in (1, 2, 4)}
    assert best_parts(AVX512, 10**9, units, {1: [2]})[0] == (4, 1)
