"""The Winograd kernel against the convolution's definition, over a sweep of shapes."""

from __future__ import annotations

import dataclasses
import math

import layer_runner
import numpy as np
import pytest
import reference
from random_convolutions import bound_after_epilogue, random_epilogue

from run_model_tools.kernels import winograd, winograd_cost, winograd_points
from run_model_tools.kernels.convolution import Convolution, Lanes, plain_lanes
from run_model_tools.kernels.isa import AVX2, AVX512, NEON32, NEON64, Isa

EPS = np.finfo(np.float32).eps / 2

# Root mean square of the error relative to the sum of |w||x|.  winograd_error.md measures a fourth
# of this; sums of few channels, and pixels of an edge beside larger ones, average out less.
TYPICAL_ERROR = {2: 1e-7, 4: 3e-7, 6: 1.2e-6}


@pytest.fixture(autouse=True)
def offered_for_small_layers(monkeypatch):
    """Also those that the definition computes faster."""
    monkeypatch.setattr(winograd_cost, "_direct_cost", lambda *_: math.inf)


def random_conv(rng: np.random.Generator, lanes: int, **fixed) -> Convolution:
    """A random 3x3 convolution; `fixed` overrides what is drawn."""
    padding = fixed.get("padding") or tuple(int(p) for p in rng.integers(0, 2, 4))
    size = fixed.get("size") or tuple(int(s) for s in rng.integers(3, 20, 2))
    tensors = fixed.get("channels") or [int(c) for c in rng.integers(1, 2 * lanes + 3,
                                                                     rng.integers(1, 4))]
    pieces = [p for t, c in enumerate(tensors) for p in plain_lanes(c, lanes, t)]
    if fixed.get("scattered", rng.random() < 0.5):
        # What splits and shuffles leave: parts of blocks, in any order, some blocks not read at
        # all.
        pieces = [Lanes(p.tensor, p.block, first, 1 + int(rng.integers(0, p.count - first)))
                  for p in pieces for first in sorted({0, int(rng.integers(0, p.count))})]
        rng.shuffle(pieces)
        pieces = [Lanes(*p.__dict__.values()) for p in pieces[:max(1, len(pieces) - 1)]]
    outputs = fixed.get("outputs", int(rng.integers(1, 4 * lanes + 2)))
    channels = sum(p.count for p in pieces)
    residual = bool(rng.random() < 0.3)
    return Convolution(
        weight=rng.standard_normal((outputs, channels, 3, 3)).astype(np.float32),
        bias=rng.standard_normal(outputs).astype(np.float32),
        input_shapes=tuple((1, -(-c // lanes), *size, lanes) for c in tensors),
        input_lanes=tuple(pieces), padding=padding,
        low=[-math.inf, 0.0, -0.5][rng.integers(3)], high=[math.inf, 6.0, 0.5][rng.integers(3)],
        residual=residual,
        expression=random_epilogue(rng, outputs, residual) if rng.random() < 0.4 else None)


def rounding_bound(conv: Convolution, tensors: list[np.ndarray], tile: int) -> np.ndarray:
    """How far float32 can take the result from the definition's, at each output.

    The algorithm on absolute values, times the roundings that a term goes through: in each axis's
    transforms, in the weights, and in the sum over the channels.
    """
    data, taps, inverse = (abs(m) for m in winograd_points.matrices(winograd_points.POINTS[tile]))
    height, width = conv.output_size
    rows, columns = -(-height // tile), -(-width // tile)
    x = abs(reference.input_channels(conv, tensors))
    padded = np.zeros((x.shape[0], rows * tile + 2, columns * tile + 2))
    top, left = conv.padding[:2]
    # What is past the last tile's input touches no output.
    x = x[:, :padded.shape[1] - top, :padded.shape[2] - left]
    padded[:, top:top + x.shape[1], left:left + x.shape[2]] = x
    weights = np.einsum("ai,ocij,bj->ocab", taps, abs(conv.weight.astype(np.float64)), taps)
    bound = np.zeros((conv.output_channels, rows * tile, columns * tile))
    for i in range(rows):
        for j in range(columns):
            patch = padded[:, i * tile:i * tile + tile + 2, j * tile:j * tile + tile + 2]
            values = data @ patch @ data.T
            products = np.einsum("ocab,cab->oab", weights, values)
            bound[:, i * tile:(i + 1) * tile,
                  j * tile:(j + 1) * tile] = inverse @ products @ inverse.T
    bound = bound[:, :height, :width] + abs(conv.bias.astype(np.float64))[:, None, None]
    if conv.residual:
        bound += abs(reference.unblocked(tensors[-1], conv.output_channels))
    size = bound
    bound = (conv.input_channels + 4 * (tile // 2 + 2) + 6) * EPS * size
    return bound_after_epilogue(bound, size) if conv.expression else bound


def weight_of_terms(conv: Convolution, tensors: list[np.ndarray], lanes: int) -> np.ndarray:
    """The sum of |w||x| at each output."""
    absolute = dataclasses.replace(conv, weight=abs(conv.weight), bias=abs(conv.bias),
                                   low=-math.inf, high=math.inf, expression=None)
    return reference.convolve(absolute, [abs(t) for t in tensors], lanes)


def check(cases: list[tuple[Convolution, Isa, dict]], rng, folder, toolchain) -> None:
    layers = [winograd.make(conv, isa, **parameters) for conv, isa, parameters in cases]
    inputs = [[rng.standard_normal(shape).astype(np.float32) for shape, _ in layer.inputs]
              for layer in layers]
    outputs = layer_runner.run_layers(list(zip(layers, inputs)), folder, toolchain)
    for (conv, isa, parameters), tensors, output in zip(cases, inputs, outputs):
        what = (conv.without_data(), isa.name, parameters)
        assert np.isfinite(output).all(), what
        result = reference.unblocked(output, conv.output_channels).astype(np.float64)
        error = abs(result - reference.convolve(conv, tensors, isa.lanes))
        assert (error <= rounding_bound(conv, tensors, parameters["tile"])).all(), what
        if conv.expression:
            continue
        relative = error / weight_of_terms(conv, tensors, isa.lanes)
        assert np.sqrt(np.mean(relative ** 2)) <= TYPICAL_ERROR[parameters["tile"]], what


def draw(seed: int, isas: list[Isa], tiles: tuple[int, ...]) -> list[tuple[Convolution, Isa, dict]]:
    """A random layer for each instruction set and each of `tiles`, with any of its parameter
    sets."""
    rng, cases = np.random.default_rng(seed), []
    for isa in isas:
        for tile in tiles:
            conv = random_conv(rng, isa.lanes)
            choices = winograd.options(conv, isa)
            # A tile that options() does not offer can be made all the same.
            choices = [o for o in choices
                       if o["tile"] == tile] or [{**o, "tile": tile} for o in choices]
            chosen = dict(choices[rng.integers(len(choices))])
            chosen.pop("taps", None)
            # Weights of either kind, transformed in one go or in several.
            taps = int(rng.integers(0, len(conv.input_lanes) + 2))
            cases.append((conv, isa, {**chosen, "taps": taps}))
    return cases


def test_native(tmp_path):
    cases = draw(1, [AVX512, AVX2, NEON64], (2, 4, 4, 6))
    check(cases, np.random.default_rng(2), tmp_path, layer_runner.Toolchain())


@pytest.mark.full
def test_sanitized(tmp_path):
    cases = draw(3, [AVX512, NEON32], (2, 4, 4))
    check(cases, np.random.default_rng(4), tmp_path, layer_runner.SANITIZED)


@pytest.mark.slow
@pytest.mark.parametrize("name, isa", layer_runner.OTHER_MACHINES)
def test_other_machines(tmp_path, name, isa):
    check(draw(5, [isa], (2, 4)), np.random.default_rng(6), tmp_path, getattr(layer_runner, name))


def test_refuses_what_it_cannot_do():
    def conv(**other):
        fields = {"weight": np.zeros((8, 8, 3, 3), np.float32), "bias": np.zeros(8, np.float32),
                  "input_shapes": ((1, 1, 9, 9, 8),), "input_lanes": plain_lanes(8, 8)}
        return Convolution(**{**fields, **other})

    assert winograd.options(conv(), AVX2)
    assert winograd.options(conv(strides=(1, 2)), AVX2) == []
    assert winograd.options(conv(dilation=(2, 2)), AVX2) == []
    assert winograd.options(conv(weight=np.zeros((8, 8, 3, 1), np.float32)), AVX2) == []
    assert winograd.options(conv(weight=np.zeros((8, 4, 3, 3), np.float32), groups=2), AVX2) == []


@pytest.mark.parametrize("tile", sorted(winograd_points.POINTS))
def test_matrices_are_the_correlation(tile):
    rng = np.random.default_rng(8)
    data, taps, inverse = winograd_points.matrices(winograd_points.POINTS[tile])
    d, g = rng.standard_normal(tile + 2), rng.standard_normal(3)
    y = inverse @ ((taps @ g) * (data @ d))
    assert np.allclose(y, np.correlate(d, g, "valid"), rtol=0, atol=1e-13)
