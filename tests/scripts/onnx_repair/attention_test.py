"""Attention and caches of opset 23 and later, which no reference here knows, by definition."""

from __future__ import annotations

import numpy as np
import pytest
from repaired_models import attention, noise, one, repaired, run, unless

from run_model_tools.errors import ToolError

QUERIES, KEYS = 3, 5


def operands(heads=2):
    return noise(2, 4, QUERIES, 8), noise(2, heads, KEYS, 8), noise(2, heads, KEYS, 6)


def holds(arrays, want, opset, **attrs):
    model, inputs = one("Attention", arrays, opset=opset, **attrs)
    (have,) = run(repaired(model, inputs), inputs)
    assert have.shape == want.shape
    np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-5)


def test_two_heads_of_queries_for_each_of_keys():
    q, k, v = operands()
    want = attention(q, k.repeat(2, 1), v.repeat(2, 1), unless(np.tri(QUERIES, KEYS)))
    holds([q, k, v], want, 23, is_causal=1)


def test_heads_may_be_counted_beside_an_axis_of_them():
    """As PyTorch's exporter does, and ONNX Runtime takes no notice of."""
    q, k, v = operands(4)
    holds([q, k, v], attention(q, k, v, 0), 23, q_num_heads=4, kv_num_heads=4)
    cosine, sine = noise(2, QUERIES, 4), noise(2, QUERIES, 4)
    a, b = q[..., :4], q[..., 4:]
    c, s = cosine[:, None], sine[:, None]
    flat = q.transpose(0, 2, 1, 3).reshape(2, QUERIES, 32)
    for x, attrs in ((q, {"num_heads": 4}), (q, {}), (flat, {"num_heads": 4})):
        model, inputs = one("RotaryEmbedding", [x, cosine, sine], opset=23, **attrs)
        (have,) = run(repaired(model, inputs), inputs)
        have = have.reshape(2, QUERIES, 4, 8).transpose(0, 2, 1, 3) if x is flat else have
        np.testing.assert_allclose(have, np.concatenate([a * c - b * s, a * s + b * c], -1),
                                   rtol=1e-5, atol=1e-5)
    for attrs in ({}, {"num_heads": 5}):
        model, inputs = one("RotaryEmbedding", [flat, cosine, sine], opset=23, **attrs)
        with pytest.raises(ToolError, match="'num_heads' is .* 32 features"):
            repaired(model, inputs)


@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize("cap", [0.0, 1.5])
@pytest.mark.parametrize("kind", ["none", "bool", "float", "causal"])
def test_products_as_an_output(kind, cap, mode):
    """Before and behind the cap, with the mask, and behind the softmax."""
    q, k, v = operands()
    mask = {"bool": MASK, "float": noise(*MASK.shape)}.get(kind)
    model, inputs = one("Attention", [q, k, v, mask], opset=23, outputs=4, softcap=cap,
                        is_causal=int(kind == "causal"), qk_matmul_output_mode=mode)
    y, _, _, have = run(repaired(model, inputs), inputs)
    want = q @ np.swapaxes(k.repeat(2, 1), -1, -2) / np.sqrt(8)
    if mode and cap:
        want = np.tanh(want / cap) * cap
    bias = {"bool": unless(MASK), "float": mask, "causal": unless(np.tri(QUERIES, KEYS))}.get(
        kind, 0)
    if mode > 1:
        want = want + bias
    if mode == 3:
        want = np.stack([attention(q, k.repeat(2, 1), row * np.ones((2, 4, KEYS, 1)), bias, cap)
                         for row in np.eye(KEYS)[..., None]], -1)[..., 0, :]
    np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(y, attention(q, k.repeat(2, 1), v.repeat(2, 1), bias, cap),
                               rtol=1e-5, atol=1e-5)


MASK = np.array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0], [0, 1, 0, 0, 0]], bool)


@pytest.mark.parametrize("cap", [0.0, 1.5])
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("mask", [MASK, np.where(MASK, noise(*MASK.shape), -np.inf)],
                         ids=["bool", "float"])
def test_queries_that_see_no_key(mask, causal, cap):
    """With the causal mask, the third one sees its only key; the second never sees any."""
    q, k, v = operands(4)
    bias = unless(mask) if mask.dtype == bool else mask.astype(np.float32)
    want = attention(q, k, v, bias + (unless(np.tri(QUERIES, KEYS)) if causal else 0), cap)
    assert not want[:, :, 1].any() and want[:, :, 0].any()
    given = mask if mask.dtype == bool else bias
    holds([q, k, v, given], want, 23, is_causal=causal, softcap=cap)


@pytest.mark.parametrize("causal", [0, 1])
def test_a_cache_that_is_filled_in_part(causal):
    """Of the first sample two keys, less than queries: its first query sees none."""
    q, k, v = operands(4)
    filled = np.array([2, 5])
    last = filled[:, None, None, None] - (QUERIES - np.arange(QUERIES)[:, None] if causal else 1)
    want = attention(q, k, v, unless(np.arange(KEYS) <= last))
    assert want[0, :, 0].any() != bool(causal)
    holds([q, k, v, None, None, None, filled], want, 24, is_causal=causal)


def test_a_mask_of_the_first_keys_leaves_out_the_others():
    q, k, v = operands(4)
    want = attention(q, k, v, unless(np.pad(MASK[:, :4], ((0, 0), (0, 1)))))
    holds([q, k, v, MASK[:, :4]], want, 24)


@pytest.mark.parametrize("axis", [-2, 1])
@pytest.mark.parametrize("mode, count, start", [
    ("linear", 1, [0, 7]), ("linear", 3, None), ("circular", 3, [6, 2]), ("circular", 1, [9, 3])])
def test_updates_of_a_cache(mode, count, start, axis):
    cache = noise(2, 8, 8, 3)
    update = noise(*[count if i == axis % 4 else n for i, n in enumerate(cache.shape)]) + 9
    want = np.moveaxis(cache.copy(), axis, 1)
    for sample in range(2):
        for step in range(count):
            place = (start[sample] if start else 0) + step
            want[sample, place % 8] = np.moveaxis(update, axis, 1)[sample, step]
    model, inputs = one("TensorScatter", [cache, update, start and np.array(start)], opset=24,
                        mode=mode, axis=axis)
    (have,) = run(repaired(model, inputs), inputs)
    np.testing.assert_array_equal(have, np.moveaxis(want, 1, axis))


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("filled", [None, np.array([2, 5])])
@pytest.mark.parametrize("left, right", [(1, -1), (-1, 0), (1, 1), (0, 0)])
def test_windows_of_keys(left, right, filled, causal):
    """Counted from a query's own place, which is behind what a cache holds already."""
    q, k, v = operands(4)
    first = 0 if filled is None else filled[:, None, None, None] - QUERIES
    place, key = first + np.arange(QUERIES)[:, None], np.arange(KEYS)
    seen = np.ones_like(place + key, bool)
    if filled is not None:
        seen &= key < filled[:, None, None, None]
    if causal:
        seen &= key <= place
    if left >= 0:
        seen &= key >= place - left
    if right >= 0:
        seen &= key <= place + right
    assert not seen.all() and seen.any()
    holds([q, k, v, None, None, None, filled], attention(q, k, v, unless(seen)), 25,
          is_causal=causal, left_window_size=left, right_window_size=right)
