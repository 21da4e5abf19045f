"""Operators that are none of ONNX's own: transformers as ONNX Runtime's optimiser writes them, and
steps before and after networks as scikit-learn's converter does."""

from __future__ import annotations

import math

import numpy as np
import onnx
import pytest
from attention_test import attention, unless
from repaired_models import check, matches, noise, one, repaired, run

from run_model_tools.errors import ToolError
from run_model_tools.onnx_model import read_model
from run_model_tools.onnx_repair import onnxruntime_process
from run_model_tools.onnx_repair.reference import REPAIRED

MICROSOFT, ML = "com.microsoft", "ai.onnx.ml"
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


def test_what_nobody_here_knows_is_compared_with_its_repaired_form(tmp_path):
    x, scale = noise(2, 8), noise(8)
    model, inputs = one("RMSNormalization", [x, scale], opset=23)
    onnx.save(model, str(tmp_path / "rms.onnx"))
    (have,), who = read_model(tmp_path / "rms.onnx").run_by(inputs)
    np.testing.assert_allclose(
        have, x / np.sqrt(np.mean(x * x, -1, keepdims=True) + 1e-5) * scale, rtol=1e-5)
    assert who == REPAIRED


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


@pytest.mark.parametrize("how", ["NONE", "SOFTMAX", "LOGISTIC"])
def test_linear_models(how):
    rows = [float(number) for number in noise(12)]
    matches("LinearClassifier", [noise(4, 4)], outputs=2, domain=ML, coefficients=rows,
            intercepts=[0.1, 0.2, 0.3], classlabels_ints=[7, 9, 8], post_transform=how)
    matches("LinearRegressor", [noise(4, 4)], domain=ML, coefficients=rows, targets=3,
            intercepts=[0.1, 0.2, 0.3])


def test_linear_models_of_another_form_are_refused():
    model, inputs = one("LinearClassifier", [noise(2, 4)], outputs=2, domain=ML, intercepts=[0.1],
                        coefficients=[1.0, 2.0, 3.0, 4.0], classlabels_ints=[0, 1])
    with pytest.raises(ToolError, match="not as many rows of coefficients as classes"):
        repaired(model, inputs)


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_rows_are_normalised(norm):
    matches("Normalizer", [np.float32([[1, -2, 3, -4], [-1, -2, -3, -0.5], [0, 0, 0, 0]])],
            domain=ML, norm=norm)


def test_missing_numbers_are_filled_in():
    x = np.float32([[1, np.nan, 2], [np.nan, 1, 1]])
    matches("Imputer", [x], domain=ML, imputed_value_floats=[5.0, 6.0, 7.0],
            replaced_value_float=float("nan"))
    matches("Imputer", [np.array([[1, 0, 2]])], domain=ML, imputed_value_int64s=[5, 6, 7],
            replaced_value_int64=0)
    matches("FeatureVectorizer", [noise(2, 3), noise(2, 1)], domain=ML, inputdimensions=[3, 1])


def test_categories():
    matches("OneHotEncoder", [np.array([[1, 5], [3, 1]])], domain=ML, cats_int64s=[5, 1, 2],
            zeros=1)


@pytest.mark.parametrize("keys, values, version", [
    ({"keys_int64s": [4, 9, 9, -2]}, {"values_floats": [0.5, 1.5, 2.5, 3.5]}, 2),
    ({"keys_int64s": [4, 2**63 - 1, -2**63]}, {"values_floats": [0.5, 1.5, 2.5]}, 2),
    ({"keys_int64s": [4, 1 << 40, -2]}, {"values_int64s": [7, 8, 9], "default_int64": 5}, 3),
    ({"keys_floats": [4.0, float("nan"), -2.5]}, {"values_floats": [1.0, 2.0, 3.0],
                                                   "default_float": 9.0}, 4),
    ({"keys_floats": [4.0, float("nan"), -2.5]}, {"values_int64s": [1, 2, 3]}, 2)])
