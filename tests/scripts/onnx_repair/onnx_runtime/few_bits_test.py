"""Weights and tables of 2 and 4 bits, in blocks: MatMulNBits, MatMulBnb4, GatherBlockQuantized, and
DequantizeLinear of such types."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from repaired_models import (
    FLOAT,
    check,
    matches,
    model_of,
    noise,
    one,
    refusal,
    repaired,
    run,
    whole,
)

from run_model_tools.onnx_repair.reference import reference_outputs
from run_model_tools.onnx_repair.values import Value

MICROSOFT = "com.microsoft"


@pytest.mark.parametrize("zeros", [False, True])
def test_products_with_weights_of_four_bits(zeros):
    """Two blocks and a part of a third; the reference is ONNX Runtime's kernel of float32."""
    depth, columns, block = 80, 6, 32
    arrays = [noise(3, depth), whole(np.uint8, columns, 3, block // 2),
              np.abs(noise(columns * 3)) + np.float32(0.1)]
    arrays += [whole(np.uint8, columns * 2)] if zeros else []
    model, inputs = one("MatMulNBits", arrays, domain=MICROSOFT, bits=4, K=depth, N=columns,
                        block_size=block, constants=range(1, len(arrays)))
    (want,), (have,) = run(model, inputs), run(repaired(model, inputs), inputs)
    np.testing.assert_allclose(have, want, rtol=1e-4, atol=2e-3)


def test_zero_points_of_a_byte_each():
    """As NNCF writes them for opsets below 21: ONNX Runtime 1.20 reads halves of bytes."""
    arrays = [noise(3, 64), whole(np.uint8, 6, 4, 8), np.abs(noise(24)), whole(np.uint8, 6, 4)]
    model, inputs = one("MatMulNBits", arrays, domain=MICROSOFT, bits=4, K=64, N=6, block_size=16,
                        constants=(1, 2, 3))
    assert "have the shape [6, 4], and 4 blocks of each of 6 columns need [6, 2] of uint8" in (
        refusal(model, inputs))


def test_scales_that_do_not_fit_blocks():
    """ModelOpt's, of weights that Gemm transposes: taken along the other axis they would be read
    as other numbers."""
    model = model_of([helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=0,
                                       block_size=8),
                      helper.make_node("Gemm", ["x", "d"], ["y"], transB=1)],
                     {"x": (FLOAT, [3, 6])}, {"y": FLOAT}, 21, {"s": np.abs(noise(4, 1))})
    model.graph.initializer.append(helper.make_tensor("w", TensorProto.INT4, [4, 6], [1] * 24))
    assert "need [1, 6]" in refusal(model, {"x": noise(3, 6)})


