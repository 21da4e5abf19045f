"""What ONNX Runtime writes of its own (com.microsoft): caches of keys, operators from before ONNX
had them; and sums of bytes, which it ends early on some CPUs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from repaired_models import FLOAT, matches, noise, one, repaired, run

from run_model_tools.errors import ToolError
from run_model_tools.onnx_model import read_model
from run_model_tools.onnx_repair import onnxruntime_process
from run_model_tools.onnx_repair.repair import repair
from run_model_tools.onnx_repair.values import Value
from run_model_tools.verifying import noise as jitter

MICROSOFT = "com.microsoft"
X, W, B = noise(2, 5, 8), noise(8, 24), noise(24)


@pytest.mark.parametrize("past, mask, attrs", [
    (noise(2, 2, 2, 3, 4), None, {"unidirectional": 1}),
    (noise(2, 2, 2, 3, 4), np.array([[1] * 8, [0, 0] + [1] * 6], np.int32), {"unidirectional": 1}),
    (noise(2, 2, 2, 3, 4), None, {}), (None, None, {"unidirectional": 1})])
def test_attention_with_the_keys_of_earlier_steps(past, mask, attrs):
    matches("Attention", [X, W, B, mask, past], outputs=2, domain=MICROSOFT, constants=(1, 2),
            num_heads=2, **attrs)


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


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_distances(metric):
    matches("CDist", [noise(4, 3), noise(5, 4)[:, 1:].copy()], domain=MICROSOFT, metric=metric)


@pytest.mark.parametrize("op, arrays, attrs", [
    ("Trilu", [noise(2, 4, 5)], {"upper": 0}),
    ("Trilu", [noise(2, 4, 5), np.array(1)], {}),
    ("GatherND", [noise(3, 4), np.array([[0, 1], [2, 3]])], {}),
    ("Pad", [noise(2, 3), np.array([1, 0, 0, 2]), np.array([0.5], np.float32)], {}),
    ("GridSample", [noise(1, 2, 5, 6), noise(1, 3, 4, 2) * 0.6],
     {"mode": "bilinear", "padding_mode": "border", "align_corners": 1}),
    ("TransposeMatMul", [noise(2, 5, 4), noise(5, 6)], {"transA": 1, "alpha": 2.0})])
def test_operators_that_onnx_did_not_have(op, arrays, attrs):
    constants = () if op in ("GridSample", "TransposeMatMul") else range(1, len(arrays))
    matches(op, arrays, domain=MICROSOFT, constants=constants, **attrs)


def test_new_axes():
    """On which ONNX Runtime 1.20 crashes."""
    x = noise(3, 4)
    model, inputs = one("ExpandDims", [x, np.array(1, np.int32)], domain=MICROSOFT, constants=(1,))
    (have,) = run(repaired(model, inputs), inputs)
    np.testing.assert_array_equal(have, x[:, None])


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


SCALE = np.float32(0.25)
# Whose products of two neighbours are more than int16 holds.
HIGH = np.full((3, 8), 250, np.uint8), np.full((8, 4), 120, np.int8)


@pytest.mark.parametrize("a, b", [HIGH, (HIGH[0].view(np.int8), HIGH[1])])
def test_the_reference_adds_up_bytes(a, b):
    """Without VNNI, ONNX Runtime's own sums of uint8 with int8 end at 32767."""
    model, inputs = one("MatMulInteger", [a, b, a.dtype.type(0), b.dtype.type(0)],
                        constants=(1, 2, 3))
    (have,) = onnxruntime_process.run(model.SerializeToString(), inputs)
    np.testing.assert_array_equal(have, a.astype(np.int32) @ b.astype(np.int32))


