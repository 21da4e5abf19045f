"""--explain under the names of the ONNX file: what a layer computes, fused or left to TVM."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from run_model_tools.compiling import explanation
from run_model_tools.kernels.plan import Step
from run_model_tools.kernels.sources import Sources
from run_model_tools.kernels.tensors import Tensor

RANDOM = np.random.default_rng(8)


def save(path):
    """A convolution and what follows it, an operator of TVM's, a product, a second branch."""
    weights = {"w": RANDOM.standard_normal((16, 3, 3, 3)).astype(np.float32),
               "p": RANDOM.standard_normal((16, 16, 1, 1)).astype(np.float32),
               "m": RANDOM.standard_normal((64, 10)).astype(np.float32),
               "shape": np.array([16, 64])}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "first", pads=[1, 1, 1, 1]),
        helper.make_node("Sigmoid", ["a"], ["s"], "gate"),
        helper.make_node("Mul", ["a", "s"], ["b"], "swish"),
        helper.make_node("Conv", ["b", "p"], ["c"], "second"),
        helper.make_node("Relu", ["c"], ["d"], "cut"),
        helper.make_node("Reshape", ["d", "shape"], ["e"], "flat"),
        helper.make_node("MatMul", ["e", "m"], ["f"], "product"),
        helper.make_node("CumSum", ["f", "axis"], ["y"], "sums")]
    weights["axis"] = np.array(1)
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [16, 10])],
        [numpy_helper.from_array(a, n) for n, a in weights.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                                ir_version=8), path)
    return path


@pytest.mark.parametrize("kernels", ["ours", pytest.param("stock", marks=pytest.mark.full)])
def test_each_node_says_what_it_computes(tmp_path, command, kernels):
    done = command("compile_model", save(tmp_path / "net.onnx"), "--target", "x86_64_v3", "--json",
                   "--explain", "--kernels", kernels, "--preprocessing", "none", "--no-verify",
                   "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    nodes = json.loads(done.stdout)["explanation"]["nodes"]
    computed = [node["onnx_nodes"] for node in nodes if "onnx_nodes" in node]
    together = {name: names for names in computed for name in names}
    assert {"first", "gate", "swish", "second", "cut", "product", "sums"} <= set(together)
    assert together["first"] is together["swish"] and together["second"] is together["cut"]
    assert together["first"] is not together["second"] is not together["product"]
    if kernels == "ours":
        by = {name: node["by"] for node in nodes for name in node.get("onnx_nodes", ())}
        assert by["second"] == by["product"] == "ours" and by["sums"] == "TVM"
        left = next(node for node in nodes if "sums" in node.get("onnx_nodes", ()))
        assert left["left_because"] == ["there is no kernel of ours for cumsum"]
    lines = explanation.as_text(json.loads(done.stdout)["explanation"])
    assert any("computes" in line and "swish" in line for line in lines)
    assert any("not ours: " in line and "cumsum" in line for line in lines) == (kernels == "ours")


def test_what_was_joined_is_part_of_what_read_it():
    tensors = [Tensor((1,)) for _ in range(6)]
    sources = Sources()
    sources.add([Step([tensors[0]], tensors[1])], ["a"])
    sources.add([Step([tensors[1]], tensors[2]), Step([tensors[2]], tensors[3])], ["b", "b", "c"])
    sources.add([Step([tensors[3]], tensors[4])], ["d"])
    sources.add([Step([tensors[1]], tensors[5])], ["nothing reads it"])
    left = [Step([tensors[1]], tensors[3]), Step([tensors[3]], tensors[4])]
    assert sources.of(left) == {tensors[3]: ["a", "b", "c"], tensors[4]: ["d"]}
