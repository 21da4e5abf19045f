"""Weights that are stored in the bits they need: what is found of them, and products with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matmul_test import draw_matrices, epilogue

from layer_runner import WIDEST, on_every_machine, run_layers
from networks_test import TARGETS, check
from program_reference import evaluate, numbers_of
from random_convolutions import EPS, choose
from run_model_tools import few_bits
from run_model_tools.kernels.isa import AVX2, AVX512, NEON32, RVV
from run_model_tools.kernels.layers_of_plan import make_layer
from run_model_tools.kernels.plan import DenseStep
from run_model_tools.kernels.products import compact_weights, matmul
from run_model_tools.kernels.products.compact_weights import CompactWeights, compact
from run_model_tools.kernels.products.dense import Dense
from run_model_tools.kernels.products.matmul import Product
from run_model_tools.kernels.tensors import Tensor
from run_model_tools.kernels.tiles import bfloat16_bits
from small_networks import network


@pytest.fixture(autouse=True)
def small_weights(monkeypatch):
    monkeypatch.setattr(compact_weights, "_FEWEST", 0)
    monkeypatch.setattr(few_bits, "_AT_ONCE", 4000)


def grid(rng: np.random.Generator, shape: tuple[int, int], bits: int, block: int,
         is_signed: bool) -> np.ndarray:
    """Weights as a quantiser with steps (and zero points, unless signed) of each block has them."""
    depth, columns = shape
    blocks = -(-depth // block)
    most = 1 << bits
    zeros = most // 2 if is_signed else rng.integers(0, most, (blocks, columns))
    steps = rng.uniform(1e-3, 2, (blocks, columns)).astype(np.float32)
    zeros = np.broadcast_to(zeros, (blocks, columns))
    numbers = rng.integers(0, most, shape)
    at = np.arange(depth) // block
    return (numbers - zeros[at]).astype(np.float32) * steps[at]


def of_levels(rng: np.random.Generator, shape: tuple[int, int], levels: np.ndarray, block: int
              ) -> np.ndarray:
    """The same of a table's numbers; not every block has the largest."""
    steps = rng.uniform(1e-3, 2, (-(-shape[0] // block), shape[1])).astype(np.float32)
    return levels[rng.integers(0, len(levels), shape)] * steps[np.arange(shape[0]) // block]


def restored(weights: CompactWeights) -> np.ndarray:
    if weights.bits == 16:
        return (weights.numbers.view(np.float16).astype(np.float32) if weights.is_half
                else (weights.numbers.astype(np.uint32) << 16).view(np.float32))
    at = np.arange(len(weights.numbers)) // weights.block
    assert weights.steps is not None
    if weights.levels is not None:
        return weights.levels[weights.numbers] * weights.steps[at]
    assert weights.zeros is not None
    return ((weights.numbers.astype(np.float32) - weights.zeros[at]) * weights.steps[at])


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("block", [16, 32, 128, 1 << 20])
@pytest.mark.parametrize("is_signed", [True, False])
def test_finds_bits_and_blocks(bits, block, is_signed):
    rng = np.random.default_rng(bits + block)
    weights = grid(rng, (300, 70), bits, block, is_signed)
    weights[:, 3] = 0
    found = compact(weights, AVX512)
    assert found is not None and (found.bits, found.block) == (bits, min(block, 320))
    np.testing.assert_allclose(restored(found), weights, rtol=5e-7, atol=0)
    # Another factor of each column, as folding a scale leaves it, changes nothing but the steps.
    factors = rng.uniform(0.3, 3, 70).astype(np.float32)
    again = compact(weights * factors, AVX512)
    assert again is not None and (again.numbers == found.numbers).all()


@pytest.mark.parametrize("levels", [few_bits.NORMAL_FLOAT4, few_bits.FLOAT4, few_bits.BNB_FLOAT4,
                                    np.float32([0, *(1.7 ** i for i in range(15))])])
@pytest.mark.parametrize("block", [16, 64, 1 << 20])
def test_finds_numbers_of_sixteen_levels(levels, block):
    rng = np.random.default_rng(block)
    weights = of_levels(rng, (192, 70), levels, block)
    weights[:16, 3] = 0
    is_known = levels[1] != 1
    if not is_known:  # a table of the file's own has no steps
        weights = levels[rng.integers(0, 16, (192, 70))]
    found = compact(weights, AVX2)
    assert found is not None and (found.bits, found.block) == (4, min(block, 192) if is_known
                                                               else 192)
    np.testing.assert_allclose(restored(found), weights, rtol=5e-7, atol=0)
    weights[100, 50] = np.nan
    assert compact(weights, AVX2) is None


@pytest.mark.parametrize("block", [32, 1 << 20])
def test_finds_floats_of_eight_bits(block):
    weights = of_levels(np.random.default_rng(block), (192, 70), few_bits.FLOAT8, block)
    found = compact(weights, AVX2)
    assert found is not None and (found.bits, found.block) == (8, min(block, 192))
    assert not (found.numbers & 127 == 127).any()  # of which both are NaN
    np.testing.assert_allclose(restored(found), weights, rtol=5e-7, atol=0)
    assert compact(weights, NEON32) is None  # which has no denormal numbers
    kept = compact(np.where(found.numbers & 120, weights, 0), NEON32)
    assert kept is not None and kept.bits == 8


@pytest.mark.parametrize("isa", [AVX2, NEON32, RVV])
def test_finds_numbers_of_sixteen_bits(isa):
    rng = np.random.default_rng(1)
    weights = rng.standard_normal((40, 30)).astype(np.float32)
    assert compact(weights, isa) is None
    half = weights.astype(np.float16).astype(np.float32)
    found = compact(half, isa)
    assert found is not None and found.is_half and (restored(found) == half).all()
    half[3, 3] = 2.0 ** -15
    found = compact(half, isa)
    assert (found is None) == (isa is NEON32)
    rounded = (bfloat16_bits(weights).astype(np.uint32) << 16).view(np.float32)
    found = compact(rounded, isa)
    assert found is not None and not found.is_half and (restored(found) == rounded).all()
    half[0, 0] = 70000
    assert compact(half, isa) is None


def test_what_is_off_a_grid_keeps_all_its_bits():
    weights = grid(np.random.default_rng(2), (128, 64), 4, 32, True)
    weights[100, 50] *= 1.0001
    assert compact(weights, AVX512) is None
    weights[100, 50] = np.nan
    assert compact(weights, AVX512) is None


def test_a_fully_connected_layer_on_one_row_reads_them():
    weights = grid(np.random.default_rng(3), (96, 40), 8, 1 << 20, True)
    for matrix, is_compact in ((weights, True), (weights + np.float32(1e-3), False)):
        dense = Dense(np.ascontiguousarray(matrix.T), np.zeros(40, np.float32))
        layer = make_layer(DenseStep([Tensor((1, 96))], Tensor((1, 40)), dense), AVX512)
        assert (layer.kind, "WEIGHT_BITS" in layer.defines) == ("dense", is_compact)
        assert layer.output_shape == (1, 40)


@on_every_machine
def test_multiplies_with_them(tmp_path, machine):
    rng = machine.rng()
    products = []
    for isa in (*machine.isas, WIDEST):
        for index in range(max(7, machine.count(15))):
            depth, columns = int(rng.integers(33, 150)), int(rng.integers(1, 5 * isa.lanes))
            rows = int(rng.choice([1, 3, 8, 61]))
            bits = (4, 8, 0, 16, 8, 0, 4)[index % 7]
            if bits == 0:
                levels = (few_bits.NORMAL_FLOAT4, few_bits.FLOAT8)[index % 2]
                if isa.name == "neon32" and index % 2:
                    levels = np.where(np.abs(levels) < 2.0 ** -6, np.float32(0), levels)
                weights = of_levels(rng, (depth, columns), levels,
                                    int(rng.choice([16, 32, 1 << 20])))
            elif bits == 16:
                weights = rng.standard_normal((depth, columns))
                weights[:3] *= 2.0 ** -14
                weights = weights.astype(np.float16).astype(np.float32)
                if isa.name == "neon32":
                    weights[np.abs(weights) < 2.0 ** -14] = 0
                if index % 2:
                    weights = (bfloat16_bits(weights).astype(np.uint32) << 16).view(np.float32)
            else:
                weights = grid(rng, (depth, columns), bits, int(rng.choice([16, 32, 1 << 20])),
                               bool(rng.integers(2)))
            product = Product(draw_matrices(rng, (1, rows, depth)), weights,
                              float(rng.choice([1, 0.125])))
            if index % 2:
                product = replace(product, epilogue=epilogue(rng, rows, columns))
            products.append((product, isa))
    runs, wanted = [], []
    for product, isa, parameters in choose(rng, matmul, products):
        layer = matmul.make(product, isa, **parameters)
        assert "WEIGHT_BITS" in layer.defines
        arrays = {t: rng.standard_normal(t.shape).astype(np.float32)
                  for t in matmul.inputs_of(product)}
        runs.append((layer, list(arrays.values())))
        left, right = numbers_of(product.left, arrays), product.right.astype(np.float64)
        want = left @ right * product.scale
        bound = (abs(left) @ abs(right) * product.scale * EPS * (product.depth + 8))
        if product.epilogue is not None:
            want = evaluate(product.epilogue, arrays, want.reshape(product.epilogue.shape))
            bound = bound.reshape(want.shape) + 4 * EPS * (abs(want) + 10)
        wanted.append((want, bound))
    for (layer, _), (want, bound), output in zip(
            runs, wanted, run_layers(runs, tmp_path, machine.toolchain)):
        assert (abs(output.reshape(want.shape) - want) <= bound).all(), layer.note
    assert {"UNPACKS_CHUNKS" in layer.defines for layer, _ in runs} == {True, False}


def test_networks_keep_their_weights_small(tmp_path):
    """Of 8 bits before a product, of 4 in MatMulNBits, and of half precision."""
    rng = np.random.default_rng(4)
    model = network("""(float[1, 256] x) => (float[1, 256] y) {
        wa = DequantizeLinear<axis = 1>(a, s, z)
        p = MatMul(x, wa)
        q = com.microsoft.MatMulNBits<K = 256, N = 96, bits = 4, block_size = 32>(p, b, t)
        wc = Cast<to = 1>(c)
        y = MatMul(q, wc)
    }""", {"a": rng.integers(-128, 128, (256, 256)).astype(np.int8),
           "s": rng.uniform(1e-3, 2e-3, 256).astype(np.float32),
           # Without it ONNX Runtime 1.20 crashes where the CPU has no VNNI (reference.py).
           "z": np.zeros(256, np.int8),
           "b": rng.integers(0, 256, (96, 8, 16)).astype(np.uint8),
           "t": rng.uniform(1e-2, 2e-2, 768).astype(np.float32),
           "c": rng.standard_normal((96, 256)).astype(np.float16)}, 20, com_microsoft=1)
    check({"few": model}, tmp_path, TARGETS[0])
    size = (tmp_path / "few" / "model.params").stat().st_size
    assert size < 1.3 * (256 * 256 + 256 * 96 / 2 * 1.3 + 96 * 256 * 2)
