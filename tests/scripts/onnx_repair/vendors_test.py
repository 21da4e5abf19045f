"""Operators of AMD's Quark and NVIDIA's ModelOpt, by their definition in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from repaired_models import model_of, one, refusal, repaired, run

QUARK, VITIS, TENSORRT = "com.amd.quark", "com.vai.quantize", "trt"
FLOAT = TensorProto.FLOAT


def numbers():
    """Of many sizes, with halves of steps, a block of zeros, and what is not finite."""
    random = np.random.default_rng(1)
    x = random.standard_normal((3, 40, 5)) * np.exp2(random.integers(-40, 12, (3, 40, 5)))
    x[2] = random.integers(-300, 300, (40, 5)) / 128
    x[0, :8] = 0
    x[1, 3, 2], x[1, 20, 1] = np.inf, np.nan
    return x.astype(np.float32)


def result(op, domain, arrays, **attrs):
    model, inputs = one(op, arrays, domain=domain, constants=range(1, len(arrays)), **attrs)
    return run(repaired(model, inputs), inputs)[0]


def by_blocks(x, axis, size, rounded):
    """rounded(block, largest power of two in it) along an axis; what is not finite stays."""
    turned = np.moveaxis(x, axis, -1)
    made = turned.astype(np.float64)
    for place in np.ndindex(turned.shape[:-1]):
        for first in range(0, turned.shape[-1], size):
            block = made[place][first:first + size]
            finite = np.isfinite(block)
            if block[finite].any():
                power = 2.0 ** (np.frexp(np.abs(block[finite]).max())[1] - 1)
                block[finite] = rounded(block[finite], power)
    return np.moveaxis(made, -1, axis).astype(np.float32)


ROUNDED = [lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5), lambda x: np.floor(x + 0.5), np.rint]


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("axis, size, bits", [(1, 8, 16), (-1, 4, 13), (1, 24, 12)])
def test_block_floating_point(mode, axis, size, bits):
    steps = 2.0 ** (bits - 10)

    def rounded(block, power):
        whole = ROUNDED[mode](block / power * steps).clip(1 - 2 * steps, 2 * steps - 1)
        return whole * power / steps

    x = numbers()
    want = by_blocks(x, axis, size, rounded)
    assert (want != x)[np.isfinite(x)].any()
    for op, domain in (("BFPQuantizeDequantize", QUARK), ("BFPFixNeuron", VITIS)):
        have = result(op, domain, [x], axis=axis, block_size=size, bit_width=bits,
                      rounding_mode=mode, bfp_method="to_bfp")
        np.testing.assert_array_equal(have, want)


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("axis, size, part, shift, bits", [(1, 16, 2, 1, 13), (-1, 4, 4, 1, 16),
                                                           (1, 12, 3, 3, 12)])
def test_parts_of_blocks_with_finer_steps(mode, axis, size, part, shift, bits):
    """MX6 and MX9: a part's largest number says how much finer, up to a bound."""
    def rounded(block, power):
        made = np.empty_like(block)
        for first in range(0, len(block), part):
            mine = block[first:first + part]
            own = 2.0 ** (np.frexp(np.abs(mine).max())[1] - 1) if mine.any() else 0
            step = max(own, power / 2 ** (2 ** shift - 1)) * 2.0 ** (10 - bits)
            most = 2 ** (bits - 9) - 1
            made[first:first + part] = ROUNDED[mode](mine / step).clip(-most, most) * step
        return made

    x = numbers()
    finite = np.isfinite(x)
    want = by_blocks(np.where(finite, x, 0), axis, size, rounded)
    turned, spoilt = (np.moveaxis(a, axis, -1) for a in (want, ~finite))
    for first in range(0, turned.shape[-1], size):
        turned[..., first:first + size][spoilt[..., first:first + size].any(-1)] = np.nan
    have = result("BFPQuantizeDequantize", QUARK, [x], axis=axis, block_size=size, bit_width=bits,
                  rounding_mode=mode, bfp_method="to_bfp_prime", sub_block_size=part,
                  sub_block_shift_bits=shift)
    np.testing.assert_array_equal(have, want)


