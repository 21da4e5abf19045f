"""Convolutions of pictures with the pooling that follows, against their definitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import reference
from layer_runner import on_machines_with_vectors, run_cases
from random_convolutions import error_bound, random_conv
from random_poolings import expected as expected_pooling
from run_model_tools.kernels import choices, registry
from run_model_tools.kernels.convolutions import pooled_convolution
from run_model_tools.kernels.convolutions.convolution import Convolution, plain_lanes
from run_model_tools.kernels.convolutions.pooled_convolution import PooledConvolution
from run_model_tools.kernels.isa import AVX2, AVX512, NEON64_HALF, Isa
from run_model_tools.kernels.pictures.pooling import Pooling


def random_block(rng: np.random.Generator, isa: Isa, **fixed) -> PooledConvolution:
    """A block that the kernel can compute; `fixed` overrides what is drawn of the pooling."""
    while True:
        conv = random_conv(rng, isa.lanes, planar=True, channels=[int(rng.integers(1, 4))],
                           size=tuple(int(s) for s in rng.integers(20, 48, 2)))
        if conv.residual:
            continue
        window = tuple(int(w) for w in rng.integers(1, 4, 2))
        pool = Pooling(**{"kind": "max", "window": window,
                          "input_shapes": (conv.output_shape(isa.lanes),),
                          "input_lanes": plain_lanes(conv.output_channels, isa.lanes),
                          "strides": tuple(int(s) for s in rng.integers(1, 4, 2)),
                          "padding": tuple(int(rng.integers(0, window[a % 2])) for a in range(4)),
                          "round_up": bool(rng.random() < 0.5), **fixed})
        block = PooledConvolution(conv, pool)
        if min(pool.output_size) > 1 and pooled_convolution.options(block, isa):
            return block


@on_machines_with_vectors
def test_equals_the_definition(tmp_path, machine):
    rng = machine.rng()
    cases = []
    for isa in machine.isas:
        for _ in range(machine.count(6)):
            block = random_block(rng, isa)
            choices = pooled_convolution.options(block, isa)
            cases.append((block, isa, choices[rng.integers(len(choices))]))
    runs = run_cases(pooled_convolution, cases, rng, tmp_path, machine.toolchain)
    for (block, isa, parameters), (tensors, output) in runs:
        conv, pool = block.convolution, block.pooling
        # A maximum is off by no more than what it is of.
        want, bound = (pooled(pool, planes, isa.lanes) for planes in (
            reference.convolve(conv, tensors, isa.lanes), error_bound(conv, tensors, isa.lanes)))
        got = reference.unblocked(output, conv.output_channels)
        assert (abs(got - want) <= bound).all(), (isa, parameters)
        assert np.isfinite(output).all(), "lanes without a channel must be finite"


def pooled(pool: Pooling, planes: np.ndarray, lanes: int) -> np.ndarray:
    """(channels, height, width) -> the same of the pooling's result."""
    made, _ = expected_pooling(pool, [reference.blocked(planes, lanes)])
    return reference.unblocked(made, len(planes))


def stem(rows: int = 112, **pooling) -> PooledConvolution:
    """ResNet's first layers."""
    conv = Convolution(np.zeros((64, 3, 7, 7), np.float32), np.zeros(64, np.float32),
                       ((1, 3, 2 * rows, 224),), (), (2, 2), (3, 3, 3, 3))
    pool = Pooling(**{"kind": "max", "window": (3, 3), "strides": (2, 2),
                      "input_shapes": (conv.output_shape(16),), "input_lanes": plain_lanes(64, 16),
                      "padding": (1, 1, 1, 1), **pooling})
    return PooledConvolution(conv, pool)


def test_a_measured_choice_is_of_the_convolution_and_its_pooling():
    assert choices.key_of(stem(), AVX512) == (
        "avx512 3x224x224 -> 64x112x112 kernel 7x7 strides 2x2 pad 3,3,3,3 planar + "
        "max pool 3x3 strides 2x2 pad 1,1,1,1 to 56x56")
    best = "planar_max_pool", pooled_convolution.options(stem(), AVX512)[-1]
    with choices.replaced_by({choices.key_of(stem(), AVX512): best}):
        assert registry.chosen(stem(), AVX512) == best


def test_few_rows_are_computed_twice():
    assert [option["parts"] for option in pooled_convolution.options(stem(), AVX512)][:2] == [4, 8]
    assert [option["parts"] for option in pooled_convolution.options(stem(16), AVX512)][0] == 2


@pytest.mark.parametrize("block", [
    stem(kind="average"), stem(dilation=(2, 2)), stem(input_lanes=plain_lanes(48, 16)),
    stem(input_lanes=plain_lanes(64, 16)[::-1])])
def test_refuses_what_it_cannot_do(block):
    assert pooled_convolution.options(stem(), AVX512)
    assert pooled_convolution.options(block, AVX512) == []


def test_refuses_a_residual_and_half_precision():
    block = stem()
    assert not pooled_convolution.options(
        replace(block, convolution=replace(block.convolution, residual=True)), AVX512)
    rng = np.random.default_rng(3)
    assert not pooled_convolution.options(random_block(rng, AVX2), NEON64_HALF)
