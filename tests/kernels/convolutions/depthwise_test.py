"""The depthwise kernel against its definition, over a sweep of shapes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

import reference
from layer_runner import on_machines_with_vectors, run_cases
from random_convolutions import EPS, Case, bound_after_epilogue, choose, random_conv
from run_model_tools.kernels.convolutions import depthwise
from run_model_tools.kernels.convolutions.convolution import Convolution, Lanes
from run_model_tools.kernels.isa import AVX2, Isa


def expected(conv: Convolution, tensors: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The result and a bound of its error, as the layer's tensor; where no channel is, NaN."""
    count, lanes = len(conv.input_shapes), tensors[0].shape[-1]
    plain = replace(conv, residual=False, low=-math.inf, high=math.inf, expression=None)
    value = reference.convolve(plain, tensors[:count], lanes)
    size = reference.convolve(
        replace(plain, weight=abs(conv.weight), bias=abs(conv.bias)),
        [abs(t) for t in tensors[:count]], lanes)
    residual = []
    if conv.residual:
        residual = [np.concatenate([np.moveaxis(tensors[-1][0, block, ..., :piece.count], -1, 0)
                                    for block, piece in enumerate(conv.input_lanes)])]
        size += abs(residual[0])
    # One rounding for each product and sum of at most taps + 2 terms; clamping moves nothing apart.
    bound = (2 * math.prod(conv.kernel) + 3) * EPS * size + 1e-30
    if conv.expression:
        value = conv.expression.evaluate([value, *residual])
        bound = bound_after_epilogue(bound, size)
    else:
        value = np.clip(sum(residual, value), conv.low, conv.high)
    results = []
    for planes in (value, bound):
        blocked = np.full((1, len(conv.input_lanes), *planes.shape[1:], lanes), np.nan)
        channel = 0
        for block, piece in enumerate(conv.input_lanes):
            blocked[0, block, ..., :piece.count] = np.moveaxis(
                planes[channel:channel + piece.count], 0, -1)
            channel += piece.count
        results.append(blocked)
    return results[0], results[1]


def draw(rng: np.random.Generator, isas: tuple[Isa, ...], count: int) -> list[Case]:
    """`count` random layers for each instruction set, and shapes of the zoo's kinds."""
    convs = []
    for isa in isas:
        for _ in range(count):
            kernel = tuple(int(taps) for taps in rng.choice([1, 2, 3, 5, 7], 2))
            convs.append((random_conv(rng, isa.lanes, kernel=kernel, depthwise=True), isa))
        for taps, stride, size in ((3, 1, 28), (3, 2, 28), (3, 1, 7), (3, 2, 7), (5, 1, 14),
                                   (5, 2, 17)):
            convs.append((random_conv(rng, isa.lanes, depthwise=True, kernel=(taps, taps),
                                      strides=(stride, stride), dilation=(1, 1),
                                      padding=(taps // 2,) * 4, size=(size, size),
                                      channels=[2 * isa.lanes + 1]), isa))
    return choose(rng, depthwise, convs)


@on_machines_with_vectors
def test_equals_the_definition(tmp_path, machine):
    rng = machine.rng()
    cases = draw(rng, machine.isas, machine.count(9))
    runs = run_cases(depthwise, cases, rng, tmp_path, machine.toolchain)
    for (conv, isa, parameters), (tensors, output) in runs:
        want, bound = expected(conv, tensors)
        used = ~np.isnan(want)
        error = abs(output.astype(np.float64) - want)
        assert (error[used] <= bound[used]).all(), (conv.without_data(), isa.name, parameters)
        assert np.isfinite(output).all(), "lanes without a channel must be finite"


def test_plain_variant_where_edges_meet():
    rng = np.random.default_rng(7)
    wide = random_conv(rng, 8, depthwise=True, kernel=(1, 7), strides=(1, 1), dilation=(1, 3),
                       padding=(0, 9, 0, 9), size=(3, 20))
    assert depthwise.options(wide, AVX2)[0]["columns"] == 0


def test_refuses_what_it_cannot_do():
    weight, bias = np.zeros((8, 1, 3, 3), np.float32), np.zeros(8, np.float32)
    shape = ((1, 2, 9, 9, 8),)
    good = Convolution(weight, bias, shape, (Lanes(0, 0, 0, 8),), groups=8)
    assert depthwise.options(good, AVX2)
    split = Convolution(weight, bias, shape, (Lanes(0, 0, 4, 4), Lanes(0, 1, 0, 4)), groups=8)
    assert depthwise.options(split, AVX2) == []
    dense = Convolution(np.zeros((8, 8, 3, 3), np.float32), bias, shape, (Lanes(0, 0, 0, 8),))
    assert depthwise.options(dense, AVX2) == []
