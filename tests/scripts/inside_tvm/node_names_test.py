"""--explain under the names of the ONNX file: what a layer computes, fused or left to TVM."""

from __future__ import annotations

import json

import pytest

from run_model_tools.compiling import explanation
from run_model_tools.kernels.plan import Step
from run_model_tools.kernels.sources import Sources
from run_model_tools.kernels.tensors import Tensor
from small_networks import save_network, weights


def save(path):
    """A convolution and what follows it, an operator of TVM's, a product, a second branch."""
    return save_network(path, """(float[1,3,8,8] x) => (float[16,10] y) {
        [first] a = Conv<pads=[1,1,1,1]>(x, w)
        [gate] s = Sigmoid(a)
        [swish] b = Mul(a, s)
        [second] c = Conv(b, p)
        [cut] d = Relu(c)
        [flat] e = Reshape(d, shape)
        [product] f = MatMul(e, m)
        [sums] y = CumSum(f, axis)
    }""", {**weights(8, w=(16, 3, 3, 3), p=(16, 16, 1, 1), m=(64, 10)), "shape": [16, 64],
           "axis": 1}, 17)


@pytest.mark.parametrize("kernels", ["ours", pytest.param("stock", marks=pytest.mark.full)])
def test_each_node_says_what_it_computes(tmp_path, command, kernels):
    done = command("compile_model", save(tmp_path / "net.onnx"), "--target", "x86_64_v3", "--json",
                   "--explain", "--kernels", kernels, "--preprocessing", "none", "--no-verify",
                   "--out", tmp_path)
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
