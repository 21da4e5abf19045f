"""Weights that are rounded by their inputs' covariances cost less of a layer's results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reference import correlate, input_channels
from run_model_tools.kernels.convolutions.convolution import Convolution, Lanes, plain_lanes
from run_model_tools.kernels.int8 import weight_rounding
from run_model_tools.kernels.int8.quantized import Quantization, QuantizedConvolution
from run_model_tools.kernels.int8.weight_rounding import Moments, carried, factorised

LANES, SIZE = 8, (14, 12)


def pictures(random: np.random.Generator, tensors: int, count: int) -> list[list[np.ndarray]]:
    """Blocked tensors of two blocks whose channels vary together, above zero on the whole."""
    mixing = random.standard_normal((5, tensors * 2 * LANES))
    made = []
    for _ in range(count):
        sources = random.standard_normal((*SIZE, 5))
        sources = sources + np.roll(sources, 1, 0) + np.roll(sources, 1, 1)
        x = np.maximum(sources @ mixing + random.standard_normal((*SIZE, mixing.shape[1])) / 3, 0)
        x = np.moveaxis(x.reshape(*SIZE, tensors * 2, LANES), 2, 0).astype(np.float32)
        made.append([x[None, 2 * i:2 * i + 2] for i in range(tensors)])
    return made


def convolutions(random: np.random.Generator) -> dict[str, Convolution]:
    def conv(outputs: int, depth: int, kernel: int, tensors: int, lanes, **options) -> Convolution:
        weight = random.standard_normal((outputs, depth, kernel, kernel)).astype(np.float32)
        shape = (1, 2, *SIZE, LANES)
        return Convolution(weight, np.zeros(outputs, np.float32), (shape,) * tensors, lanes,
                           **options)

    split = (Lanes(1, 0, 2, 6), Lanes(0, 1, 0, 8), Lanes(1, 1, 4, 2))
    return {
        "two tensors": conv(20, 16, 3, 2, split, strides=(2, 1), padding=(1, 0, 1, 2)),
        "groups": conv(12, 8, 3, 1, plain_lanes(16, LANES), groups=2, dilation=(2, 2)),
        "depthwise": conv(16, 1, 3, 1, plain_lanes(16, LANES), groups=16, padding=(1,) * 4),
        "one pixel": conv(24, 16, 1, 1, plain_lanes(16, LANES))}


@pytest.mark.parametrize("name", ["two tensors", "groups", "depthwise", "one pixel"])
@pytest.mark.parametrize("columns", [1152, 36])
def test_errors_of_fresh_pictures_are_smaller(monkeypatch, name, columns):
    monkeypatch.setattr(weight_rounding, "_MOST_COLUMNS", columns)
    # Few steps, so that rounding costs more than the float32 of bias and scales.
    monkeypatch.setattr("run_model_tools.kernels.int8.quantized.LARGEST_WEIGHT", 15)
    random = np.random.default_rng(4)
    conv = convolutions(random)[name]
    seen = pictures(random, len(conv.input_shapes), 40)
    moments = Moments(conv, 30)
    for tensors in seen[:30]:
        moments.add(tensors)
    factors = tuple(np.linspace(0.5, 1, 2 * LANES))
    inputs = (Quantization(0.1, 3, factors),) * len(conv.input_shapes)
    errors = []
    for quantized in (QuantizedConvolution(conv, inputs, None),
                      QuantizedConvolution(conv, inputs, None, moments=moments)):
        assert quantized.weight.dtype == np.int8 and np.abs(quantized.weight).max() <= 15
        scales = np.array([q.scale for q in quantized.channel_inputs])
        weight = quantized.weight * quantized.weight_scales[:, None, None, None]
        weight = weight / scales.reshape(conv.groups, 1, -1, 1, 1).repeat(
            conv.output_channels // conv.groups, 1).reshape(conv.output_channels, -1, 1, 1)
        made = []
        for tensors in seen[30:]:
            x = input_channels(conv, tensors).astype(np.float64)
            made.append(correlate(conv, x, weight - conv.weight)
                        + quantized.bias[:, None, None])
        errors.append(np.stack(made))
    nearest, carried_on = (np.sqrt(np.mean(np.square(e))) for e in errors)
    # Fewer columns leave less to carry errors on to.
    assert carried_on < (0.6 if columns > 36 and name != "depthwise" else 0.9) * nearest
    # The bias takes off what the mean of the inputs costs; edges and chance are left.
    assert np.abs(errors[1].mean((0, 2, 3))).max() < 0.3 * np.abs(errors[0].mean((0, 2, 3))).max()


def test_what_is_not_known_is_rounded_to_the_nearest():
    random = np.random.default_rng(5)
    conv = convolutions(random)["one pixel"]
    weight = random.uniform(-127, 127, conv.weight.shape)
    few = Moments(replace(conv, weight=conv.weight), 1)
    few.rows = 5
    few.add(pictures(random, 1, 1)[0])
    np.testing.assert_array_equal(few.rounded(weight, np.ones(16), 127), np.rint(weight))
    assert factorised(np.zeros((16, 16))) is None
    # Inputs that know nothing of each other have nothing to carry on.
    alone = factorised(np.eye(16))
    np.testing.assert_array_equal(carried(weight[:, :, 0, 0], alone, 127),
                                  np.rint(weight[:, :, 0, 0].astype(np.float32)))


def test_what_is_known_of_the_inputs_serves_other_steps_too():
    random = np.random.default_rng(6)
    mixing = random.standard_normal((12, 12))
    covariance, steps = mixing @ mixing.T, random.uniform(0.8, 1.25, 12)
    here, there = factorised(covariance), factorised(covariance / np.outer(steps, steps))
    rows = random.uniform(-40, 40, (30, 12))
    errors = []
    for factor in (here.times(steps), there):
        lost = (rows - carried(rows, factor, 127)) / steps
        errors.append(np.einsum("ij,jk,ik->", lost, covariance, lost))
    nearest = (rows - np.rint(rows)) / steps
    assert errors[0] == pytest.approx(errors[1], rel=0.3)
    assert errors[0] < 0.7 * np.einsum("ij,jk,ik->", nearest, covariance, nearest)
