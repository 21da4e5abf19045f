"""Convolutions and dense layers in half precision against their definition in float64."""

from __future__ import annotations

import dataclasses
import math
from types import ModuleType

import numpy as np
import pytest

import reference
from layer_runner import AARCH64_HALF, in_half_precision, run_cases, run_layers
from random_convolutions import LIPSCHITZ, absolute_sums, choose, random_conv
from run_model_tools.kernels.convolutions import (
    depthwise,
    direct,
    grouped,
    planar,
    pointwise,
    winograd,
)
from run_model_tools.kernels.convolutions.convolution import Convolution, plain_lanes
from run_model_tools.kernels.half.weights import RUN_PRODUCTS
from run_model_tools.kernels.isa import NEON64_HALF
from run_model_tools.kernels.products import dense
from run_model_tools.kernels.products.dense import Dense

UNIT = 2.0 ** -11
"""What rounding to float16 changes a number by, at most and relative to it."""

KINDS = {
    "pointwise": (pointwise, {"kernel": (1, 1), "strides": (1, 1), "padding": (0, 0, 0, 0)}),
    "direct": (direct, {}),
    "planar": (planar, {"planar": True, "channels": [3]}),
    "wide_planar": (planar, {"planar": True, "channels": [4], "kernel": (2, 23), "size": (9, 40)}),
    "grouped": (grouped, {"groups": 4, "channels": [24], "outputs": 28}),
    "depthwise": (depthwise, {"depthwise": True}),
    "winograd": (winograd, {"kernel": (3, 3), "strides": (1, 1), "dilation": (1, 1),
                            "size": (14, 11), "channels": [40, 23], "outputs": 40}),
}
# Root mean square of the error relative to that of sum |w||x|, twice what was seen.
TYPICAL_ERROR = {"winograd": 8e-4}


def used_channels(conv: Convolution, output: np.ndarray) -> np.ndarray:
    """What a layer made of a convolution, (channels, height, width)."""
    if not conv.depthwise:
        return reference.unblocked(output, conv.output_channels)
    blocks = [np.moveaxis(output[0, block, :, :, :piece.count], -1, 0)
              for block, piece in enumerate(conv.input_lanes)]
    return np.concatenate(blocks)


def blocked_residual(conv: Convolution, tensors: list[np.ndarray]) -> list[np.ndarray]:
    """The inputs with the residual's channels where the definition looks for them."""
    if not (conv.residual and conv.depthwise):
        return tensors
    channels = used_channels(conv, tensors[-1])
    return [*tensors[:-1], reference.blocked(channels, tensors[-1].shape[-1])]


@in_half_precision
@pytest.mark.parametrize("kind", KINDS)
def test_equals_the_definition(tmp_path, toolchain, kind):
    kernel, fixed = KINDS[kind]
    rng = np.random.default_rng(len(kind))
    convs = [random_conv(rng, NEON64_HALF.lanes, **fixed) for _ in range(6)]
    cases = choose(rng, kernel, [(conv, NEON64_HALF) for conv in convs
                                 if kernel.options(conv, NEON64_HALF)])
    assert len(cases) > 3
    for (conv, isa, parameters), (tensors, output) in run_cases(kernel, cases, rng, tmp_path,
                                                                toolchain):
        assert output.dtype == np.float16
        assert np.isfinite(output).all(), "lanes without a channel must be finite"
        tensors = blocked_residual(conv, tensors)
        want = reference.convolve(conv, tensors, isa.lanes)
        size = absolute_sums(conv, tensors, isa.lanes)
        error = abs(used_channels(conv, output).astype(np.float64) - want)
        what = (conv.without_data(), parameters)
        if kind in TYPICAL_ERROR:
            relative = math.sqrt(np.mean(error ** 2) / np.mean(size ** 2))
            assert relative <= LIPSCHITZ * TYPICAL_ERROR[kind], what
            continue
        # A rounding of every sum of a run, of the weights, of a picture, and where it is stored.
        terms = min(math.prod(conv.weight.shape[1:]) + 1, RUN_PRODUCTS)
        bound = LIPSCHITZ * (terms + 4) * UNIT * (size + UNIT)
        assert (error <= bound).all(), (*what, float((error / bound).max()))


