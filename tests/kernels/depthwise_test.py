"""The depthwise kernel against its definition, over a sweep of shapes."""

from __future__ import annotations

import math
from dataclasses import replace

import layer_runner
import numpy as np
import pytest
import reference
from random_convolutions import bound_after_epilogue, random_epilogue

from run_model_tools.kernels import depthwise
from run_model_tools.kernels.convolution import Convolution, Lanes, plain_lanes
from run_model_tools.kernels.isa import AVX2, AVX512, NEON32, NEON64, Isa

EPS = np.finfo(np.float32).eps / 2


def random_conv(rng: np.random.Generator, lanes: int, **fixed) -> Convolution:
    """A random depthwise convolution; `fixed` overrides what is drawn."""
    taps = fixed.get("taps", (int(rng.choice([1, 2, 3, 5, 7])), int(rng.choice([1, 2, 3, 5, 7]))))
    strides = fixed.get("strides", tuple(int(s) for s in rng.integers(1, 4, 2)))
    dilation = fixed.get("dilation", (1, 1) if rng.random() < 0.7 else
                         tuple(int(d) for d in rng.integers(1, 4, 2)))
    extent = [(k - 1) * d + 1 for k, d in zip(taps, dilation)]
    padding = fixed.get("padding") or tuple(int(rng.integers(0, extent[axis % 2] + 1))
                                            for axis in range(4))
    smallest = [max(1, extent[a] - padding[a] - padding[a + 2]) for a in (0, 1)]
    size = fixed.get("size") or tuple(int(s + rng.integers(0, 30)) for s in smallest)
    size = tuple(max(s, m) for s, m in zip(size, smallest))
    tensors = fixed.get("channels") or [int(c) for c in rng.integers(2, 2 * lanes + 3,
                                                                     rng.integers(1, 4))]
    pieces = [p for t, c in enumerate(tensors) for p in plain_lanes(c, lanes, t)]
    rng.shuffle(pieces)
    channels, residual = sum(tensors), bool(rng.random() < 0.3)
    return Convolution(
        weight=rng.standard_normal((channels, 1, *taps)).astype(np.float32),
        bias=rng.standard_normal(channels).astype(np.float32),
        input_shapes=tuple((1, -(-c // lanes), *size, lanes) for c in tensors),
        input_lanes=tuple(Lanes(*p.__dict__.values()) for p in pieces),
        strides=strides, padding=padding, dilation=dilation, groups=channels,
        low=[-math.inf, 0.0, -0.5][rng.integers(3)], high=[math.inf, 6.0, 0.5][rng.integers(3)],
        residual=residual,
        expression=random_epilogue(rng, channels, residual) if rng.random() < 0.4 else None)


def random_inputs(rng: np.random.Generator, layer) -> list[np.ndarray]:
    return [rng.standard_normal(shape).astype(np.float32) for shape, _ in layer.inputs]


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


def check(cases: list[tuple[Convolution, Isa, dict]], rng, folder, toolchain) -> None:
    layers = [depthwise.make(conv, isa, **parameters) for conv, isa, parameters in cases]
    inputs = [random_inputs(rng, layer) for layer in layers]
    outputs = layer_runner.run_layers(list(zip(layers, inputs)), folder, toolchain)
    for (conv, isa, parameters), tensors, output in zip(cases, inputs, outputs):
        want, bound = expected(conv, tensors)
        used = ~np.isnan(want)
        error = abs(output.astype(np.float64) - want)
        assert (error[used] <= bound[used]).all(), (conv.without_data(), isa.name, parameters)
        assert np.isfinite(output).all(), "lanes without a channel must be finite"


def draw(seed: int, isas: list[Isa], count: int) -> list[tuple[Convolution, Isa, dict]]:
    """`count` random layers for each instruction set, and shapes of the zoo's kinds."""
    rng, cases = np.random.default_rng(seed), []
    for isa in isas:
        convs = [random_conv(rng, isa.lanes) for _ in range(count)]
        for taps, stride, size in ((3, 1, 28), (3, 2, 28), (3, 1, 7), (3, 2, 7), (5, 1, 14),
                                   (5, 2, 17)):
            pad = taps // 2
            convs.append(random_conv(rng, isa.lanes, taps=(taps, taps), strides=(stride, stride),
                                     dilation=(1, 1), padding=(pad,) * 4, size=(size, size),
                                     channels=[2 * isa.lanes + 1]))
        for conv in convs:
            choices = depthwise.options(conv, isa)
            assert choices, "every depthwise convolution can be computed"
            cases.append((conv, isa, choices[rng.integers(len(choices))]))
    return cases


def test_native(tmp_path):
    cases = draw(1, [AVX512, AVX2, NEON64], 10)
    check(cases, np.random.default_rng(2), tmp_path, layer_runner.Toolchain())


@pytest.mark.full
def test_sanitized(tmp_path):
    check(draw(3, [AVX512, NEON32], 5), np.random.default_rng(4), tmp_path, layer_runner.SANITIZED)


@pytest.mark.slow
@pytest.mark.parametrize("name, isa", layer_runner.OTHER_MACHINES_IN_VECTORS)
def test_other_machines(tmp_path, name, isa):
    check(draw(5, [isa], 2)[:5], np.random.default_rng(6), tmp_path, getattr(layer_runner, name))


def test_plain_variant_where_edges_meet():
    rng = np.random.default_rng(7)
    wide = random_conv(rng, 8, taps=(1, 7), strides=(1, 1), dilation=(1, 3), padding=(0, 9, 0, 9),
                       size=(3, 20))
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
