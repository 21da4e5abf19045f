"""What a difference means in a network that rounds between its layers (verifying/comparison.py)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from run_model_tools.onnx_model import read_model, run_onnx
from run_model_tools.tflite.model import TfliteModel, read_tflite
from run_model_tools.verifying.comparison import Difference, compare, compare_steps
from run_model_tools.verifying.noise import noisy_runs, output_steps
from tflite_networks import byte_network

CHANNELS, SIZE, LAYERS = 16, 12, 4
LAST = 0.05
"""The step of the output."""


def save_quantized(path: Path, fault: str = "", last: str = "DequantizeLinear") -> Path:
    """Four convolutions between bytes with zero points, and an end after them; `fault` is what a
    compiler might get wrong."""
    random = np.random.default_rng(3)
    weights: list[Any] = []
    nodes: list[Any] = []

    def constant(array: np.ndarray) -> str:
        weights.append(numpy_helper.from_array(array, f"w{len(weights)}"))
        return weights[-1].name

    def op(kind: str, *inputs: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, list(inputs), [f"v{len(nodes)}"], **attributes))
        return nodes[-1].output[0]

    def bytes_of(x: str, scale: float, zero: int) -> tuple[str, list[str]]:
        grid = [constant(np.float32(scale)), constant(np.uint8(zero))]
        return op("QuantizeLinear", x, *grid), grid

    whole, grid = bytes_of("x", 0.03, 120)
    for layer in range(LAYERS):
        shifted = fault == "zero point" and layer == 2
        read = [grid[0], constant(np.uint8(101))] if shifted else grid
        x = op("DequantizeLinear", whole, *read)
        kernel = random.integers(-127, 128, (CHANNELS, CHANNELS, 3, 3)).astype(np.int8)
        scale = np.float32(1 / (127 * 0.55 * 12))
        if fault == "weight" and layer == LAYERS - 1:
            kernel[5, 2, 1, 1] = -kernel[5, 2, 1, 1]
        w = op("DequantizeLinear", constant(kernel), constant(scale), constant(np.int8(0)))
        bias = random.standard_normal(CHANNELS).astype(np.float32) / 5
        if fault == "bias" and layer == 2:
            bias[3] = 0
        padding = [1, 1, 1, 1] if layer or fault != "padding" else [0, 2, 2, 0]
        x = op("Conv", x, w, constant(bias), pads=padding)
        if layer < LAYERS - 1:
            whole, grid = bytes_of(x, 0.03, 100)
    whole, grid = bytes_of(x, LAST, 128)
    if last == "bytes":
        end, kind = whole, TensorProto.UINT8
    else:
        end, kind = op("DequantizeLinear", whole, *grid), TensorProto.FLOAT
    if last == "Softmax":
        end = op("Softmax", end, axis=1)
    shape = [1, CHANNELS, SIZE, SIZE]
    nodes.append(helper.make_node("Identity", [end], ["y"]))
    graph = helper.make_graph(
        nodes, "quantized", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", kind, shape)], weights)
    onnx.save(helper.make_model(graph, ir_version=8,
                                opset_imports=[helper.make_opsetid("", 13)]), str(path))
    return path


def judged(right: Path, have: np.ndarray, inputs: dict[str, np.ndarray]) -> Difference:
    model = read_model(right)
    steps = output_steps(model)
    assert steps is not None
    samples = [outputs[0] for outputs in noisy_runs(model, inputs)]
    return compare("y", run_onnx(right, inputs)[0], have, 1e-3, lambda: samples, True, steps[0])


@pytest.fixture(scope="module")
def inputs() -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(8).standard_normal(
        (1, CHANNELS, SIZE, SIZE)).astype(np.float32)}


def test_outputs_of_the_middle_have_their_own_steps(tmp_path, inputs):
    path = save_quantized(tmp_path / "q.onnx", last="DequantizeLinear")
    nodes = onnx.load(str(path)).graph.node
    floats, whole = (next(node.output[0] for node in nodes if node.op_type == op)
                     for op in ("Conv", "QuantizeLinear"))
    model = read_model(path, None, [floats, whole, "y"])
    assert output_steps(model) == [None, 1.0, pytest.approx(LAST)]
    wanted = model.run(inputs)
    for sample in noisy_runs(model, inputs):
        assert [array.dtype for array in sample] == [array.dtype for array in wanted]


@pytest.mark.parametrize("last", ["DequantizeLinear", "Softmax", "bytes"])
def test_roundings_that_go_the_other_way_pass(tmp_path, inputs, last):
    path = save_quantized(tmp_path / "q.onnx", last=last)
    assert output_steps(read_model(path)) == [
        {"DequantizeLinear": pytest.approx(LAST), "Softmax": None, "bytes": 1.0}[last]]
    # As a runtime would that adds in another order: numbers a little to the side of a half.
    inner = onnx.load(str(path))
    for tensor in inner.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype == np.float32 and array.shape == (CHANNELS,):
            tensor.CopyFrom(numpy_helper.from_array(array + np.float32(2e-4), tensor.name))
    onnx.save(inner, str(tmp_path / "other.onnx"))
    want, have = (run_onnx(tmp_path / name, inputs)[0] for name in ("q.onnx", "other.onnx"))
    off = np.abs(want.astype(float) - have)
    assert (off > 0).any()
    plain = compare("y", want, have, 1e-3, lambda: [want])
    assert plain.complaint is not None
    found = judged(path, have, inputs)
    assert found.complaint is None and not found.undecided


@pytest.mark.parametrize("last", ["DequantizeLinear", "Softmax", "bytes"])
@pytest.mark.parametrize("fault", ["zero point", "bias", "weight", "padding"])
def test_what_is_wrong_is_refused(tmp_path, inputs, fault, last):
    path = save_quantized(tmp_path / "q.onnx", last=last)
    wrong = save_quantized(tmp_path / "wrong.onnx", fault, last)
    found = judged(path, run_onnx(wrong, inputs)[0], inputs)
    assert found.complaint is not None


def test_a_single_number_far_off_is_refused(tmp_path, inputs):
    path = save_quantized(tmp_path / "q.onnx")
    have = run_onnx(path, inputs)[0].copy()
    have[0, 3, 4, 4] += np.float32(LAST)
    assert judged(path, have, inputs).complaint is None
    have[0, 3, 4, 4] += np.float32(20 * LAST)
    assert "in 1 of" in (judged(path, have, inputs).complaint or "")


@pytest.mark.parametrize("shift, wrong", [(1, False), (12, True)])
def test_columns_that_a_common_scale_moves(shift, wrong):
    """A row's bytes share a scale that the row's range gives: roundings move whole columns, some
    much less in a few samples than in the next."""
    random = np.random.default_rng(7)
    want = random.standard_normal((64, 256))

    def moved():
        return (want + 0.01 * random.standard_normal((1, 256))
                + 0.01 * random.standard_normal(want.shape))

    samples = [moved() for _ in range(6)]
    have = moved()
    have[:, 17] += 0.01 * (shift - 1)
    found = compare("y", want, have, 1e-3, lambda: samples, True)
    assert (found.complaint is not None) == wrong


def test_bytes_are_compared_where_the_reference_is_near_itself_and_nowhere_else():
    random = np.random.default_rng(8)
    want = random.integers(-100, 100, (1, 500)).astype(np.int8)
    have = want.copy()
    have[0, 3] += 20
    near = [want + random.integers(-1, 2, want.shape) for _ in range(6)]
    far = [np.roll(want, 1 + i, 1) for i in range(6)]
    assert compare_steps("y", want, want + np.int8(1), 1e-3, list).complaint is None
    assert compare_steps("y", want, have, 1e-3, lambda: near).complaint is not None
    assert compare_steps("y", want, have, 1e-3, lambda: near[:3] + far[:3]).complaint is not None
    undecided = compare_steps("y", want, have, 1e-3, lambda: far)
    assert undecided.undecided and undecided.complaint is None


def test_steps_of_16_bits_are_as_coarse_as_floats_may_be():
    want = np.full((1, 500), 30000, np.int16)
    assert compare_steps("y", want, want - np.int16(20), 1e-3, list).complaint is None
    assert compare_steps("y", want, want - np.int16(40), 1e-3, list).complaint is not None


def test_noise_of_quantities_is_a_step_here_and_there(tmp_path, monkeypatch):
    model = read_tflite(byte_network("uint8").save(tmp_path / "net.tflite"))
    asked = []
    monkeypatch.setattr(TfliteModel, "run",
                        lambda self, given: asked.append(given["picture"]) or [])
    picture = np.random.default_rng(9).integers(0, 256, (1, 17, 14, 3)).astype(np.uint8)
    list(noisy_runs(model, {"picture": picture}))
    moved = np.abs(np.stack(asked).astype(int) - picture)
    assert moved.max() == 1 and 0.005 < moved.mean() < 0.015
