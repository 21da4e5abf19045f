"""Numbers of 2, 4 and 8 bits between layers and in weights, by ONNX Runtime where it has them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from repaired_models import FLOAT, check, model_of, noise, refusal, repaired, run

FLOAT4, FLOAT8_SCALE, UINT2, INT2 = 23, 24, 25, 26
EIGHT = ("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ")


def node(op, inputs, output, **attrs):
    return helper.make_node(op, inputs, [output], **attrs)


def with_tensors(model, *tensors):
    model.graph.initializer.extend(tensors)
    model.ir_version = 9
    return model


def stored(name, kind, shape, data):
    """A tensor of a type of which the onnx here need not know."""
    return TensorProto(name=name, data_type=kind, dims=shape, raw_data=np.asarray(data, np.uint8)
                       .tobytes())


def rounding(kind, count, **attrs):
    return model_of([node("Cast", ["x"], "few", to=kind, **attrs),
                     node("Cast", ["few"], "y", to=FLOAT)],
                    {"x": (FLOAT, [count])}, {"y": FLOAT}, 19)


def numbers_around(kind):
    """All numbers of a type, those in the middle between two, and both beside each of these."""
    every = numpy_helper.to_array(TensorProto(data_type=kind, dims=[128], int32_data=range(128)))
    every = np.unique(every[np.isfinite(every)]).astype(np.float32)
    middle = (every[1:] + every[:-1]) / 2
    near = [np.nextafter(middle, np.float32(to)) for to in (np.inf, -np.inf)]
    beyond = every.max() * np.float32([1.01, 1.06, 1.3, 2, 1e9, np.inf])
    x = np.concatenate([every, middle, *near, beyond, [np.nan, 1e-40]]).astype(np.float32)
    return np.concatenate([x, -x])


@pytest.mark.parametrize("name", EIGHT)
def test_floats_of_eight_bits(name):
    kind = getattr(TensorProto, name)
    x = numbers_around(kind)
    model = rounding(kind, len(x))
    np.testing.assert_array_equal(run(repaired(model), {"x": x})[0], run(model, {"x": x})[0])


@pytest.mark.parametrize("name, beyond", zip(EIGHT, (np.nan, np.nan, np.inf, np.nan)))
def test_floats_of_eight_bits_that_do_not_end_at_the_largest(name, beyond):
    kind = getattr(TensorProto, name)
    x = np.array([1e9, -np.inf, 3.3], np.float32)
    have = run(repaired(rounding(kind, 3, saturate=0)), {"x": x})[0]
    np.testing.assert_array_equal(have[:2], [beyond, -beyond])
    np.testing.assert_array_equal(have[2:], run(rounding(kind, 3), {"x": x})[0][2:])


@pytest.mark.parametrize("kind, scale, opset", [
    (TensorProto.FLOAT8E4M3FN, 0.01, 19), (TensorProto.FLOAT8E5M2, 0.001, 21),
    (TensorProto.INT4, 0.3, 21), (TensorProto.UINT4, 0.3, 21)])
def test_activations_and_weights_between_quantise_and_dequantise(kind, scale, opset):
    def pair(x, scales, y, **attrs):
        return [node("QuantizeLinear", [x, scales, f"zero_{scales}"], f"{y}_whole", **attrs),
                node("DequantizeLinear", [f"{y}_whole", scales, f"zero_{scales}"], y, **attrs)]

    model = model_of(
        [*pair("x", "one", "rounded"), *pair("w", "each", "weights", axis=1),
         node("MatMul", ["rounded", "weights"], "y")],
        {"x": (FLOAT, [6, 20])}, {"y": FLOAT}, opset,
        {"w": noise(20, 3), "one": np.float32(scale), "each": np.float32([1, 2, 3]) * scale})
    with_tensors(model, helper.make_tensor("zero_one", kind, [], [0]),
                 helper.make_tensor("zero_each", kind, [3], [0] * 3))
    check(model, {"x": 2 * noise(6, 20)})


def weights(nodes, kind, shape, data, constants, opset=25):
    model = model_of(nodes, {"x": (FLOAT, [2, shape[0]])}, {"y": FLOAT}, opset, constants)
    return with_tensors(model, stored("w", kind, shape, data))


@pytest.mark.parametrize("kind, least", [(UINT2, 0), (INT2, -2)])
def test_weights_of_two_bits(kind, least):
    """The first number lies in the lowest bits."""
    whole = np.random.default_rng(1).integers(least, least + 4, (6, 10))
    data = ((whole & 3).reshape(-1, 4) << [0, 2, 4, 6]).sum(1)
    scale, x = np.random.default_rng(2).uniform(1, 2, (3, 10)).astype(np.float32), noise(2, 6)
    model = weights([node("DequantizeLinear", ["w", "scale"], "floats", axis=0, block_size=2),
                     node("MatMul", ["x", "floats"], "y")], kind, [6, 10], data, {"scale": scale})
    want = x.astype(np.float64) @ (whole * scale.repeat(2, 0).astype(np.float64))
    np.testing.assert_allclose(run(repaired(model), {"x": x})[0], want, rtol=1e-5, atol=1e-5)


def test_weights_of_four_bits_that_are_floats():
    """As NVIDIA's ModelOpt stores them: the scale of a block is a float of eight bits."""
    codes = np.random.default_rng(1).integers(0, 16, (8, 4))
    numbers = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6]).take(codes & 7) * np.where(codes > 7, -1, 1)
    data = (codes.reshape(-1, 2) << [0, 4]).sum(1)
    bytes_of_scales = np.array([[56, 48, 64, 60], [72, 40, 56, 8]])  # 1, 0.5, 2, 1.5; 4 ... 2**-6
    scales = np.array([[1, 0.5, 2, 1.5], [4, 0.25, 1, 2.0 ** -6]])
    x = noise(2, 8)
    model = weights([node("DequantizeLinear", ["scales", "scale"], "each"),
                     node("DequantizeLinear", ["w", "each"], "floats", axis=0, block_size=4),
                     node("MatMul", ["x", "floats"], "y")], FLOAT4, [8, 4], data,
                    {"scale": np.float32(0.5)}, 23)
    with_tensors(model, stored("scales", TensorProto.FLOAT8E4M3FN, [2, 4], bytes_of_scales))
    want = x.astype(np.float64) @ (numbers * scales.repeat(4, 0) * 0.5)
    np.testing.assert_allclose(run(repaired(model), {"x": x})[0], want, rtol=1e-5, atol=1e-5)


