"""What a softmax hides: comparing the logarithms of what it made."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from run_model_tools.onnx_model import read_model
from run_model_tools.tflite.model import read_tflite
from run_model_tools.verifying.comparison import compare
from run_model_tools.verifying.probabilities import compare_logarithms, made_by_softmax
from tflite_networks import byte_network, float_network


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max())
    return (powers / powers.sum()).astype(np.float32)


@pytest.fixture
def far_apart() -> np.ndarray:
    return np.random.default_rng(3).standard_normal(1000) * 20


def test_scores_that_are_off_show_behind_a_softmax_that_makes_zero_and_one_of_them(far_apart):
    want, have = softmax(far_apart), softmax(far_apart * 1.01)
    best = softmax(np.append(far_apart, 80)), softmax(np.append(far_apart * 1.01, 80))
    assert compare("y", *best, 1e-3, list).complaint is None
    found = compare_logarithms("y", *best, 1e-3, list)
    assert "log(y)" in found.complaint and found.largest > 5e-3
    assert compare_logarithms("y", want, have, 1e-3, list).complaint is not None


def test_roundings_of_scores_pass(far_apart):
    have = softmax(far_apart.astype(np.float32) * np.float32(1 + 4e-7))
    assert compare_logarithms("y", softmax(far_apart), have, 1e-3, list).complaint is None


def test_zeros_may_begin_at_another_place_in_another_runtime():
    want = softmax(np.array([0.0, -5, -88, -95, -200]))
    have = np.where(want < 1e-35, 0, want)
    assert (have != want).any()
    assert compare_logarithms("y", want, have, 1e-3, list).complaint is None


def test_half_precision_is_left_out():
    want = softmax(np.array([0.0, -9])).astype(np.float16)
    assert compare_logarithms("y", want, want * np.float16(1.5), 1e-3, list).complaint is None


def test_a_file_says_what_a_softmax_made(tmp_path):
    nodes = [helper.make_node("Softmax", ["x"], ["p"], axis=-1),
             helper.make_node("Reshape", ["p", "shape"], ["y"]),
             helper.make_node("Sigmoid", ["x"], ["z"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in (("x", [1, 6]), ("y", [6]), ("z", [1, 6]))]
    shape = helper.make_tensor("shape", TensorProto.INT64, [1], [6])
    model = helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:], [shape]),
                              opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(tmp_path / "m.onnx"))
    assert made_by_softmax(read_model(tmp_path / "m.onnx")) == [True, False]
    for network, found in ((float_network(), [True, False, False]),
                           (byte_network(), [True, False, False, False])):
        assert made_by_softmax(read_tflite(network.save(tmp_path / "m.tflite"))) == found
