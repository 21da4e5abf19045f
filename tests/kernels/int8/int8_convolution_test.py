"""Quantized convolutions: every output byte against whole-number arithmetic."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import int8_reference
import numpy as np
import pytest

from layer_runner import (
    NATIVE,
    SANITIZED,
    WIDEST_FIRST,
    Toolchain,
    on_other_machines,
    run_layers,
)
from random_convolutions import random_conv
from reference import unblocked
from run_model_tools.kernels.convolutions import winograd as float_winograd
from run_model_tools.kernels.convolutions.convolution import Convolution, plain_lanes
from run_model_tools.kernels.convolutions.tiled_convolution import can_read
from run_model_tools.kernels.int8 import convolution, tiled_convolution, winograd
from run_model_tools.kernels.int8.quantized import Quantization, QuantizedConvolution
from run_model_tools.kernels.isa import (
    AVX2,
    AVX2_VNNI,
    AVX512,
    AVX512_AMX,
    AVX512_VNNI,
    Isa,
)

# The same kernels where there is no instruction for them.
NO_VNNI = Toolchain(("gcc", "-O2", "-march=x86-64-v3"))
WIDE_NO_VNNI = Toolchain(("gcc", "-O2", "-march=x86-64-v4"))


def random_quantization(rng: np.random.Generator) -> Quantization:
    return Quantization(float(rng.uniform(0.005, 0.05)),
                        int(rng.choice([0, 255, rng.integers(256)])))


def quantized_of(conv: Convolution, rng: np.random.Generator, to_float: bool = False,
                 ) -> QuantizedConvolution:
    """With an output scale that makes use of most bytes and of both ends."""
    count = conv.input_channels if conv.planar else len(conv.input_shapes) + conv.residual
    inputs = tuple(random_quantization(rng) for _ in range(count))
    if not conv.planar and rng.integers(2):
        # Channels with scales of their own.
        shapes = list(conv.input_shapes)
        shapes += [conv.output_shape(conv.input_shapes[0][4])] * conv.residual
        inputs = tuple(replace(q, channels=tuple(rng.uniform(0.3, 1, s[1] * s[4])))
                       for q, s in zip(inputs, shapes))
    typical = np.mean([q.scale for q in inputs]) * 80 * np.sqrt(conv.weight[0].size)
    output = Quantization(float(typical / 60), int(rng.integers(256)))
    scale = 1.0 if to_float else output.scale * 30
    clamp = {} if not math.isfinite(conv.high) else {"high": float(scale)}
    return QuantizedConvolution(replace(conv, **clamp), inputs, None if to_float else output)


def random_case(rng: np.random.Generator, isa: Isa, **fixed) -> Convolution:
    """A small convolution; `fixed` says what must not be left to chance."""
    groups, planar = fixed.get("groups", 1), fixed.get("planar", False)
    conv = random_conv(rng, isa.lanes, **{
        "kernel": tuple(int(k) for k in rng.choice([1, 1, 2, 3, 5], 2)), "dilation": (1, 1),
        "strides": tuple(int(s) for s in rng.integers(1, 3, 2)),
        "padding": tuple(int(p) for p in rng.integers(0, 3, 4)),
        "size": tuple(int(s) for s in rng.integers(7, 20, 2)),
        "outputs": groups * int(rng.integers(1, 3 * isa.lanes)), "scattered": False,
        "channels": [3] if planar else [groups * int(n) for n in rng.integers(
            1, isa.lanes + 5, 1 + fixed.get("scattered", False))], **fixed})
    return replace(conv, low=float(rng.choice([-math.inf, 0.0])), expression=None,
                   high=float(rng.choice([math.inf, 6.0])), residual=fixed.get("residual", False))


def tensors_of(quantized: QuantizedConvolution, isa: Isa,
               rng: np.random.Generator) -> list[np.ndarray]:
    """Bytes anywhere; pictures go past what their bytes can stand for."""
    result = []
    for shape, dtype in quantized.layer_inputs(isa.lanes):
        result.append(rng.integers(0, 256, shape).astype(np.uint8) if dtype == "uint8"
                      else (rng.standard_normal(shape) * 2).astype(np.float32))
    return result


def cases(isa: Isa, seed: int, few: bool = False):
    """(quantized convolution, layer, its inputs) of all sorts that there is a kernel for."""
    rng = np.random.default_rng(seed)
    sorts = [
        dict(kernel=(1, 1), strides=(1, 1), padding=(0, 0, 0, 0), residual=True),
        dict(kernel=(3, 3), strides=(1, 1), scattered=True, padding=(1, 0, 1, 2)),
        dict(planar=True, kernel=(7, 7), strides=(2, 2), padding=(3, 3, 3, 3), size=(23, 21)),
        dict(kernel=(3, 3), groups=2, scattered=True),
    ]
    if not few:
        sorts += [
            dict(kernel=(1, 1), strides=(1, 1), padding=(0, 0, 0, 0), scattered=True),
            dict(kernel=(1, 1), strides=(1, 1), padding=(0, 0, 0, 0), groups=3),
            dict(kernel=(1, 1), size=(1, 1), strides=(1, 1), padding=(0, 0, 0, 0), to_float=True),
            dict(kernel=(3, 3), strides=(1, 1), padding=(1, 1, 1, 1), residual=True),
            dict(kernel=(1, 1), strides=(2, 2), padding=(0, 0, 0, 0)),
            dict(kernel=(3, 3), dilation=(2, 3), size=(13, 15)),
            dict(kernel=(3, 3), size=(7, 7), padding=(1, 1, 1, 1), strides=(1, 1), outputs=70),
            dict(kernel=(1, 1), size=(7, 7), padding=(0, 0, 0, 0), strides=(1, 1), outputs=97),
            dict(kernel=(3, 3), size=(5, 2), padding=(1, 1, 1, 1), residual=True, strides=(1, 1)),
            dict(planar=True, channels=[1], kernel=(3, 3), size=(9, 5)),
            dict(planar=True, channels=[4], kernel=(3, 2), dilation=(1, 2), size=(12, 31)),
            dict(planar=True, channels=[2], kernel=(1, 1), padding=(0, 0, 0, 0), to_float=True),
        ] + [dict() for _ in range(3)] + [dict(to_float=True)]
    for sort in sorts:
        conv = random_case(rng, isa, **sort)
        if min(conv.output_size) < 1:
            continue
        quantized = quantized_of(conv, rng, sort.get("to_float", False))
        tensors = tensors_of(quantized, isa, rng)
        if can_read(conv, isa):
            yield quantized, tiled_convolution.make(quantized, isa), tensors
        elif not isa.amx:
            for parameters in convolution.options(quantized, isa)[:1]:
                yield quantized, convolution.make(quantized, isa, **parameters), tensors
            if float_winograd.can_do(conv) and isa.widens_bytes:
                layer = winograd.make(quantized, isa, int(rng.integers(1, 8)), *(
                    int(n) for n in rng.integers(1, 4, 4)))
                yield quantized, layer, tensors


def check(isa: Isa, folder, toolchain: Toolchain, seed: int, few: bool = False) -> None:
    wanted, layers = [], []
    for quantized, layer, tensors in cases(isa, seed, few):
        layers.append((layer, tensors))
        wanted.append((quantized, int8_reference.convolve(quantized, tensors)))
    for (quantized, expected), result in zip(wanted, run_layers(layers, folder, toolchain),
                                             strict=True):
        got = unblocked(result, quantized.convolution.output_channels)
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected, str(quantized.convolution.without_data()))


@pytest.mark.parametrize("isa", WIDEST_FIRST, ids=lambda isa: str(isa.lanes))
def test_equals_whole_number_arithmetic(isa, tmp_path):
    check(isa, tmp_path, NATIVE, seed=isa.lanes)


def test_tiles_of_bytes_compute_the_same(tmp_path):
    """By the CPU's tiles where it has them, else as where Linux refuses them."""
    check(AVX512_AMX, tmp_path, NATIVE, seed=8)