def test_scales_that_are_powers_of_two():
    data = [[56, 184, 64, 0], [60, 126, 1, 129]]  # 1, -1, 2, 0; 1.5, 448, 2**-9, -(2**-9)
    want = np.array([[1, -1, 2, 0], [1.5 * 8, 448 * 8, 2.0 ** -6, -(2.0 ** -6)]]) / 4
    model = weights([node("DequantizeLinear", ["w", "scale"], "floats", axis=0, block_size=1,
                          output_dtype=FLOAT), node("MatMul", ["x", "floats"], "y")],
                    TensorProto.FLOAT8E4M3FN, [2, 4], data, {}, 24)
    with_tensors(model, stored("scale", FLOAT8_SCALE, [2, 4], [[125] * 4, [128] * 4]))
    np.testing.assert_array_equal(run(repaired(model), {"x": np.eye(2, dtype=np.float32)})[0], want)


def test_numbers_are_rounded_to_floats_of_four_bits():
    """To even, so that 0.25 and 2.5 go down and 0.75 and 5 up and down, and to 6 at most."""
    x = np.array([0.25, 0.26, 0.75, 1.25, 1.75, 2.5, 2.6, 3.5, 5, 5.1, 99, -0.75, -99], np.float32)
    want = np.array([0, 0.5, 1, 1, 2, 2, 3, 4, 4, 6, 6, -1, -6], np.float32)
    model = model_of([node("QuantizeLinear", ["x", "two"], "few", output_dtype=FLOAT4),
                      node("DequantizeLinear", ["few", "two"], "y")],
                     {"x": (FLOAT, [13])}, {"y": FLOAT}, 23, {"two": np.float32(2)})
    np.testing.assert_array_equal(run(repaired(model), {"x": 2 * x})[0], 2 * want)


def test_weights_of_four_bits_are_turned_before_they_become_floats():
    whole = np.random.default_rng(1).integers(-8, 8, (5, 6))
    model = model_of([node("Transpose", ["w"], "turned", perm=[1, 0]),
                      node("DequantizeLinear", ["turned", "scale"], "floats"),
                      node("MatMul", ["x", "floats"], "y")],
                     {"x": (FLOAT, [6, 6])}, {"y": FLOAT}, 21, {"scale": np.float32(0.1)})
    with_tensors(model, helper.make_tensor("w", TensorProto.INT4, [5, 6], whole.ravel()))
    have = run(repaired(model), {"x": np.eye(6, dtype=np.float32)})[0]
    np.testing.assert_allclose(have, whole.T * np.float32(0.1), rtol=1e-6)


@pytest.mark.parametrize("kind", [TensorProto.FLOAT8E4M3FN, TensorProto.INT4])
def test_outputs_of_few_bits_are_refused(kind):
    model = model_of([node("QuantizeLinear", ["x", "scale"], "y", output_dtype=kind)],
                     {"x": (FLOAT, [4])}, {"y": kind}, 21, {"scale": np.float32(1)})
    assert "--outputs" in refusal(model, {})
