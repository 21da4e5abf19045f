"""LSTM's and GRU's kernel against float64."""

from __future__ import annotations

import layer_runner
import numpy as np
import pytest

from run_model_tools.kernels import recurrent
from run_model_tools.kernels.isa import AVX2, AVX512, NEON32, NEON64, Isa
from run_model_tools.kernels.recurrent import GATES, Recurrent


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def reference(layer: Recurrent, given: np.ndarray, states: list[np.ndarray]) -> np.ndarray:
    """As ONNX defines them."""
    hidden, out = layer.hidden, np.zeros(layer.output_shape)
    for d in range(layer.directions):
        weight = layer.weight[d].astype(np.float64)
        h, c = states[0][d].astype(np.float64), states[-1][d].astype(np.float64)
        steps = range(layer.steps)
        for t in reversed(steps) if d or layer.backwards else steps:
            size = GATES[layer.kind] * hidden
            x = given[t, :, d * size:(d + 1) * size].astype(np.float64)
            y = h @ weight.T
            parts = [slice(i * hidden, (i + 1) * hidden) for i in range(4)]
            if layer.kind == "lstm":
                i, o, f, g = ((x + y)[:, p] for p in parts)
                c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
                h = sigmoid(o) * np.tanh(c)
            else:
                z, r = (sigmoid((x + y)[:, p]) for p in parts[:2])
                n = np.tanh(x[:, parts[2]] + r * (y[:, parts[2]] + layer.bias[d]))
                h = (1 - z) * n + z * h
            out[t, d] = h
        out[layer.steps, d] = h
        if layer.kind == "lstm":
            out[layer.steps + 1, d] = c
    return out


def check(isas: list[Isa], count: int, seed: int, folder,
          toolchain=layer_runner.NATIVE) -> None:
    rng = np.random.default_rng(seed)
    cases, runs = [], []
    for isa in isas:
        for index in range(count):
            kind = ("lstm", "gru")[index % 2]
            hidden, directions = int(rng.integers(1, 40)), int(rng.integers(1, 3))
            weight = rng.standard_normal((directions, GATES[kind] * hidden, hidden))
            layer = Recurrent(
                kind, int(rng.integers(1, 7)), int(rng.integers(1, 10)),
                (weight * hidden ** -0.5).astype(np.float32),
                rng.standard_normal((directions, hidden)).astype(np.float32),
                bool(rng.integers(2)))
            made = recurrent.make(layer, isa)
            inputs = [rng.standard_normal(shape).astype(np.float32) for shape, _ in made.inputs]
            cases.append((layer, isa, inputs))
            runs.append((made, inputs))
    for (layer, isa, inputs), output in zip(
            cases, layer_runner.run_layers(runs, folder, toolchain)):
        want = reference(layer, inputs[0], inputs[1:])
        # Errors of a step are damped by the next one's weights, whose largest singular value is
        # about two; gates are good to a few units.
        np.testing.assert_allclose(output, want, rtol=0, atol=3e-5, err_msg=(
            f"{layer.kind} {layer.output_shape} {isa.name}"))


def test_native(tmp_path):
    check([AVX512, AVX2, NEON64], 8, 1, tmp_path)


@pytest.mark.full
def test_sanitized(tmp_path):
    check([AVX512, NEON32], 6, 2, tmp_path, layer_runner.SANITIZED)


@pytest.mark.slow
@pytest.mark.parametrize("name, isa", layer_runner.OTHER_MACHINES)
def test_other_machines(tmp_path, name, isa):
    check([isa], 6, 3, tmp_path, getattr(layer_runner, name))
