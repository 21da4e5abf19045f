"""Fused expansion, depthwise convolution and projection against their definitions."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import reference
from layer_runner import on_machines_with_vectors, run_cases
from random_convolutions import EPS, bound_after_epilogue, random_epilogue
from run_model_tools.kernels.convolutions import inverted_residual
from run_model_tools.kernels.convolutions.convolution import Convolution, Lanes, plain_lanes
from run_model_tools.kernels.convolutions.inverted_residual import InvertedResidual
from run_model_tools.kernels.isa import AVX2, AVX512, Isa


def random_block(rng: np.random.Generator, lanes: int, stages: str = "edp",
                 **fixed) -> InvertedResidual:
    """`stages`: "edp" or, without an expansion, "dp"; `fixed` overrides what is drawn."""
    taps = fixed.get("taps", int(rng.choice([3, 3, 3, 5])))
    stride = fixed.get("stride", int(rng.integers(1, 3)))
    size = fixed.get("size") or tuple(int(s) for s in rng.integers(taps + 5, 26, 2))
    channels = fixed.get("channels") or [int(c) for c in rng.integers(1, 3 * lanes, 3)]
    padding = (taps // 2,) * 4
    if rng.random() < 0.3:
        padding = tuple(int(p) for p in rng.integers(0, taps, 4))
    # Inputs of an expansion: parts of blocks of two tensors, as after a split or a concatenation.
    shape = ((1, -(-channels[0] // lanes) + 1, *size, lanes),)
    pieces = plain_lanes(channels[0], lanes)
    if "e" in stages and rng.random() < 0.5:
        first = int(rng.integers(0, lanes))
        shape += ((1, 1, *size, lanes),)
        extra = Lanes(1, 0, first, int(rng.integers(1, lanes - first + 1)))
        pieces, channels = (extra, *pieces), [channels[0] + extra.count, *channels[1:]]

    def weights(*dims: int) -> dict[str, np.ndarray]:
        return {"weight": rng.standard_normal(dims).astype(np.float32),
                "bias": rng.standard_normal(dims[0]).astype(np.float32),
                "low": [-math.inf, 0.0][rng.integers(2)], "high": [math.inf, 6.0][rng.integers(2)],
                "expression": (random_epilogue(rng, dims[0], by_channel=False)
                               if rng.random() < 0.4 else None)}

    expand = None
    if "e" in stages:
        expand = Convolution(**weights(channels[1], channels[0], 1, 1), input_shapes=shape,
                             input_lanes=pieces)
        shape, pieces = (expand.output_shape(lanes),), plain_lanes(channels[1], lanes)
    else:
        channels[1] = channels[0]
    between = Convolution(**weights(channels[1], 1, taps, taps), input_shapes=shape,
                          input_lanes=pieces, strides=(stride, stride), padding=padding,
                          groups=channels[1])
    shape = ((1, len(pieces), *between.output_size, lanes),)
    residual = bool(rng.random() < 0.5)
    project = Convolution(**weights(channels[2], channels[1], 1, 1), input_shapes=shape,
                          input_lanes=plain_lanes(channels[1], lanes), residual=residual)
    if project.expression:
        project = replace(project, expression=random_epilogue(rng, channels[2], residual, False))
    return InvertedResidual(expand, between, project)


def expected(block: InvertedResidual, tensors: list[np.ndarray], lanes: int):
    """(result, bound of its error) as (channels, height, width), both in float64."""
    count = len(block.first.input_shapes)
    inputs, bounds = tensors[:count], [np.zeros_like(t, np.float64) for t in tensors[:count]]
    for conv in (block.expand, block.depthwise, block.project):
        if conv is None:
            continue
        plain = replace(conv, low=-math.inf, high=math.inf, residual=False, expression=None)
        absolute = replace(plain, weight=abs(conv.weight), bias=abs(conv.bias))
        value, residuals = reference.convolve(plain, inputs, lanes), []
        size = reference.convolve(absolute, [abs(t) for t in inputs], lanes)
        if conv.residual:
            residuals = [reference.unblocked(tensors[-1], conv.output_channels).astype(np.float64)]
            size = size + abs(residuals[0])
        # What the inputs' errors come to, and a rounding for every product and sum.
        terms = conv.weight[0].size + 2
        error = (reference.convolve(replace(absolute, bias=0 * conv.bias), bounds, lanes)
                 + (2 * terms + 1) * EPS * size)
        if conv.expression:
            value = conv.expression.evaluate([value, *residuals])
            error = bound_after_epilogue(error, size)
        else:
            value = np.clip(sum(residuals, value), conv.low, conv.high)
        inputs, bounds = [reference.blocked(value, lanes)], [reference.blocked(error, lanes)]
    return value, error * (1 + 1e-6) + 1e-30


@on_machines_with_vectors
def test_equals_the_definition(tmp_path, machine):
    rng = machine.rng()
    cases = draw(rng, machine.isas, machine.count(2))
    runs = run_cases(inverted_residual, cases, rng, tmp_path, machine.toolchain)
    for (block, isa, parameters), (tensors, output) in runs:
        want, bound = expected(block, tensors, isa.lanes)
        got = reference.unblocked(output, block.project.output_channels)
        assert (abs(got - want) <= bound).all(), (isa.name, parameters, block)
        assert np.isfinite(output).all(), "lanes without a channel must be finite"


def draw(rng: np.random.Generator, isas: tuple[Isa, ...], count: int
         ) -> list[tuple[InvertedResidual, Isa, dict]]:
    cases = []
    for isa in isas:
        blocks = [random_block(rng, isa.lanes, stages) for stages in ("edp", "edp", "dp") * count]
        # MobileNet v2's: 24 output channels, which are one vector of 16 and a half; small planes.
        for channels, size in (([16, 32, 24], (14, 14)), ([20, 96, 40], (7, 7))):
            blocks.append(random_block(rng, isa.lanes, channels=channels, size=size, taps=3,
                                       stride=1))
        for block in blocks:
            choices = inverted_residual.options(block, isa)
            if choices:
                cases.append((block, isa, choices[rng.integers(len(choices))]))
        assert len(cases) > count, "most blocks can be computed"
    return cases


def test_refuses_what_it_cannot_do():
    rng = np.random.default_rng(8)
    block = random_block(rng, 8, taps=3, stride=1, size=(12, 12), channels=[8, 16, 8])
    assert inverted_residual.options(block, AVX2)
    reversed_ = replace(block.project, input_lanes=block.project.input_lanes[::-1])
    assert not inverted_residual.options(replace(block, project=reversed_), AVX2)
    dilated = replace(block.depthwise, dilation=(2, 2))
    assert not inverted_residual.options(replace(block, depthwise=dilated), AVX2)


@pytest.mark.parametrize("size, stride, stages, better", [
    (112, 2, "edp", True), (56, 1, "edp", True), (28, 1, "edp", True), (28, 2, "edp", True),
    (14, 1, "edp", False), (14, 1, "dp", True), (14, 2, "dp", False), (7, 1, "dp", False)])
def test_wins_where_borders_are_cheap_and_tasks_equal(size, stride, stages, better):
    shape, count = ((1, 2, size, size, 16),), 32
    bias = np.zeros(count, np.float32)
    lanes = plain_lanes(count, 16)
    plain = Convolution(np.zeros((count, count, 1, 1), np.float32), bias, shape, lanes)
    between = Convolution(np.zeros((count, 1, 3, 3), np.float32), bias, shape, lanes,
                          (stride, stride), (1, 1, 1, 1), groups=count)
    last = replace(plain, input_shapes=(between.output_shape(16),))
    block = InvertedResidual(plain if "e" in stages else None, between, last)
    assert inverted_residual.wins(block, AVX512) is better
