"""Ranges of bytes are those that serve numbers which they were not taken from."""

from __future__ import annotations

import numpy as np

from run_model_tools.kernels.int8.from_float32.ranges import Observed
from run_model_tools.kernels.int8.from_float32.readers import Reader

VIEWS, LANES = 16, 8


def observed(sizes: np.ndarray, spread) -> Observed:
    """Of views whose numbers are up to `sizes` of their view, spread(random, shape) within it."""
    random = np.random.default_rng(21)
    one = Observed()
    for size in sizes:
        one.add((size * spread(random, (1, 1, 8, 8, LANES))).astype(np.float32))
    return one


def evenly(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return random.random(shape)


def highest(one: Observed) -> float:
    """What the largest byte of the first lane stands for."""
    found = one.quantization(one.choose()).of_channel(0)
    return (255 - found.zero_point) * found.scale


def test_views_of_one_kind_get_what_was_seen():
    assert 0.9 < highest(observed(np.ones(VIEWS), evenly)) < 1.1


def test_views_that_go_beyond_each_other_get_room():
    # The largest view goes beyond all others by as much as the next one may go beyond it.
    sizes = np.full(VIEWS, 1.0)
    sizes[3] = 2.0
    assert highest(observed(sizes, evenly)) > 2.3


def test_single_large_numbers_are_cut_off():
    random = np.random.default_rng(22)
    seen = Observed()
    for view in range(VIEWS):
        values = 0.01 * random.random((1, 1, 256, 256, LANES), np.float32)
        values[0, 0, random.integers(256), random.integers(256), view % LANES] = 1.0
        seen.add(values)
    assert highest(seen) < 0.95


def test_channels_get_scales_by_what_reads_them():
    random = np.random.default_rng(23)
    seen = Observed()
    sizes = 0.5 ** np.arange(LANES)
    for _ in range(VIEWS):
        seen.add((sizes * random.random((1, 1, 16, 16, LANES))).astype(np.float32))
    # Small channels with large weights need fine steps, those with small weights do not.
    even, fine = (seen.quantization(seen.choose([Reader(np.square(weights).sum(0), weights)]))
                  for weights in (np.ones((4, LANES)), np.ones((4, LANES)) / sizes))
    ratio = [found.of_channel(0).scale / found.of_channel(LANES - 1).scale
             for found in (even, fine)]
    assert ratio[1] > 4 * ratio[0]


def test_nothing_is_kept_for_numbers_beyond_a_clamp():
    sizes = np.full(VIEWS, 1.0)
    sizes[3] = 2.0
    seen = observed(sizes, evenly)
    assert highest(seen) > 2.3
    found = seen.quantization(seen.choose(highest=2.0))
    tops = (255 - found.zero_point) * found.scales(range(LANES))
    assert np.allclose(tops, 2.0)


def test_a_single_view_is_enough():
    one = observed(np.ones(1), evenly)
    found = one.quantization(one.choose())
    assert found.zero_point == 0 and found.channels is not None
    assert 0.8 < highest(observed(np.ones(1), evenly)) < 1.2


def test_ranges_can_be_those_of_some_views():
    sizes = np.full(VIEWS, 1.0)
    sizes[3] = 2.0
    seen = observed(sizes, evenly)
    choice = seen.choose()
    every, others = (seen.quantization(choice, views).scales(range(LANES))
                     for views in (None, np.delete(np.arange(VIEWS), 3)))
    assert np.allclose(every, 2 * others, rtol=0.05)
