"""The pooling kernels against their definition, over a sweep of shapes."""

from __future__ import annotations

import numpy as np

from layer_runner import on_machines_with_vectors, run_cases
from random_poolings import draw, expected
from run_model_tools.kernels.convolutions.convolution import Lanes, plain_lanes
from run_model_tools.kernels.isa import AVX2
from run_model_tools.kernels.pictures import pooling
from run_model_tools.kernels.pictures.pooling import Pooling


@on_machines_with_vectors
def test_equals_the_definition(tmp_path, machine):
    rng = machine.rng()
    cases = draw(rng, machine.isas, machine.count(6))
    runs = run_cases(pooling, cases, rng, tmp_path, machine.toolchain)
    for (pool, isa, parameters), (tensors, output) in runs:
        want, bound = expected(pool, tensors)
        used = ~np.isnan(want)
        assert output.shape == want.shape
        assert (abs(output - want)[used] <= bound[used]).all(), (pool, isa.name, parameters)
        assert np.isfinite(output).all(), "lanes without a channel must be finite"


def test_output_size_rounds_as_asked():
    pool = Pooling("max", (3, 3), ((1, 1, 112, 112, 8),), plain_lanes(8, 8), (2, 2))
    assert pool.output_size == (55, 55)
    assert Pooling(**{**pool.__dict__, "round_up": True}).output_size == (56, 56)


def test_refuses_what_it_cannot_do():
    shape = ((1, 2, 4, 4, 8),)
    assert not pooling.options(Pooling("max", (2, 2), shape, (Lanes(0, 0, 4, 4),)), AVX2)
    assert not pooling.options(Pooling("max", (4, 4), shape, plain_lanes(16, 8), planar=True), AVX2)
    outside = Pooling("max", (2, 2), shape, plain_lanes(16, 8), (2, 2), (0, 0, 4, 0))
    assert not pooling.options(outside, AVX2)
