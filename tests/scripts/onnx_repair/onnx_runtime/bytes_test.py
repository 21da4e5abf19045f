"""Layers of bytes of com.microsoft, but for the last rounding as ONNX Runtime computes them."""

from __future__ import annotations

import numpy as np
import pytest
from repaired_models import matches, noise, one, repaired, run, whole

from run_model_tools.errors import ToolError
from run_model_tools.onnx_repair import onnxruntime_process

MICROSOFT = "com.microsoft"
STEPS = [np.array(0.02, np.float32), np.array(120, np.uint8)]


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_quantised_sums(op):
    random = np.random.default_rng(5)
    a, b = (random.integers(0, 256, (2, 9), np.uint8) for _ in "ab")
    scales = [np.array(s, np.float32) for s in (0.02, 0.03, 0.05)]
    zero = np.array(7, np.uint8)
    model, inputs = one(op, [a, scales[0], zero, b, scales[1], zero, scales[2], zero],
                        domain=MICROSOFT, constants=(1, 2, 4, 5, 6, 7))
    (want,), (have,) = run(model, inputs), run(repaired(model, inputs), inputs)
    assert np.abs(want.astype(int) - have).max() <= 1


def test_a_choice_between_bytes():
    grids = [(np.float32(s), np.uint8(z)) for s, z in ((0.02, 7), (0.03, 90), (0.05, 30))]
    arrays = [whole(np.uint8, 4, 9) > 100, whole(np.uint8, 4, 9), *grids[0],
              whole(np.uint8, 4, 9).T.copy().reshape(4, 9), *grids[1], *grids[2]]
    model, inputs = one("QLinearWhere", [np.asarray(a) for a in arrays], domain=MICROSOFT,
                        constants=(2, 3, 5, 6, 7, 8))
    (want,), (have,) = run(model, inputs), run(repaired(model, inputs), inputs)
    assert np.abs(want.astype(int) - have).max() <= 1


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
    arrays = [whole(np.uint8, *((1, 6, 5, 4) if last else (1, 4, 6, 5))), *STEPS,
              whole(np.int8, 8, 2, 3, 3) // 2, np.array(0.02, np.float32), np.array(0, np.int8),
              np.array(0.06, np.float32), np.array(100, np.uint8),
              whole(np.int16, 8).astype(np.int32)]
    near("QLinearConv", arrays, range(1, 9), group=2, pads=[1] * 4, channels_last=last)


@pytest.mark.parametrize("op, attrs", [
    ("QLinearAveragePool", {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 0, 1]}),
    ("QLinearGlobalAveragePool", {})])
def test_poolings_of_bytes_with_their_channels_last(op, attrs):
    near(op, [whole(np.uint8, 2, 5, 4, 6), *STEPS, np.array(0.005, np.float32), STEPS[1]],
         range(1, 5), channels_last=1, **attrs)


@pytest.mark.parametrize("attrs, scales, bias, output", [
    ({}, (), None, (np.float32(0.4), np.uint8(90))),
    ({"transB": 1, "alpha": 0.5}, (5,), whole(np.int16, 5).astype(np.int32),
     (np.float32(0.4), np.uint8(90))),
    ({"transA": 1}, (5,), whole(np.int16, 5).astype(np.int32), ())])
def test_products_of_bytes_with_a_bias(attrs, scales, bias, output):
    a = whole(np.uint8, *((7, 3) if attrs.get("transA") else (3, 7)))
    b = whole(np.int8, *((5, 7) if attrs.get("transB") else (7, 5)))
    b_scale = np.abs(noise(*scales)) / 50 + np.float32(0.01)
    arrays = [a, np.float32(0.05), np.uint8(120), b, np.asarray(b_scale, np.float32),
              np.zeros(scales, np.int8), bias, *output]
    arrays = [x if x is None else np.asarray(x) for x in arrays]
    fixed = [i for i in range(1, len(arrays)) if arrays[i] is not None]
    model, inputs = one("QGemm", arrays, domain=MICROSOFT, constants=fixed, **attrs)
    # Where its sums are exact on every CPU.
    (want,) = onnxruntime_process.run(model.SerializeToString(), inputs)
    (have,) = run(repaired(model, inputs), inputs)
    assert want.dtype == have.dtype and len(np.unique(want)) > 5
    if output:
        assert np.abs(want.astype(int) - have).max() <= 1
    else:
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("op, arrays, domain", [
    ("QGemm", [whole(np.uint8, 3, 4), np.float32(0.1), np.uint8(9), whole(np.int8, 4, 5),
               np.float32(0.1), np.int8(0), whole(np.uint8, 5), np.float32(0.1), np.uint8(9)],
     "com.microsoft"),
    ("QLinearConv", [whole(np.uint8, 1, 2, 4, 4), np.float32(0.1), np.uint8(9),
                     whole(np.int8, 5, 2, 1, 1), np.float32(0.1), np.int8(0), np.float32(0.1),
                     np.uint8(9), whole(np.uint8, 5)], "")])
def test_a_bias_of_bytes_is_refused(op, arrays, domain):
    """ONNX Runtime's quantizer writes it for a bias that is a layer's and something else as
    well."""
    model, inputs = one(op, [np.asarray(a) for a in arrays], domain=domain,
                        constants=range(1, 9))
    with pytest.raises(ToolError, match="its bias is uint8 where it has to be int32"):
        repaired(model, inputs)


@pytest.mark.parametrize("op, arrays, fixed", [
    ("MatMulIntegerToFloat", [whole(np.uint8, 2, 7), whole(np.int8, 7, 5), np.float32(0.02),
                              noise(5), np.uint8(90), np.int8(0), noise(5)], (1, 2, 3, 4, 5, 6)),
    ("DynamicQuantizeMatMul", [noise(2, 3, 7), whole(np.int8, 7, 5), np.float32(0.02),
                               np.int8(4), noise(5)], (1, 2, 3, 4))])
def test_products_of_bytes_in_float32(op, arrays, fixed):
    arrays = [x if x is None else np.asarray(x) for x in arrays]
    model, inputs = one(op, arrays, domain=MICROSOFT, constants=fixed)
    (want,) = onnxruntime_process.run(model.SerializeToString(), inputs)
    (have,) = run(repaired(model, inputs), inputs)
    np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("columns, mask", [((), None), ((24,), np.array([3, 5], np.int32))])
def test_attention_of_bytes(columns, mask):
    scale = np.linspace(0.001, 0.004, 24, dtype=np.float32) if columns else np.float32(0.002)
    arrays = [whole(np.uint8, 2, 5, 8), whole(np.int8, 8, 24), noise(24), STEPS[0],
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
    arrays = [noise(6, 2, 3), whole(np.uint8, count, 3, 16), whole(np.uint8, count, 4, 16),
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
    tables = [whole(np.uint8, rows, 8) for rows in (20, 6, 2)]
    scale, shift = whole(np.uint8, 8), whole(np.uint8, 8)[::-1].copy()
    steps = [np.array(0.01 * (1 + i), np.float32) for i in range(5)]
    zeros = [np.array(110 + i, np.uint8) for i in range(5)]
    ids = np.random.default_rng(8).integers(0, 20, (2, 5)).astype(np.int32)
    matches("QEmbedLayerNormalization", [
        ids, (ids % 2).astype(np.int32), *tables, scale, shift, np.ones((2, 5), np.int32), *steps,
        *zeros], domain=MICROSOFT, outputs=2, constants=(*range(2, 7), *range(8, 18)))
