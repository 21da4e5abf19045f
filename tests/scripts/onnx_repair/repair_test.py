"""Repaired models compute what the originals do, in forms that TVM's importer reads correctly."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from repaired_models import (
    BOOL,
    FLOAT,
    INT64,
    check,
    model_of,
    noise,
    operators,
    refusal,
    repaired,
    run,
)

from run_model_tools.errors import ToolError
from run_model_tools.onnx_model import read_model
from run_model_tools.onnx_repair import onnxruntime_process
from run_model_tools.onnx_repair.importer_dialect import to_dialect
from run_model_tools.onnx_repair.reference import REPAIRED
from run_model_tools.onnx_repair.repair import load, write_repaired


def test_pooling_as_newer_exporters_write_it():
    """A mean over two axes that are an input, of which the importer would take the first only."""
    model = model_of(
        [helper.make_node("ReduceMean", ["x", "axes"], ["y"], keepdims=1),
         helper.make_node("Mul", ["x", "y"], ["z"])],
        {"x": (FLOAT, [1, 4, 7, 5])}, {"z": FLOAT}, 20, {"axes": np.array([-1, -2])})
    assert operators(check(model, {"x": noise(1, 4, 7, 5)})) == ["GlobalAveragePool", "Mul"]


@pytest.mark.parametrize("opset", [1, 11, 13, 18])
@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2",
                                "ReduceLogSumExp", "ReduceProd"])
def test_reductions_name_their_axes_in_the_importers_way(op, opset):
    as_input = opset >= 18 or (opset >= 13 and op == "ReduceSum")
    axes = {} if as_input else {"axes": [1, 3]}
    model = model_of([helper.make_node(op, ["x", "axes"] if as_input else ["x"], ["y"],
                                       keepdims=0, **axes)],
                     {"x": (FLOAT, [2, 3, 4, 5])}, {"y": FLOAT}, opset,
                     {"axes": np.array([-1, 1])} if as_input else None)
    made = to_dialect(check(model, {"x": noise(2, 3, 4, 5)}))
    reductions = [node for node in made.graph.node if node.op_type.startswith("Reduce")]
    assert reductions and all(len(node.input) == 1 for node in reductions)
    assert all(list(a.ints) == [1, 3] for node in reductions for a in node.attribute
               if a.name == "axes")


@pytest.mark.parametrize("starts, ends, axes, steps", [
    ([-1], [np.iinfo(np.int64).min], [3], [-1]),
    ([-1, -1], [np.iinfo(np.int64).min] * 2, [2, 3], [-1, -1]),
    ([0, 5, 1], [100, 0, -1], [1, 3, 2], [2, -2, 1]), ([3], [1], [-1], [1])])
def test_slices(starts, ends, axes, steps):
    """Also backwards, as torch.flip is exported; the importer drops such steps."""
    model = model_of([helper.make_node("Slice", ["x", "s", "e", "a", "t"], ["y"])],
                     {"x": (FLOAT, [1, 3, 4, 6])}, {"y": FLOAT}, 17,
                     {"s": np.array(starts), "e": np.array(ends), "a": np.array(axes),
                      "t": np.array(steps)})
    made = check(model, {"x": noise(1, 3, 4, 6)})
    for node in made.graph.node:
        if node.op_type == "Slice":
            steps_used = next(t for t in made.graph.initializer if t.name == node.input[4])
            assert (numpy_helper.to_array(steps_used) > 0).all()


def test_shapes_that_are_computed_are_constants():
    """As PyTorch exports x.view(x.size(0), -1) with an open batch."""
    model = model_of(
        [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Gather", ["s", "zero"], ["n"]),
         helper.make_node("Unsqueeze", ["n", "axis"], ["u"]),
         helper.make_node("Concat", ["u", "rest"], ["to"], axis=0),
         helper.make_node("Reshape", ["x", "to"], ["y"])],
        {"x": (FLOAT, ["N", 4, 3, 2])}, {"y": FLOAT}, 13,
        {"zero": np.array(0), "axis": np.array([0]), "rest": np.array([-1])})
    assert operators(check(model, {"x": noise(5, 4, 3, 2)})) == ["Flatten"]


def test_branches_and_loops_are_resolved():
    body = helper.make_graph(
        [helper.make_node("Add", ["v", "x"], ["w"]), helper.make_node("Identity", ["c"], ["d"]),
         helper.make_node("Mul", ["w", "w"], ["scan"])], "body",
        [helper.make_tensor_value_info(n, t, s) for n, t, s in (
            ("i", INT64, []), ("c", BOOL, []), ("v", FLOAT, [3]))],
        [helper.make_tensor_value_info(n, t, s) for n, t, s in (
            ("d", BOOL, []), ("w", FLOAT, [3]), ("scan", FLOAT, [3]))])
    branches = {f"{name}_branch": helper.make_graph(
        [helper.make_node(op, ["x"], ["r"])], name, [], [helper.make_tensor_value_info(
            "r", FLOAT, [3])]) for name, op in (("then", "Abs"), ("else", "Neg"))}
    model = model_of(
        [helper.make_node("Loop", ["n", "yes", "x"], ["sum", "all"], body=body),
         helper.make_node("Size", ["x"], ["size"]), helper.make_node("Less", ["size", "n"], ["is"]),
         helper.make_node("If", ["is"], ["chosen"], **branches),
         helper.make_node("ReduceMax", ["x"], ["m"], keepdims=0),
         helper.make_node("Greater", ["m", "half"], ["late"]),
         helper.make_node("If", ["late"], ["either"], **branches)],
        {"x": (FLOAT, [3])}, {"sum": FLOAT, "all": FLOAT, "chosen": FLOAT, "either": FLOAT}, 17,
        {"n": np.array(4), "yes": np.array(True), "half": np.array(0.5, np.float32)})
    made = check(model, {"x": noise(3)})
    assert not {"Loop", "If"} & set(operators(made))


def test_a_loop_may_be_bounded_by_a_quantised_constant():
    """Keras' loops over a sequence compare a counter with its length, both as floats, and ONNX
    Runtime's quantizer stores such a length as a byte, too."""
    body = helper.make_graph(
        [helper.make_node("Add", ["v", "x"], ["w"]), helper.make_node("Cast", ["i"], ["f"], to=1),
         helper.make_node("Less", ["f", "last"], ["d"])], "body",
        [helper.make_tensor_value_info(n, t, s) for n, t, s in (
            ("i", INT64, []), ("c", BOOL, []), ("v", FLOAT, [3]))],
        [helper.make_tensor_value_info(n, t, s) for n, t, s in (
            ("d", BOOL, []), ("w", FLOAT, [3]))])
    held = {"byte": np.array(40, np.uint8), "scale": np.array(0.1, np.float32),
            "none": np.array(0, np.uint8), "start": np.array(0, np.float32)}
    nodes = [helper.make_node("DequantizeLinear", ["byte", "scale", "none"], ["length"]),
             helper.make_node("Sub", ["length", "scale"], ["last"]),
             helper.make_node("Less", ["start", "length"], ["yes"]),
             helper.make_node("Loop", ["", "yes", "x"], ["sum"], body=body),
             helper.make_node("Mul", ["sum", "length"], ["y"])]
    x = noise(3)
    made = check(model_of(nodes, {"x": (FLOAT, [3])}, {"y": FLOAT}, 15, held), {"x": x})
    assert operators(made).count("Add") == 5
    assert "DequantizeLinear" in operators(made)  # What is multiplied stays a byte.