def test_weights_of_two_bits():
    """Which ONNX Runtime 1.20 has not."""
    depth, columns, block = 40, 6, 16
    random = np.random.default_rng(5)
    whole = random.integers(0, 4, (columns, 48))
    packed = (whole.reshape(columns, 3, 4, 4) << np.array([0, 2, 4, 6])).sum(-1).astype(np.uint8)
    scales = random.uniform(0.1, 1, (columns, 3)).astype(np.float32)
    x = noise(3, depth)
    model, inputs = one("MatMulNBits", [x, packed, scales.reshape(-1)], domain=MICROSOFT,
                        constants=(1, 2), K=depth, N=columns, bits=2, block_size=block)
    weight = ((whole - 2) * np.repeat(scales, block, axis=1))[:, :depth]
    (have,) = run(repaired(model, inputs), inputs)
    np.testing.assert_allclose(have, x @ weight.T, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("depth", [32, 20])
def test_weights_of_bitsandbytes(kind, depth):
    """The last of its blocks, which go over rows of the weights, may be shorter."""
    columns, random = 5, np.random.default_rng(3)
    packed = random.integers(0, 256, columns * depth // 2).astype(np.uint8)
    scales = random.uniform(0.1, 1, -(-columns * depth // 16)).astype(np.float32)
    matches("MatMulBnb4", [noise(2, 3, depth), packed, scales], domain=MICROSOFT,
            constants=(1, 2), K=depth, N=columns, block_size=16, quant_type=kind)


def test_levels_of_accuracy_are_the_least(tmp_path):
    """ONNX Runtime rounds the other operand to bytes where the level is 4; the reference does
    not."""
    depth, columns = 64, 16
    x, weights = noise(8, depth), whole(np.uint8, columns, 2, 16)
    scales = np.abs(noise(columns * 2)) + np.float32(0.1)
    model, inputs = one("MatMulNBits", [x, weights, scales], domain=MICROSOFT, bits=4,
                        K=depth, N=columns, block_size=32, accuracy_level=4, constants=(1, 2))
    path = tmp_path / "model.onnx"
    onnx.save(model, str(path))
    numbers = np.stack([weights & 15, weights >> 4], -1).reshape(columns, 2, 32).astype(float) - 8
    want = x @ (numbers * scales.reshape(columns, 2, 1)).reshape(columns, depth).T
    (got,), who = reference_outputs(path, inputs)
    assert who == "onnxruntime"
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_products_of_dequantized_weights_read_float32(tmp_path):
    """Of 4 bits in blocks, ONNX Runtime makes them MatMulNBits of level 4 by itself."""
    depth, columns = 64, 16
    x, numbers = noise(8, depth), np.arange(depth * columns).reshape(depth, columns) * 7 % 16 - 8
    scales = np.abs(noise(2, columns)) + np.float32(0.1)
    model = model_of(
        [helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=0, block_size=32),
         helper.make_node("MatMul", ["x", "d"], ["y"])],
        {"x": (TensorProto.FLOAT, x.shape)}, {"y": FLOAT}, 21, {"s": scales})
    model.graph.initializer.append(
        helper.make_tensor("w", TensorProto.INT4, numbers.shape, numbers.ravel()))
    path = tmp_path / "model.onnx"
    onnx.save(model, str(path))
    (got,), who = reference_outputs(path, {"x": x})
    assert who == "onnxruntime"
    np.testing.assert_allclose(got, x @ (numbers * scales.repeat(32, axis=0)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.UINT4])
@pytest.mark.parametrize("block", [0, 4])
def test_weights_of_four_bits_are_dequantised(kind, block):
    low = -8 if kind == TensorProto.INT4 else 0
    numbers = np.random.default_rng(4).integers(low, low + 16, (6, 8))
    scales = np.abs(noise(6, 2) if block else noise(6)) + np.float32(0.1)
    zeros = np.full(scales.shape, low + 7)
    tensors = [helper.make_tensor("w", kind, numbers.shape, numbers.ravel()),
               helper.make_tensor("z", kind, zeros.shape, zeros.ravel())]
    given = {"axis": 1, "block_size": block} if block else {"axis": 0}
    model = model_of([helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"], **given),
                      helper.make_node("MatMul", ["x", "d"], ["y"])],
                     {"x": (FLOAT, [3, 6])}, {"y": FLOAT}, 21, {"s": scales})
    model.graph.initializer.extend(tensors)
    inputs = {"x": noise(3, 6)}
    (have,) = run(repaired(model, inputs), inputs)
    factors = scales.repeat(4, 1) if block else scales[:, None]
    np.testing.assert_allclose(have, inputs["x"] @ ((numbers - low - 7) * factors), rtol=1e-5,
                               atol=1e-5)


@pytest.mark.parametrize("kind", [onnx.TensorProto.INT4, onnx.TensorProto.UINT4])
def test_numbers_of_four_bits(kind):
    low = -8 if kind == onnx.TensorProto.INT4 else 0
    numbers = np.random.default_rng(6).integers(low, low + 16, 35)
    tensor = onnx.helper.make_tensor("w", kind, [5, 7], numbers.tolist())
    packed = onnx.TensorProto(name="w", data_type=kind, dims=[5, 7],
                              raw_data=bytes(byte & 255 for byte in tensor.int32_data))
    value = Value("w", kind, (5, 7), tensor=packed)
    have = value.array
    assert have.dtype == value.dtype
    np.testing.assert_array_equal(have, onnx.numpy_helper.to_array(packed))
    np.testing.assert_array_equal(have, numbers.reshape(5, 7))


def of_few_bits(kind, data, zeros, axis, along):
    """A model that gathers from a table of 3 by 64 by 5 in blocks of 16."""
    scales = np.abs(noise(*(-(-extent // 16) if a == along else extent
                            for a, extent in enumerate((3, 64, 5))))) + np.float32(0.1)
    return model_of(
        [helper.make_node("GatherBlockQuantized", ["w", "i", "s", *(["z"] if zeros else [])],
                          ["y"], domain=MICROSOFT, gather_axis=axis, quantize_axis=along,
                          block_size=16)],
        {"i": (TensorProto.INT64, [2, 2])}, {"y": FLOAT}, 21, {"s": scales},
        imports=[helper.make_opsetid("com.microsoft", 1)]), [helper.make_tensor(
            name, kind, shape, numbers) for name, shape, numbers in (
                ("w", (3, 64, 5), data), ("z", scales.shape, data[:scales.size]))]


@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.UINT4])
@pytest.mark.parametrize("axis, along", [(0, 1), (1, 1), (2, 1)])
@pytest.mark.parametrize("zeros", [False, True])
def test_rows_of_tables_of_four_bits(kind, axis, along, zeros):
    low = -8 if kind == TensorProto.INT4 else 0
    model, tensors = of_few_bits(kind, np.random.default_rng(4).integers(low, low + 16, 960),
                                 zeros, axis, along)
    model.graph.initializer.extend(tensors[:1 + zeros])
    check(model, {"i": np.array([[0, 2], [-1, 1]])})


@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.UINT4])
def test_tables_of_four_bits_are_read_in_bytes(kind):
    """As ONNX Runtime's quantizer writes them: two numbers in each of `raw_data`."""
    low = -8 if kind == TensorProto.INT4 else 0
    model, tensors = of_few_bits(kind, np.random.default_rng(4).integers(low, low + 16, 960),
                                 True, 0, 1)
    for tensor in tensors:
        packed = np.array(tensor.int32_data).astype(np.uint8).tobytes()
        tensor.ClearField("int32_data")
        tensor.raw_data = packed
    model.graph.initializer.extend(tensors)
    check(model, {"i": np.array([[0, 2], [-1, 1]])})


@pytest.mark.parametrize("zeros", [False, True])
def test_rows_of_tables_of_packed_bytes(zeros):
    """ONNX Runtime 1.22 and later; a table without zero points has its 0 in the middle."""
    table, scales = whole(np.uint8, 7, 16), np.abs(noise(7, 2)) + np.float32(0.1)
    given = [table, np.array([[3, -1]]), scales, *([whole(np.uint8, 7, 1)] if zeros else [])]
    model, inputs = one("GatherBlockQuantized", given, domain=MICROSOFT, bits=4,
                        block_size=16, constants=(0, 2, *range(3, len(given))))
    numbers = np.stack([table & 15, table >> 4], -1).reshape(7, 2, 16).astype(np.float32)
    at = np.stack([given[3] & 15, given[3] >> 4], -1).reshape(7, 2, 1) if zeros else 8
    (have,) = run(repaired(model, inputs), inputs)
    want = ((numbers - at) * scales[..., None]).astype(np.float32).reshape(7, 32)[[[3, 6]]]
    np.testing.assert_allclose(have, want, rtol=1e-6)
