"""Networks in bfloat16: float32 in their place, in the network and at its interface."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from run_model_tools.onnx_model import read_model
from run_model_tools.onnx_repair.bfloat16 import as_float32, note
from run_model_tools.onnx_repair.repair import repair
from small_networks import network, run_onnxruntime

BFLOAT16 = TensorProto.BFLOAT16


def brain(tensor: TensorProto) -> TensorProto:
    """The same numbers, which bfloat16 has, in bfloat16."""
    return helper.make_tensor(tensor.name, BFLOAT16, tensor.dims, list(numpy_helper.to_array(
        tensor).ravel()))


def constant_in_brain(node: onnx.NodeProto) -> None:
    node.attribute[0].t.CopyFrom(brain(node.attribute[0].t))


def branches(is_brain: bool) -> onnx.ModelProto:
    """A branch, a cast and constants, in float32 or in bfloat16 but for the input."""
    model = network("""(float[3] x, bool up) => (float[3] y) {
        h = Cast<to=1>(x)
        s = Mul(h, w)
        y = If(up) <then_branch = up () => (float[3] a) {
            two = Constant<value = float[1] {2}>()
            a = Mul(s, two)
        }, else_branch = down () => (float[3] b) { b = Neg(s) }>
    }""", {"w": np.array([1.5, -2, 0.25], np.float32)}, 18)
    if is_brain:
        cast, _, choice = model.graph.node
        cast.attribute[0].i = BFLOAT16
        bodies = [attribute.g for attribute in choice.attribute]
        for value in (*model.graph.output, *(body.output[0] for body in bodies)):
            value.type.tensor_type.elem_type = BFLOAT16
        for node in bodies[0].node[:1]:
            constant_in_brain(node)
        model.graph.initializer[0].CopyFrom(brain(model.graph.initializer[0]))
    return model


@pytest.mark.parametrize("up", [True, False])
def test_everything_becomes_float32(up):
    made = branches(is_brain=True)
    assert as_float32(made)
    onnx.checker.check_model(made, full_check=True)
    given = {"x": np.array([1, 2, 3.7], np.float32), "up": np.array(up)}
    expected, = run_onnxruntime(branches(is_brain=False), given)
    got, = run_onnxruntime(made, given)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, expected)
    assert note(made) is None
    assert not as_float32(made)


def test_functions_too():
    model = network("(float[2] x) => (float[2] y) { y = ours.share(x) }", {}, 18, 8, ours=1)
    model.functions.append(onnx.parser.parse_function(
        """<domain: "ours", opset_import: ["": 18]> share (x) => (y) {
            w = Constant<value = float[1] {0.5}>()
            y = Mul(x, w)
        }"""))
    constant_in_brain(model.functions[0].node[0])
    assert note(model)
    assert as_float32(model)
    got, = run_onnxruntime(model, {"x": np.array([1, 3], np.float32)})
    np.testing.assert_array_equal(got, np.array([0.5, 1.5], np.float32))


def test_a_network_compiles_and_says_so(tmp_path, command):
    path = tmp_path / "brain.onnx"
    model = network("(bfloat16[1,3] x) => (bfloat16[1,3] y) { h = Mul(x, w)\n y = Relu(h) }",
                    {"w": np.array([1.5, -2, 0.25], np.float32)})
    model.graph.initializer[0].CopyFrom(brain(model.graph.initializer[0]))
    onnx.save(model, str(path))
    assert read_model(path).inputs[0].dtype == np.float32
    result = command("compile_model", path, "--out", tmp_path / "out", "--json")
    report = json.loads(result.stdout)
    assert report["verification"]["done"]
    metadata = report["metadata"]
    assert metadata["inputs"][0]["dtype"] == metadata["outputs"][0]["dtype"] == "float32"
    assert "so are 'x', 'y'" in metadata["source"]["notes"][0]


ROUNDED = """(float[4, 16] x) => (float[4, 16] y) {
    h = Cast<to = 16>(x) r = Cast<to = 1>(h) d = Sub(x, r) y = Mul(d, w) }"""


def test_numbers_that_are_cast_there_and_back_are_rounded():
    made = network(ROUNDED, {"w": np.array(512, np.float32)}, 18)
    assert note(made) is None and not as_float32(made)
    bits = np.array([0, 0x3F808000, 0x3F818000, 0x3F818001, 0x7F7FFFFF, 0x7F800000], np.uint32)
    x = np.resize(bits.view(np.float32) * np.array([[1], [-1]], np.float32), (4, 16))
    for got, expected in zip(run_onnxruntime(repair(made, {}), {"x": x}),
                             run_onnxruntime(made, {"x": x})):
        np.testing.assert_array_equal(got, expected)
    # What is computed in bfloat16 is not.
    made.graph.node[1].op_type = "Relu"
    del made.graph.node[1].attribute[:]
    assert note(made) and as_float32(made)


@pytest.mark.parametrize("compiler", ["relay", "relax"])
def test_rounding_is_compiled(tmp_path, command, compiler):
    """The output is what it takes away, which is compared."""
    path = tmp_path / "rounded.onnx"
    onnx.save(network(ROUNDED, {"w": np.array(512, np.float32)}, 18), str(path))
    result = command("compile_model", path, "--out", tmp_path / "out", "--json", "--compiler",
                     compiler)
    assert json.loads(result.stdout)["verification"]["done"]