def test_a_sequence_is_mapped_by_what_sees_the_values_around_it():
    """As PyTorch exports torch.atleast_3d: SequenceMap is a function in which its body stands."""
    body = helper.make_graph(
        [helper.make_node("Mul", ["v", "half"], ["w"])], "body",
        [helper.make_tensor_value_info("v", FLOAT, [2, 3])],
        [helper.make_tensor_value_info("w", FLOAT, [2, 3])])
    model = model_of(
        [helper.make_node("SequenceConstruct", ["x", "x"], ["all"]),
         helper.make_node("SequenceMap", ["all"], ["halves"], body=body),
         helper.make_node("SequenceAt", ["halves", "at"], ["y"])],
        {"x": (FLOAT, [2, 3])}, {"y": FLOAT}, 17,
        {"half": np.array(0.5, np.float32), "at": np.array(1)})
    assert operators(check(model, {"x": noise(2, 3)})) == ["Mul"]


def test_functions_of_the_model_are_inlined():
    twice = helper.make_function(
        "mine", "Twice", ["a"], ["b"], [helper.make_node("Mul", ["a", "a"], ["t"]),
                                        helper.make_node("Add", ["t", "a"], ["b"])],
        [helper.make_opsetid("", 17)])
    model = model_of([helper.make_node("Twice", ["x"], ["y"], domain="mine"),
                      helper.make_node("Twice", ["y"], ["z"], domain="mine")],
                     {"x": (FLOAT, [3])}, {"z": FLOAT}, 17, functions=[twice],
                     imports=[helper.make_opsetid("mine", 1)])
    assert operators(check(model, {"x": noise(3)})) == ["Mul", "Add"] * 2


