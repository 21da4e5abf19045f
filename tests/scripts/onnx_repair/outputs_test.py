"""Networks that end in data-dependent shapes: where to end them, said and done."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from run_model_tools.errors import ToolError
from run_model_tools.onnx_model import read_model
from run_model_tools.onnx_repair.outputs import reads
from run_model_tools.onnx_repair.repair import load, repair
from run_model_tools.onnx_repair.smallest_cut import UNCUTTABLE, smallest_cut
from small_networks import network, run_onnxruntime, save_network

CONSTANTS = {"w": np.random.default_rng(4).standard_normal((12, 3, 3, 3)).astype(np.float32),
             "split": np.array([4, 8]), "boxes_shape": np.array([1, -1, 4]),
             "scores_shape": np.array([1, 8, -1]), "most": np.array(5),
             "iou": np.array(0.5, np.float32), "two": np.array(2, np.float32),
             "zero": np.array([0]), "eight": np.array([8]), "one": np.array([1])}
# Class by class, as detectors do it: the smallest cut lies before.
NODES = """
    [conv] all = Conv(x, w)
    [split_all] places, rest = Split<axis=1>(all, split)
    flat_boxes = Reshape(places, boxes_shape)
    [conv2] more = Conv(x, w)
    boxes = Mul(flat_boxes, two)
    raw = Slice(more, zero, eight, one)
    flat_scores = Reshape(raw, scores_shape)
    scores = Sigmoid(flat_scores)
""" + "".join(f"""
    of{i} = Gather<axis=1>(scores, class{i})
    [nms{i}] kept{i} = NonMaxSuppression(boxes, of{i}, most, iou)""" for i in range(5)) + """
    kept = Concat<axis=0>(kept0, kept1, kept2, kept3, kept4)
    [of_all] largest = ReduceMax<keepdims=0>(raw)