def test_numbers_are_translated(keys, values, version):
    """Some are no keys; of equal keys the first counts, also where it is NaN, which is found from
    version 4 on."""
    whole = "keys_int64s" in keys
    x = np.array([[4, -2, 3], [9, 1 << 40, 1 << 41]], np.int64) if whole else np.array(
        [[4, np.nan, 3], [-2.5, np.inf, -2.25]], np.float32)
    model, inputs = one("LabelEncoder", [x], domain=ML, **keys, **values)
    model.opset_import[-1].version = version
    check(model, inputs)


@pytest.mark.parametrize("kind", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_support_vectors(kind):
    vectors = {"n_supports": 5, "support_vectors": [float(n) for n in noise(20)],
               "coefficients": [float(n) for n in noise(5)], "rho": [0.3],
               "kernel_type": kind, "kernel_params": [0.2, 0.5, 3.0]}
    matches("SVMRegressor", [noise(6, 4)], domain=ML, **vectors)
    matches("SVMRegressor", [noise(6, 4)], domain=ML, **{
        **vectors, "n_supports": 0, "coefficients": [float(n) for n in noise(4)]})


@pytest.mark.parametrize("kind", ["RBF", "LINEAR", "POLY", "SIGMOID"])
@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_support_vector_classifiers(kind, classes, transform):
    owned = [2, 1, 3, 2][:classes]
    pairs = classes * (classes - 1) // 2
    matches("SVMClassifier", [noise(9, 4)], domain=ML, outputs=2, kernel_type=kind,
            kernel_params=[0.2, 0.5, 3.0], vectors_per_class=owned, post_transform=transform,
            support_vectors=[float(n) for n in noise(4 * sum(owned))],
            coefficients=[float(n) for n in noise((classes - 1) * sum(owned))],
            rho=[float(n) for n in noise(pairs)], classlabels_ints=[7, 3, 5, 11][:classes])
    if classes > 2 and kind == "LINEAR":
        matches("SVMClassifier", [noise(9, 4)], domain=ML, outputs=2, post_transform=transform,
                coefficients=[float(n) for n in noise(4 * classes)], rho=[0.3],
                kernel_type=kind, kernel_params=[0.2, 0.5, 3.0],
                classlabels_ints=[7, 3, 5, 11][:classes])


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX"])
def test_probabilities_of_support_vector_classifiers(classes, transform):
    """Also where the machines between two classes are sure of what contradicts each other."""
    pairs = classes * (classes - 1) // 2
    for scale in (1, 30):
        matches("SVMClassifier", [noise(40, 4)], domain=ML, outputs=2, kernel_type="LINEAR",
                kernel_params=[0.0, 0.0, 0.0], vectors_per_class=[2] * classes,
                support_vectors=[float(n) for n in noise(8 * classes)],
                coefficients=[float(scale * n) for n in noise((classes - 1) * 2 * classes)],
                rho=[float(n) for n in noise(pairs)], post_transform=transform,
                prob_a=[-float(n) for n in noise(pairs) ** 2],
                prob_b=[float(n) for n in noise(pairs)],
                classlabels_ints=[7, 3, 5, 11, 2][:classes])


def test_what_tensorflow_s_converter_leaves_as_it_is():
    """tf2onnx writes TensorFlow's Erfc for Keras' GELU, and nobody else knows it."""
    x = np.float32([-3, -0.5, 0, 0.7, 2])
    model, inputs = one("Erfc", [x])
    (have,) = run(repaired(model, inputs), inputs)
    np.testing.assert_allclose(have, [math.erfc(float(n)) for n in x], rtol=1e-5, atol=1e-7)


def test_pooling_of_channels_at_the_end():
    x = np.random.default_rng(2).integers(0, 255, (1, 9, 7, 3)).astype(np.uint8)
    for attrs in ({"pads": [1, 0, 1, 1]}, {"auto_pad": "SAME_UPPER"}):
        matches("NhwcMaxPool", [x], domain=MICROSOFT, kernel_shape=[3, 2], strides=[2, 2], **attrs)


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


@pytest.mark.parametrize("more, constants, said", [
    ([None] * 5 + [np.ones(1, np.float32)], (5, 6), "its cache is quantised")])
def test_groups_of_queries_that_nobody_could_check_are_refused(more, constants, said):
    arrays = [noise(1, 6, 32), noise(1, 6, 16), noise(1, 6, 16), None, None,
              np.array([5], np.int32), np.array([6], np.int32), *more]
    model, inputs = one("GroupQueryAttention", arrays, outputs=3, domain=MICROSOFT,
                        constants=constants, num_heads=4, kv_num_heads=2)
    with pytest.raises(ToolError, match=said):
        repaired(model, inputs)


@pytest.mark.parametrize("first, rows", [(0, 0), (1, 0), (1, 1)])
def test_products_of_operands_whose_rows_come_before_the_batch(first, rows):
    shape = {(0, 0): (2, 3, 5, 4), (1, 0): (5, 2, 3, 4), (1, 1): (4, 2, 3, 5)}[first, rows]
    matches("FusedMatMul", [noise(*shape), noise(4, 2, 3, 6)], domain=MICROSOFT,
            transBatchA=first, transA=rows, transBatchB=1, alpha=0.5)


def test_what_was_optimised_for_one_cpu_is_refused_with_what_to_do():
    model, inputs = one("Conv", [noise(1, 8, 5, 5), noise(8, 8, 3, 3)], domain=f"{MICROSOFT}.nchwc")
    with pytest.raises(ToolError, match="one kind of CPU.*ORT_ENABLE_EXTENDED"):
        repaired(model, inputs)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
def test_inverses(n):
    """Also of a matrix whose rows have to change their places, and of an almost singular one."""
    x = noise(2, 3, n, n)
    x[0, 0] = np.eye(n)[np.roll(np.arange(n), 1)] * 2
    x[0, 1] = np.diag([1e-4] * (n - 1) + [1e4])
    model, inputs = one("Inverse", [x], domain=MICROSOFT)
    (want,), (have,) = run(model, inputs), run(repaired(model, inputs), inputs)
    np.testing.assert_allclose(have, want, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(have, np.linalg.inv(x.astype(float)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op, domain", [("Inverse", MICROSOFT), ("Det", "")])
def test_large_matrices_are_refused(op, domain):
    for shape, said in (((1, 40, 40), "40x40 matrices, and 32x32"), ((2, 3), "are not square")):
        model, inputs = one(op, [noise(*shape)], domain=domain)
        with pytest.raises(ToolError, match=said):
            repaired(model, inputs)


@pytest.mark.parametrize("activation, given", [
    ("Relu", {}), ("LeakyRelu", {"activation_alpha": 0.2}), ("Tanh", {}),
    ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4})])
def test_products_with_an_activation(activation, given):
    matches("FusedGemm", [noise(7, 3), noise(5, 7), noise(5)], domain=MICROSOFT, transA=1,
            transB=1, alpha=0.5, beta=2.0, activation=activation, **given)


def of_bytes(dtype, *shape):
    kind = np.iinfo(dtype)
    return np.random.default_rng(7).integers(kind.min, kind.max + 1, shape, dtype)


STEPS = [np.array(0.02, np.float32), np.array(120, np.uint8)]


def near(op, arrays, fixed, **attrs):
    """That both give the same but for how numbers between two steps are rounded."""
    model, inputs = one(op, arrays, domain=MICROSOFT, constants=fixed, **attrs)
    # Where its sums are exact on every CPU.
    (want,) = onnxruntime_process.run(model.SerializeToString(), inputs)
    (have,) = run(repaired(model, inputs), inputs)
    assert want.dtype == have.dtype and want.shape == have.shape and want.std() > 20
    apart = np.abs(want.astype(int) - have)
    assert apart.max() <= 1 and apart.mean() < 0.01


@pytest.mark.parametrize("last", [0, 1])
def test_convolutions_of_bytes_with_their_channels_last(last):
    """With small weights, since ONNX Runtime's own form of it adds up to 32767 on some CPUs."""
    arrays = [of_bytes(np.uint8, *((1, 6, 5, 4) if last else (1, 4, 6, 5))), *STEPS,
              of_bytes(np.int8, 8, 2, 3, 3) // 2, np.array(0.02, np.float32), np.array(0, np.int8),
              np.array(0.06, np.float32), np.array(100, np.uint8),
              of_bytes(np.int16, 8).astype(np.int32)]
    near("QLinearConv", arrays, range(1, 9), group=2, pads=[1] * 4, channels_last=last)


@pytest.mark.parametrize("op, attrs", [
    ("QLinearAveragePool", {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 0, 1]}),
    ("QLinearGlobalAveragePool", {})])
def test_poolings_of_bytes_with_their_channels_last(op, attrs):
    near(op, [of_bytes(np.uint8, 2, 5, 4, 6), *STEPS, np.array(0.005, np.float32), STEPS[1]],
         range(1, 5), channels_last=1, **attrs)


def test_maxima_with_their_channels_last():
    for sides in ((6, 5), (6, 5, 4)):
        matches("NhwcMaxPool", [of_bytes(np.uint8, 1, *sides, 3)], domain=MICROSOFT,
                kernel_shape=[2] * len(sides), strides=[2] * len(sides))


@pytest.mark.parametrize("columns, mask", [((), None), ((24,), np.array([3, 5], np.int32))])
def test_attention_of_bytes(columns, mask):
    scale = np.linspace(0.001, 0.004, 24, dtype=np.float32) if columns else np.float32(0.002)
    arrays = [of_bytes(np.uint8, 2, 5, 8), of_bytes(np.int8, 8, 24), B, STEPS[0],
              np.asarray(scale), mask, STEPS[1], np.zeros(columns, np.int8)]
    model, inputs = one("QAttention", arrays, domain=MICROSOFT, constants=(1, 2, 3, 4, 6, 7),
                        num_heads=2)
    (want,) = onnxruntime_process.run(model.SerializeToString(), inputs)
    (have,) = run(repaired(model, inputs), inputs)
    np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("direction, columns, lengths", [
    ("forward", False, None), ("reverse", True, None), ("bidirectional", True, None),
    ("bidirectional", False, np.array([6, 4], np.int32))])
def test_steps_quantised_at_run_time(direction, columns, lengths):
    """On one thread ONNX Runtime takes the range of all rows, as we do; where some have ended, its
    range has what it goes on computing for them."""
    count, hidden = 1 + (direction == "bidirectional"), 4
    steps = (count, 4 * hidden) if columns else (count,)
    scales = [np.linspace(low, 0.01, int(np.prod(steps)), dtype=np.float32).reshape(steps)
              for low in (0.006, 0.004)]
    zero = np.full(steps, 5, np.uint8)
    arrays = [noise(6, 2, 3), of_bytes(np.uint8, count, 3, 16), of_bytes(np.uint8, count, 4, 16),
              noise(count, 32), lengths, noise(count, 2, 4), None, noise(count, 12), scales[0],
              zero, scales[1], zero]
    model, inputs = one("DynamicQuantizeLSTM", arrays, outputs=3, domain=MICROSOFT,
                        constants=(1, 2, 3, 7, 8, 9, 10, 11), hidden_size=hidden,
                        direction=direction)
    want, have = (onnxruntime_process.run(m.SerializeToString(), inputs)
                  for m in (model, repaired(model, inputs)))
    for w, h in zip(want, have, strict=True):
        np.testing.assert_allclose(h, w, rtol=1e-5, atol=1e-6 if lengths is None else 5e-3)


def test_embeddings_of_bytes():
    tables = [of_bytes(np.uint8, rows, 8) for rows in (20, 6, 2)]
    scale, shift = of_bytes(np.uint8, 8), of_bytes(np.uint8, 8)[::-1].copy()
    steps = [np.array(0.01 * (1 + i), np.float32) for i in range(5)]
    zeros = [np.array(110 + i, np.uint8) for i in range(5)]
    ids = np.random.default_rng(8).integers(0, 20, (2, 5)).astype(np.int32)
    matches("QEmbedLayerNormalization", [
        ids, (ids % 2).astype(np.int32), *tables, scale, shift, np.ones((2, 5), np.int32), *steps,
        *zeros], domain=MICROSOFT, outputs=2, constants=(*range(2, 7), *range(8, 18)))
