"""GroupQueryAttention (com.microsoft), as language models have it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from repaired_models import matches, noise, one, repaired, run, unless

from run_model_tools.errors import ToolError
from run_model_tools.onnx_model import read_model
from run_model_tools.onnx_repair.reference import REPAIRED

MICROSOFT = "com.microsoft"


def grouped(past, new, valid, **attrs):
    """GroupQueryAttention of 4 heads on 2 of keys, of which `valid` count in each batch."""
    batch, size, total = len(valid), 16, past + new
    if attrs.pop("packed", False):
        given = [noise(batch, new, 8 * size), None, None]
    else:
        given = [noise(batch, new, 4 * size), noise(batch, new, 2 * size) + 0.5,
                 noise(batch, new, 2 * size) - 0.2]
    earlier = [noise(batch, 2, past, size) * 0.7, noise(batch, 2, past, size)] if past else [
        None, None]
    angles = [noise(total, 8), noise(total, 8) - 0.3] if attrs.get("do_rotary") else []
    arrays = [*given, *earlier, np.array(valid, np.int32) - 1, np.array([total], np.int32), *angles]
    matches("GroupQueryAttention", arrays, outputs=3, domain=MICROSOFT, constants=(5, 6),
            num_heads=4, kv_num_heads=2, **attrs)


@pytest.mark.parametrize("attrs", [
    {}, {"do_rotary": 1}, {"do_rotary": 1, "rotary_interleaved": 1, "packed": True},
    {"do_rotary": 0, "rotary_interleaved": 1},
    {"scale": 0.2, "softcap": 1.5}, {"local_window_size": 8}])
@pytest.mark.parametrize("past, new, valid", [(0, 6, [6, 6]), (5, 1, [6, 6])])
def test_groups_of_queries(past, new, valid, attrs):
    grouped(past, new, valid, **attrs)


def test_groups_of_queries_on_sequences_of_different_lengths():
    grouped(5, 1, [4, 6], do_rotary=1)


@pytest.mark.parametrize("past, new", [(0, 6), (5, 1), (4, 2)])
@pytest.mark.parametrize("window, more, attrs", [
    (3, [], {}), (1, [], {"softcap": 1.5}), (2, [], {"smooth_softmax": 1}),
    (-1, [], {"smooth_softmax": 1}), (2, ["sinks"], {"smooth_softmax": 1}),
    (-1, ["bias"], {"softcap": 1.5}), (4, ["bias", "sinks"], {"scale": 0.2}),
    (-1, ["hiding"], {})])
def test_windows_sinks_and_biases_of_groups_of_queries(past, new, window, more, attrs):
    """As ONNX Runtime 1.32 computes them; 1.20 has neither sinks nor biases, and a wider window."""
    total, sinks = past + new, np.float32([0.3, -1.0, 2.0, 0.0]) if "sinks" in more else None
    bias = noise(1, 4, new, total) if "bias" in more else None
    if "hiding" in more:
        bias = np.where(np.arange(total) < total - 1, -np.inf, noise(1, 1, new, total))
        bias = bias.astype(np.float32)
    q, k, v = (noise(1, new, n * 16) * n for n in (4, 2, 2))
    earlier = [noise(1, 2, past, 16) * 0.7, noise(1, 2, past, 16)] if past else [None, None]
    arrays = [q, k, v, *earlier, np.array([total - 1], np.int32), np.array([total], np.int32),
              None, None, None, bias, sinks]
    model, inputs = one("GroupQueryAttention", arrays, outputs=3, domain=MICROSOFT,
                        constants=(5, 6), num_heads=4, kv_num_heads=2, local_window_size=window,
                        **attrs)
    (have, keys, values) = run(repaired(model, inputs), inputs)
    heads = np.moveaxis(q.reshape(1, new, 4, 16), 2, 1)
    scores = heads @ np.swapaxes(keys.repeat(2, 1), 2, 3) * attrs.get("scale", 0.25)
    cap = attrs.get("softcap", 0)
    scores = (np.tanh(scores / cap) * cap if cap else scores) + (0 if bias is None else bias)
    behind = past + np.arange(new)[:, None] - np.arange(total)
    scores += unless((behind >= 0) & (behind < (window if window > 0 else total)))
    powers, beside = np.exp(scores), attrs.get("smooth_softmax", 0)
    if sinks is not None:
        beside = np.exp(sinks)[:, None, None]
    sums = powers.sum(-1, keepdims=True) + beside
    want = np.divide(powers, sums, where=sums > 0, out=np.zeros_like(powers)) @ values.repeat(2, 1)
    np.testing.assert_allclose(have, np.moveaxis(want, 1, 2).reshape(have.shape), rtol=1e-5,
                               atol=1e-5)


def test_windows_of_keys_are_compared_with_onnx_runtime(tmp_path):
    for window, by in ((3, "onnxruntime"), (1, REPAIRED)):
        model, inputs = one(
            "GroupQueryAttention", [noise(1, 6, 32), noise(1, 6, 16), noise(1, 6, 16), None, None,
                                    np.array([5], np.int32), np.array([6], np.int32)],
            domain=MICROSOFT, outputs=3, constants=(5, 6), num_heads=4, kv_num_heads=2,
            local_window_size=window)
        onnx.save(model, str(tmp_path / "window.onnx"))
        (want, *_), who = read_model(tmp_path / "window.onnx").run_by(inputs)
        (have, *_) = run(repaired(model, inputs), inputs)
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-5)
        assert who == by


@pytest.mark.parametrize("batch", [1, 2])
def test_queries_are_turned_by_places_that_are_given(batch):
    """As far as they agree with those that follow from the counts, ONNX Runtime 1.20 has them."""
    valid, size = [4, 6][-batch:], 16
    places = np.array(valid)[:, None] - 1
    arrays = [noise(batch, 1, 4 * size), noise(batch, 1, 2 * size), noise(batch, 1, 2 * size),
              noise(batch, 2, 5, size), noise(batch, 2, 5, size), np.array(valid, np.int32) - 1,
              np.array([6], np.int32), noise(9, 8), noise(9, 8) - 0.3]
    options = {"outputs": 3, "domain": MICROSOFT, "constants": (5, 6), "num_heads": 4,
               "kv_num_heads": 2, "do_rotary": 1}
    want = run(*one("GroupQueryAttention", arrays, **options))
    model, inputs = one("GroupQueryAttention", [*arrays, places], **options)
    for w, h in zip(want, run(repaired(model, inputs), inputs), strict=True):
        np.testing.assert_allclose(h, w, rtol=1e-5, atol=1e-5)
    (have, *_) = run(repaired(model, inputs), {**inputs, "i9": places + 1})
    assert np.abs(have - want[0]).max() > 0.01


@pytest.mark.parametrize("attrs", [{"do_rotary": 1}, {"local_window_size": 4, "softcap": 1.5}])
@pytest.mark.parametrize("past, new, total, valid", [
    (5, 1, 6, [4, 6]), (9, 1, 9, [9]), (9, 1, 9, [3]), (9, 3, 9, [7]), (9, 4, 4, [4])])
def test_keys_that_count_may_be_told_at_run_time(past, new, total, valid, attrs):
    """A cache of fixed room, as language models of onnxruntime-genai have: what lies behind the
    keys that count is not compared, since ONNX Runtime writes nothing there."""
    batch, size = len(valid), 16
    arrays = [noise(batch, new, 4 * size), noise(batch, new, 2 * size), noise(batch, new, 2 * size),
              noise(batch, 2, past, size), noise(batch, 2, past, size),
              np.array(valid, np.int32) - 1, np.array([total], np.int32)]
    arrays += [noise(total, 8), noise(total, 8) - 0.3] if "do_rotary" in attrs else []
    options = {"outputs": 3, "domain": MICROSOFT, "num_heads": 4, "kv_num_heads": 2, **attrs}
    model, inputs = one("GroupQueryAttention", arrays, constants=(6,), **options)
    told = one("GroupQueryAttention", arrays, constants=(5, 6), **options)
    if "local_window_size" in attrs:  # Release 1.20 sees one key more.
        told = one("GroupQueryAttention", arrays, constants=(5, 6),
                   **{**options, "local_window_size": attrs["local_window_size"] - 1})
    want, *caches = run(*told)
    have, *made = run(repaired(model, inputs), inputs)
    np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-5)
    for cache, other in zip(caches, made, strict=True):
        for b, count in enumerate(valid):
            np.testing.assert_allclose(other[b, :, :count], cache[b, :, :count], rtol=1e-5,
                                       atol=1e-6)
            assert not other[b, :, count:].any()


@pytest.mark.parametrize("past, new, valid", [(9, 1, [4, 6]), (9, 3, [7]), (9, 4, [4])])
def test_their_number_may_be_told_at_run_time_too(past, new, valid):
    """As files for the graphs of WebGPU count them, by the longest of a batch."""
    arrays = [*(noise(len(valid), new, n * 16) for n in (4, 2, 2)),
              *(noise(len(valid), 2, past, 16) for _ in range(2)),
              np.array(valid, np.int32) - 1, np.array([max(valid)], np.int32)]
    model, inputs = one("GroupQueryAttention", arrays, outputs=3, domain=MICROSOFT, num_heads=4,
                        kv_num_heads=2)
    (want, *caches), (have, *made) = run(model, inputs), run(repaired(model, inputs), inputs)
    np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-5)
    for cache, other in zip(caches, made, strict=True):
        for b, count in enumerate(valid):
            np.testing.assert_allclose(other[b, :, :count], cache[b, :, :count], rtol=1e-6)


def test_a_cache_that_drops_keys_is_taken_where_it_need_not():
    arrays = [noise(1, 1, 64), noise(1, 1, 32), noise(1, 1, 32), noise(1, 2, 6, 16),
              noise(1, 2, 6, 16), np.array([4], np.int32), np.array([6], np.int32)]
    options = {"outputs": 3, "domain": MICROSOFT, "num_heads": 4, "kv_num_heads": 2,
               "constants": (6,)}
    whole, inputs = one("GroupQueryAttention", arrays, **options)
    model, _ = one("GroupQueryAttention", arrays, sliding_window_cache=1, **options)
    for want, have in zip(run(repaired(whole, inputs), inputs), run(
            repaired(model, inputs), inputs), strict=True):
        np.testing.assert_array_equal(have, want)
    arrays[6] += 1
    model, inputs = one("GroupQueryAttention", arrays, sliding_window_cache=1, **options)
    with pytest.raises(ToolError, match="room for 6 of 7 keys.*give it room for all of them by"):
        repaired(model, inputs)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("attrs, epsilons", [
    ({"qk_norm_epsilon": 0.1}, (0.1, 0.1)), ({}, (1e-6, 1e-6)),
    ({"q_norm_epsilon": 0.2, "k_norm_epsilon": 0.05, "qk_norm_epsilon": 1.0}, (0.2, 0.05))])
def test_queries_and_keys_may_be_normalised_before_they_are_turned(attrs, epsilons, packed):
    """As attention of queries and keys that NumPy has normalised."""
    q, k, v = (noise(1, 1, n * 16) * n for n in (4, 2, 2))
    weights = noise(16), noise(16) + 1
    common = [noise(1, 2, 5, 16), noise(1, 2, 5, 16), np.array([5], np.int32),
              np.array([6], np.int32), noise(6, 8), noise(6, 8) - 0.3]
    options = {"outputs": 3, "domain": MICROSOFT, "constants": (5, 6), "num_heads": 4,
               "kv_num_heads": 2, "do_rotary": 1}
    plain = []
    for x, weight, epsilon in zip((q, k), weights, epsilons):
        heads = x.reshape(1, 1, -1, 16).astype(np.float64)
        heads = heads / np.sqrt((heads ** 2).mean(-1, keepdims=True) + epsilon) * weight
        plain.append(heads.reshape(x.shape).astype(np.float32))
    model, inputs = one("GroupQueryAttention", [*plain, v, *common], **options)
    wanted = run(model, inputs)
    given = [np.concatenate([q, k, v], 2), None, None] if packed else [q, k, v]
    model, inputs = one("GroupQueryAttention", [*given, *common, *[None] * 5, *weights],
                        **options, **attrs)
    for want, have in zip(wanted, run(repaired(model, inputs), inputs), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("more, constants, said", [
    ([None] * 9 + [np.ones(1, np.int32)], (5, 6), "how many of the new keys count"),
    ([None] * 5 + [np.ones(1, np.float32)], (5, 6), "its cache is quantised")])
def test_groups_of_queries_that_nobody_could_check_are_refused(more, constants, said):
    arrays = [noise(1, 6, 32), noise(1, 6, 16), noise(1, 6, 16), None, None,
              np.array([5], np.int32), np.array([6], np.int32), *more]
    model, inputs = one("GroupQueryAttention", arrays, outputs=3, domain=MICROSOFT,
                        constants=constants, num_heads=4, kv_num_heads=2)
    with pytest.raises(ToolError, match=said):
        repaired(model, inputs)
