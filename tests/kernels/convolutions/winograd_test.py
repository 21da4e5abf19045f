"""The Winograd kernel against the convolution's definition, over a sweep of shapes."""

from __future__ import annotations

import math

import numpy as np
import pytest

import reference
from layer_runner import on_every_machine, run_cases
from random_convolutions import EPS, Case, absolute_sums, bound_after_epilogue, random_conv
from run_model_tools.kernels.convolutions import winograd, winograd_cost, winograd_points
from run_model_tools.kernels.convolutions.convolution import Convolution, plain_lanes
from run_model_tools.kernels.isa import AVX2, Isa

# Root mean square of the error relative to the sum of |w||x|.  winograd_error.md measures a fourth
# of this; sums of few channels, and pixels of an edge beside larger ones, average out less.
TYPICAL_ERROR = {2: 1e-7, 4: 3e-7, 6: 1.2e-6}


@pytest.fixture(autouse=True)
def offered_for_small_layers(monkeypatch):
    """Also those that the definition computes faster."""
    monkeypatch.setattr(winograd_cost, "_direct_cost", lambda *_: math.inf)


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


@on_every_machine
def test_equals_the_definition(tmp_path, machine):
    rng = machine.rng()
    cases = draw(rng, machine.isas, (2, 4, 4, 6)[:machine.count(4)])
    runs = run_cases(winograd, cases, rng, tmp_path, machine.toolchain)
    for (conv, isa, parameters), (tensors, output) in runs:
        what = (conv.without_data(), isa.name, parameters)
        assert np.isfinite(output).all(), what
        result = reference.unblocked(output, conv.output_channels).astype(np.float64)
        error = abs(result - reference.convolve(conv, tensors, isa.lanes))
        assert (error <= rounding_bound(conv, tensors, parameters["tile"])).all(), what
        if conv.expression:
            continue
        relative = error / absolute_sums(conv, tensors, isa.lanes)
        assert np.sqrt(np.mean(relative ** 2)) <= TYPICAL_ERROR[parameters["tile"]], what


def draw(rng: np.random.Generator, isas: tuple[Isa, ...], tiles: tuple[int, ...]) -> list[Case]:
    """A random layer for each instruction set and each of `tiles`, with any of its parameter
    sets."""
    cases = []
    for isa in isas:
        for tile in tiles:
            conv = random_conv(rng, isa.lanes, kernel=(3, 3), strides=(1, 1), dilation=(1, 1),
                               padding=tuple(int(p) for p in rng.integers(0, 2, 4)))
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
