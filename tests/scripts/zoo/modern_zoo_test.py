"""Networks kept without weights, and filled again."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from run_model_tools.errors import ToolError
from run_model_tools.zoo.modern import manifest
from run_model_tools.zoo.modern.skeleton import (
    fill_skeleton,
    load_skeleton,
    make_skeleton,
    save_skeleton,
)
from run_model_tools.zoo.modern.tensors import Fill, fill_of, values_of


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """A convolution and an addition, weights beside the file, as the new exporter writes them."""
    random = np.random.default_rng(1)
    weight = random.standard_normal((32, 16, 3, 3)).astype(np.float32)
    weight -= weight.mean((1, 2, 3), keepdims=True)
    tensors = [numpy_helper.from_array(weight, "w"),
               numpy_helper.from_array(random.uniform(0.5, 1.5, 200).astype(np.float32), "s"),
               numpy_helper.from_array(np.arange(400, dtype=np.int64), "indices"),
               numpy_helper.from_array(np.float32([1, 2]), "short")]
    constant = numpy_helper.from_array(random.standard_normal((1, 32, 4, 4)).astype(np.float32))
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
             helper.make_node("Constant", [], ["k"], value=constant),
             helper.make_node("Add", ["c", "k"], ["y"])]
    nodes[0].metadata_props.add(key="pkg.torch.onnx.stack_trace", value="line 1")
    nodes[0].metadata_props.add(key="namespace", value="conv")
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [value("x", TensorProto.FLOAT, [1, 16, 4, 4])],
                              [value("y", TensorProto.FLOAT, [1, 32, 4, 4])], tensors)
    path = tmp_path / "exported" / "net.onnx"
    path.parent.mkdir()
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 20)]),
              str(path), save_as_external_data=True, location="net.onnx.data", size_threshold=100)
    return path


def tensor_of(model: onnx.ModelProto, name: str) -> np.ndarray:
    return numpy_helper.to_array(next(t for t in model.graph.initializer if t.name == name))


def test_a_skeleton_has_no_weights_and_gets_others_of_the_same_kind(exported, tmp_path):
    skeleton = tmp_path / "net.onnx.xz"
    save_skeleton(make_skeleton(exported, keep_traces=False), skeleton)
    assert skeleton.stat().st_size < 2000 < (exported.parent / "net.onnx.data").stat().st_size
    path = tmp_path / "filled" / "net.onnx"
    fill_skeleton(load_skeleton(skeleton), 1, path)
    # In the places in which the exporter had put them.
    assert (path.parent / "net.onnx.data").stat().st_size == (
        exported.parent / "net.onnx.data").stat().st_size
    before, after = onnx.load(str(exported)), onnx.load(str(path))
    onnx.checker.check_model(after)
    for name in ("indices", "short"):
        np.testing.assert_array_equal(tensor_of(after, name), tensor_of(before, name))
    old, new = tensor_of(before, "w"), tensor_of(after, "w")
    assert new.shape == old.shape and not np.array_equal(old, new)
    assert new.std() == pytest.approx(old.std(), rel=0.05)
    assert np.abs(new.sum((1, 2, 3))).max() < 0.01
    scales = tensor_of(after, "s")
    assert scales.min() >= 0.5 and scales.max() <= 1.5 and scales.std() > 0.2
    constant = numpy_helper.to_array(after.graph.node[1].attribute[0].t)
    assert constant.shape == (1, 32, 4, 4) and constant.std() == pytest.approx(1, rel=0.1)
    assert [p.key for p in after.graph.node[0].metadata_props] == ["namespace"]


def test_seeds_make_the_same_bits_everywhere():
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[64, 32, 3, 3])
    for key, value in Fill(-0.1, 0.1, (1, 2, 3)).entries().items():
        tensor.external_data.add(key=key, value=value)
    digest = hashlib.sha256(values_of(tensor, "w", 1)).hexdigest()
    assert digest == "156a3142fdea8a626068eba9f8ad18c5883b38c54381ec81e68087e6c9ad6ca2"
    assert values_of(tensor, "v", 1) != values_of(tensor, "w", 1) != values_of(tensor, "w", 2)


def test_quantised_weights_stay_in_their_range():
    random = np.random.default_rng(3)
    weights = np.clip(np.rint(random.standard_normal(4000) * 50), -127, 127).astype(np.int8)
    tensor = numpy_helper.from_array(weights, "q")
    fill = fill_of(tensor)
    assert fill is not None
    for key, value in fill.entries().items():
        tensor.external_data.add(key=key, value=value)
    values = np.frombuffer(values_of(tensor, "q", 1), np.int8)
    assert abs(values.astype(float).std() - weights.astype(float).std()) < 3


@pytest.mark.parametrize("values", [
    np.zeros(1000, np.float32), np.float32([0, -100] * 500), np.ones(2, np.float32),
    np.arange(1000)])
def test_tables_and_short_tensors_are_kept(values):
    assert fill_of(numpy_helper.from_array(values, "t")) is None


def test_a_skeleton_that_writes_elsewhere(tmp_path):
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4])
    for key, value in (Fill(0, 1).entries() | {"location": "../w", "length": "16"}).items():
        tensor.external_data.add(key=key, value=value)
    model = onnx.ModelProto()
    model.graph.initializer.append(tensor)
    with pytest.raises(ToolError, match="a file's name without folders"):
        fill_skeleton(model, 1, tmp_path / "net.onnx")


def test_what_is_no_skeleton(tmp_path):
    (tmp_path / "net.onnx.xz").write_bytes(b"nothing")
    with pytest.raises(ToolError, match="is no skeleton"):
        load_skeleton(tmp_path / "net.onnx.xz")
    with pytest.raises(ToolError, match="cannot be read"):
        load_skeleton(tmp_path / "other.onnx.xz")


def test_the_manifest_and_the_skeletons_are_the_same_networks():
    networks = manifest.read_networks()
    assert {f"{name}.onnx.xz" for name in networks} == {
        path.name for path in manifest.FOLDER.glob("*.onnx.xz")}
    licences = {network.facts["licence"] for network in networks.values()}
    assert licences == {"BSD-3-Clause", "Apache-2.0"}  # none that binds who uses them
    for network in networks.values():
        model = load_skeleton(network.skeleton)
        inputs = {value.name: value.type.tensor_type for value in model.graph.input}
        assert list(inputs) == [item.name for item in network.inputs]
        for item in network.inputs:
            extents = [d.dim_value for d in inputs[item.name].shape.dim]
            assert all(e in (0, s) for e, s in zip(extents, item.shape)), network.name
        opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
        assert opset == network.facts["opset"]


def test_makes_what_is_asked_for(command, tmp_path):
    done = command("make_modern_zoo", "lstm_gru-old17", "--out", tmp_path, "--json")
    assert [n["name"] for n in json.loads(done.stdout)["networks"]] == ["lstm_gru-old17"]
    onnx.checker.check_model(str(tmp_path / "lstm_gru-old17.onnx"))
    done = command("make_modern_zoo", "alexnet", code=2)
    assert "there is no network 'alexnet'" in done.stderr