@pytest.mark.parametrize("method", ["to_bfp", "to_bfp_prime"])
def test_blocks_of_a_bias(method):
    """Whatever axis a row of numbers is said to be quantised along."""
    x = numbers()[2, :, 0]
    for axis in (0, 1):
        made = result("BFPQuantizeDequantize", QUARK, [x], axis=axis, block_size=8, bit_width=13,
                      rounding_mode=2, bfp_method=method, sub_block_size=8)
        steps = by_blocks(x, 0, 8, lambda block, power: np.rint(block / power * 8).clip(-15, 15)
                          / 8 * power)
        np.testing.assert_array_equal(made, steps)
        one_number = np.float32([0.3])
        assert result("BFPQuantizeDequantize", QUARK, [one_number], axis=axis, block_size=8,
                      bit_width=13, rounding_mode=2, bfp_method=method) == one_number


@pytest.mark.parametrize("kind, fraction, least, exponent, most", [
    ("fp8_e5m2", 2, -14, 15, 57344), ("fp8_e4m3", 3, -6, 8, 448), ("fp6_e3m2", 2, -2, 4, 28),
    ("fp6_e2m3", 3, 0, 2, 7.5), ("fp4_e2m1", 1, 0, 2, 6), ("int8", None, None, 0, None)])
def test_microscaling(kind, fraction, least, exponent, most):
    def rounded(block, power):
        scale = power / 2.0 ** exponent
        if kind == "int8":
            return np.rint(block / power * 64).clip(-128, 127) / 64 * power
        scaled = block / scale
        step = 2.0 ** (np.maximum(np.frexp(scaled)[1] - 1, least) - fraction)
        return (np.rint(scaled / step) * step).clip(-most, most) * scale

    x = numbers()
    have = result("MXQuantizeDequantize", QUARK, [x], axis=1, block_size=32, element_dtype=kind,
                  rounding_mode=2)
    np.testing.assert_array_equal(have, by_blocks(x, 1, 32, rounded))


def test_ways_to_round_of_which_nothing_is_known():
    model, inputs = one("BFPQuantizeDequantize", [numbers()], domain=QUARK,
                        bfp_method="to_bfp_twice")
    assert "to_bfp_twice" in refusal(model, inputs)
    model, inputs = one("BFPQuantizeDequantize", [numbers()], domain=QUARK, block_size=8,
                        bfp_method="to_bfp_prime", sub_block_size=3)
    assert "no whole parts of 3" in refusal(model, inputs)
    model, inputs = one("MXQuantizeDequantize", [numbers()], domain=QUARK, element_dtype="fp3")
    assert "'fp3'" in refusal(model, inputs)


@pytest.mark.parametrize("dtype", [np.int16, np.uint16, np.int32])
def test_whole_numbers_of_each_channel(dtype):
    x = np.random.default_rng(1).standard_normal((3, 8)).astype(np.float32)
    x[:, :2] = 1e9, -1e9
    scale, zero = np.float32([0.001, 0.0003, 0.1]), np.array([3, 5, 0], dtype)
    model = model_of(
        [helper.make_node("ExtendedQuantizeLinear", ["x", "s", "z"], ["q"], domain=QUARK, axis=0),
         helper.make_node("ExtendedDequantizeLinear", ["q", "s", "z"], ["y"], domain=QUARK,
                          axis=0)],
        {"x": (FLOAT, x.shape)}, {"y": FLOAT}, 17, {"s": scale, "z": zero},
        imports=[helper.make_opsetid(QUARK, 1)])
    limits, steps = np.iinfo(dtype), scale[:, None].astype(np.float64)
    whole = (np.rint(x / scale[:, None]) + zero[:, None]).clip(limits.min, limits.max)
    have = run(repaired(model), {"x": x})[0]
    np.testing.assert_allclose(have, (whole - zero[:, None]) * steps, rtol=1e-6)


def test_floats_of_sixteen_bits():
    """A zero point in bfloat16, which is float32 once the file is read, says what to round to."""
    x = np.float32([1 + 2 ** -8, 1 + 3 * 2.0 ** -8, -3.14159, 1e30])
    have = result("ExtendedQuantizeLinear", QUARK, [x, np.float32(1), np.float32(0)])
    np.testing.assert_array_equal(have[:2], np.float32([1, 1 + 2.0 ** -6]))
    assert not (have.view(np.uint32) & 0xffff).any()


