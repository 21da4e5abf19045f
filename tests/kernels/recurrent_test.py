"""LSTM's and GRU's kernel against float64."""

from __future__ import annotations

import numpy as np

from layer_runner import on_every_machine, run_on_noise
from run_model_tools.kernels import recurrent
from run_model_tools.kernels.recurrent import GATES, Recurrent


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def quantized(state: np.ndarray) -> np.ndarray:
    """As ONNX's DynamicQuantizeLinear has it, and back."""
    low, high = min(state.min(), np.float32(0)), max(state.max(), np.float32(0))
    step = (high - low) / np.float32(255) or np.float32(1)
    zero = np.clip(np.round(-low / step), 0, 255)
    whole = np.clip(np.round(state / step) + zero, 0, 255) - zero
    return whole.astype(np.float64) * step


def reference(layer: Recurrent, given: np.ndarray, states: list[np.ndarray],
              made: np.ndarray) -> np.ndarray:
    """As ONNX defines them.  Where states are quantised, each step begins with the one `made`
    before: of numbers that differ in their last place, one rounds up and one rounds down."""
    hidden, out = layer.hidden, np.zeros(layer.output_shape)
    for d in range(layer.directions):
        weight = layer.weight[d].astype(np.float64)
        if layer.weight_steps is not None:
            weight = weight * layer.weight_steps[d][:, None]
        before = states[0][d]
        h, c = states[0][d].astype(np.float64), states[-1][d].astype(np.float64)
        steps = range(layer.steps)
        for t in reversed(steps) if d or layer.backwards else steps:
            size = GATES[layer.kind] * hidden
            x = given[t, :, d * size:(d + 1) * size].astype(np.float64)
            y = (h if layer.weight_steps is None else quantized(before)) @ weight.T
            before = made[t, d]
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


@on_every_machine
def test_equals_the_definition(tmp_path, machine):
    rng, cases = machine.rng(), []
    for isa in machine.isas:
        for index in range(2 * machine.count(4)):
            kind = ("lstm", "gru")[index % 2]
            hidden, directions = int(rng.integers(1, 40)), int(rng.integers(1, 3))
            weight = rng.standard_normal((directions, GATES[kind] * hidden, hidden))
            weight, steps = (weight * hidden ** -0.5).astype(np.float32), None
            if index % 4 == 2:
                weight = rng.integers(-128, 128, weight.shape).astype(np.float32)
                steps = rng.uniform(0.5, 1, weight.shape[:2]) * hidden ** -0.5 / 70
            layer = Recurrent(
                kind, int(rng.integers(1, 7)), int(rng.integers(1, 10)), weight,
                rng.standard_normal((directions, hidden)).astype(np.float32),
                bool(rng.integers(2)), None if steps is None else steps.astype(np.float32))
            cases.append((layer, isa))
    runs = run_on_noise([recurrent.make(*case) for case in cases], rng, tmp_path, machine.toolchain)
    for (layer, isa), (inputs, output) in zip(cases, runs):
        want = reference(layer, inputs[0], inputs[1:], output)
        # Errors of a step are damped by the next one's weights, whose largest singular value is
        # about two; gates are good to a few units.
        np.testing.assert_allclose(output, want, rtol=0, atol=3e-5, err_msg=(
            f"{layer.kind} {layer.weight_steps is not None} {layer.output_shape} {isa.name}"))
