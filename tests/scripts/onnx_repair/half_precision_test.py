"""Networks in float16: float16 at the interface, float32 sums."""

from __future__ import annotations

import json

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from run_model_tools.onnx_repair.half_precision import in_float32
from run_model_tools.onnx_repair.repair import repair
from small_networks import network, run_onnxruntime, save_classifier


def halved(model: onnx.ModelProto) -> onnx.ModelProto:
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(
                numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    return model


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
    got, = run_onnxruntime(made, {"image": x})
    assert got.dtype == np.float16
    # Nothing but the last rounding is left of float16.
    expected, = run_onnxruntime(single, {"image": x.astype(np.float32)})
    np.testing.assert_array_equal(got, expected.astype(np.float16))


def test_casts_between_and_an_output_that_is_read():
    model = network("""(float[3] x) => (float16[3] y, float16[3] z) {
        h = Cast<to=10>(x)
        y = Mul(h, w)
        z = Relu(y)
    }""", {"w": np.array([1, -2, 3], np.float16)}, 18)
    x = {"x": np.array([0.5, 1.5, 2.25], np.float32)}
    expected = run_onnxruntime(model, x)
    got = run_onnxruntime(in_float32(model), x)
    for a, b in zip(got, expected):
        assert a.dtype == np.float16
        np.testing.assert_array_equal(a, b)


def test_a_network_in_float16_compiles(tmp_path, command):
    path = tmp_path / "half.onnx"
    onnx.save(halved(onnx.load(str(save_classifier(tmp_path / "m.onnx")))), str(path))
    result = command("compile_model", path, "--out", tmp_path / "out", "--json")
    report = json.loads(result.stdout)
    assert report["verification"]["done"]
    metadata = report["metadata"]
    assert metadata["inputs"][0]["dtype"] == metadata["outputs"][0]["dtype"] == "float16"
    assert metadata["kernels"]["method"] == "ours"
