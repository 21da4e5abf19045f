"""Quantized depthwise convolutions and fully connected layers: every byte against whole numbers."""

from __future__ import annotations

import math

import int8_reference
import numpy as np
import pytest
from int8_convolution_test import (
    NEEDS_AVX512,
    NO_VNNI,
    WIDE_NO_VNNI,
    quantized_of,
    tensors_of,
)

from layer_runner import (
    NATIVE,
    SANITIZED,
    WIDEST,
    WIDEST_FIRST,
    Toolchain,
    on_other_machines,
    run_layers,
)
from reference import unblocked
from run_model_tools.kernels.convolutions.convolution import Convolution, Lanes
from run_model_tools.kernels.int8 import convolution
from run_model_tools.kernels.int8 import depthwise as int8_depthwise
from run_model_tools.kernels.int8.quantized import Quantization, QuantizedConvolution
from run_model_tools.kernels.isa import (
    AVX2,
    AVX512,
    AVX512_VNNI,
    Isa,
)

SHAPES = [dict(taps=(3, 3), strides=(1, 1), padding=(1, 1, 1, 1), size=(14, 19)),
          dict(taps=(3, 3), strides=(2, 2), padding=(1, 1, 1, 1), size=(15, 16)),
          dict(taps=(5, 5), strides=(1, 1), padding=(2, 2, 2, 2), size=(7, 7)),
          dict(taps=(5, 5), strides=(2, 2), padding=(1, 2, 2, 1), size=(9, 13)),
          dict(taps=(3, 3), strides=(1, 1), padding=(2, 3, 1, 3), dilation=(2, 3), size=(9, 11)),
          dict(taps=(2, 4), strides=(1, 3), padding=(0, 0, 1, 0), size=(8, 12)),
          dict(taps=(3, 3), strides=(1, 1), padding=(1, 1, 1, 1), size=(1, 2)),
          dict(taps=(1, 1), strides=(1, 1), padding=(0, 6, 0, 6), size=(3, 5)),
          dict(taps=(1, 7), strides=(1, 1), padding=(0, 3, 0, 3), size=(6, 9))]


def depthwise(rng: np.random.Generator, isa: Isa, shape: dict) -> QuantizedConvolution:
    lanes = isa.lanes
    blocks = [int(b) for b in rng.integers(1, 3, 2)]
    pieces = [Lanes(t, b, 0, lanes) for t, count in enumerate(blocks) for b in range(count)]
    pieces = [pieces[i] for i in rng.permutation(len(pieces))]
    pieces[-1] = Lanes(pieces[-1].tensor, pieces[-1].block, 0, int(rng.integers(1, lanes + 1)))
    channels = sum(p.count for p in pieces)
    conv = Convolution(
        rng.standard_normal((channels, 1, *shape["taps"])).astype(np.float32),
        rng.standard_normal(channels).astype(np.float32),
        tuple((1, count, *shape["size"], lanes) for count in blocks), tuple(pieces),
        shape["strides"], shape["padding"], shape.get("dilation", (1, 1)), channels,
        low=float(rng.choice([-math.inf, 0.0])), high=float(rng.choice([math.inf, 6.0])),
        residual=bool(rng.integers(2)))
    return quantized_of(conv, rng)


def vector(rng: np.random.Generator) -> QuantizedConvolution:
    inputs, outputs = (int(n) for n in rng.integers(1, 90, 2))
    conv = Convolution(rng.standard_normal((outputs, inputs, 1, 1)).astype(np.float32),
                       rng.standard_normal(outputs).astype(np.float32), ((1, inputs, 1, 1),), ())
    return QuantizedConvolution(conv, (Quantization(0.02, int(rng.integers(256))),) * inputs, None)


def check(isa: Isa, folder, toolchain: Toolchain, few: bool = False) -> None:
    rng = np.random.default_rng(isa.lanes + few)
    cases = [(depthwise(rng, isa, shape), int8_depthwise) for shape in SHAPES[:4 if few else None]]
    cases += [(vector(rng), convolution) for _ in range(2)]
    layers, wanted = [], []
    for quantized, kernel in cases:
        tensors = tensors_of(quantized, isa, rng)
        parameters = kernel.options(quantized, isa)[0]
        layers.append((kernel.make(quantized, isa, **parameters), tensors))
        wanted.append(int8_reference.convolve(quantized, tensors))
    results = run_layers(layers, folder, toolchain)
    for (quantized, _), expected, result in zip(cases, wanted, results, strict=True):
        got = (result.reshape(-1, 1, 1) if result.ndim == 2
               else unblocked(result, quantized.convolution.output_channels))
        np.testing.assert_array_equal(got, expected, str(quantized.convolution.without_data()))


@pytest.mark.parametrize("isa", WIDEST_FIRST, ids=lambda isa: str(isa.lanes))
def test_equals_whole_number_arithmetic(isa, tmp_path):
    check(isa, tmp_path, NATIVE)


@pytest.mark.full
def test_touches_no_memory_but_its_own(tmp_path):
    check(WIDEST, tmp_path, SANITIZED, few=True)


@pytest.mark.parametrize("isa, toolchain", [
    pytest.param(AVX512, WIDE_NO_VNNI, id="avx512", marks=NEEDS_AVX512),
    pytest.param(AVX512_VNNI, WIDE_NO_VNNI, id="words-of-four", marks=NEEDS_AVX512),
    pytest.param(AVX2, NO_VNNI, id="avx2")])
def test_machines_without_vnni_compute_the_same(isa, toolchain, tmp_path):
    check(isa, tmp_path, toolchain)


@on_other_machines
def test_other_machines_compute_the_same(isa, toolchain, tmp_path):
    check(isa, tmp_path, toolchain, few=True)
