"""Mixtures of experts, which ONNX Runtime 1.20 has on GPUs only, as 1.32 computes them."""

from __future__ import annotations

import numpy as np
import pytest
from repaired_models import noise, one, repaired, run

from run_model_tools.errors import ToolError

ROWS, SIZE, INNER, EXPERTS = 6, 8, 12, 5


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def swiglu(x, limit=None, alpha=1.0, beta=0.0):
    gate, through = x[::2], x[1::2]
    if limit is not None:
        gate, through = np.minimum(gate, limit), np.clip(through, -limit, limit)
    return gate * sigmoid(alpha * gate) * (through + beta)


ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0), "identity": lambda x: x, "silu": lambda x: x * sigmoid(x),
    "gelu": lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "swiglu": swiglu}


def operands(activation="relu", biased=True):
    wide = INNER * (1 + (activation == "swiglu"))
    return [noise(ROWS, SIZE), noise(ROWS, EXPERTS), noise(EXPERTS, wide, SIZE),
            noise(EXPERTS, wide) if biased else None, noise(EXPERTS, SIZE, INNER),
            noise(EXPERTS, SIZE) if biased else None]


def mixed(arrays, activate, k, normalised):
    """Each row by its k experts; of equal scores the last ones count."""
    x, scores, w1, b1, w2, b2 = arrays
    rows = []
    for row, score in zip(x.reshape(-1, SIZE).astype(np.float64), scores):
        shares = np.exp(score) / np.exp(score).sum()
        best = np.lexsort([np.arange(EXPERTS), score])[::-1][:k]
        total = shares[best].sum() if normalised else 1
        rows.append(sum(shares[e] / total * (w2[e] @ activate(
            w1[e] @ row + (b1[e] if b1 is not None else 0)) + (b2[e] if b2 is not None else 0))
            for e in best))
    return np.reshape(rows, x.shape)


def holds(arrays, activate, k=2, normalised=0, **attrs):
    model, inputs = one("MoE", arrays, domain="com.microsoft", k=k,
                        normalize_routing_weights=normalised, **attrs)
    (have,) = run(repaired(model, inputs), inputs)
    np.testing.assert_allclose(have, mixed(arrays, activate, k, normalised), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("k", [1, 2, EXPERTS])
@pytest.mark.parametrize("normalised", [0, 1])
@pytest.mark.parametrize("equal", [False, True])
def test_the_best_experts_of_each_row(k, normalised, equal):
    arrays = operands()
    arrays[1] = np.round(arrays[1]) if equal else arrays[1]
    holds(arrays, ACTIVATIONS["relu"], k, normalised)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("biased", [False, True])
def test_activations_of_experts(activation, biased):
    arrays = operands(activation, biased)
    arrays[0] = arrays[0].reshape(2, -1, SIZE)
    holds(arrays, ACTIVATIONS[activation], activation_type=activation, swiglu_fusion=1)


def test_gates_with_a_limit():
    holds(operands("swiglu"), lambda x: swiglu(x, 0.5, 1.702, 1.0), activation_type="swiglu",
          swiglu_fusion=1, swiglu_limit=0.5, activation_alpha=1.702, activation_beta=1.0)


@pytest.mark.parametrize("change, attrs, said", [
    ({}, {"use_sparse_mixer": 1}, "sparse mixer"),
    ({6: noise(EXPERTS, INNER, SIZE)}, {}, "have a third layer"),
    ({2: noise(EXPERTS, SIZE, SIZE), 3: None, 4: noise(EXPERTS, SIZE, SIZE)}, {}, "are square"),
    ({2: noise(EXPERTS, SIZE, INNER)}, {}, "do not fit to rows of 8"),
    ({}, {"activation_type": "relu2"}, "on GPUs only")])
def test_other_mixtures_are_refused(change, attrs, said):
    arrays = [change.get(index, array) for index, array in enumerate([*operands(), None])]
    model, inputs = one("MoE", arrays, domain="com.microsoft", k=2, **attrs)
    with pytest.raises(ToolError, match=said):
        repaired(model, inputs)


def packed(whole, bits):
    """Along the last axis, the lowest bits first."""
    parts = np.concatenate([whole, np.zeros((*whole.shape[:-1], -whole.shape[-1] % (8 // bits)),
                                            whole.dtype)], -1)
    parts = parts.reshape(*whole.shape[:-1], -1, 8 // bits)
    return (parts << np.arange(0, 8, bits)).sum(-1).astype(np.uint8)


def test_weights_as_they_lie_for_a_gpu_are_refused():
    """With a row for each input, as onnxruntime-genai's builder writes them for CUDA."""
    given = [noise(3, 8), noise(3, 4), np.zeros((4, 8, 16), np.uint8), np.ones((4, 16, 2), "f4"),
             None, np.zeros((4, 8, 8), np.uint8), np.ones((4, 8, 2), "f4")]
    model, inputs = one("QMoE", given, domain="com.microsoft", k=2, expert_weight_bits=8,
                        block_size=4, constants=(2, 3, 5, 6), activation_type="swiglu",
                        swiglu_fusion=1)
    with pytest.raises(ToolError, match="8 rows and its scales 16, as they lie for a GPU"):
        repaired(model, inputs)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("block", [0, 4])
@pytest.mark.parametrize("shifted", [False, True])
def test_experts_of_few_bits(bits, block, shifted):
    arrays = operands("swiglu")
    random = np.random.default_rng(bits)
    node, extra, zeros = [*arrays[:2]], [None] * 3, []
    for index in (2, 4):
        shape = arrays[index].shape
        whole = random.integers(0, 1 << bits, shape)
        of_blocks = (*shape[:2], shape[2] // block) if block else shape[:2]
        scale = (random.random(of_blocks) / (1 << bits)).astype(np.float32)
        zero = random.integers(0, 1 << bits, of_blocks) if shifted else np.full(
            of_blocks, 1 << (bits - 1))
        zeros.append(packed(zero, bits) if shifted else None)
        node += [packed(whole, bits), scale, arrays[index + 1]]
        scale, zero = (np.repeat(v.reshape(*shape[:2], -1), block or shape[2], -1)
                       for v in (scale, zero))
        arrays[index] = (whole - zero) * scale
    given = [*node, *extra, *zeros]
    attrs = {"block_size": block} if block else {}
    model, inputs = one("QMoE", given, domain="com.microsoft", k=2, expert_weight_bits=bits,
                        constants=[n for n in range(2, 13) if given[n] is not None],
                        activation_type="swiglu", swiglu_fusion=1, **attrs)
    (have,) = run(repaired(model, inputs), inputs)
    np.testing.assert_allclose(have, mixed(arrays, swiglu, 2, 1), rtol=1e-4, atol=1e-4)
