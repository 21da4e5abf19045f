"""The fully connected layer's kernel against float64."""

from __future__ import annotations

import math

import numpy as np

from layer_runner import on_every_machine, run_cases, run_layers
from program_reference import evaluate
from random_convolutions import EPS, bound_after_epilogue, choose, random_epilogue
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layers_of_plan import make_layer
from run_model_tools.kernels.plan import DenseStep
from run_model_tools.kernels.products import dense
from run_model_tools.kernels.products.dense import Dense, of_rows
from run_model_tools.kernels.programs.expressions import Expression, Operand, Operation
from run_model_tools.kernels.tensors import Tensor


def draw(rng: np.random.Generator, isas: tuple[Isa, ...], count: int
         ) -> list[tuple[Dense, Isa, dict]]:
    layers = []
    for isa in isas:
        for _ in range(count):
            outputs, inputs = int(rng.integers(1, 9 * isa.lanes)), int(rng.integers(1, 300))
            layer = Dense(rng.standard_normal((outputs, inputs)).astype(np.float32),
                          rng.standard_normal(outputs).astype(np.float32),
                          low=[-math.inf, 0.0][rng.integers(2)],
                          high=[math.inf, 6.0][rng.integers(2)],
                          expression=random_epilogue(rng, outputs) if rng.random() < 0.4 else None)
            layers.append((layer, isa))
    return choose(rng, dense, layers)


@on_every_machine
def test_equals_the_definition(tmp_path, machine):
    rng = machine.rng()
    cases = draw(rng, machine.isas, machine.count(8))
    runs = run_cases(dense, cases, rng, tmp_path, machine.toolchain)
    for (layer, isa, parameters), ((x,), output) in runs:
        want, bound = defined(layer, x.astype(np.float64))
        assert (abs(output - want) <= bound).all(), (layer.weight.shape, isa.name, parameters)


@on_every_machine
def test_rows_are_multiplied_together(tmp_path, machine):
    """A batch gets the product of matrices, with the same bias, clamp or expression."""
    rng = machine.rng()
    steps, runs = [], []
    for layer, isa, _ in draw(rng, machine.isas, machine.count(8)):
        shape = (int(rng.integers(2, 9)), layer.weight.shape[1])
        step = DenseStep([Tensor(shape)], Tensor((shape[0], layer.weight.shape[0])), layer)
        made = make_layer(step, isa)
        assert made.kind == "matmul" and made.output_shape == step.output.shape
        steps.append((layer, isa))
        runs.append((made, [rng.standard_normal(shape).astype(np.float32)]))
    outputs = run_layers(runs, tmp_path, machine.toolchain)
    for (layer, isa), (_, (rows,)), output in zip(steps, runs, outputs, strict=True):
        want, bound = defined(layer, rows.astype(np.float64))
        assert (abs(output - want) <= bound).all(), (layer.weight.shape, rows.shape, isa.name)


def test_equal_steps_of_an_expression_are_one():
    """The last step of an expression need not be the last node of the program that is made of it.
    """
    clamp = Operation("maximum", (Operand(input=0), Operand(number=0.0)))
    expression = Expression((clamp, Operation("abs", (Operand(step=0),)), clamp))
    layer = Dense(np.eye(3, dtype=np.float32), np.zeros(3, np.float32), expression=expression)
    rows = np.array([[1, -2, 3], [-4, 5, -6]], np.float64)
    program = of_rows(layer, Tensor((2, 3))).epilogue
    assert program is not None
    assert (evaluate(program, {}, rows) == np.maximum(rows, 0)).all()


def defined(layer: Dense, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The results for float64 (rows, inputs), and by how much roundings may change them."""
    weight = layer.weight.astype(np.float64)
    want = rows @ weight.T + layer.bias
    # One rounding for each product and sum.
    size = abs(rows) @ abs(weight.T) + abs(layer.bias)
    bound = (weight.shape[1] + 3) * EPS * size
    if layer.expression:
        return (layer.expression.evaluate([want], channel_axis=1),
                bound_after_epilogue(bound, size))
    return np.clip(want, layer.low, layer.high), bound
