"""QONNX's operators, by their definition in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from repaired_models import model_of, one, operators, refusal, repaired, run

DOMAIN = "qonnx.custom_op.general"
X = np.concatenate([np.random.default_rng(1).standard_normal(200) * 3,
                    np.arange(-20, 20) / 8]).astype(np.float32).reshape(2, 3, 40)
ROUNDED = {"ROUND": np.rint, "CEIL": np.ceil, "FLOOR": np.floor, "DOWN": np.trunc,
           "UP": lambda x: np.sign(x) * np.ceil(np.abs(x)),
           "HALF_UP": lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5),
           "HALF_DOWN": lambda x: np.sign(x) * np.ceil(np.abs(x) - 0.5)}


def result(op, parameters, domain=DOMAIN, **attrs):
    arrays = [X, *(np.asarray(p, np.float32) for p in parameters)]
    model, inputs = one(op, arrays, domain=domain, constants=range(1, len(arrays)), **attrs)
    made = repaired(model, inputs)
    return run(made, inputs)[0], operators(made)


@pytest.mark.parametrize("rounding", ROUNDED)
@pytest.mark.parametrize("zero, bits, signed, narrow, low, high", [
    (0, 4, 1, 0, -8, 7), (0, 3, 1, 1, -3, 3), (3, 5, 0, 1, 0, 30), (0, 12, 0, 0, 0, 4095)])
def test_steps_of_some_bits(rounding, zero, bits, signed, narrow, low, high):
    have, _ = result("Quant", [0.25, zero, bits], signed=signed, narrow=narrow,
                     rounding_mode=rounding)
    want = (ROUNDED[rounding]((X / 0.25 + zero).clip(low, high)) - zero) * 0.25
    np.testing.assert_allclose(have, want, atol=1e-6)


@pytest.mark.parametrize("domain", [DOMAIN, "onnx.brevitas"])
def test_steps_of_each_channel_are_bytes(domain):
    scale = np.array([0.5, 0.125, 0.0625]).reshape(3, 1)
    have, found = result("Quant", [scale, 0, 6], domain, signed=1, narrow=0, rounding_mode="ROUND")
    np.testing.assert_array_equal(have, np.rint(X / scale).clip(-32, 31) * scale)
    assert found == ["QuantizeLinear", "Clip", "DequantizeLinear"]


def test_steps_of_two_axes():
    scale = np.random.default_rng(3).uniform(0.1, 1, (3, 40)).astype(np.float32)
    have, _ = result("IntQuant", [scale, 0, 4], signed=1, narrow=0)
    np.testing.assert_allclose(have, np.rint((X / scale).clip(-8, 7)) * scale, atol=1e-6)


def test_signs():
    want = np.where(X >= 0, 1, -1)
    np.testing.assert_array_equal(result("Quant", [0.5, 0, 1], signed=1, narrow=0)[0], want * 0.5)
    scale = np.array([1, 2, 3]).reshape(3, 1)
    np.testing.assert_array_equal(result("BipolarQuant", [scale])[0], want * scale)


def test_weights_are_stored_as_bytes():
    w = np.random.default_rng(3).standard_normal((4, 3, 1)).astype(np.float32)
    scale = np.float32([0.25, 0.5, 0.125, 1]).reshape(4, 1, 1)
    nodes = [helper.make_node("Quant", ["w", "scale", "zero", "bits"], ["few"], domain=DOMAIN,
                              signed=1, narrow=1, rounding_mode="ROUND"),
             helper.make_node("Conv", ["x", "few"], ["y"])]
    model = model_of(nodes, {"x": (TensorProto.FLOAT, X.shape)}, {"y": TensorProto.FLOAT}, 16,
                     {"w": w, "scale": scale, "zero": np.float32(0), "bits": np.float32(3)},
                     imports=[helper.make_opsetid(DOMAIN, 1)])
    made = repaired(model)
    few = np.rint(w / scale).clip(-3, 3) * scale
    np.testing.assert_allclose(run(made, {"x": X})[0], np.einsum("oi,nit->not", few[..., 0], X),
                               atol=1e-4)
    assert operators(made) == ["DequantizeLinear", "Conv"]


def test_steps_of_fewer_bits():
    """Of the same size before version 2, of the size that is given since."""
    have, _ = result("Trunc", [0.125, 1, 8, 5], rounding_mode="FLOOR")
    want = (np.floor(np.rint(X / 0.125 + 1) / 8) - 1) * 0.125
    np.testing.assert_array_equal(have, want)
    have, _ = result("Trunc", [0.125, 2, 8, 0.5, 4], rounding_mode="FLOOR", signed=0, narrow=1)
    want = (np.floor((np.rint(X / 0.125 + 2) / 4).clip(0, 14)) - 0.5) * 0.5
    np.testing.assert_array_equal(have, want)


@pytest.mark.parametrize("exponent, fraction", [(4, 3), (5, 2), (2, 1), (3, 4), (7, 8)])
def test_floats_of_few_bits(exponent, fraction):
    bias, scale = 2 ** (exponent - 1) - 1, 0.5
    have, _ = result("FloatQuant", [scale, exponent, fraction, bias, 1e9], has_inf=0, has_nan=0,
                     has_subnormal=1, saturation=1, rounding_mode="ROUND")
    x = X.astype(np.float64) / scale
    unit = 2.0 ** (np.maximum(np.frexp(x)[1] - 1, 1 - bias) - fraction)
    most = (2 - 2.0 ** -fraction) * 2.0 ** min(2 ** exponent - 1 - bias, 30)
    np.testing.assert_array_equal(have, (np.rint(x / unit) * unit).clip(-most, most) * scale)


def test_floats_beyond_the_largest():
    have, _ = result("FloatQuant", [0.01, 4, 3, 7, 240], has_inf=0, has_nan=1, saturation=0,
                     has_subnormal=1)
    assert np.isnan(have[np.abs(X) > 2.5]).all() and np.isfinite(have[np.abs(X) < 2.4]).all()


@pytest.mark.parametrize("layout, axis, channels", [("NCW", 1, 3), ("NWC", 2, 40), ("", 2, 40),
                                                    ("NCW", 1, 1)])
def test_thresholds(layout, axis, channels):
    steps = np.sort(np.random.default_rng(2).standard_normal((channels, 7)), 1).astype(np.float32)
    have, _ = result("MultiThreshold", [steps], out_dtype="UINT4", data_layout=layout,
                     out_scale=0.5, out_bias=-1.0)
    moved = np.moveaxis(X, axis, -1)
    want = np.moveaxis((moved[..., None] >= steps).sum(-1), -1, axis) * 0.5 - 1
    np.testing.assert_array_equal(have, want)


def test_roundings_of_which_nothing_is_known():
    model, inputs = one("Quant", [X, *np.float32([[0.5], [0], [4]])], domain=DOMAIN,
                        constants=(1, 2, 3), signed=1, narrow=0, rounding_mode="STOCHASTIC")
    assert "STOCHASTIC" in refusal(model, inputs)
