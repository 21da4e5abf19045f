"""The fully connected layer's kernel against float64."""

from __future__ import annotations

import math

import layer_runner
import numpy as np
import pytest
from random_convolutions import EPS, bound_after_epilogue, random_epilogue

from run_model_tools.kernels import dense
from run_model_tools.kernels.dense import Dense
from run_model_tools.kernels.isa import AVX2, AVX512, NEON32, NEON64, Isa


def draw(rng: np.random.Generator, isas: list[Isa], count: int) -> list[tuple[Dense, Isa, dict]]:
    cases = []
    for isa in isas:
        for _ in range(count):
            outputs, inputs = int(rng.integers(1, 9 * isa.lanes)), int(rng.integers(1, 300))
            layer = Dense(rng.standard_normal((outputs, inputs)).astype(np.float32),
                          rng.standard_normal(outputs).astype(np.float32),
                          low=[-math.inf, 0.0][rng.integers(2)],
                          high=[math.inf, 6.0][rng.integers(2)],
                          expression=random_epilogue(rng, outputs) if rng.random() < 0.4 else None)
            options = dense.options(layer, isa)
            cases.append((layer, isa, options[rng.integers(len(options))]))
    return cases


def check(cases, rng, folder, toolchain=layer_runner.NATIVE) -> None:
    layers = [dense.make(layer, isa, **parameters) for layer, isa, parameters in cases]
    inputs = [rng.standard_normal(layer.inputs[0][0]).astype(np.float32) for layer in layers]
    outputs = layer_runner.run_layers([(layer, [x]) for layer, x in zip(layers, inputs)], folder,
                                      toolchain)
    for (layer, isa, parameters), x, output in zip(cases, inputs, outputs):
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


def test_native(tmp_path):
    rng = np.random.default_rng(1)
    check(draw(rng, [AVX512, AVX2, NEON64], 8), rng, tmp_path)


@pytest.mark.full
def test_sanitized(tmp_path):
    rng = np.random.default_rng(2)
    check(draw(rng, [AVX512, NEON32], 5), rng, tmp_path, layer_runner.SANITIZED)


@pytest.mark.slow
@pytest.mark.parametrize("name, isa", layer_runner.OTHER_MACHINES)
def test_other_machines(tmp_path, name, isa):
    rng = np.random.default_rng(3)
    check(draw(rng, [isa], 3), rng, tmp_path, getattr(layer_runner, name))