NEEDS_AVX512 = pytest.mark.skipif("avx512bw" not in Path("/proc/cpuinfo").read_text(),
                                  reason="this CPU has no AVX-512")


@pytest.mark.parametrize("isa, toolchain", [
    pytest.param(AVX512, WIDE_NO_VNNI, id="avx512", marks=NEEDS_AVX512),
    pytest.param(AVX512_VNNI, WIDE_NO_VNNI, id="words-of-four", marks=NEEDS_AVX512),
    pytest.param(AVX2, NO_VNNI, id="avx2"), pytest.param(AVX2_VNNI, NO_VNNI, id="avx2-vnni")])
def test_machines_without_vnni_compute_the_same(isa, toolchain, tmp_path):
    check(isa, tmp_path, toolchain, seed=5, few=isa.dot is not None)


@pytest.mark.full
@pytest.mark.parametrize("isa", [AVX512_VNNI, AVX512_AMX, AVX2],
                         ids=["words-of-four", "tiles", "words-of-two"])
def test_touches_no_memory_but_its_own(isa, tmp_path):
    check(isa, tmp_path, SANITIZED, seed=6, few=True)


@on_other_machines
def test_other_machines_compute_the_same(isa, toolchain, tmp_path):
    check(isa, tmp_path, toolchain, seed=7, few=True)


