"""GatedDeltaNet, which the ONNX Runtime here does not know, by definition."""

from __future__ import annotations

import numpy as np
import pytest
from repaired_models import attention_step_by_step, noise, one, refusal, repaired, run

BATCH, STEPS, HEADS, GROUPS, SIZE, OUT = 2, 5, 2, 2, 4, 3
OF_VALUES = HEADS * GROUPS


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def as_it_is(decay, rate, logarithm, bias):
    return -np.abs(decay), sigmoid(rate)


def softly(decay, rate, logarithm, bias):
    return -np.exp(logarithm) * np.log1p(np.exp(decay + bias)), sigmoid(rate)


def bounded(decay, rate, logarithm, bias):
    return -3 * sigmoid(np.exp(logarithm) * (decay + bias)), rate


@pytest.mark.parametrize("form", ["with a batch", "one behind the other", "packed"])
@pytest.mark.parametrize("kind, width, gates, attrs", [
    ("gated_delta", 1, as_it_is, {}), ("linear", 1, as_it_is, {"qk_l2_norm": 1}),
    ("gated_delta", 1, softly, {"gate_activation": "softplus", "beta_activation": "sigmoid",
                                "qk_l2_norm": 1}),
    ("gated_delta", SIZE, bounded, {"gate_activation": "kda", "gate_lower_bound": -3.0})])
def test_a_state_is_followed(form, kind, width, gates, attrs):
    random = np.random.default_rng(7)

    def numbers(*shape):
        return random.standard_normal(shape).astype(np.float32)

    q, k, v = (numbers(BATCH, STEPS, n, size) for n, size in (
        (HEADS, SIZE), (HEADS, SIZE), (OF_VALUES, OUT)))
    if "qk_l2_norm" not in attrs:
        k /= np.linalg.norm(k, axis=-1, keepdims=True)
    decay, rate = numbers(BATCH, STEPS, OF_VALUES, width), numbers(BATCH, STEPS, OF_VALUES, 1)
    logarithm, bias = numbers(OF_VALUES), numbers(OF_VALUES, width)
    state = numbers(BATCH, OF_VALUES, OUT, SIZE)
    found_decay, found_rate = gates(*(x.astype(np.float64) for x in (
        decay, rate, logarithm.reshape(-1, 1), bias)))
    if gates is as_it_is:
        decay, rate = found_decay.astype(np.float32), found_rate.astype(np.float32)
    units = [x / np.linalg.norm(x, axis=-1, keepdims=True) if "qk_l2_norm" in attrs else x
             for x in (q.astype(np.float64), k.astype(np.float64))]
    want, last = attention_step_by_step(
        *(x.repeat(GROUPS, 2) for x in units), v, state.swapaxes(2, 3), found_decay, found_rate,
        kind)

    def laid(x):
        return x if form == "with a batch" else x.reshape(-1, *x.shape[2:])

    given = [laid(x) for x in (q, k, v)]
    if form == "packed":
        given = [np.concatenate([x.reshape(len(x), -1) for x in given], 1), None, None]
    of_tokens = [laid(x[..., 0] if x.shape[3] == 1 else x) for x in (decay, rate)]
    given += [None, *([None, None] if kind == "linear" else of_tokens), state]
    if "gate_activation" in attrs:
        given += [logarithm, bias if width > 1 else bias[:, 0]]
    model, inputs = one("GatedDeltaNet", given, domain="com.microsoft", opset=18, outputs=2,
                        update_rule=kind, **attrs)
    have = run(repaired(model, inputs), inputs)
    assert have[0].shape == laid(want).shape
    np.testing.assert_allclose(have[0], laid(want), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(have[1], last.swapaxes(2, 3), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("ends, said", [([0, 5, 10], None), ([0, 4, 10], "lengths of their own")])
def test_texts_of_one_length(ends, said):
    q, v = noise(10, HEADS, SIZE), noise(10, HEADS, OUT)
    model, inputs = one("GatedDeltaNet", [q, q, v, np.array(ends, np.int32)], constants=[3],
                        domain="com.microsoft", opset=18, update_rule="linear")
    if said:
        assert said in str(refusal(model, inputs))
        return
    (have,) = run(repaired(model, inputs), inputs)
    parts = [x.reshape(2, 5, *x.shape[1:]) for x in (q, q, v)]
    want, _ = attention_step_by_step(*parts, np.zeros((2, HEADS, SIZE, OUT)), None, None,
                                     "linear")
    np.testing.assert_allclose(have, want.reshape(have.shape), rtol=1e-4, atol=1e-4)


def test_changes_step_by_step_are_refused():
    q = noise(1, 2, HEADS, SIZE)
    model, inputs = one("GatedDeltaNet", [q, q, q], domain="com.microsoft", opset=18,
                        update_rule="linear", state_update_capacity=2)
    assert "state_update" in str(refusal(model, inputs))
