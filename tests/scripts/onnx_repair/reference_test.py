"""What models are compared with, where ONNX Runtime has mistakes of its own or no kernel."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from repaired_models import FLOAT, attention, model_of, noise, one, repaired, run

from run_model_tools.onnx_model import read_model
from run_model_tools.onnx_repair import onnxruntime_process
from run_model_tools.onnx_repair.onnxruntime_process import OnnxRuntimeFailed
from run_model_tools.onnx_repair.reference import REPAIRED, reference_outputs


def test_references_for_what_onnx_runtime_lacks(tmp_path):
    old = model_of([helper.make_node("Add", ["x", "b"], ["y"], broadcast=1, axis=1)],
                   {"x": (FLOAT, [2, 3, 4])}, {"y": FLOAT}, 6, {"b": np.ones(3, np.float32)})
    new = model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": (FLOAT, [2, 3, 4])},
                   {"y": FLOAT}, 23)
    new.ir_version = 11
    for name, model in (("old", old), ("new", new)):
        onnx.save(model, str(tmp_path / f"{name}.onnx"))
    x = noise(2, 3, 4)
    (got,), who = reference_outputs(tmp_path / "new.onnx", {"x": x})
    np.testing.assert_array_equal(got, np.maximum(x, 0))
    assert who == "onnxruntime" and read_model(tmp_path / "new.onnx").opset == 23
    np.testing.assert_array_equal(run(repaired(old, {"x": x}), {"x": x})[0], x + 1)


def test_a_crash_of_onnx_runtime_is_a_sentence():
    """Of a Split with an output that has no name, between others, ONNX Runtime 1.20 dies."""
    split = helper.make_node("Split", ["x"], ["a", "", "b"], axis=0, num_outputs=3)
    model = model_of([split, helper.make_node("Sub", ["a", "b"], ["y"])],
                     {"x": (FLOAT, [6])}, {"y": FLOAT}, 18)
    x = np.float32([5, 4, 3, 2, 1, 1])
    with pytest.raises(OnnxRuntimeFailed, match="crashed on it \\(SIG"):
        onnxruntime_process.run(model.SerializeToString(), {"x": x})
    np.testing.assert_array_equal(  # The next one is run by another process.
        onnxruntime_process.run(repaired(model, {"x": x}).SerializeToString(), {"x": x})[0],
        x[:2] - x[4:])


def test_outputs_without_a_name_are_compared_all_the_same(tmp_path):
    split = helper.make_node("Split", ["x"], ["a", "", "b"], axis=0, num_outputs=3)
    onnx.save(model_of([split, helper.make_node("Sub", ["a", "b"], ["y"])],
                       {"x": (FLOAT, [6])}, {"y": FLOAT}, 18), str(tmp_path / "split.onnx"))
    x = np.float32([5, 4, 3, 2, 1, 1])
    (got,), who = reference_outputs(tmp_path / "split.onnx", {"x": x})
    np.testing.assert_array_equal(got, x[:2] - x[4:])
    assert who == "onnxruntime"


@pytest.mark.parametrize("op", ["AveragePool", "MaxPool"])
def test_the_reference_counts_zeros_before_a_pooling(op):
    """ONNX Runtime 1.20 makes pads of them that do not count, unless it is kept from it."""
    model = model_of([helper.make_node("Pad", ["x", "pads"], ["y"]),
                      helper.make_node(op, ["y"], ["z"], kernel_shape=[3, 3])],
                     {"x": (FLOAT, [1, 1, 5, 4])}, {"z": FLOAT}, 17,
                     {"pads": np.array([0, 0, 1, 1, 0, 0, 1, 1])})
    x = noise(1, 1, 5, 4) - 2
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x[0, 0], 1), (3, 3))
    (have,) = onnxruntime_process.run(model.SerializeToString(), {"x": x})
    want = windows.mean((2, 3)) if op == "AveragePool" else windows.max((2, 3))
    np.testing.assert_allclose(have[0, 0], want, rtol=1e-5)


def test_the_reference_runs_products_of_three_axes_that_are_normalised():
    """Of which ONNX Runtime 1.20 makes a product that takes two, and then runs nothing."""
    model = model_of(
        [helper.make_node("MatMul", ["x", "w"], ["y"]),
         helper.make_node("Reshape", ["y", "flat"], ["r"]),
         helper.make_node("BatchNormalization", ["r", "s", "b", "m", "v"], ["z"], epsilon=0.0)],
        {"x": (FLOAT, [1, 5, 4])}, {"z": FLOAT}, 17,
        {"w": noise(4, 3), "flat": np.array([5, 3]), "s": np.float32([1, 2, 3]),
         "b": np.float32([0, 1, 0]), "m": np.float32([0, 0, 1]), "v": np.float32([1, 1, 4])})
    x = noise(1, 5, 4)
    (have,) = onnxruntime_process.run(model.SerializeToString(), {"x": x})
    product = x[0].astype(np.float64) @ noise(4, 3)
    want = product * [1, 2, 1.5] + [0, 1, -1.5]
    np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-5)


def test_what_nobody_here_knows_is_compared_with_its_repaired_form(tmp_path):
    x, scale = noise(2, 3, 8), noise(8)
    model, inputs = one("RMSNormalization", [x, scale], opset=23, epsilon=1e-3)
    onnx.save(model, str(tmp_path / "rms.onnx"))
    (have,), who = read_model(tmp_path / "rms.onnx").run_by(inputs)
    want = x / np.sqrt(np.mean(np.square(x), -1, keepdims=True) + 1e-3) * scale
    np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)
    assert who == REPAIRED


@pytest.mark.parametrize("samples, heads, by", [(2, 1, REPAIRED), (2, 4, "onnxruntime"),
                                                (1, 1, "onnxruntime")])
def test_biases_of_attention_are_those_that_the_model_has(samples, heads, by, tmp_path):
    """ONNX Runtime 1.20 reads others where all heads share each sample's."""
    q, k, v, bias = *(noise(2, 3, 8) * n for n in (1, 2, 3)), noise(samples, heads, 3, 3) * 2
    model, inputs = one("MultiHeadAttention", [q, k, v, None, None, bias], num_heads=4,
                        domain="com.microsoft")
    onnx.save(model, str(tmp_path / "net.onnx"))
    (have,), who = read_model(tmp_path / "net.onnx").run_by(inputs)
    want = attention(*(np.moveaxis(x.reshape(2, 3, 4, 2), 2, 1) for x in (q, k, v)), bias)
    np.testing.assert_allclose(have, np.moveaxis(want, 1, 2).reshape(2, 3, 8), rtol=1e-4,
                               atol=1e-5)
    assert who == by
