"""The faster constant folding gives what TVM gives."""

import json
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from run_model_tools import tvm_process
from run_model_tools.compiling.params_file import read_params
from run_model_tools.inside_tvm.faster_folding import evaluate, transform_layout


def save_block(path):
    """A convolution, a depthwise and a grouped one, each normalised; a shuffle; a sum."""
    random = np.random.default_rng(3)
    weights, nodes = [], []

    def weight(name, *shape, positive=False):
        value = random.standard_normal(shape).astype(np.float32)
        weights.append(numpy_helper.from_array(np.abs(value) if positive else value, name))
        return name

    def convolution(name, source, *shape, group=1, relu=True):
        inputs = [source, weight(f"{name}.w", *shape)]
        nodes.append(helper.make_node("Conv", inputs, [f"{name}.c"], pads=[1, 1, 1, 1],
                                      group=group))
        norm = [weight(f"{name}.{part}", shape[0], positive=part == "v") for part in "gbmv"]
        nodes.append(helper.make_node("BatchNormalization", [f"{name}.c", *norm], [f"{name}.n"]))
        if relu:
            nodes.append(helper.make_node("Relu", [f"{name}.n"], [name]))
        return name if relu else f"{name}.n"

    first = convolution("first", "x", 16, 3, 3, 3)
    depth = convolution("depth", first, 16, 1, 3, 3, group=16, relu=False)
    grouped = convolution("grouped", depth, 16, 4, 3, 3, group=4)
    weights.append(numpy_helper.from_array(np.array([1, 4, 4, 8, 8]), "apart"))
    weights.append(numpy_helper.from_array(np.array([1, 16, 8, 8]), "together"))
    nodes += [
        helper.make_node("Reshape", [grouped, "apart"], ["s1"]),
        helper.make_node("Transpose", ["s1"], ["s2"], perm=[0, 2, 1, 3, 4]),
        helper.make_node("Reshape", ["s2", "together"], ["s3"]),
        helper.make_node("Add", ["s3", first], ["y"])]
    graph = helper.make_graph(
        nodes, "block", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 16, 8, 8])], weights)
    onnx.save(helper.make_model(graph, ir_version=7,
                                opset_imports=[helper.make_opsetid("", 13)]), str(path))


@pytest.mark.parametrize("target", [
    "llvm -mcpu=x86-64-v2",
    pytest.param("llvm -mtriple=aarch64-linux-gnu -device=arm_cpu -mattr=+neon",
                 marks=pytest.mark.full)])
def test_files_are_those_of_tvm_alone(tmp_path, target):
    save_block(tmp_path / "block.onnx")
    for fast in (True, False):
        folder = tmp_path / str(fast)
        folder.mkdir()
        tvm_process.call("compile", None, onnx=str(tmp_path / "block.onnx"), target=target,
                         shapes={}, opt_level=3, directory=str(folder), fast=fast,
                         cc="aarch64-linux-gnu-g++" if "aarch64" in target else "g++")
    library, graph = (tmp_path / "True" / name for name in ("model.so", "model.json"))
    assert library.read_bytes() == (tmp_path / "False" / "model.so").read_bytes()
    described = json.loads(graph.read_text())
    # TVM alone forgets early on what was made of which node.
    names = [node["attrs"].pop("onnx_nodes", None) for node in described["nodes"]
             if node["op"] == "tvm_op"]
    assert any(names)
    assert described == json.loads((tmp_path / "False" / "model.json").read_text())
    ours, theirs = (read_params((tmp_path / made / "model.params").read_bytes())
                    for made in ("True", "False"))
    assert ours and ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert (tensor.dtype, tensor.shape) == (theirs[name].dtype, theirs[name].shape)
        assert bytes(tensor.data) == bytes(theirs[name].data)


def test_blocks_of_channels_are_found_by_their_index():
    source = np.arange(8 * 6 * 2 * 3).reshape(8, 6, 2, 3)
    blocked = transform_layout(source, "OIHW", "OIHW2i4o")
    assert blocked.shape == (2, 3, 2, 3, 2, 4)
    for o, i, h, w in np.ndindex(source.shape):
        assert blocked[o // 4, i // 2, h, w, i % 2, o % 4] == source[o, i, h, w]
    assert transform_layout(source, "OIHW",
                            "HWIO").tolist() == source.transpose(2, 3, 1, 0).tolist()


@pytest.mark.parametrize("source, target", [
    ("OIHW", "OIHW5o"), ("OIHW4o", "OIHW"), ("OIHW", "OIHW2i2i"), ("OIHW", "OIH"),
    ("OIHW", "OIHW4c"), ("NCHWD", "NCHWD"), ("OIHW", "OIHWo"), ("OIHW", "OIHW4o_")])
def test_other_layouts_are_left_to_tvm(source, target):
    assert transform_layout(np.zeros((8, 6, 2, 3)), source, target) is None


def test_only_what_rounds_alike_is_evaluated():
    a, b = np.float32([1, 2]), np.float32([3, 0])
    assert evaluate("divide", None, [a, b]).tolist() == [np.float32(1) / np.float32(3), np.inf]
    assert evaluate("exp", None, [a]) is None
    assert evaluate("add", None, [a.astype(np.float16)] * 2) is None
    assert evaluate("add", None, [a, a.astype(np.float64)]) is None
    attrs = SimpleNamespace(axis=-1, num_newaxis=2)
    assert evaluate("expand_dims", attrs, [a]).shape == (2, 1, 1)