def test_floats_of_eight_bits_as_tensorrt_has_them():
    table = numpy_helper.to_array(TensorProto(data_type=TensorProto.FLOAT8E4M3FN, dims=[127],
                                              int32_data=range(127))).astype(np.float32)
    x = np.random.default_rng(1).standard_normal((2, 4)).astype(np.float32)
    codes = np.array([[0, 56, 126], [130, 190, 3], [1, 255 - 129, 200], [60, 61, 62]], np.uint8)
    scale, weight_scale = np.float32(0.125), np.float32(0.25)
    model = model_of(
        [helper.make_node("TRT_FP8QuantizeLinear", ["x", "s"], ["q"], domain=TENSORRT),
         helper.make_node("TRT_FP8DequantizeLinear", ["q", "s"], ["few"], domain=TENSORRT),
         helper.make_node("TRT_FP8DequantizeLinear", ["w", "t"], ["wide"], domain=TENSORRT),
         helper.make_node("MatMul", ["few", "wide"], ["y"])],
        {"x": (FLOAT, x.shape)}, {"y": FLOAT}, 17, {"w": codes, "s": scale, "t": weight_scale},
        imports=[helper.make_opsetid(TENSORRT, 1)])
    near = table[np.abs(np.abs(x / scale)[..., None] - table).argmin(-1)] * np.sign(x) * scale
    weights = table[codes & 127] * np.where(codes > 127, -1, 1) * weight_scale
    np.testing.assert_allclose(run(repaired(model), {"x": x})[0], near @ weights, rtol=1e-5)


def test_blocks_of_four_bits_as_tensorrt_has_them():
    whole = np.random.default_rng(1).integers(-8, 8, (4, 6))
    scale = np.random.default_rng(2).uniform(1, 2, (2, 6)).astype(np.float32)
    model = model_of(
        [helper.make_node("DequantizeLinear", ["w", "s"], ["wide"], domain=TENSORRT, axis=0,
                          block_size=2), helper.make_node("MatMul", ["x", "wide"], ["y"])],
        {"x": (FLOAT, [4, 4])}, {"y": FLOAT}, 17, {"s": scale},
        imports=[helper.make_opsetid(TENSORRT, 1)])
    model.graph.initializer.append(helper.make_tensor("w", TensorProto.INT4, [4, 6],
                                                      whole.ravel()))
    have = run(repaired(model), {"x": np.eye(4, dtype=np.float32)})[0]
    np.testing.assert_allclose(have, whole * scale.repeat(2, 0), rtol=1e-6)


@pytest.mark.parametrize("depth, blocks, size", [(12, 3, 4), (6, 2, 4), (4, 1, 4)])
def test_weights_that_modelopt_quantises_in_the_graph(depth, blocks, size):
    """Without a domain, and without a word of how large the blocks are."""
    x = np.random.default_rng(1).standard_normal((depth, 5)).astype(np.float32)
    scale = np.random.default_rng(2).uniform(0.1, 1, (blocks, 5)).astype(np.float32)
    nodes = [helper.make_node("TRT_INT4QuantizeLinear", ["w", "s", "z"], ["few"]),
             helper.make_node("TRT_INT4DequantizeLinear", ["few", "s", "z"], ["wide"]),
             helper.make_node("MatMul", ["x", "wide"], ["y"])]
    model = model_of(nodes, {"x": (FLOAT, [depth, depth])}, {"y": FLOAT}, 21, {"w": x, "s": scale})
    model.graph.initializer.append(helper.make_tensor("z", TensorProto.INT4, [blocks, 5],
                                                      [0] * 5 * blocks))
    each = scale.repeat(size, 0)[:depth]
    np.testing.assert_allclose(run(repaired(model), {"x": np.eye(depth, dtype=np.float32)})[0],
                               np.rint(x / each).clip(-8, 7) * each, rtol=1e-6)


