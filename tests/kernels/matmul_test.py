"""The matrix product's kernel against float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from layer_runner import WIDEST, on_every_machine, on_machines_with_dot, run_layers
from program_reference import evaluate, numbers_of
from random_convolutions import EPS, choose

from run_model_tools.kernels import matmul
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.matmul import Product
from run_model_tools.kernels.programs import Program
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


@on_machines_with_dot
def test_sums_whole_numbers_exactly(tmp_path, machine, monkeypatch):
    monkeypatch.setattr(matmul, "_MANY_WEIGHTS", 4000)
    rng = machine.rng()
    cases = draw_whole(rng, (*machine.isas, WIDEST), machine.count(9))
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
    assert {layer.defines.get("WHOLE") for layer, _ in runs} >= {2, 4 if WIDEST.dot else 2}
    assert any({"WHOLE", "AHEAD"} <= set(layer.defines) for layer, _ in runs)
    outputs = run_layers(runs, tmp_path, machine.toolchain)
    for (product, isa, parameters), (want, bound), output in zip(cases, wanted, outputs):
        assert (abs(output.reshape(want.shape) - want) <= bound).all(), (
            product.shape, product.depth, isa.name, parameters)


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
    assert any(ahead) == any(isa.lanes >= 8 for isa in machine.isas) and not all(ahead)
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
