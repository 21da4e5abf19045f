"""Constants of types that came with opsets 23 to 25, by ONNX's specification: in the repaired
network, and in the reference that it is compared with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from repaired_models import run

from run_model_tools.errors import ToolError
from run_model_tools.onnx_model import read_model
from run_model_tools.onnx_repair.repair import load, repair

FLOAT4E2M1, UINT2, INT2 = 23, 25, 26
ROWS, COLUMNS, BLOCK = 12, 5, 4
X = np.random.default_rng(5).standard_normal((3, ROWS)).astype(np.float32)


def meant(kind: int, bits: np.ndarray) -> np.ndarray:
    """The numbers that `bits` stand for."""
    if kind == FLOAT4E2M1:
        sign, exponent, fraction = bits >> 3, bits >> 1 & 3, bits & 1
        size = np.where(exponent == 0, fraction / 2, 2.0 ** (exponent - 1) * (1 + fraction / 2))
        return np.where(sign, -size, size)
    return np.where(bits > 1, bits - 4.0, bits) if kind == INT2 else bits * 1.0


def stored(name: str, kind: int, bits: np.ndarray, field: str) -> TensorProto:
    """A tensor of `bits`, the first number of a byte in its lowest ones."""
    of_a_byte = 2 if kind == FLOAT4E2M1 else 4
    flat = np.pad(bits.ravel(), (0, -bits.size % of_a_byte)).reshape(-1, of_a_byte)
    packed = sum(flat[:, i] << (8 // of_a_byte * i) for i in range(of_a_byte)).astype(np.uint8)
    tensor = TensorProto(name=name, data_type=kind, dims=bits.shape)
    if field == "raw_data":
        tensor.raw_data = packed.tobytes()
    else:
        tensor.int32_data.extend(packed.tolist())
    return tensor


def dequantising(path: Path, weights: TensorProto, scale: TensorProto, kind: int, **attrs) -> Path:
    nodes = [helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=0, **attrs),
             helper.make_node("MatMul", ["x", "d"], ["y"])]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", kind, X.shape)],
        [helper.make_tensor_value_info("y", kind, (len(X), COLUMNS))], [weights, scale],
        value_info=[helper.make_tensor_value_info("w", weights.data_type, weights.dims)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)]), str(path))
    return path


@pytest.mark.parametrize("field", ["raw_data", "int32_data"])
@pytest.mark.parametrize("kind", [FLOAT4E2M1, UINT2, INT2])
def test_weights(tmp_path, kind, field):
    random = np.random.default_rng(kind)
    bits = random.integers(0, 16 if kind == FLOAT4E2M1 else 4, (ROWS, COLUMNS))
    bits.flat[:16] = np.arange(16) % (bits.max() + 1)
    scales = random.uniform(0.5, 2, (ROWS // BLOCK, COLUMNS)).astype(np.float32)
    path = dequantising(tmp_path / "net.onnx", stored("w", kind, bits, field),
                        numpy_helper.from_array(scales, "s"), TensorProto.FLOAT, block_size=BLOCK)
    want = X @ (meant(kind, bits) * np.repeat(scales, BLOCK, 0))
    np.testing.assert_allclose(run(repair(load(path), {"x": X.shape}), {"x": X})[0], want,
                               rtol=1e-5, atol=1e-5)
    (reference,), by = read_model(path).run_by({"x": X})
    assert by == "onnxruntime"
    np.testing.assert_allclose(reference, want, rtol=1e-5, atol=1e-5)


def test_a_scale_of_float16_rounds_no_float_of_four_bits(tmp_path):
    """A large weight is not made of what float16 has rounded."""
    rows, columns = 1 << 10, 1 << 9
    random = np.random.default_rng(2)
    bits = random.integers(0, 16, (rows, columns))
    scales = random.uniform(0.01, 0.02, (rows // 32, columns)).astype(np.float16)
    graph = helper.make_graph(
        [helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=0, block_size=32),
         helper.make_node("MatMul", ["x", "d"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT16, (1, rows))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT16, (1, columns))],
        [stored("w", FLOAT4E2M1, bits, "raw_data"), numpy_helper.from_array(scales, "s")])
    path = tmp_path / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)]), str(path))
    made = repair(load(path), {"x": (1, rows)})
    weights = {tensor.data_type for tensor in made.graph.initializer
               if list(tensor.dims) == [rows, columns]}
    assert weights == {TensorProto.INT8}


def test_what_is_missing_of_them_is_said(tmp_path):
    tensor = stored("w", INT2, np.zeros((ROWS, COLUMNS), int), "raw_data")
    tensor.raw_data = tensor.raw_data[1:]
    path = dequantising(tmp_path / "net.onnx", tensor, numpy_helper.from_array(
        np.ones((), np.float32), "s"), TensorProto.FLOAT)
    with pytest.raises(ToolError, match=r"14 bytes of the tensor 'w', .* \[12, 5\] needs 15"):
        load(path)
