"""Networks in float16: float16 at the interface, float32 sums."""

from __future__ import annotations

import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from run_model_tools.onnx_repair.half_precision import in_float32
from run_model_tools.onnx_repair.repair import repair
from small_networks import save_classifier


def halved(model: onnx.ModelProto) -> onnx.ModelProto:
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(
                numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    return model


def run(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    import onnxruntime

    return onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, inputs)


def test_only_the_interface_is_half(tmp_path):
    path = save_classifier(tmp_path / "m.onnx")
    half = halved(onnx.load(str(path)))
    single = onnx.load(str(path))
    for mine, theirs in zip(single.graph.initializer, half.graph.initializer):
        mine.CopyFrom(numpy_helper.from_array(
            numpy_helper.to_array(theirs).astype(np.float32), mine.name))
    made = in_float32(repair(half, {}))
    onnx.checker.check_model(made, full_check=True)
    assert all(t.data_type != TensorProto.FLOAT16 for t in made.graph.initializer)
    x = np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype(np.float16)
    got, = run(made, {"image": x})
    assert got.dtype == np.float16
    # Nothing but the last rounding is left of float16.
    expected, = run(single, {"image": x.astype(np.float32)})
    np.testing.assert_array_equal(got, expected.astype(np.float16))


def test_casts_between_and_an_output_that_is_read(tmp_path):
    nodes = [helper.make_node("Cast", ["x"], ["h"], to=TensorProto.FLOAT16),
             helper.make_node("Mul", ["h", "w"], ["y"]),
             helper.make_node("Relu", ["y"], ["z"])]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT16, [3]) for n in ("y", "z")],
        [numpy_helper.from_array(np.array([1, -2, 3], np.float16), "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    x = {"x": np.array([0.5, 1.5, 2.25], np.float32)}
    expected = run(model, x)
    got = run(in_float32(model), x)
    for a, b in zip(got, expected):
        assert a.dtype == np.float16
        np.testing.assert_array_equal(a, b)


def test_a_network_in_float16_compiles(tmp_path, command):
    path = tmp_path / "half.onnx"
    onnx.save(halved(onnx.load(str(save_classifier(tmp_path / "m.onnx")))), str(path))
    result = command("compile_model", path, "--out", tmp_path / "out", "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["verification"]["done"]
    metadata = report["metadata"]
    assert metadata["inputs"][0]["dtype"] == metadata["outputs"][0]["dtype"] == "float16"
    assert metadata["kernels"]["method"] == "ours"
