"""Layers whose products are of bfloat16, against their definition in float64 on rounded numbers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from matmul_test import by_tiles, draw

import reference
from layer_runner import NATIVE, SANITIZED, run_cases, run_layers
from program_reference import evaluate, numbers_of
from random_convolutions import EPS, error_bound, random_conv
from run_model_tools.kernels import registry
from run_model_tools.kernels.convolutions import bfloat16_convolution
from run_model_tools.kernels.convolutions.convolution import Convolution, Lanes, plain_lanes
from run_model_tools.kernels.convolutions.tiled_convolution import can_read
from run_model_tools.kernels.isa import AVX512_AMX, AVX512_BFLOAT16
from run_model_tools.kernels.products import dense, matmul
from run_model_tools.kernels.products.dense import Dense
from run_model_tools.kernels.tiles import bfloat16_bits
from run_model_tools.kernels.views import View

SORTS = (
    {"kernel": (1, 1), "strides": (1, 1), "padding": (0, 0, 0, 0)},
    {"kernel": (1, 1), "strides": (1, 1), "padding": (0, 0, 0, 0), "scattered": True},
    {"kernel": (1, 1), "strides": (2, 2), "padding": (0, 0, 0, 0), "size": (9, 40)},
    {"kernel": (3, 3), "strides": (1, 1), "padding": (1, 1, 1, 1), "outputs": 70},
    {"kernel": (3, 3), "strides": (2, 1), "channels": [40, 23]},
    {"kernel": (3, 3), "dilation": (2, 3), "size": (13, 15)},
    {"kernel": (7, 7), "strides": (2, 2), "padding": (3, 3, 3, 3), "size": (23, 21),
     "dilation": (1, 1), "planar": True, "channels": [3]},
    {"kernel": (3, 9), "dilation": (1, 1), "planar": True, "channels": [1], "size": (9, 40)},
    {},
)

BY_TILES = pytest.mark.parametrize("toolchain", [
    pytest.param(NATIVE, id="native"),
    pytest.param(SANITIZED, id="sanitized", marks=pytest.mark.full)])
"""By the CPU's tiles where it has them and Clang is there, else as where Linux refuses them."""


