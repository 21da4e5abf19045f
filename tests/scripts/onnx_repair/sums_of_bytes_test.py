"""ConvInteger and MatMulInteger: sums of bytes, which ONNX Runtime ends early on some CPUs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from repaired_models import FLOAT, model_of, one, operators, repaired, run, whole

from run_model_tools.onnx_model import read_model
from run_model_tools.onnx_repair import onnxruntime_process
from run_model_tools.onnx_repair.repair import repair
from run_model_tools.verifying import noise as jitter


@pytest.mark.parametrize("channels, zeros, group", [
    (8, (), 1), (128, (), 1), (600, (16,), 1), (400, (), 2)])
def test_convolutions_of_bytes(channels, zeros, group):
    """Exactly, also where sums are larger than float32's whole numbers."""
    x, w = whole(np.uint8, 1, channels, 5, 4), whole(np.int8, 16, channels // group, 3, 3)
    w_zero = np.full(zeros, 3, np.int8)
    model, inputs = one("ConvInteger", [x, w, np.asarray(np.uint8(117)), w_zero],
                        constants=(1, 2, 3), group=group)
    (have,) = run(repaired(model, inputs), inputs)
    windows = np.lib.stride_tricks.sliding_window_view(x[0].astype(int) - 117, (3, 3), (1, 2))
    want = np.concatenate([
        np.einsum("cyxij,ocij->oyx", part, weights.astype(int) - 3)
        for part, weights in zip(np.split(windows, group), np.split(w, group))])
    assert have.dtype == np.int32
    np.testing.assert_array_equal(have[0], want)


@pytest.mark.parametrize("weight", [127, -127])
def test_convolved_bytes_up_to_what_float32_has_as_whole_numbers(weight):
    """Odd sums below 2 ** 24, and all others on the way there, are rounded without a loss."""
    x = np.full((1, 513, 1, 560), 255, np.uint8)
    x[0, :, 0, :512] = np.tril(np.full((513, 512), 255, np.uint8), -1)
    x[0, 0, 0] = np.arange(560) % 256
    w = np.full((1, 513, 1, 1), weight, np.int8)
    model, inputs = one("ConvInteger", [x, w], constants=(1,))
    made = repaired(model, inputs)
    assert "Round" not in operators(made)
    (have,) = run(made, inputs)
    want = x[0, :, 0].astype(int).sum(0) * weight
    assert 2 ** 23 < abs(want).max() < 2 ** 24 and (want % 2).any() and abs(want).min() < 2 ** 22
    np.testing.assert_array_equal(have[0, 0, 0], want)

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
    model, inputs = one(op, arrays, domain="" if op == "MatMulInteger" else "com.microsoft",
                        constants=range(1, len(arrays)))
    onnx.save(model, str(tmp_path / "bytes.onnx"))
    (have,), who = read_model(tmp_path / "bytes.onnx").run_by(inputs)
    assert who == "onnxruntime"
    np.testing.assert_allclose(have, wanted * (HIGH[0].astype(float) @ HIGH[1]), rtol=1e-5)


def test_the_reference_adds_up_bytes_of_weights_that_several_products_share(tmp_path):
    """Which ONNX Runtime 1.20 cannot make uint8 of."""
    nodes = [helper.make_node("MatMulInteger", [x, "w", "", "zero"], [f"{x}w"]) for x in "ab"]
    model = model_of(nodes, dict.fromkeys("ab", (TensorProto.UINT8, HIGH[0].shape)),
                     {f"{x}w": TensorProto.INT32 for x in "ab"}, 18,
                     {"w": HIGH[1], "zero": np.int8(0)})
    onnx.save(model, str(tmp_path / "bytes.onnx"))
    made, who = read_model(tmp_path / "bytes.onnx").run_by({"a": HIGH[0], "b": HIGH[0] // 2})
    assert who == "onnxruntime"
    for have, given in zip(made, (HIGH[0], HIGH[0] // 2), strict=True):
        np.testing.assert_array_equal(have, given.astype(np.int32) @ HIGH[1].astype(np.int32))


@pytest.mark.parametrize("zeros, opset", [(1, 10), (4, 21)])
def test_the_reference_adds_up_bytes_in_operators_of_each_release(zeros, opset, tmp_path):
    """ONNX Runtime 1.20 makes uint8 of the weights of QLinearMatMul 10 only."""
    step, zero = np.float32(2048), np.zeros(zeros if zeros > 1 else (), np.int8)
    model, inputs = one("QLinearMatMul", [
        HIGH[0], SCALE, np.uint8(0), HIGH[1], np.full(zero.shape, SCALE), zero, step,
        np.uint8(0)], opset=opset, constants=range(1, 8))
    onnx.save(model, str(tmp_path / "bytes.onnx"))
    (have,), who = read_model(tmp_path / "bytes.onnx").run_by(inputs)
    assert who == "onnxruntime"
    sums = HIGH[0].astype(float) @ HIGH[1] * SCALE * SCALE / step
    np.testing.assert_array_equal(have, np.rint(sums).astype(np.uint8))


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
                                                  np.int8(0)], domain="com.microsoft",
                        constants=(1, 2, 3))
    onnx.save(model, str(tmp_path / "bytes.onnx"))
    monkeypatch.setattr(jitter, "_sums_end_early", lambda: early)
    runs = list(jitter.noisy_runs(read_model(tmp_path / "bytes.onnx"), inputs))
    assert len(runs) == jitter.SAMPLES + (not early)
    for (have,) in runs[:jitter.SAMPLES]:
        np.testing.assert_allclose(have, a.astype(np.float32) @ b.astype(np.float32), rtol=0.01)
