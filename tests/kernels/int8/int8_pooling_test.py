"""Pooling of bytes and casts, against whole-number arithmetic and the same float32 roundings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from int8_convolution_test import random_quantization
from int8_reference import fused

from layer_runner import AARCH64, NATIVE, SANITIZED, WIDEST, WIDEST_FIRST, Toolchain, run_layers
from run_model_tools.kernels.convolutions.convolution import Lanes
from run_model_tools.kernels.int8 import pooling
from run_model_tools.kernels.int8.layers import make_cast
from run_model_tools.kernels.int8.pooling import QuantizedPooling
from run_model_tools.kernels.isa import AVX2, NEON64, Isa
from run_model_tools.kernels.pictures.pooling import Pooling


def expected(quantized: QuantizedPooling, tensors: list[np.ndarray]) -> np.ndarray:
    """(blocks of the output, height, width, lanes), or (channels,) of a global average."""
    pool = quantized.pooling
    scales, biases = quantized.rescaling
    if pool.planar:
        return np.concatenate([
            fused(tensors[p.tensor][0, p.block, :, :, p.first:p.first + p.count]
                  .astype(np.int64).sum((0, 1)).astype(np.float32),
                  scale[p.first:p.first + p.count], bias[p.first:p.first + p.count])
            for p, scale, bias in zip(pool.input_lanes, scales, biases)])
    height, width = pool.output_size
    result = []
    for piece, scale, bias in zip(pool.input_lanes, scales, biases):
        plane = tensors[piece.tensor][0, piece.block].astype(np.int64)
        out = np.empty((height, width, plane.shape[-1]), np.uint8)
        for y in range(height):
            for x in range(width):
                y0, x0 = (o * s - p for o, s, p in zip((y, x), pool.strides, pool.padding))
                part = plane[max(y0, 0):y0 + pool.window[0], max(x0, 0):x0 + pool.window[1]]
                count = part.shape[0] * part.shape[1]
                if pool.kind == "max":
                    value = part.max((0, 1)).astype(np.float32)
                else:
                    total = part.sum((0, 1))
                    if pool.count_padding:
                        full = pool.window[0] * pool.window[1]
                        total = total + (full - count) * quantized.inputs[piece.tensor].zero_point
                        count = full
                    value = total.astype(np.float32) * (np.float32(1) / np.float32(count))
                out[y, x] = np.rint(np.clip(fused(value, scale, bias), 0, 255))
        result.append(out)
    return np.stack(result)


def cases(isa: Isa, rng: np.random.Generator) -> list[QuantizedPooling]:
    lanes, result = isa.lanes, []
    for kind, window, stride, padding, size, extra in (
            ("max", (3, 3), (2, 2), (1, 1, 1, 1), (13, 14), {}),
            ("max", (3, 3), (2, 2), (0, 0, 1, 1), (14, 14), {}),
            ("max", (2, 3), (2, 1), (0, 1, 0, 0), (9, 7), {}),
            ("average", (3, 3), (2, 2), (1, 1, 1, 1), (9, 11), {}),
            ("average", (3, 3), (1, 1), (1, 1, 1, 1), (5, 6), {"count_padding": True}),
            ("average", (7, 5), (1, 1), (0, 0, 0, 0), (7, 5), {"planar": True})):
        pieces = ((Lanes(1, 1, 2 if "planar" in extra else 0, lanes - 2), Lanes(0, 0, 0, 3))
                  if extra.get("planar") else (Lanes(1, 1, 0, lanes), Lanes(0, 0, 0, 3)))
        pool = Pooling(kind=kind, window=window, strides=stride, padding=padding, **extra,
                       input_shapes=((1, 1, *size, lanes), (1, 2, *size, lanes)),
                       input_lanes=pieces)
        same = random_quantization(rng)
        differing = (same, random_quantization(rng))
        for inputs in ((same, same), differing):
            output = None if pool.planar else same
            result.append(QuantizedPooling(pool, inputs, output))
    return result


def check(isa: Isa, folder, toolchain: Toolchain) -> None:
    rng = np.random.default_rng(isa.lanes)
    pools = cases(isa, rng)
    layers = []
    for quantized in pools:
        parameters = pooling.options(quantized, isa)[0]
        data = [rng.integers(0, 256, shape).astype(np.uint8)
                for shape in quantized.pooling.input_shapes]
        layers.append((pooling.make(quantized, isa, **parameters), data))
    for quantized, (_, data), result in zip(pools, layers, run_layers(layers, folder, toolchain),
                                            strict=True):
        want = expected(quantized, data)
        got = result.reshape(-1) if quantized.pooling.planar else result[0]
        np.testing.assert_array_equal(got, want, str(quantized.pooling))


@pytest.mark.parametrize("isa", WIDEST_FIRST, ids=lambda isa: str(isa.lanes))
def test_equals_whole_number_arithmetic(isa, tmp_path):
    check(isa, tmp_path, NATIVE)


@pytest.mark.full
def test_touches_no_memory_but_its_own(tmp_path):
    check(WIDEST, tmp_path, SANITIZED)


@pytest.mark.slow
def test_aarch64_computes_the_same(tmp_path):
    check(NEON64, tmp_path, AARCH64)


def test_casts_round_to_the_nearest_byte_and_back(tmp_path):
    rng = np.random.default_rng(1)
    shape = (1, 3, 37, 41, 8)
    quantization = replace(random_quantization(rng), channels=tuple(rng.uniform(0.1, 1, 24)))
    numbers = (rng.standard_normal(shape) * 4).astype(np.float32)
    data = rng.integers(0, 256, shape).astype(np.uint8)
    to_bytes, to_float = run_layers(
        [(make_cast(shape, quantization, False, AVX2), [numbers]),
         (make_cast(shape, quantization, True, AVX2), [data])], tmp_path)
    factors = (1 / quantization.scales(range(24))).astype(np.float32).reshape(1, 3, 1, 1, 8)
    steps = fused(numbers, factors, np.float32(quantization.zero_point))
    np.testing.assert_array_equal(to_bytes, np.rint(np.clip(steps, 0, 255)).astype(np.uint8))
    scales = quantization.scales(range(24)).reshape(1, 3, 1, 1, 8)
    np.testing.assert_allclose(to_float, (data - float(quantization.zero_point)) * scales, rtol=0,
                               atol=300 * scales.max() * 2**-23)
