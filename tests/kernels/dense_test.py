"""The fully connected layer's kernel against float64."""

from __future__ import annotations

import math

import numpy as np
from layer_runner import on_every_machine, run_cases
from random_convolutions import EPS, bound_after_epilogue, choose, random_epilogue

from run_model_tools.kernels import dense
from run_model_tools.kernels.dense import Dense
from run_model_tools.kernels.isa import Isa


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
        weight, vector = layer.weight.astype(np.float64), x[0].astype(np.float64)
        want = weight @ vector + layer.bias
        # One rounding for each product and sum.
        size = abs(weight) @ abs(vector) + abs(layer.bias)
        bound = (weight.shape[1] + 3) * EPS * size
        if layer.expression:
            want, bound = layer.expression.evaluate([want]), bound_after_epilogue(bound, size)
        else:
            want = np.clip(want, layer.low, layer.high)
        assert (abs(output[0] - want) <= bound).all(), (weight.shape, isa.name, parameters)
