"""The matrix product's kernel against float64."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from layer_runner import (
    NATIVE,
    SANITIZED,
    WIDEST,
    Toolchain,
    on_every_machine,
    on_machines_with_dot,
    run_layers,
)
from program_reference import evaluate, numbers_of
from random_convolutions import EPS, choose
from run_model_tools.kernels.isa import AVX512_AMX, AVX512_VNNI, Isa
from run_model_tools.kernels.layer import Layer
from run_model_tools.kernels.products import matmul
from run_model_tools.kernels.products.matmul import Product
from run_model_tools.kernels.programs.program import Program
from run_model_tools.kernels.tensors import Tensor
from run_model_tools.kernels.views import View, constant_tensor, whole


def draw_matrices(rng: np.random.Generator, shape: tuple[int, int, int]) -> View:
    """As they lie, with axes swapped, of heads beside each other, or cut out of wider rows."""
    batch, rows, columns = shape
    kind = rng.integers(5)
    if kind == 0:
        return whole(Tensor((batch, columns, rows))).transpose([0, 2, 1])
    if kind == 1:
        return whole(Tensor((rows, batch, columns))).transpose([1, 0, 2])
    if kind == 2:
        return whole(Tensor((columns, batch, rows))).transpose([1, 2, 0])
    if kind == 3:
        found = whole(Tensor((batch, rows, columns + 5))).cut(2, 3, columns)
        assert found is not None
        return found
    return whole(Tensor(shape))


def draw(rng: np.random.Generator, isas: tuple[Isa, ...], count: int
         ) -> list[tuple[Product, Isa, dict]]:
    products = []
    for isa in isas:
        for index in range(count):
            rows, depth = int(rng.integers(1, 40)), int(rng.integers(1, 70))
            columns = int(rng.integers(1, 5 * isa.lanes))
            if index % 2:
                batch, right = 1, rng.standard_normal((depth, columns)).astype(np.float32)
            else:
                batch = int(rng.integers(1, 4))
                right = draw_matrices(rng, (batch, depth, columns))
            product = Product(draw_matrices(rng, (batch, rows, depth)), right,
                              float(rng.choice([1, 0.125])))
            if rng.integers(3):
                product = Product(product.left, product.right, product.scale,
                                  epilogue(rng, batch * rows, columns))
            products.append((product, isa))
    return choose(rng, matmul, products)


def epilogue(rng: np.random.Generator, rows: int, columns: int) -> Program:
    """Bias, rectification and a residual."""
    program = Program((rows, columns), [])
    bias = whole(constant_tensor(rng.standard_normal(columns).astype(np.float32)))
    x = program.add("add", program.add("product"), program.add_input(bias.broadcast(program.shape)))
    x = program.add("maximum", x, program.add("constant", value=0.0))
    residual = whole(Tensor((rows, columns if rng.integers(2) else 1))).broadcast(program.shape)
    program.add("add", x, program.add_input(residual))
    return program


def draw_whole(rng: np.random.Generator, isas: tuple[Isa, ...], count: int
               ) -> list[tuple[Product, Isa, dict]]:
    """Of bytes minus zero points, every second of the farthest from zero there are; two of three by
    signed bytes, whose zero point is known of one."""
    products = []
    for isa in isas:
        for index in range(count):
            rows, depth = int(rng.integers(1, 40)), int(rng.choice([1, 2, 7, 33, 64, 255, 2048]))
            columns = int(rng.integers(1, 5 * isa.lanes))
            is_bytes = index % 3 < 2
            least, most = (-128, 127) if is_bytes else (-255, 255)
            right = (np.full((depth, columns), rng.choice([least, most])) if index % 2 == 0
                     else rng.integers(least, most + 1, (depth, columns))).astype(np.float32)
            product = Product(draw_matrices(rng, (1, rows, depth)), right,
                              float(rng.choice([1, 0.125])), is_whole=True, is_bytes=is_bytes)
            if index % 3 == 0:
                product = replace(product, left_low=int(rng.integers(-255, 1)))
            if rng.integers(2):
                product = replace(product, epilogue=epilogue(rng, rows, columns))
            products.append((product, isa))
    return choose(rng, matmul, products)


def whole_rows(rng: np.random.Generator, product: Product, extremes: bool) -> np.ndarray:
    """Numbers for the tensor of a product's left matrix, which is_bytes and left_low allow."""
    shape, low, high = product.left.tensor.shape, -255, 255
    if product.is_bytes:
        low = int(rng.integers(-255, 1)) if product.left_low is None else product.left_low
        high = low + 255
    return (rng.choice([low, high], shape) if extremes
            else rng.integers(low, high + 1, shape)).astype(np.float32)