def test_functions_that_overload_a_name(tmp_path):
    """ONNX Runtime 1.20 calls the last one for all of them."""
    made = []
    for op, overload in (("Relu", ""), ("Neg", "negative")):
        made.append(helper.make_function("mine", "F", ["a"], ["b"], [helper.make_node(
            op, ["a"], ["b"])], [helper.make_opsetid("", 17)]))
        made[-1].overload = overload
    nodes = [helper.make_node("F", ["x"], ["y"], domain="mine"),
             helper.make_node("F", ["y"], ["z"], domain="mine")]
    nodes[1].overload = "negative"
    model = model_of(nodes, {"x": (FLOAT, [4])}, {"z": FLOAT}, 17, functions=made,
                     imports=[helper.make_opsetid("mine", 1)])
    model.ir_version = 10
    x = np.array([-2, -1, 0.5, 3], np.float32)
    np.testing.assert_array_equal(run(repaired(model, {"x": x}), {"x": x})[0], [0, 0, -0.5, -3])
    onnx.save(model, str(tmp_path / "net.onnx"))
    (have,), who = read_model(tmp_path / "net.onnx").run_by({"x": x})
    assert who == REPAIRED
    np.testing.assert_array_equal(have, [0, 0, -0.5, -3])


def test_numbers_that_importers_forms_lose():
    """Softplus, LogSoftmax and Mish of large values, and powers of whole numbers, stay exact."""
    x = np.array([[-200, -1, 0, 3, 100, 300]], np.float32)
    for op, opset in (("Softplus", 17), ("LogSoftmax", 17), ("Mish", 18)):
        model = model_of([helper.make_node(op, ["x"], ["y"])], {"x": (FLOAT, [1, 6])},
                         {"y": FLOAT}, opset)
        assert np.isfinite(run(check(model, {"x": x}), {"x": x})[0]).all()
    n = np.array([3, 46341, -2000000011], np.int64)
    model = model_of([helper.make_node("Pow", ["n", "two"], ["y"])], {"n": (INT64, [3])},
                     {"y": INT64}, 17, {"two": np.array(2)})
    np.testing.assert_array_equal(run(repaired(model, {"n": n}), {"n": n})[0], n * n)


def test_outputs_that_are_inputs_or_constants():
    model = model_of([helper.make_node("Identity", ["x"], ["a"]),
                      helper.make_node("Shape", ["x"], ["b"]),
                      helper.make_node("Relu", ["x"], ["c"]),
                      helper.make_node("Identity", ["c"], ["d"])],
                     {"x": (FLOAT, [2, 3])}, {"a": FLOAT, "b": INT64, "c": FLOAT, "d": FLOAT}, 17)
    check(model, {"x": noise(2, 3)})


def test_refusals_name_the_node():
    model = model_of([helper.make_node("NonZero", ["x"], ["y"], name="where_is_it")],
                     {"x": (FLOAT, [4])}, {"y": INT64}, 13)
    said = refusal(model, {"x": noise(4)})
    assert "net.onnx" in said and "'where_is_it' (NonZero, opset 13)" in said
    model = model_of([helper.make_node("Wonder", ["x"], ["y"], domain="com.example")],
                     {"x": (FLOAT, [4])}, {"y": FLOAT}, 13,
                     imports=[helper.make_opsetid("com.example", 3)])
    assert "(com.example.Wonder, opset 3)" in refusal(model, {"x": noise(4)})


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_what_is_quantised_while_it_runs_has_a_scale_where_all_is_zero(value):
    """Networks divide their biases by it."""
    model = model_of([helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
                      helper.make_node("Div", ["bias", "s"], ["b"]),
                      helper.make_node("Cast", ["q"], ["f"], to=FLOAT),
                      helper.make_node("Add", ["f", "b"], ["y"])],
                     {"x": (FLOAT, [4]), "bias": (FLOAT, [4])}, {"y": FLOAT}, 13)
    given = {"x": np.full(4, value, np.float32), "bias": noise(4)}
    np.testing.assert_allclose(run(repaired(model, given), given)[0], run(model, given)[0],
                               rtol=1e-6)


