"""Attention with a state, the convolution before it, and attention with functions of the model's:
operators that no reference here knows, by definition."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from repaired_models import attention_step_by_step, noise, one, refusal, repaired, run

HEADS, SIZE, OUT = 2, 4, 3


@pytest.mark.parametrize("kind, steps, groups, width, domain", [
    ("linear", 9, 1, 1, ""), ("gated", 70, 2, 1, ""), ("gated", 20, 1, SIZE, "com.microsoft"),
    ("delta", 11, 1, 1, "com.microsoft"), ("gated_delta", 130, 2, 1, ""),
    ("gated_delta", 35, 1, SIZE, ""), ("gated_delta", 1, 1, 1, "")])
def test_a_state_is_followed(kind, steps, groups, width, domain):
    q, k, v = (noise(2, steps, n, size) for n, size in (
        (HEADS * groups, SIZE), (HEADS, SIZE), (HEADS, OUT)))
    k = (k / np.linalg.norm(k, axis=-1, keepdims=True)).astype(np.float32)
    state, rate = noise(2, HEADS, SIZE, OUT), np.abs(noise(2, steps, HEADS, 1)) % 1
    decay = -np.abs(noise(2, steps, HEADS, width))
    want = attention_step_by_step(
        *(x.astype(np.float64) for x in (q, k, v, state, decay, rate)), kind)
    arrays = [x.reshape(2, steps, -1) for x in (q, k, v, decay, rate)]
    arrays.insert(3, state)
    if kind in ("linear", "gated"):
        del arrays[4 if kind == "linear" else 5:]
    model, inputs = one("LinearAttention", arrays, opset=27 if not domain else 18, outputs=2,
                        domain=domain, update_rule=kind, q_num_heads=HEADS * groups,
                        kv_num_heads=HEADS, **({} if kind != "delta" else {"chunk_size": 8}))
    have = run(repaired(model, inputs), inputs)
    np.testing.assert_allclose(have[0], want[0].reshape(2, steps, -1), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(have[1], want[1], rtol=1e-4, atol=1e-4)


def test_several_values_may_share_a_key():
    q, k, v = noise(2, 5, 2, SIZE), noise(2, 5, 2, SIZE), noise(2, 5, 4, OUT)
    state, rate = noise(2, 4, SIZE, OUT), np.abs(noise(2, 5, 4, 1)) % 1
    decay = -np.abs(noise(2, 5, 4, 1))
    want = attention_step_by_step(*(x.astype(np.float64) for x in (
        q.repeat(2, 2), k.repeat(2, 2), v, state, decay, rate)), "gated_delta")
    arrays = [x.reshape(2, 5, -1) for x in (q, k, v)] + [state] + [
        x.reshape(2, 5, -1) for x in (decay, rate)]
    model, inputs = one("LinearAttention", arrays, outputs=2, domain="com.microsoft",
                        q_num_heads=2, kv_num_heads=4)
    have = run(repaired(model, inputs), inputs)
    np.testing.assert_allclose(have[0], want[0].reshape(2, 5, -1), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(have[1], want[1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("last, rate, activation", [(0, 1, "silu"), (1, 2, "none")])
def test_a_convolution_goes_on_where_it_ended(last, rate, activation):
    x, weight, bias = noise(2, 5, 7), noise(5, 1, 3), noise(5)
    before = noise(2, 5, 2 * rate)
    whole = np.concatenate([before, x], 2).astype(np.float64)
    want = sum(whole[:, :, i * rate:i * rate + 7] * weight[:, 0, i, None] for i in range(3))
    want = want + bias[:, None]
    want = want / (1 + np.exp(-want)) if activation == "silu" else want
    given = [x, weight, bias, before]
    if last:
        given = [x.transpose(0, 2, 1), weight, bias, before.transpose(0, 2, 1)]
    attrs = {"channels_last": 1, "dilation": rate} if last else {}
    model, inputs = one("CausalConvWithState", given, opset=18 if last else 27, outputs=2,
                        domain="com.microsoft" if last else "", activation=activation, **attrs)
    for have, known in zip(run(repaired(model, inputs), inputs), (want, whole[:, :, 7:])):
        np.testing.assert_allclose(have.transpose(0, 2, 1) if last else have, known, rtol=1e-5,
                                   atol=1e-5)


def test_what_only_other_devices_have_is_refused():
    x = noise(1, 2, 4)
    model, inputs = one("LinearAttention", [x, x, x], domain="com.microsoft", q_num_heads=2,
                        kv_num_heads=2, update_rule="linear", state_window=2)
    assert "state_window" in str(refusal(model, inputs))


def test_scores_and_weights_go_through_functions_of_the_model():
    q, k, v = noise(1, 4, 3, 8), noise(1, 2, 5, 8), noise(1, 2, 5, 6)
    kind = "float[1, 4, 3, 5]"
    bodies = {name: onnx.parser.parse_graph(f"f ({kind} s) => ({kind} c) {{ {text} }}")
              for name, text in {"score_mod": "c = Tanh(s)", "prob_mod": "c = Mul(s, s)"}.items()}
    model, inputs = one("FlexAttention", [q, k, v], opset=1, domain="ai.onnx.preview", scale=0.5,
                        **bodies)
    scores = np.tanh(q.astype(np.float64) @ k.repeat(2, 1).swapaxes(2, 3) * 0.5)
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    (have,) = run(repaired(model, inputs), inputs)
    np.testing.assert_allclose(have, weights ** 2 @ v.repeat(2, 1), rtol=1e-5, atol=1e-6)