def check_whole(cases: list[tuple[Product, Isa, dict]], rng: np.random.Generator, folder: Path,
                toolchain: Toolchain) -> list[Layer]:
    """Gives the layers, whose sums are right."""
    runs, wanted = [], []
    for index, (product, isa, parameters) in enumerate(cases):
        arrays = {t: rng.standard_normal(t.shape).astype(np.float32)
                  for t in matmul.inputs_of(product)}
        arrays[product.left.tensor] = whole_rows(rng, product, index % 2 == 0)
        layer = matmul.make(product, isa, **parameters)
        runs.append((layer, list(arrays.values())))
        sums = numbers_of(product.left, arrays).astype(np.int64) @ product.right.astype(np.int64)
        want = sums.astype(np.float32) * np.float32(product.scale)
        bound = 0.0
        if "WHOLE" not in layer.defines:
            bound = product.scale * product.depth * 255.0 ** 2 * EPS * product.depth
        if product.epilogue is not None:
            want = evaluate(product.epilogue, arrays,
                            want.astype(np.float64).reshape(product.epilogue.shape))
            bound += 4 * EPS * (abs(want) + 10)
        wanted.append((want, bound))
    outputs = run_layers(runs, folder, toolchain)
    for (product, isa, parameters), (want, bound), output in zip(cases, wanted, outputs):
        assert (abs(output.reshape(want.shape) - want) <= bound).all(), (
            product.shape, product.depth, isa.name, parameters)
    return [layer for layer, _ in runs]


@on_machines_with_dot
def test_sums_whole_numbers_exactly(tmp_path, machine, monkeypatch):
    monkeypatch.setattr(matmul, "_MANY_WEIGHTS", 4000)
    rng = machine.rng()
    cases = draw_whole(rng, (*machine.isas, WIDEST), max(5, machine.count(9)))
    layers = check_whole(cases, rng, tmp_path, machine.toolchain)
    assert {layer.defines.get("WHOLE") for layer in layers} >= {2, 4 if WIDEST.dot else 2}
    assert any({"WHOLE", "AHEAD"} <= set(layer.defines) for layer in layers)


@on_every_machine
def test_equals_the_definition(tmp_path, machine, monkeypatch):
    # Of the weights here, which are few, some count as many.
    monkeypatch.setattr(matmul, "_MANY_WEIGHTS", 4000)
    rng = machine.rng()
    cases = draw(rng, machine.isas, machine.count(12))
    runs, all_arrays = [], []
    for product, isa, parameters in cases:
        arrays = {t: rng.standard_normal(t.shape).astype(np.float32)
                  for t in matmul.inputs_of(product)}
        runs.append((matmul.make(product, isa, **parameters), list(arrays.values())))
        all_arrays.append(arrays)
    ahead = ["AHEAD" in layer.defines for layer, _ in runs]
    is_wide = any(isa.lanes >= 8 for isa in machine.isas)
    assert any(ahead) <= is_wide and not all(ahead)
    # Of the few that are drawn for an emulator none is of many weights.
    assert any(ahead) == is_wide or machine.toolchain.runner
    outputs = run_layers(runs, tmp_path, machine.toolchain)
    for (product, isa, parameters), arrays, output in zip(cases, all_arrays, outputs):
        left = numbers_of(product.left, arrays)
        right = (numbers_of(product.right, arrays) if isinstance(product.right, View)
                 else product.right[None].astype(np.float64))
        want = product.scale * (left @ right)
        # One rounding for each product and sum, and some for the epilogue.
        bound = (product.depth + 5) * EPS * product.scale * (abs(left) @ abs(right))
        if product.epilogue is not None:
            want = evaluate(product.epilogue, arrays, want.reshape(product.epilogue.shape))
            bound = bound.reshape(want.shape) + 4 * EPS * (abs(want) + 10)
        assert (abs(output.reshape(want.shape) - want) <= bound).all(), (
            product.shape, product.depth, isa.name, parameters)


def by_tiles(rng: np.random.Generator, product: Product) -> tuple[Product, Isa, dict]:
    """Made by AMX's tiles, of up to 32 rows and two vectors of columns, cut anyhow."""
    _, rows, columns = product.shape
    count = -(-columns // AVX512_AMX.lanes)
    parts = [int(rng.integers(1, min(3, most) + 1)) for most in (rows, count)]
    return product, AVX512_AMX, {"tile": [32, min(2, count)], "parts": parts, "amx": True}


@pytest.mark.parametrize("toolchain", [
    pytest.param(NATIVE, id="native"),
    pytest.param(SANITIZED, id="sanitized", marks=pytest.mark.full)])
def test_tiles_sum_bytes_exactly(tmp_path, toolchain):
    """By the CPU's tiles where it has them and Clang is there, else as where Linux refuses them."""
    rng = np.random.default_rng(6)
    cases = [by_tiles(rng, product) for product, *_ in draw_whole(rng, (AVX512_AMX,), 18)
             if product.is_bytes]
    layers = check_whole(cases, rng, tmp_path, toolchain)
    assert all("RUN_STEPS" in layer.defines for layer in layers)


def test_many_rows_and_columns_of_bytes_get_tiles():
    """Few do not: they take as long as a tile does."""
    def offered(rows: int, depth: int, columns: int, isa: Isa) -> dict:
        product = Product(whole(Tensor((1, rows, depth))), np.ones((depth, columns), np.float32),
                          is_whole=True, is_bytes=True)
        return matmul.options(product, isa)[0]
    assert offered(128, 256, 1024, AVX512_AMX)["amx"]
    assert "amx" not in offered(1, 256, 1024, AVX512_AMX)
    assert "amx" not in offered(128, 256, 1024, AVX512_VNNI)
