"""Quantized graphs on layers of bytes: what the graph says, number by number."""

from __future__ import annotations

import numpy as np
import pytest
from int8_reference import fused
from quantized_networks import QUANTIZED

from layer_runner import AARCH64_DOT, NATIVE, WIDEST, run_layers
from networks_test import BEST_FIRST, compile_networks, run_networks
from reference import correlate
from run_model_tools.kernels.convolutions.convolution import Convolution, plain_lanes
from run_model_tools.kernels.int8 import convolution
from run_model_tools.kernels.int8.exact import (
    ExactConvolution,
    byte_table,
    make_map,
    make_sum,
)
from run_model_tools.kernels.int8.grid import Grid, weight_steps
from run_model_tools.kernels.int8.layers import make_cast
from run_model_tools.kernels.isa import AVX2, NEON64_DOT


def test_steps_of_weights_are_found():
    random = np.random.default_rng(1)
    whole = random.integers(-128, 128, (9, 40, 3, 3)).astype(np.int64)
    whole[0] = 0
    whole[1] *= 2
    whole[1] = whole[1].clip(-100, 100)
    whole[2] = random.integers(0, 2, whole[2].shape)
    scales = random.uniform(1e-4, 1, 9).astype(np.float32)
    weight = whole.astype(np.float32) * scales[:, None, None, None]
    steps = weight_steps(weight)
    assert steps is not None
    products = np.rint(weight / steps[:, None, None, None])
    np.testing.assert_allclose(products * steps[:, None, None, None], weight, rtol=1e-6)
    assert np.abs(products).max() <= 128
    weight[5, 0, 0, 0] = scales[5] * np.float32(17.3)
    assert weight_steps(weight) is None