def test_scales_that_do_not_tell_blocks():
    model = model_of([helper.make_node("TRT_INT4DequantizeLinear", ["w", "s"], ["wide"]),
                      helper.make_node("MatMul", ["x", "wide"], ["y"])],
                     {"x": (FLOAT, [1, 12])}, {"y": FLOAT}, 21, {"s": np.ones((5, 3), np.float32)})
    model.graph.initializer.append(helper.make_tensor("w", TensorProto.INT4, [12, 3], [0] * 36))
    assert "does not tell its blocks" in refusal(model, {})


def test_scales_of_powers_of_two_as_tensorrt_has_them():
    """MXFP8: 448, the largest number, times the scale is never below the block's largest one."""
    eight = numpy_helper.to_array(TensorProto(data_type=TensorProto.FLOAT8E4M3FN, dims=[127],
                                              int32_data=range(127))).astype(np.float64)
    x = np.random.default_rng(1).standard_normal((3, 40)).astype(np.float32)
    x[1, :16], x[2, :16] = 0, x[2, :16] * 1000
    x[0, 0], x[0, 16] = 448, 448.5
    nodes = [helper.make_node("TRT_MXFP8DynamicQuantize", ["x"], ["few", "each"], axis=-1,
                              domain=TENSORRT, block_size=16, output_dtype=17),
             helper.make_node("TRT_MXFP8DequantizeLinear", ["few", "each"], ["y"], axis=-1,
                              domain=TENSORRT, block_size=16, output_dtype=1)]
    model = model_of(nodes, {"x": (FLOAT, x.shape)}, {"y": FLOAT, "each": TensorProto.UINT8}, 17,
                     imports=[helper.make_opsetid(TENSORRT, 1)])
    want, exponents = np.zeros(x.shape), np.zeros((3, 3))
    for row, first in np.ndindex(3, 3):
        block = x[row, first * 16:first * 16 + 16].astype(np.float64)
        most = max(np.abs(block).max() / 448, 2.0 ** -126)
        exponents[row, first] = np.ceil(np.log2(most))
        scale = 2.0 ** exponents[row, first]
        want[row, first * 16:first * 16 + 16] = nearest(block / scale, eight) * scale
    have, each = run(repaired(model), {"x": x})
    np.testing.assert_allclose(have, want, rtol=1e-6)
    np.testing.assert_array_equal(each, exponents + 127)


def nearest(x, positive):
    """Of numbers, the even one of two that are as near."""
    distance = np.abs(np.abs(x)[..., None] - positive)
    even = np.arange(len(positive)) % 2 * 1e-12
    return positive[(distance + even).argmin(-1)] * np.sign(x)


def test_activations_of_four_bits_as_tensorrt_has_them():
    """A block of 20 is cut short, one is all zeros."""
    eight = numpy_helper.to_array(TensorProto(data_type=TensorProto.FLOAT8E4M3FN, dims=[127],
                                              int32_data=range(127))).astype(np.float64)
    four = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    x = np.random.default_rng(1).standard_normal((3, 50)).astype(np.float32)
    x[1, 20:40], x[2, :20] = 0, x[2, :20] * 50
    nodes = [helper.make_node("TRT_FP4DynamicQuantize", ["x", "s"], ["few", "each"],
                              domain=TENSORRT, axis=-1, block_size=20, scale_type=17),
             helper.make_node("DequantizeLinear", ["each", "s"], ["scales"]),
             helper.make_node("DequantizeLinear", ["few", "scales"], ["y"], axis=-1,
                              block_size=20)]
    model = model_of(nodes, {"x": (FLOAT, x.shape)}, {"y": FLOAT}, 23, {"s": np.float32(0.0625)},
                     imports=[helper.make_opsetid(TENSORRT, 1)])
    want = np.zeros(x.shape)
    for row, first in np.ndindex(3, 3):
        block = x[row, first * 20:first * 20 + 20].astype(np.float64)
        scale = nearest(np.abs(block).max() / 6 / 0.0625, eight) * 0.0625
        if scale:
            want[row, first * 20:first * 20 + 20] = nearest(block / scale, four) * scale
    np.testing.assert_allclose(run(repaired(model), {"x": x})[0], want, rtol=1e-6)
