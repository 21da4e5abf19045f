"""Operators of ONNX Runtime's that it has on GPUs only, by their definitions in NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from repaired_models import noise, one, refusal, repaired, run

MICROSOFT = "com.microsoft"


def result(op, arrays, constants=(), **attrs):
    model, inputs = one(op, arrays, domain=MICROSOFT, constants=constants, **attrs)
    return run(repaired(model, inputs), inputs)[0]


def bucket(away, count, most, both):
    """T5's, of the place of a key minus that of a query."""
    first = 0
    if both:
        count //= 2
        first, away = (count if away > 0 else 0), abs(away)
    else:
        away = max(-away, 0)
    exact = count // 2
    if away < exact:
        return first + away
    far = exact + math.floor(math.log(away / exact) / math.log(most / exact) * (count - exact))
    return first + min(far, count - 1)


@pytest.mark.parametrize("both", [0, 1])
def test_a_row_of_a_table_for_each_distance(both):
    table, length = noise(12, 3), np.array([30])
    have = result("RelativePositionBias", [table, length, length], (1, 2), max_distance=20,
                  is_bidirectional=both)
    want = [[table[bucket(k - q, 12, 20, both)] for k in range(30)] for q in range(30)]
    np.testing.assert_array_equal(have, np.transpose(want, (2, 0, 1))[None])
    model, inputs = one("RelativePositionBias", [table, length, length + 1], domain=MICROSOFT,
                        constants=(1, 2), max_distance=20)
    assert "other numbers of keys" in refusal(model, inputs)


def test_rows_that_queries_make_larger_or_smaller():
    query, query_bias, biases = noise(2, 5, 12), noise(12), noise(1, 3, 5, 5)
    weight, bias, constant = noise(4, 8), noise(8), noise(1, 3, 1, 1)
    have = result("GatedRelativePositionBias", [query, query_bias, biases, weight, bias, constant],
                  (1, 3, 4, 5), num_heads=3)
    heads = (query + query_bias).reshape(2, 5, 3, 4).transpose(0, 2, 1, 3)
    sums = (heads @ weight + bias).reshape(2, 3, 5, 2, 4).sum(-1)
    update, reset = np.split(1 / (1 + np.exp(-sums)), 2, -1)
    want = (update * (reset * constant - 1) + 2) * biases
    np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)


def test_a_product_and_gelu():
    x, w, bias = noise(2, 5, 6), noise(6, 4), noise(4)
    y = x @ w + bias
    want = 0.5 * y * (1 + np.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y ** 3)))
    np.testing.assert_allclose(result("GemmFastGelu", [x, w, bias], (1, 2)), want, rtol=1e-4,
                               atol=1e-6)


@pytest.mark.parametrize("axis, shape", [(3, (2, 1, 1, 4)), (2, (3, 5, 4))])
def test_a_bias_and_softmax(axis, shape):
    x, bias = noise(2, 3, 5, 4), noise(*shape)
    flat = np.exp(x + bias).reshape(*x.shape[:axis], -1)
    have = result("BiasSoftmax", [x, bias], axis=axis, is_inner_broadcast=1)
    np.testing.assert_allclose(have, (flat / flat.sum(-1, keepdims=True)).reshape(x.shape),
                               rtol=1e-5)
