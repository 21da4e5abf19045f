"""Operators that opsets after 21 brought or changed, which no reference here knows, by definition;
and what of them is not known here either."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto
from repaired_models import noise, one, refusal, repaired, run

X = np.array([5.5, -5.5, 5.5, -5.5, 6, -6, 0, 1e-3], np.float32)
Y = np.array([2, 2, -2, -2, 3, 3, -2, -1e4], np.float32)


def result(op, arrays, opset, **attrs):
    model, inputs = one(op, arrays, opset=opset, **attrs)
    (have,) = run(repaired(model, inputs), inputs)
    return have


def test_the_remainder_of_floats_has_the_divisors_sign_since_opset_28():
    want = X.astype(np.float64) - np.floor(X.astype(np.float64) / Y) * Y
    assert (want != np.fmod(X, Y)).any()
    np.testing.assert_allclose(result("Mod", [X, Y], 28), want, rtol=1e-6)
    np.testing.assert_allclose(result("Mod", [X, Y], 28, fmod=1), np.fmod(X, Y), rtol=1e-6)


def test_blocks_of_pixels_become_channels_behind_each_other():
    x = noise(2, 3, 4, 6)
    blocks = x.reshape(2, 3, 2, 2, 3, 2)
    by_place = blocks.transpose(0, 3, 5, 1, 2, 4).reshape(2, 12, 2, 3)
    by_channel = blocks.transpose(0, 1, 3, 5, 2, 4).reshape(2, 12, 2, 3)
    np.testing.assert_array_equal(result("SpaceToDepth", [x], 13, blocksize=2), by_place)
    np.testing.assert_array_equal(
        result("SpaceToDepth", [x], 28, blocksize=2, mode="CRD"), by_channel)


def test_a_gate_and_what_it_lets_through():
    a, b = noise(2, 7), noise(2, 7)
    want = a / (1 + np.exp(-1.5 * a.astype(np.float64))) * b
    np.testing.assert_allclose(result("SwiGLU", [a, b], 28, alpha=1.5), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
def test_running_products(exclusive, reverse):
    x = noise(2, 7, 3)
    turned = x[:, ::-1] if reverse else x
    if exclusive:
        turned = np.concatenate([np.ones_like(turned[:, :1]), turned[:, :-1]], 1)
    want = np.cumprod(turned.astype(np.float64), 1)
    model, inputs = one("CumProd", [x, np.array(-2)], opset=26, constants=(1,),
                        exclusive=exclusive, reverse=reverse)
    (have,) = run(repaired(model, inputs), inputs)
    np.testing.assert_allclose(have, want[:, ::-1] if reverse else want, rtol=1e-5, atol=1e-6)


def test_numbers_of_another_type_than_the_scale():
    x = np.arange(-4, 4, dtype=np.int8)
    have = result("DequantizeLinear", [x, np.array(0.5, np.float32)], 23,
                  output_dtype=TensorProto.DOUBLE)
    assert have.dtype == np.float64
    np.testing.assert_array_equal(have, x / 2)


@pytest.mark.parametrize("op, arrays, domain", [
    ("Relu", [noise(2, 3)], ""), ("QuickGelu", [noise(2, 3)], "com.microsoft"),
    ("Scaler", [noise(2, 3)], "ai.onnx.ml")])
def test_attributes_that_nobody_knows_are_refused(op, arrays, domain):
    """They may change what is computed, as one of Attention's and one of SpaceToDepth's did."""
    given = {"scale": [1.0], "offset": [0.0]} if op == "Scaler" else {}
    result(op, arrays, 18, domain=domain, **given)
    model, inputs = one(op, arrays, domain=domain, strange=1, **given)
    message = str(refusal(model, inputs))
    assert "nothing is known of its attribute 'strange'" in message and op in message


def test_an_attribute_that_is_not_there_is_named():
    message = str(refusal(*one("SpaceToDepth", [noise(2, 3, 4, 6)], opset=13)))
    assert "(SpaceToDepth, opset 13): it has no attribute 'blocksize'" in message


@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_numbers_with_a_sign_are_shifted(direction):
    x = np.array([5, -5, -8, 2 ** 31 - 1, -2 ** 31, -1, 7], np.int32)[:, None]
    by = np.array([0, 1, 3, 30, 31, 32, -1], np.int32)
    inside = np.clip(by, 0, 31)
    want = (x << inside if direction == "LEFT" else x >> inside).astype(np.int32)
    want = np.where(inside == by, want, np.where((x < 0) & (direction == "RIGHT"), -1, 0))
    np.testing.assert_array_equal(result("BitShift", [x, by], 28, direction=direction), want)


def test_bits_are_taken_for_those_of_another_type():
    x = np.array([-1, 0, 7], np.int32)
    have = result("BitCast", [x], 26, to=TensorProto.UINT32)
    np.testing.assert_array_equal(have, x.view(np.uint32))
    model, inputs = one("BitCast", [x], opset=26, constants=(0,), to=TensorProto.FLOAT)
    (have,) = run(repaired(model, inputs), inputs)
    np.testing.assert_array_equal(have.view(np.int32), x)
    assert "bits of int32 for float32" in str(refusal(*one("BitCast", [x], opset=26, to=1)))


def test_types_that_came_later_are_refused_by_name():
    message = str(refusal(*one("Cast", [noise(2, 3)], opset=25, to=24)))
    assert "it casts to float8e8m0" in message
