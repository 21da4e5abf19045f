"""Tables of what programs make of bytes."""

from __future__ import annotations

import math

import numpy as np

from layer_runner import Machine, on_every_machine, run_layers
from run_model_tools.kernels.products import matmul
from run_model_tools.kernels.products.matmul import Product
from run_model_tools.kernels.programs import rows, tables
from run_model_tools.kernels.programs.program import Program
from run_model_tools.kernels.tensors import Tensor
from run_model_tools.kernels.views import whole

SHIFT = 12582912.0  # 1.5 * 2^23, which leaves float32 no fractions


def rounded(program: Program, x: int, low: float, high: float, swapped: bool = False) -> int:
    """The node of a number rounded and bounded, as quantized networks say it."""
    for number in (SHIFT, -SHIFT):
        x = program.add("add", x, program.add("constant", value=number))
    bounds = [("maximum", low), ("minimum", high)]
    for op, bound in reversed(bounds) if swapped else bounds:
        x = program.add(op, x, program.add("constant", value=bound))
    return x


def scaled(program: Program, x: int, factor: float) -> int:
    return program.add("multiply", x, program.add("constant", value=factor))


def gelu_of_bytes(program: Program, x: int, swapped: bool = False) -> int:
    """x in steps of 1/32, its GELU with a rounded error function, in steps of 1/16."""
    byte = rounded(program, scaled(program, x, 32.0), -100.0, 155.0, swapped)
    number = scaled(program, byte, 1 / 32)
    erf = program.add("erf", scaled(program, number, 0.5 ** 0.5))
    erf = scaled(program, rounded(program, scaled(program, erf, 127.0), -128.0, 127.0), 1 / 127)
    half = scaled(program, number, 0.5)
    both = program.add("add", half, program.add("multiply", half, erf))
    return rounded(program, scaled(program, both, 16.0), -3.0, 252.0)


def expected(x: np.ndarray) -> np.ndarray:
    """The same by NumPy; NaN stays."""
    number = np.clip(np.rint(x * np.float32(32)), -100, 155) / np.float32(32)
    erf = np.vectorize(lambda v: math.erf(v * 0.5 ** 0.5), otypes=[np.float32])(number)
    erf = np.rint(erf * np.float32(127)) / np.float32(127)
    return np.clip(np.rint((number + number * erf) * np.float32(8)), -3, 252)


def check(got: np.ndarray, x: np.ndarray) -> None:
    want = expected(x)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    # A product that becomes part of a sum may turn a half the other way.
    off = np.abs(got - want)[~np.isnan(want)]
    assert off.max() <= 1 and (off > 0).mean() < 0.01


@on_every_machine
def test_programs_and_products_look_bytes_up(tmp_path, machine: Machine):
    rng = machine.rng()
    layers, inputs = [], []
    for isa in machine.isas:
        for swapped in (False, True):
            program = Program((5, 133), [])
            gelu_of_bytes(program, program.add_input(whole(Tensor((5, 133)))), swapped)
            layers.append(rows.make(program, isa, 1))
            numbers = (rng.standard_normal((5, 133)) * 3).astype(np.float32)
            numbers[:3, :4] = [np.nan, np.inf, -np.inf, 1e30]
            inputs.append(numbers)
        epilogue = Program((5, 133), [])
        gelu_of_bytes(epilogue, epilogue.add("product"))
        product = Product(whole(Tensor((1, 5, 133))), np.eye(133, dtype=np.float32),
                          epilogue=epilogue)
        layers.append(matmul.make(product, isa, **matmul.options(product, isa)[0]))
        inputs.append((rng.standard_normal((1, 5, 133)) * 3).astype(np.float32))
    assert all("TABLE_0" in layer.defines for layer in layers)
    outputs = run_layers([(layer, [x]) for layer, x in zip(layers, inputs)], tmp_path,
                         machine.toolchain)
    for output, x in zip(outputs, inputs):
        check(output.reshape(x.shape), x)


def test_only_what_depends_on_a_byte_alone_is_a_table():
    program = Program((2, 64), [])
    x, other = (program.add_input(whole(Tensor((2, 64)))) for _ in range(2))
    gelu = gelu_of_bytes(program, x)
    program.add("add", gelu, program.add("exp", other))
    changed, found = tables.tabulated(program)
    assert len(found) == 1 and found[0].low == -100
    assert [node.op for node in changed.nodes].count("table") == 1
    assert changed.nodes[-1].op == "add" and "erf" not in {node.op for node in changed.nodes}
    np.testing.assert_array_equal(found[0].numbers, expected(
        np.arange(-100, 156).astype(np.float32) / np.float32(32)))


def test_cheap_wide_and_broken_numbers_stay_as_they_are():
    def with_end(low: float, high: float, dear: bool) -> list[tables.Table]:
        program = Program((64,), [])
        x = rounded(program, program.add_input(whole(Tensor((64,)))), low, high)
        program.add("erf", program.add("exp", x) if dear else scaled(program, x, 2.0))
        return tables.tabulated(program)[1]
    assert with_end(0.0, 255.0, dear=True)
    assert not with_end(0.0, 255.0, dear=False)
    assert not with_end(0.0, 256.0, dear=True)
    assert not with_end(0.0, 100.5, dear=True)