def rounded(values: np.ndarray) -> np.ndarray:
    """float32 numbers to the nearest that have 8 significant bits, ties to even."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.rint(mantissa * 256) / 256, exponent).astype(np.float32)


def test_numbers_are_rounded_to_the_nearest_and_nan_stays():
    values = np.float32([1, -2.5, 1 + 2 ** -8, 1 + 3 * 2 ** -8, 1 + 2 ** -8 + 2 ** -20, 3e38])
    values = np.concatenate([values, np.random.default_rng(1).standard_normal(99, np.float32)])
    back = (bfloat16_bits(values).astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_array_equal(back, rounded(values))
    odd = np.uint32([0x7fffffff, 0xff800001, 0x7f800000]).view(np.float32)
    back = (bfloat16_bits(odd).astype(np.uint32) << 16).view(np.float32)
    assert np.isnan(back[:2]).all() and back[2] == np.inf


@BY_TILES
def test_convolutions_equal_the_definition(tmp_path, toolchain):
    rng = np.random.default_rng(3)
    convs = [conv for conv in (random_conv(rng, 16, **sort) for sort in SORTS)
             if can_read(conv, AVX512_BFLOAT16)]
    assert len(convs) >= len(SORTS) - 2
    runs = run_cases(bfloat16_convolution, [(conv, AVX512_BFLOAT16, {}) for conv in convs], rng,
                     tmp_path, toolchain)
    for (conv, isa, _), (tensors, output) in runs:
        inputs = len(conv.input_shapes)
        read = [*map(rounded, tensors[:inputs]), *tensors[inputs:]]
        definition = dataclasses.replace(conv, weight=rounded(conv.weight))
        want = reference.convolve(definition, read, isa.lanes)
        error = abs(reference.unblocked(output, conv.output_channels) - want)
        # Instructions round products before they are added, and each sum.
        bound = 2 * error_bound(definition, read, isa.lanes)
        assert (error <= bound).all(), (conv.without_data(), float((error / bound).max()))
        assert np.isfinite(output).all(), "lanes without a channel must be finite"


def test_what_a_convolution_does_not_read_does_not_matter(tmp_path):
    """Lanes of other channels beside its own, and other pixels: infinite, or no numbers."""
    rng = np.random.default_rng(5)
    lanes = tuple(Lanes(0, block, 3, 8) for block in range(5))
    weight = rng.standard_normal((20, 40, 1, 1)).astype(np.float32)
    conv = Convolution(weight, np.zeros(20, np.float32), ((1, 5, 6, 9, 16),), lanes)
    data = rng.standard_normal((1, 5, 6, 9, 16)).astype(np.float32)
    layer = bfloat16_convolution.make(conv, AVX512_BFLOAT16)
    spoilt = data.copy()
    spoilt[..., :3], spoilt[..., 11:] = np.nan, np.inf
    spoilt[0, :, 2, 4] = np.nan
    plain, odd = (reference.unblocked(output, 20) for output in run_layers(
        [(layer, [data]), (layer, [spoilt])], tmp_path))
    assert np.isnan(odd[:, 2, 4]).all()
    odd[:, 2, 4] = plain[:, 2, 4]
    np.testing.assert_array_equal(odd, plain)


@BY_TILES
def test_products_equal_the_definition(tmp_path, toolchain):
    rng = np.random.default_rng(7)
    cases = [(product, AVX512_BFLOAT16, by_tiles(rng, product)[2])
             for product, *_ in draw(rng, (AVX512_BFLOAT16,), 14)]
    arrays = [{t: rng.standard_normal(t.shape).astype(np.float32)
               for t in matmul.inputs_of(product)} for product, *_ in cases]
    layers = [matmul.make(product, isa, **parameters) for product, isa, parameters in cases]
    assert {"RIGHT_TRANSPOSED", "RIGHT_ROWS", "WEIGHTS"} <= {
        name for layer in layers for name in layer.defines}
    outputs = run_layers([(layer, list(a.values())) for layer, a in zip(layers, arrays)], tmp_path,
                         toolchain)
    for (product, _, parameters), known, output in zip(cases, arrays, outputs):
        left = rounded(numbers_of(product.left, known)).astype(np.float64)
        # Weights are scaled before they are rounded, activations after.
        if isinstance(product.right, View):
            right, scale = rounded(numbers_of(product.right, known)), product.scale
        else:
            right, scale = rounded(product.right * np.float32(product.scale))[None], 1.0
        right = right.astype(np.float64)
        want = scale * (left @ right)
        bound = 2 * (product.depth + 5) * EPS * abs(scale) * (abs(left) @ abs(right))
        if product.epilogue is not None:
            want = evaluate(product.epilogue, known, want.reshape(product.epilogue.shape))
            bound = bound.reshape(want.shape) + 4 * EPS * (abs(want) + 10)
        assert (abs(output.reshape(want.shape) - want) <= bound).all(), (
            product.shape, product.depth, parameters)


def test_fully_connected_layers_have_rounded_weights(tmp_path):
    rng = np.random.default_rng(9)
    layer = Dense(rng.standard_normal((70, 131)).astype(np.float32),
                  rng.standard_normal(70).astype(np.float32), low=0.0)
    cases = [(layer, AVX512_BFLOAT16, dense.options(layer, AVX512_BFLOAT16)[0])]
    for (_, (inputs, output)) in run_cases(dense, cases, rng, tmp_path):
        weight = rounded(layer.weight).astype(np.float64)
        want = np.maximum(weight @ inputs[0][0] + layer.bias, 0)
        bound = 140 * EPS * (abs(weight) @ abs(inputs[0][0]) + abs(layer.bias))
        assert (abs(output[0] - want) <= bound).all()


def test_only_where_asked_for_and_where_it_pays():
    weight = np.ones((64, 64, 3, 3), np.float32)
    conv = Convolution(weight, np.zeros(64, np.float32), ((1, 4, 28, 28, 16),),
                       plain_lanes(64, 16), padding=(1, 1, 1, 1))
    assert registry.chosen(conv, AVX512_BFLOAT16) == ("bfloat16", {})
    assert registry.chosen(conv, AVX512_AMX)[0] != "bfloat16"
    narrow = dataclasses.replace(conv, weight=weight[:1, :4, :1, :1], bias=conv.bias[:1],
                                 input_lanes=plain_lanes(4, 16), padding=(0, 0, 0, 0))
    assert registry.chosen(narrow, AVX512_BFLOAT16)[0] != "bfloat16"