def test_weights_beside_the_file(tmp_path):
    model = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": (FLOAT, [2, 300])},
                     {"y": FLOAT}, 20, {"w": noise(300, 4)})
    want = run(model, {"x": noise(2, 300)})
    onnx.save(model, str(tmp_path / "m.onnx"), save_as_external_data=True, location="m.data",
              size_threshold=0)
    made = repaired(load(tmp_path / "m.onnx"), {"x": noise(2, 300)})
    np.testing.assert_array_equal(run(made, {"x": noise(2, 300)})[0], want[0])
    (tmp_path / "m.data").unlink()
    with pytest.raises(ToolError, match="'m.data', which is no file") as caught:
        load(tmp_path / "m.onnx")
    assert caught.value.code == 3


def test_large_weights_of_the_repaired_model_lie_beside_it(tmp_path, monkeypatch):
    weights = noise(300, 40)
    model = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": (FLOAT, [2, 300])},
                     {"y": FLOAT}, 20, {"w": weights})
    whole, parted = tmp_path / "whole.onnx", tmp_path / "parted.onnx"
    write_repaired(model, whole, {})
    monkeypatch.setattr("run_model_tools.onnx_repair.repair._LARGE", weights.nbytes - 1)
    write_repaired(model, parted, {})
    assert not whole.with_suffix(".data").exists()
    assert parted.with_suffix(".data").read_bytes() == weights.tobytes()
    x = {"x": noise(2, 300)}
    for path in (whole, parted):
        np.testing.assert_array_equal(onnxruntime_process.run(str(path), x)[0], run(model, x)[0])


def test_hardswish_overflows_no_sooner_than_its_result():
    x = np.float32([3e38, -3e38, 6e37, 2, -3, 0.5])
    model = model_of([helper.make_node("HardSwish", ["x"], ["y"])], {"x": (FLOAT, [6])},
                     {"y": FLOAT}, 14)
    made = repaired(model, {"x": x})
    # TVM's importer computes x * (x + 3) / 6.
    assert "HardSwish" not in {node.op_type for node in made.graph.node}
    np.testing.assert_allclose(run(made, {"x": x})[0], [3e38, 0, 6e37, 5 / 3, 0, 0.875 / 3],
                               rtol=1e-6, atol=1e-7)


def test_nodes_may_stand_in_any_order():
    """As converters to half precision leave them: casts at the end, also of what branches read."""
    half = TensorProto.FLOAT16
    branch = helper.make_graph([helper.make_node("Neg", ["wide"], ["b"])], "branch", [],
                               [helper.make_tensor_value_info("b", FLOAT, [3])])
    model = model_of(
        [helper.make_node("If", ["always"], ["a"], then_branch=branch, else_branch=branch),
         helper.make_node("Cast", ["narrow"], ["wide"], to=FLOAT),
         helper.make_node("Mul", ["a", "wide"], ["y"]),
         helper.make_node("Cast", ["x"], ["narrow"], to=half)],
        {"x": (FLOAT, [3])}, {"y": FLOAT}, 13, {"always": np.array(True)})
    x = np.float32([1, -2, 0.5])
    (have,) = run(repaired(model, {"x": x}), {"x": x})
    np.testing.assert_array_equal(have, -x * x)
    circle = model_of([helper.make_node("Add", ["x", "b"], ["a"]),
                       helper.make_node("Neg", ["a"], ["b"])],
                      {"x": (FLOAT, [3])}, {"b": FLOAT}, 13)
    with pytest.raises(ToolError, match="made by no node before"):
        repaired(circle, {"x": x})