def exact_case(random: np.random.Generator, lanes: int, dtype: str, kernel: int,
               ) -> tuple[ExactConvolution, np.ndarray, np.ndarray]:
    """A convolution, its input as the graph's whole numbers and as the kernels' bytes."""
    channels, outputs, size = lanes + 3, 2 * lanes + 1, (7, 6)
    grid = Grid(float(np.float32(0.03)), 3 if dtype == "int8" else 131, dtype)
    # Scales of powers of two make sums that lie between two bytes.
    output = Grid(0.25, -128 if dtype == "int8" else 7, dtype)
    whole = random.integers(-128, 128, (outputs, channels, kernel, kernel))
    steps = np.float32(2.0) ** random.integers(-8, -5, outputs) / np.float32(grid.scale)
    bias = (random.integers(-3000, 3000, outputs) * steps * np.float32(grid.scale))
    conv = Convolution(
        (whole * steps[:, None, None, None]).astype(np.float32), bias.astype(np.float32),
        ((1, 2, *size, lanes),), plain_lanes(channels, lanes), padding=(kernel // 2,) * 4, low=0.0)
    found = weight_steps(conv.weight)
    assert found is not None
    exact = ExactConvolution(conv, (grid.stored,), output.stored, found)
    low, high = grid.limits
    numbers = random.integers(low, high + 1, (channels, *size))
    stored = np.full((2 * lanes, *size), 77, np.uint8)
    stored[:channels] = numbers + grid.offset
    blocked = np.moveaxis(stored.reshape(2, lanes, *size), 1, 3)[None]
    sums = correlate(conv, (numbers - grid.zero_point).astype(np.float64), whole.astype(float))
    sums = sums + np.rint(bias / (steps * np.float32(grid.scale)))[:, None, None]
    scale = (steps.astype(np.float64) * grid.scale / output.scale).astype(np.float32)
    # QLinearConv: the sum in float32 times its scale, to even, and then the zero point.
    values = np.rint(sums.astype(np.float32) * scale[:, None, None])
    low, high = output.limits
    expected = (values.clip(0) + output.zero_point).clip(low, high) + output.offset
    return exact, np.ascontiguousarray(blocked), expected


@pytest.mark.parametrize("isa, toolchain", [(AVX2, NATIVE), (NEON64_DOT, AARCH64_DOT)])
def test_convolutions_give_the_graphs_bytes(tmp_path, isa, toolchain):
    random = np.random.default_rng(2)
    cases = [exact_case(random, isa.lanes, dtype, kernel)
             for dtype in ("int8", "uint8") for kernel in (1, 3)]
    layers = [convolution.make(exact, isa, **convolution.options(exact, isa)[0])
              for exact, _, _ in cases]
    results = run_layers([(layer, [x]) for layer, (_, x, _) in zip(layers, cases)], tmp_path,
                         toolchain)
    for (exact, _, expected), got in zip(cases, results):
        channels = np.moveaxis(got[0], 3, 1).reshape(-1, *expected.shape[1:])
        np.testing.assert_array_equal(channels[:len(expected)], expected)
        assert len(np.unique(expected)) > 20 and exact.bounds[0] == 0


@pytest.mark.parametrize("isa", sorted({AVX2, WIDEST}, key=lambda one: one.lanes))
def test_sums_maps_and_casts_give_the_graphs_bytes(tmp_path, isa):
    random = np.random.default_rng(3)
    shape = (1, 2, 5, 7, isa.lanes)
    a, b = (random.integers(0, 256, shape).astype(np.uint8) for _ in range(2))
    first, second = Grid(0.02, -7, "int8"), Grid(0.03, 4, "int8")
    output = Grid(0.0371, 9, "int8")
    relu = byte_table(output, np.maximum(first.numbers, 0))
    odd = byte_table(output, np.sin(first.numbers))
    numbers = (random.standard_normal(shape) * 2).astype(np.float32)
    numbers[0, 0, 0] = np.float32(0.02) * (np.arange(7)[:, None] + np.float32(0.5))
    layers = [(make_sum(shape, (first, second), output, 0.0, isa), [a, b]),
              (make_map(shape, first, output, relu, isa), [a]),
              (make_map(shape, first, output, odd, isa), [a]),
              (make_cast(shape, first.stored, False, isa, True), [numbers]),
              (make_cast(shape, first.stored, True, isa, True), [a])]
    assert ["TABLE" in layer.defines for layer, _ in layers[1:3]] == [False, True]
    total, mapped, looked_up, whole, plain = run_layers(layers, tmp_path)

    ratios = [np.float32(g.scale / output.scale) for g in (first, second)]
    offset = np.float32(output.zero_point - float(ratios[0]) * first.zero_point
                        - float(ratios[1]) * second.zero_point)
    inner = fused(b.astype(np.float32) - 128, ratios[1], np.full(shape, offset, np.float32))
    value = fused(a.astype(np.float32) - 128, ratios[0], inner)
    np.testing.assert_array_equal(total, np.rint(value.clip(output.zero_point, 127)) + 128)
    np.testing.assert_array_equal(mapped, relu[a])
    np.testing.assert_array_equal(looked_up, odd[a])
    steps = np.rint(numbers / np.float32(0.02))
    np.testing.assert_array_equal(whole, (steps - 7).clip(-128, 127) + 128)
    np.testing.assert_array_equal(
        plain, (a.astype(np.float32) - 121) * np.float32(0.02))


# Of a network's rounded outputs, how many may be one step off: where ONNX Runtime computes the
# middle of a sum, an average or a clamp in another order, and layers pass that on.
_OFF = 0.2


@pytest.mark.parametrize("target", BEST_FIRST)
def test_networks_give_what_onnx_runtime_gives(tmp_path, target):
    # Each on one target: which instructions multiply makes no difference to what is planned.
    chosen = ("signed", "joined") if target == "x86-64-v3" else ("unsigned", "one_scale")
    models = {name: QUANTIZED[name]() for name in chosen}
    answers = compile_networks(models, tmp_path, f"llvm -mcpu={target}")
    assert not {name: a["error"] for name, a in answers.items() if "error" in a}
    for name, answer in answers.items():
        assert answer["kernels"]["int8_layers"] >= 6, name
        # A picture and a vector of averages, which lie in no blocks, are rounded by programs.
        assert not answer["kernels"]["left_to_tvm"], name
    steps = {"joined": [None, 0.02, None]}
    for name, (got, expected) in run_networks(models, tmp_path).items():
        for i, (a, b) in enumerate(zip(got, expected)):
            step = steps.get(name, [0.03, 0.023, 0.023, 0.03, 0.01])[i]
            if step is None:
                np.testing.assert_allclose(a, b, rtol=0, atol=2e-5 * np.abs(b).max())
                continue
            apart = np.abs(a - b) / step
            assert apart.max() < 1.01 and (apart > 0.5).mean() < _OFF, name
            assert len(np.unique(b)) > 8


@pytest.mark.parametrize("kernels", ["ours", pytest.param("stock", marks=pytest.mark.slow)])
def test_constants_scales_by_channel_and_bytes_that_are_moved(tmp_path, kernels):
    models = {name: QUANTIZED[name]() for name in ("constants", "moved_bytes", "five_axes")}
    answers = compile_networks(models, tmp_path, "llvm -mcpu=x86-64-v3", kernels=kernels)
    for answer in answers.values():
        assert "error" not in answer and answer["kernels"]["method"] == kernels
    results = run_networks(models, tmp_path)
    (halves, got), (expected, wanted) = results["constants"]
    np.testing.assert_array_equal(halves, expected)
    off = np.abs(got - wanted) > 1e-5
    assert off.mean() < 0.01 and np.abs(got - wanted).max() < 0.06
    for a, b in zip(*results["moved_bytes"]):
        assert len(np.unique(b)) > 20
        # Two roundings are one step apart where the sum lies between them.
        assert (np.abs(a - b) > 1e-5).mean() < 0.01 and np.abs(a - b).max() < 0.051
    (large,), (wanted,) = results["five_axes"]
    assert (np.abs(large - wanted) > 1e-5).mean() < 0.01 and np.abs(large - wanted).max() < 0.021
    if kernels == "ours":
        assert answers["moved_bytes"]["kernels"]["int8_layers"] >= 3  # pooling too