"""


def save(path, outputs=("kept",), nodes=NODES, **domains):
    constants = {**CONSTANTS, **{f"class{i}": np.array([i]) for i in range(5)}}
    types = ", ".join(f"{'int64' if o == 'kept' else 'float'}[] {o}" for o in outputs)
    return save_network(path, f"(float[1,3,10,10] x) => ({types}) {{ {nodes} }}", constants,
                        **domains)


def test_the_refusal_names_the_last_tensors_before_what_depends_on_values(tmp_path):
    path = save(tmp_path / "detector.onnx", ("kept", "largest"))
    with pytest.raises(ToolError) as refused:
        repair(load(path), {}, None, str(path))
    assert "node 'nms0' (NonMaxSuppression, opset 13)" in str(refused.value)
    assert "--outputs largest,boxes,scores the network is compiled up to there, 9 of its 20" \
        in str(refused.value)


def test_the_rest_of_a_refusal_with_a_rule_of_its_own_stays(tmp_path):
    nodes = NODES.partition("of0")[0] + "[best] kept = of.ours.BestBoxes(boxes, scores)"
    model = load(save(tmp_path / "own.onnx", nodes=nodes, of_ours=1))
    with pytest.raises(ToolError, match="no rule how .* register a function .*; or with --outputs "
                                        "boxes,scores the network"):
        repair(model, {})


def test_nothing_is_proposed_where_most_of_the_network_comes_after(tmp_path):
    nodes = """[first] places = NonZero(x)
        numbers = Cast<to=1>(places)
        kept = MatMul(numbers, numbers)"""
    with pytest.raises(ToolError) as refused:
        repair(load(save(tmp_path / "late.onnx", nodes=nodes)), {})
    assert "--outputs NAME" not in str(refused.value) and "(NonZero" in str(refused.value)


def test_what_leads_to_no_output_is_not_looked_at(tmp_path):
    made = repair(load(save(tmp_path / "dead.onnx", ("scores",))), {})
    assert "NonMaxSuppression" not in {node.op_type for node in made.graph.node}


def test_a_network_is_compiled_up_to_tensors(tmp_path, command):
    path = save(tmp_path / "detector.onnx")
    done = command("compile_model", path, "--name", "net", "--outputs", "boxes,scores", "--json",
                   "--preprocessing", "none", "--out", tmp_path)
    report = json.loads(done.stdout)
    assert [(o["name"], o["shape"]) for o in report["metadata"]["outputs"]] == [
        ("boxes", [1, 64, 4]), ("scores", [1, 8, 64])]
    assert report["verification"]["done"] and report["verification"]["reference"] == "onnxruntime"


def test_the_reference_gives_those_tensors(tmp_path):
    path = save(tmp_path / "detector.onnx")
    x = np.random.default_rng(1).standard_normal((1, 3, 10, 10)).astype(np.float32)
    boxes, scores = read_model(path, outputs=["boxes,scores"]).run({"x": x})
    model = onnx.load(path)
    del model.graph.output[:]
    model.graph.output.extend([onnx.ValueInfoProto(name="scores"),
                               onnx.ValueInfoProto(name="boxes")])
    wanted = run_onnxruntime(model, {"x": x})
    np.testing.assert_array_equal(scores, wanted[0])
    np.testing.assert_array_equal(boxes, wanted[1])


def test_a_name_that_is_not_there(tmp_path):
    with pytest.raises(ToolError, match="'scoers', which no node of .* makes; it makes scores"):
        read_model(save(tmp_path / "detector.onnx"), outputs=["scoers"])


def test_what_a_subgraph_reads():
    (node,) = network("""(float[1] outside, int64 count, float[1] state, float weight)
            => (float[1] out) {
        out = Loop<body = g (float[1] here) => (float[1] end) {
            sum = Add(outside, here)
            end = Mul(sum, weight)
        }>(count, , state)
    }""").graph.node
    weight = numpy_helper.from_array(np.ones(1, np.float32), "weight")
    node.attribute[0].g.initializer.append(weight)
    assert reads(node) == {"count", "state", "outside"}


def test_smallest_cut():
    edges = [("a", "b"), ("b", "c0"), ("b", "c1"), ("c0", "d0"), ("c1", "d1"), ("k", "d1")]
    weights = dict.fromkeys(["a", "b", "c0", "c1", "d0", "d1", "k"], 1)
    assert smallest_cut(weights, edges, ["a"], ["d0", "d1"], 9) == ["b"]
    assert smallest_cut(weights, edges, ["a"], ["b"], 9) == ["b"]
    assert smallest_cut({**weights, "a": UNCUTTABLE, "b": UNCUTTABLE}, edges, ["a"], ["d0", "d1"],
                        9) == ["d0", "d1"]
    assert smallest_cut(weights, edges, ["a", "k"], ["d0", "d1"], 1) is None
    assert smallest_cut({**weights, "b": UNCUTTABLE}, edges, ["b"], ["b"], 9) is None


def classifier(path, outputs):
    """As scikit-learn's converter ends one: the class's name, and a dictionary for each row."""
    labels = ["cat", "dog", "owl"]
    weights = np.arange(12, dtype=np.float32) / 7
    nodes = [helper.make_node("LinearClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml",
                              coefficients=weights.tolist(), intercepts=[0.1, 0.2, 0.3],
                              classlabels_strings=labels, post_transform="SOFTMAX"),
             helper.make_node("Identity", ["label"], ["name"]),
             helper.make_node("ZipMap", ["scores"], ["probability"], domain="ai.onnx.ml",
                              classlabels_strings=labels)]
    types = {"name": helper.make_tensor_type_proto(TensorProto.STRING, [2]),
             "scores": helper.make_tensor_type_proto(TensorProto.FLOAT, [2, 3]),
             "probability": helper.make_sequence_type_proto(helper.make_map_type_proto(
                 TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, [])))}
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])],
        [helper.make_value_info(name, types[name]) for name in outputs])
    onnx.save(helper.make_model(graph, opset_imports=[
        helper.make_opsetid("", 13), helper.make_opsetid("ai.onnx.ml", 1)], ir_version=8), path)
    return path


def test_of_dictionaries_the_numbers_are_outputs_and_texts_are_left_out(tmp_path):
    model = read_model(classifier(tmp_path / "animals.onnx", ["name", "probability"]))
    assert model.outputs == ["scores"]
    left_out, columns = model.source()["notes"]
    assert "output 'name' is left out: it holds texts" in left_out
    assert columns.endswith("the tensor 'scores' with a column for each key: cat, dog, owl")
    x = np.random.default_rng(1).standard_normal((2, 4)).astype(np.float32)
    (want,) = model.run({"x": x})
    np.testing.assert_allclose(want.sum(axis=1), 1, rtol=1e-6)
    repaired = repair(load(model.path, model.cut), {}, None, "animals")
    assert [o.name for o in repaired.graph.output] == ["scores"]


def test_of_a_list_each_tensor_is_an_output(tmp_path):
    """As a classifier of several things at once ends."""
    path = save_network(tmp_path / "list.onnx", """(float[2,4] x) => (float[2,4] y, seq(float) z) {
        y = Relu(x) first = Neg(x) second = ReduceSum<keepdims=0>(x, one)
        z = SequenceConstruct(first, second) }""", CONSTANTS)
    model = read_model(path)
    assert model.outputs == ["y", "first", "second"]
    assert model.source()["notes"] == ["output 'z', a list of tensors, is these: first, second"]
    repaired = repair(load(model.path, model.cut), {}, None, str(path))
    x = np.random.default_rng(1).standard_normal((2, 4)).astype(np.float32)
    for have, want in zip(run_onnxruntime(repaired, {"x": x}), (np.maximum(x, 0), -x, x.sum(1)),
                          strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-6)


def test_a_network_of_texts_only_is_refused(tmp_path):
    path = classifier(tmp_path / "names.onnx", ["name"])
    assert read_model(path).outputs == ["name"]
    with pytest.raises(ToolError, match="node 'name'|'name' is no tensor|input 0 is missing"):
        repair(load(path), {}, None, str(path))


def test_numbers_are_left_as_they_are(tmp_path):
    model = read_model(classifier(tmp_path / "scores.onnx", ["scores"]))
    assert not model.cut and "notes" not in model.source()