@pytest.mark.parametrize(("kernel", "taps"), [(pointwise, 1), (direct, 3), (winograd, 3)])
def test_long_sums_round_no_more_than_short_ones(tmp_path, kernel: ModuleType, taps):
    # 2304 products of positive activations, as they are after a ReLU.
    rng = np.random.default_rng(8)
    channels = 2304 // taps ** 2
    conv = Convolution(rng.standard_normal((16, channels, taps, taps)).astype(np.float32),
                       np.zeros(16, np.float32), ((1, channels // 8, 12, 12, 8),),
                       plain_lanes(channels, 8), padding=(taps // 2,) * 4)
    layer = kernel.make(conv, NEON64_HALF, **kernel.options(conv, NEON64_HALF)[0])
    x = abs(rng.standard_normal(conv.input_shapes[0])).astype(np.float16)
    [output] = run_layers([(layer, [x])], tmp_path, AARCH64_HALF)
    want = reference.convolve(conv, [x], 8)
    error = reference.unblocked(output, 16).astype(np.float64) - want
    relative = math.sqrt(np.mean(error ** 2) / np.mean(want ** 2))
    assert relative < (0.006 if kernel is winograd else 0.0015)
    in_float16 = float16_sum(conv, x, 4, 5) - want[:, 4, 5]
    assert np.sqrt(np.mean(in_float16 ** 2)) > 3 * math.sqrt(np.mean(error ** 2)) or (
        kernel is winograd), "the sum in float16 alone is no worse: the test shows nothing"


def float16_sum(conv: Convolution, x: np.ndarray, row: int, column: int) -> np.ndarray:
    """A pixel of the convolution, summed up in float16 from the first to the last product."""
    pad, taps = conv.padding[0], conv.kernel[0]
    planes = np.pad(reference.unblocked(x, conv.input_channels), [(0, 0), (pad, pad), (pad, pad)])
    patch = planes[:, row:row + taps, column:column + taps].ravel()
    total = np.zeros(conv.output_channels, np.float16)
    for index, weight in enumerate(conv.weight.reshape(conv.output_channels, -1).T):
        total = (total.astype(np.float32) + weight.astype(np.float16).astype(np.float32)
                 * np.float32(patch[index])).astype(np.float16)
    return total.astype(np.float64)


def one_pixel(kernel: ModuleType, conv: Convolution, value: float, folder) -> np.ndarray:
    layer = kernel.make(conv, NEON64_HALF, **kernel.options(conv, NEON64_HALF)[0])
    inputs = [np.full(shape, value, dtype) for shape, dtype in layer.inputs]
    [output] = run_layers([(layer, inputs)], folder, AARCH64_HALF)
    return used_channels(conv, output)


@pytest.mark.parametrize(("high", "expected"), [(math.inf, math.nan), (6.0, 6.0)])
def test_what_is_beyond_float16_is_no_number_unless_it_is_bounded(tmp_path, high, expected):
    # Sums of 120000 of inputs that float16 holds, one run and several.
    for channels in (8, 200):
        weight = np.full((8, channels, 1, 1), 16 / channels, np.float32)
        conv = Convolution(weight, np.zeros(8, np.float32), ((1, channels // 8, 2, 2, 8),),
                           plain_lanes(channels, 8), high=high)
        output = one_pixel(pointwise, conv, 7500.0, tmp_path)
        np.testing.assert_array_equal(output, np.full((8, 2, 2), expected))


def test_large_runs_whose_sum_is_small_are_right(tmp_path):
    # The first products come to a million, and the next ones take it back.
    weight = np.concatenate([np.full((8, 32, 1, 1), 1.0), np.full((8, 32, 1, 1), -1.0)], 1)
    conv = Convolution(weight.astype(np.float32), np.zeros(8, np.float32), ((1, 8, 1, 1, 8),),
                       plain_lanes(64, 8))
    output = one_pixel(pointwise, conv, 32768.0, tmp_path)
    np.testing.assert_array_equal(output, np.zeros((8, 1, 1)))


def test_pictures_beyond_float16_are_no_numbers(tmp_path):
    conv = Convolution(np.ones((8, 1, 1, 1), np.float32), np.zeros(8, np.float32), ((1, 1, 8, 8),),
                       (), low=0.0, high=6.0)
    assert np.isnan(one_pixel(planar, conv, 1e5, tmp_path)).all()


def test_depthwise_sums_beyond_float16(tmp_path):
    conv = Convolution(np.full((8, 1, 3, 3), 3.0, np.float32), np.ones(8, np.float32),
                       ((1, 1, 5, 5, 8),), plain_lanes(8, 8), groups=8, low=0.0)
    assert np.isnan(one_pixel(depthwise, conv, 30000.0, tmp_path)).all()
    bounded = dataclasses.replace(conv, high=6.0)
    np.testing.assert_array_equal(one_pixel(depthwise, bounded, 30000.0, tmp_path),
                                  np.full((8, 3, 3), 6.0))


def test_winograd_does_not_bound_what_it_cannot_compute(tmp_path):
    conv = Convolution(np.ones((8, 8, 3, 3), np.float32), np.zeros(8, np.float32),
                       ((1, 1, 28, 28, 8),), plain_lanes(8, 8), padding=(1, 1, 1, 1), low=0.0,
                       high=6.0)
    layer = winograd.make(conv, NEON64_HALF, tile=4, group=8, splits=1, pixels=8, vectors=1)
    x = np.full(conv.input_shapes[0], 60000.0, np.float16)
    x[..., 14:, :] *= -1
    [output] = run_layers([(layer, [x])], tmp_path, AARCH64_HALF)
    want = reference.convolve(conv, [x], 8)
    output = reference.unblocked(output, 8)
    assert np.isnan(output).any()
    np.testing.assert_array_equal(output[~np.isnan(output)], want[~np.isnan(output)])


def test_options_leave_out_what_is_no_short_sum():
    shape = ((1, 1, 40, 40, 8),)
    many = Convolution(np.ones((8, 1, 9, 9), np.float32), np.zeros(8, np.float32), shape,
                       plain_lanes(8, 8), groups=8)
    assert depthwise.options(many, NEON64_HALF) == []
    huge = dataclasses.replace(many, weight=np.full((8, 1, 3, 3), 1e5, np.float32))
    assert depthwise.options(huge, NEON64_HALF) == []
    wide = Convolution(np.ones((8, 1, 1, 65), np.float32), np.zeros(8, np.float32),
                       ((1, 1, 1, 400),), ())
    assert planar.options(wide, NEON64_HALF) == []


@in_half_precision
def test_dense_layers_keep_float32_sums(tmp_path, toolchain):
    rng = np.random.default_rng(5)
    layers = [Dense(rng.standard_normal((outputs, inputs)).astype(np.float32),
                    rng.standard_normal(outputs).astype(np.float32), low=0.0)
              for outputs, inputs in ((10, 300), (37, 64), (8, 7))]
    cases = choose(rng, dense, [(layer, NEON64_HALF) for layer in layers])
    for (layer, _, _), ((x,), output) in run_cases(dense, cases, rng, tmp_path, toolchain):
        assert output.dtype == x.dtype == np.float32
        weight = layer.weight.astype(np.float16).astype(np.float64)
        want = np.maximum(weight @ x[0].astype(np.float64) + layer.bias, 0)
        size = abs(weight) @ abs(x[0]) + abs(layer.bias)
        assert (abs(output[0] - want) <= (weight.shape[1] + 3) * 2.0 ** -24 * size).all()