def test_products_without_zero_points_are_run():
    """ONNX Runtime 1.20 crashes on them where their sums are to be exact."""
    model, inputs = one("MatMulInteger", [HIGH[0] // 8, HIGH[1]], constants=(1,))
    (have,) = onnxruntime_process.run(model.SerializeToString(), inputs)
    np.testing.assert_array_equal(have, (HIGH[0] // 8).astype(np.int32) @ HIGH[1].astype(np.int32))


@pytest.mark.parametrize("op, arrays, wanted", [
    ("MatMulInteger", [*HIGH], 1), ("MatMulIntegerToFloat", [*HIGH, SCALE, SCALE], SCALE * SCALE),
    ("DynamicQuantizeMatMul", [HIGH[0].astype(np.float32), HIGH[1], SCALE], SCALE)])
def test_the_reference_adds_up_bytes_without_zero_points(op, arrays, wanted, tmp_path):
    model, inputs = one(op, arrays, domain="" if op == "MatMulInteger" else MICROSOFT,
                        constants=range(1, len(arrays)))
    onnx.save(model, str(tmp_path / "bytes.onnx"))
    (have,), who = read_model(tmp_path / "bytes.onnx").run_by(inputs)
    assert who == "onnxruntime"
    np.testing.assert_allclose(have, wanted * (HIGH[0].astype(float) @ HIGH[1]), rtol=1e-5)


def test_constants_of_bytes_are_added_up():
    model, inputs = one("MatMulInteger", [*HIGH], constants=(0, 1))
    (have,) = run(repaired(model, inputs), inputs)
    np.testing.assert_array_equal(have, HIGH[0].astype(np.int32) @ HIGH[1].astype(np.int32))


@pytest.mark.parametrize("depth, zero, constants, products", [
    (500, None, (1,), 1), (600, None, (1,), 2), (9000, None, (1,), 18), (600, 0, (1, 2), 2),
    (1000, 128, (1, 2), 1), (500, None, (), 1), (600, None, (), 2), (1000, 128, (2,), 1)])
def test_products_of_floats_are_taken_where_they_are_exact(depth, zero, constants, products):
    """products: how many of float32 stand for it."""
    zeros = [] if zero is None else [np.uint8(zero)]
    a = np.random.default_rng(1).integers(0, 256, (3, depth), np.uint8)
    a[0], a[1] = 255, 0
    b = np.full((depth, 2), 127, np.int8)
    b[:, 1] = -128
    b[-1] = 1  # an odd sum, which float32 does not hold beyond 2 ** 24
    model, inputs = one("MatMulInteger", [a, b, *zeros], constants=constants)
    made = repaired(model, inputs)
    graph = onnx.shape_inference.infer_shapes(made).graph
    types = {v.name: v.type.tensor_type.elem_type for v in (*graph.value_info, *graph.output)}
    found = [types[n.output[0]] for n in made.graph.node if n.op_type == "MatMul"]
    assert found == [FLOAT] * products
    (have,) = run(made, inputs)
    np.testing.assert_array_equal(have, (a.astype(np.int64) - (zero or 0)) @ b.astype(np.int64))


def test_sums_of_any_length_stay_whole_numbers():
    model, inputs = one("MatMulInteger", [*HIGH])
    made = repair(model, {n: a.shape for n, a in inputs.items()}, is_open=True)
    (node,) = (n for n in made.graph.node if n.op_type == "MatMul")
    (output,) = made.graph.output
    assert node.output[0] == output.name and output.type.tensor_type.elem_type == TensorProto.INT32


@pytest.mark.parametrize("zeros", [[], [np.uint8(3)], [np.uint8(3), np.int8(-2)]])
def test_convolutions_of_bytes_are_run_by_onnx_runtime(zeros, tmp_path):
    """It has them of uint8 only, and ONNX's evaluator takes seconds for what it takes no time."""
    x = np.arange(30, dtype=np.uint8).reshape(1, 3, 10) * 8
    weights = np.arange(-6, 6, dtype=np.int8).reshape(2, 3, 2) * 20
    model, inputs = one("ConvInteger", [x, weights, *map(np.asarray, zeros)],
                        constants=range(1, 2 + len(zeros)))
    onnx.save(model, str(tmp_path / "conv.onnx"))
    (have,), who = read_model(tmp_path / "conv.onnx").run_by(inputs)
    a = x.astype(int) - int(zeros[0] if zeros else 0)
    b = weights.astype(int) - int(zeros[1] if len(zeros) > 1 else 0)
    want = np.einsum("nclk,ock->nol", np.lib.stride_tricks.sliding_window_view(a, 2, axis=2), b)
    np.testing.assert_array_equal(have, want)
    assert who == "onnxruntime"


@pytest.mark.parametrize("early", [False, True])
def test_sums_that_end_early_are_no_rounding(early, monkeypatch, tmp_path):
    """What a network may differ by is not taken from them."""
    a, b = HIGH
    model, inputs = one("DynamicQuantizeMatMul", [a.astype(np.float32), b, np.float32(1),
                                                  np.int8(0)], domain=MICROSOFT,
                        constants=(1, 2, 3))
    onnx.save(model, str(tmp_path / "bytes.onnx"))
    monkeypatch.setattr(jitter, "_sums_end_early", lambda: early)
    runs = list(jitter.noisy_runs(read_model(tmp_path / "bytes.onnx"), inputs))
    assert len(runs) == jitter.SAMPLES + (not early)
    for (have,) in runs[:jitter.SAMPLES]:
        np.testing.assert_allclose(have, a.astype(np.float32) @ b.astype(np.float32), rtol=0.01)