def largest(channels: int) -> QuantizedConvolution:
    """A 3x3 convolution for AVX2 whose weights are all as large as they can be, of either sign."""
    weight = np.ones((16, channels, 3, 3), np.float32)
    weight[8:] = -1
    conv = Convolution(weight, np.zeros(16, np.float32), ((1, -(-channels // 8), 12, 12, 8),),
                       plain_lanes(channels, 8))
    return QuantizedConvolution(conv, (Quantization(1.0, 0),), None)


def test_sums_reach_both_ends_of_what_bytes_can_give(tmp_path):
    """All weights and bytes at their largest, where instructions that saturate would fail, and
    Winograd's sums wrap."""
    quantized = largest(112)
    data = np.full(quantized.convolution.input_shapes[0], 255, np.uint8)
    layers = [kernel.make(quantized, isa, **kernel.options(quantized, isa)[0])
              for kernel, isa in [(convolution, AVX2), (convolution, AVX2_VNNI), (winograd, AVX2)]]
    for result in run_layers([(layer, [data]) for layer in layers], tmp_path, NO_VNNI):
        values = unblocked(result, 16)
        np.testing.assert_allclose(values[:8], 112 * 9 * 255, rtol=1e-6)
        np.testing.assert_allclose(values[8:], -112 * 9 * 255, rtol=1e-6)


def test_winograd_is_for_sums_that_32_bits_tell_apart():
    """Factors take 2^6 of them: bytes of 255 times weights of 127 reach 2^25 at 116 channels."""
    assert winograd.options(largest(112), AVX2)
    assert not winograd.options(largest(116), AVX2)
    assert not winograd.options(largest(112), AVX2_VNNI)


def test_refuses_sums_that_overflow():
    weight = np.ones((1, 70000, 1, 1), np.float32)
    conv = Convolution(weight, np.zeros(1, np.float32), ((1, 4375, 1, 1, 16),),
                       plain_lanes(70000, 16))
    with pytest.raises(ValueError, match="32 bits"):
        QuantizedConvolution(conv, (Quantization(1.0, 0),), None).check()


@pytest.mark.parametrize("groups, vectors", [(1, 2), (2, 2), (3, 1)])
def test_small_groups_get_tiles_of_one_vector(groups, vectors):
    """Of 60 channels in three groups, most pairs of vectors of 16 have channels of two groups or of
    three, of which each channel reads one; of 128 in two, none has."""
    rng = np.random.default_rng(groups)
    outputs = {1: 60, 2: 128, 3: 60}[groups]
    conv = random_case(rng, AVX512_VNNI, kernel=(1, 1), strides=(1, 1), padding=(0, 0, 0, 0),
                       size=(14, 14), groups=groups, channels=[96], outputs=outputs)
    chosen = convolution.options(quantized_of(conv, rng), AVX512_VNNI)[0]
    assert chosen["vectors"] == vectors
    assert math.prod(chosen["tile"]) * vectors <= 28
