"""Attention of com.microsoft, with the caches, masks and embeddings around it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from repaired_models import attention, matches, noise, one, repaired, run, unless

from run_model_tools.errors import ToolError
from run_model_tools.onnx_model import read_model
from run_model_tools.onnx_repair.reference import REPAIRED

MICROSOFT = "com.microsoft"
X, W, B = noise(2, 5, 8), noise(8, 24), noise(24)


@pytest.mark.parametrize("more, attrs", [
    ([], {}), ([None, None, noise(1, 2, 5, 5)], {"scale": 0.3}),
    ([np.array([3, 5], np.int32)], {"unidirectional": 1}),
    ([np.array([[1, 1, 0, 0, 1], [1] * 5], np.int32)], {}),
    ([np.tri(5, 5, 1, np.int32)[None].repeat(2, 0)], {"mask_filter_value": -50.0})])
def test_attention(more, attrs):
    matches("Attention", [X, W, B, *more], domain=MICROSOFT, constants=(1, 2), num_heads=2, **attrs)


def test_attention_with_values_of_another_size():
    matches("Attention", [X, noise(8, 28), noise(28)], domain=MICROSOFT, constants=(1, 2),
            num_heads=2, qkv_hidden_sizes=[8, 8, 12])


@pytest.mark.parametrize("arrays", [
    [noise(1, 5, 8), noise(1, 7, 8), noise(1, 7, 12), noise(28), None, noise(1, 2, 5, 7)],
    [noise(1, 5, 8), noise(1, 2, 7, 4), noise(1, 2, 7, 4)]])
def test_attention_to_other_keys(arrays):
    matches("MultiHeadAttention", arrays, domain=MICROSOFT, num_heads=2)


def test_attention_to_earlier_keys():
    arrays = [noise(1, 1, 8), noise(1, 1, 8), noise(1, 1, 8), None, None, None, noise(1, 2, 3, 4),
              noise(1, 2, 3, 4)]
    matches("MultiHeadAttention", arrays, outputs=3, domain=MICROSOFT, num_heads=2)


@pytest.mark.parametrize("past, mask, attrs", [
    (noise(2, 2, 2, 3, 4), None, {"unidirectional": 1}),
    (noise(2, 2, 2, 3, 4), np.array([[1] * 8, [0, 0] + [1] * 6], np.int32), {"unidirectional": 1}),
    (noise(2, 2, 2, 3, 4), None, {}), (None, None, {"unidirectional": 1})])
def test_attention_with_the_keys_of_earlier_steps(past, mask, attrs):
    matches("Attention", [X, W, B, mask, past], outputs=2, domain=MICROSOFT, constants=(1, 2),
            num_heads=2, **attrs)


@pytest.mark.parametrize("bias", [None, noise(24)])
def test_queries_keys_and_values_packed_into_one(bias):
    """ONNX Runtime has them on GPUs only."""
    apart = [noise(2, 5, 8) * n for n in (1, 2, 3)]
    every, keys = (np.stack([t.reshape(2, 5, 2, 4) for t in of], 3) for of in (apart, apart[1:]))
    added = noise(1, 2, 5, 5)
    options = {"domain": MICROSOFT, "num_heads": 2}
    (want,) = run(*one("MultiHeadAttention", [*apart, bias, None, added], **options))
    for packed in ([every, None, None], [apart[0], keys, None])[:1 if bias is not None else 2]:
        model, inputs = one("MultiHeadAttention", [*packed, bias, None, added], **options)
        (have,) = run(repaired(model, inputs), inputs)
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-5)


def test_a_mask_that_onnx_runtime_leaves_out_is_taken(tmp_path):
    """ONNX Runtime 1.20 computes without a key_padding_mask; later ones do not."""
    q, k, v, mask = noise(1, 5, 8), noise(1, 7, 8), noise(1, 7, 8), np.array([[1] * 4 + [0] * 3],
                                                                             np.int32)
    model, inputs = one("MultiHeadAttention", [q, k, v, None, mask], domain=MICROSOFT, num_heads=2)
    heads = [np.moveaxis(t.reshape(1, -1, 2, 4), 2, 1) for t in (q, k, v)]
    want = np.moveaxis(attention(*heads, unless(mask[:, None, None] > 0)), 1, 2).reshape(1, 5, 8)
    (have,) = run(repaired(model, inputs), inputs)
    np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-5)
    onnx.save(model, str(tmp_path / "mask.onnx"))
    (have,), who = read_model(tmp_path / "mask.onnx").run_by(inputs)
    np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-5)
    assert who == REPAIRED


def test_caches_in_shared_memory_are_refused():
    model, inputs = one("Attention", [X, W, B, None, noise(2, 2, 2, 9, 4), None,
                                      np.array([3], np.int32)], outputs=2, domain=MICROSOFT,
                        constants=(1, 2), num_heads=2, past_present_share_buffer=1)
    with pytest.raises(ToolError, match="share their memory"):
        repaired(model, inputs)


def test_inputs_that_nobody_looks_at_are_refused():
    """How many keys of a cache are there already: MultiHeadAttention has it since ONNX Runtime
    1.17."""
    x, cache = noise(1, 1, 8), noise(1, 2, 6, 4)
    model, inputs = one("MultiHeadAttention", [x, x, x, None, None, None, cache, cache,
                                               np.array([3], np.int32)],
                        outputs=3, domain=MICROSOFT, num_heads=2)
    with pytest.raises(ToolError, match="nothing is known of its input 8"):
        repaired(model, inputs)
    model, inputs = one("Relu", [x, x])
    with pytest.raises(ToolError, match="nothing is known of its input 1"):
        repaired(model, inputs)


def test_products_before_the_softmax_are_refused():
    model, inputs = one("MultiHeadAttention", [X, X, X], outputs=4, domain=MICROSOFT, num_heads=2)
    with pytest.raises(ToolError, match="products before the softmax"):
        repaired(model, inputs)


def test_embeddings():
    ids, segments = np.array([[1, 2, 3], [4, 0, 0]], np.int32), np.array([[0, 0, 1]] * 2, np.int32)
    tables = [noise(9, 8), noise(5, 8), noise(2, 8), noise(8), noise(8)]
    mask = np.array([[1, 1, 1], [1, 0, 0]], np.int32)
    for of_segments, counted in ((segments, mask), (None, None)):
        arrays = [ids, of_segments, *tables[:2], tables[2] if of_segments is not None else None,
                  *tables[3:], counted]
        matches("EmbedLayerNormalization", arrays, outputs=2, domain=MICROSOFT, constants=(2, 3))


@pytest.mark.parametrize("x, places, attrs", [
    (noise(1, 5, 16), np.array([2]), {"interleaved": 1}),
    (noise(1, 2, 5, 8), np.array([[0, 3, 1, 2, 9]]), {})])
def test_turned_places(x, places, attrs):
    matches("RotaryEmbedding", [x, places, noise(10, 4), noise(10, 4)], domain=MICROSOFT, **attrs)
