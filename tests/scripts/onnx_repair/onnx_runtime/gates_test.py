"""Gates, norms and streams that ONNX Runtime 1.20 does not know, by definition."""

from __future__ import annotations

import numpy as np
import pytest
from repaired_models import noise, one, refusal, repaired, run


def sigmoid(x):
    return 1 / (1 + np.exp(-np.asarray(x, np.float64)))


def normalised(x, epsilon):
    return x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + epsilon)


X, GATE, BLOCK = noise(2, 5, 12), noise(2, 5, 12), noise(2, 5, 4)
STREAMS, PER_BRANCH, MIX = X.reshape(2, 5, 3, 4), noise(2, 5, 3), noise(2, 5, 3, 3)
SCALE, WIDE_SCALE = noise(4), noise(12)
A, B, BIAS, DECAY = noise(2, 5, 4), noise(2, 5, 4), noise(4), -np.abs(noise(4))
CASES = {
    "decay": ("LinearAttentionGate", [A, BIAS, DECAY], {},
              np.log1p(np.exp(A.astype(np.float64) + BIAS)) * DECAY),
    "norm": ("GatedRMSNorm", [X, SCALE, GATE], {},
             (normalised(STREAMS, 1e-5) * SCALE).reshape(X.shape) * GATE * sigmoid(GATE)),
    "norm_by_sigmoid": ("GatedRMSNorm", [X, WIDE_SCALE, GATE],
                        {"activation": "sigmoid", "epsilon": 0.5},
                        normalised(X, 0.5) * WIDE_SCALE * sigmoid(GATE)),
    "branches": ("BranchwiseRMSNorm", [X, WIDE_SCALE], {"num_branches": 3},
                 normalised(STREAMS, 1e-5).reshape(X.shape) * WIDE_SCALE),
    "branches_of_one_scale": ("BranchwiseRMSNorm", [STREAMS, SCALE], {},
                              normalised(STREAMS, 1e-5) * SCALE),
    "before": ("HyperConnectionPreMix", [X, PER_BRANCH], {"num_branches": 3, "reduction_scale": .5},
               (STREAMS * PER_BRANCH[..., None]).sum(2) / 2),
    "before_by_feature": ("HyperConnectionPreMix", [STREAMS, GATE], {},
                          (STREAMS * GATE.reshape(STREAMS.shape)).sum(2)),
    "behind": ("HyperConnectionPostMix", [X, BLOCK, PER_BRANCH, MIX], {"num_branches": 3},
               (MIX.swapaxes(2, 3) @ STREAMS + BLOCK[:, :, None] * PER_BRANCH[..., None])
               .reshape(X.shape)),
    "behind_without_mixing": ("HyperConnectionPostMix", [STREAMS, BLOCK, PER_BRANCH], {},
                              STREAMS + BLOCK[:, :, None] * PER_BRANCH[..., None]),
    "sum": ("GatedAdd", [A, B, noise(2, 5, 1)], {}, A + B * noise(2, 5, 1)),
    "sum_by_projection": ("GatedAdd", [A, B, X, noise(12, 1)], {},
                          A + B * sigmoid(X @ noise(12, 1))),
    "silu": ("ScaledSiLU", [A], {"alpha": 1.5}, 1.5 * A * sigmoid(1.5 * A)),
    "silu_of_scale": ("ScaledSiLU", [A, np.array(0.5, np.float32)], {}, A / 2 * sigmoid(A / 2)),
}


@pytest.mark.parametrize("name", CASES)
def test_what_newer_releases_fuse(name):
    operator, arrays, attrs, want = CASES[name]
    model, inputs = one(operator, arrays, domain="com.microsoft", **attrs)
    (have,) = run(repaired(model, inputs), inputs)
    np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-5)


def test_rates_come_beside_the_decay():
    model, inputs = one("LinearAttentionGate", [A, BIAS, DECAY, B], outputs=2,
                        domain="com.microsoft")
    np.testing.assert_allclose(run(repaired(model, inputs), inputs)[1], sigmoid(B), rtol=1e-5)


def test_features_that_cannot_be_divided_are_refused():
    model, inputs = one("BranchwiseRMSNorm", [X], domain="com.microsoft", num_branches=5)
    assert "divided among 5 branches" in str(refusal(model, inputs))


@pytest.mark.parametrize("layout, sections, by", [
    (0, [3, 2, 1], [0, 0, 0, 1, 1, 2]), (1, [2, 2, 2], [0, 1, 2, 0, 1, 2]),
    (1, [4, 1, 1], [0, 1, 2, 0, 0, 0])])
def test_features_are_turned_by_places_in_a_picture(layout, sections, by):
    x, cosine, sine = noise(2, 2, 5, 14), noise(9, 6), noise(9, 6)
    places = np.random.default_rng(3).integers(0, 9, (3, 2, 5))
    c, s = (np.stack([table[places[n]][..., d]
                      for d, n in enumerate(by)], -1)[:, None] for table in (cosine, sine))
    a, b = x[..., :6], x[..., 6:12]
    want = np.concatenate([a * c - b * s, a * s + b * c, x[..., 12:]], -1)
    model, inputs = one("MRotaryEmbedding", [x, places, cosine, sine], domain="com.microsoft",
                        mrope_section=sections, mrope_layout=layout, rotary_embedding_dim=12,
                        num_heads=2)
    np.testing.assert_allclose(run(repaired(model, inputs), inputs)[0], want, rtol=1e-5, atol=1e-6)
