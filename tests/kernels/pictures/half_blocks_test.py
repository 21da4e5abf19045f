"""What is done to blocks in half precision beside multiplying, against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from resampling_test import random_elementwise, random_gather, random_resampling

import random_poolings
import reference
from layer_runner import AARCH64_HALF, in_half_precision, run_cases, run_layers
from run_model_tools.kernels.convolutions.convolution import plain_lanes
from run_model_tools.kernels.isa import NEON64_HALF
from run_model_tools.kernels.pictures import elementwise, pooling
from run_model_tools.kernels.pictures.elementwise import Elementwise, Source
from run_model_tools.kernels.programs.expressions import Builder, Operand

UNIT = 2.0 ** -11


@in_half_precision
def test_pooling_equals_the_definition(tmp_path, toolchain):
    rng = np.random.default_rng(11)
    cases = random_poolings.draw(rng, (NEON64_HALF,), 6)
    for (pool, _, parameters), (tensors, output) in run_cases(pooling, cases, rng, tmp_path,
                                                              toolchain):
        assert output.dtype == (np.float32 if pool.planar else np.float16)
        want, bound = random_poolings.expected(pool, tensors)
        used = ~np.isnan(want)
        if output.dtype == np.float16 and pool.kind == "average":
            bound = bound + UNIT * (abs(want) + UNIT)
        assert (abs(output - want)[used] <= bound[used]).all(), (pool, parameters)
        assert np.isfinite(output).all(), "lanes without a channel must be finite"


@in_half_precision
def test_moved_and_single_numbers_equal_the_definition(tmp_path, toolchain):
    rng = np.random.default_rng(12)
    cases = [make(rng, NEON64_HALF) for _ in range(6)
             for make in (random_resampling, random_gather, random_elementwise)]
    outputs = run_layers([case[:2] for case in cases], tmp_path, toolchain)
    for (layer, _, want, bound), output in zip(cases, outputs):
        got = reference.unblocked(output, len(want))
        assert got.shape == want.shape and np.isfinite(output).all(), layer.note
        if output.dtype == np.float16:
            bound = np.where(bound > 0, bound + UNIT * (abs(want) + UNIT), UNIT * abs(want))
        assert (abs(got - want) <= bound).all(), (layer.note, layer.variant)


def test_casts_round_to_even_and_make_no_infinities(tmp_path):
    x = np.array([1 + 2.0 ** -11, 1 + 3 * 2.0 ** -11, 65504, 65519, 65520, -1e9, 2.0 ** -25, -0.0],
                 np.float32).reshape(1, 1, 1, 1, 8)
    to, back = (elementwise.make_cast(x.shape, kind, NEON64_HALF)
                for kind in ("float16", "float32"))
    [halves] = run_layers([(to, [x])], tmp_path, AARCH64_HALF)
    wanted = [1, 1 + 2.0 ** -9, 65504, 65504, np.nan, np.nan, 0, -0.0]
    np.testing.assert_array_equal(halves.ravel(), np.array(wanted, np.float16))
    [floats] = run_layers([(back, [halves])], tmp_path, AARCH64_HALF)
    np.testing.assert_array_equal(floats, halves.astype(np.float32))


def test_nan_survives_pooling(tmp_path):
    pool = pooling.Pooling("max", (2, 2), ((1, 1, 2, 2, 8),), plain_lanes(8, 8))
    layer = pooling.make(pool, NEON64_HALF, **pooling.options(pool, NEON64_HALF)[0])
    for place in range(4):
        x = np.ones((1, 1, 4, 8), np.float16)
        x[0, 0, place] = np.nan
        [output] = run_layers([(layer, [x.reshape(1, 1, 2, 2, 8)])], tmp_path, AARCH64_HALF)
        assert np.isnan(output).all()


@pytest.mark.parametrize(("shape", "possible"), [((1, 2, 3, 3, 8), True), ((1, 1, 3, 3), False)])
def test_only_blocks_can_be_halves(shape, possible):
    builder = Builder()
    expression = builder.finish(builder.apply("add", Operand(input=0), Operand(input=1)), 2)
    whole = (1, 2, 3, 3, 8)
    kind = "blocks" if possible else "plane"
    work = Elementwise(expression, (Source("blocks", (0, 0), (0, 1)), Source(kind, (1, 1), (0, 1))),
                       (whole, shape), tuple(range(16)), (3, 3))
    assert elementwise.can_be_half(work) is possible
