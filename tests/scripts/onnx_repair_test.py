"""Repaired models compute what the originals do, in forms that TVM's importer reads correctly."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from run_model_tools.errors import ToolError
from run_model_tools.frozen_inputs import read_frozen
from run_model_tools.onnx_model import read_model
from run_model_tools.onnx_repair import onnxruntime_process
from run_model_tools.onnx_repair.importer_dialect import to_dialect
from run_model_tools.onnx_repair.onnxruntime_process import OnnxRuntimeFailed
from run_model_tools.onnx_repair.reference import REPAIRED, reference_outputs
from run_model_tools.onnx_repair.repair import load, repair, write_repaired
from small_networks import hidden_numbers

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def model_of(nodes, inputs, outputs, opset, constants=None, functions=(), imports=()):
    """inputs: {name: (type, shape)}; outputs: {name: type}; constants: {name: array}."""
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(n, t, s) for n, (t, s) in inputs.items()],
        [helper.make_tensor_value_info(n, t, None) for n, t in outputs.items()],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in (constants or {}).items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), *imports],
                             functions=list(functions), ir_version=8)


def run(model, inputs):
    options = onnxruntime.SessionOptions()
    # Optimised, ONNX Runtime 1.20 takes a Pad and an AveragePool for one that counts no pads.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    return session.run(None, {**inputs, **hidden_numbers(model)})


def repaired(model, inputs=None, frozen=None, **options):
    made = repair(model, {n: a.shape for n, a in (inputs or {}).items()}, frozen, **options)
    onnx.checker.check_model(made, full_check=True)
    assert made.opset_import[0].version == 18
    return made


def operators(model):
    return [node.op_type for node in model.graph.node]


def check(model, inputs, **options):
    """That both give the same in ONNX Runtime; gives the repaired model."""
    made = repaired(model, inputs, **options)
    for want, have in zip(run(model, inputs), run(made, inputs), strict=True):
        assert want.shape == have.shape and want.dtype == have.dtype
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-5)
    return made


def noise(*shape):
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


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


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "align_corners", "asymmetric",
                                         "pytorch_half_pixel"])
@pytest.mark.parametrize("out", [(8, 12), (3, 5), (7, 1), (5, 6)])
def test_resizes(mode, coordinates, out):
    model = model_of([helper.make_node("Resize", ["x", "", "", "size"], ["y"], mode=mode,
                                       coordinate_transformation_mode=coordinates)],
                     {"x": (FLOAT, [1, 2, 4, 6])}, {"y": FLOAT}, 18,
                     {"size": np.array([1, 2, *out])})
    check(model, {"x": noise(1, 2, 4, 6)})
    check(model, {"x": noise(1, 2, 4, 6)}, is_open=True)


@pytest.mark.parametrize("scale, rate", [(0.6, 0.7), (1.3, 2.6), (2.0, 2.0)])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_resizes_by_scales_keep_the_scale(mode, scale, rate):
    """Not the quotient of the extents, which rounding makes another one."""
    model = model_of([helper.make_node("Resize", ["x", "", "scales"], ["y"], mode=mode,
                                       antialias=int(scale < 1))],
                     {"x": (FLOAT, [1, 2, 7, 9])}, {"y": FLOAT}, 18,
                     {"scales": np.array([1, 1, scale, rate], np.float32)})
    check(model, {"x": noise(1, 2, 7, 9)})
    check(model, {"x": noise(1, 2, 7, 9)}, is_open=True)


@pytest.mark.parametrize("scale, every", [(1 / 3, 3), (0.2, 5), (0.1, 10)])
def test_the_nearest_elements_are_those_of_float32(scale, every):
    """As PyTorch exports interpolate(scale_factor=1 / 3): 17 / float32(1 / 3) is 51."""
    model = model_of([helper.make_node("Resize", ["x", "", "scales"], ["y"], nearest_mode="floor",
                                       coordinate_transformation_mode="asymmetric")],
                     {"x": (FLOAT, [1, 1, 90, 300])}, {"y": FLOAT}, 18,
                     {"scales": np.array([1, 1, scale, scale], np.float32)})
    x = noise(1, 1, 90, 300)
    for is_open in (False, True):
        made = repair(model, {"x": x.shape}, is_open=is_open)
        np.testing.assert_array_equal(run(made, {"x": x})[0], x[..., ::every, ::every])


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_corners_of_pytorch_are_of_whole_elements(mode):
    """ONNX's reference aligns the last of 4.9 = 7 * 0.7 elements, PyTorch and ONNX Runtime of 4."""
    model = model_of([helper.make_node("Resize", ["x", "", "scales"], ["y"], mode=mode,
                                       coordinate_transformation_mode="align_corners")],
                     {"x": (FLOAT, [1, 2, 7, 9])}, {"y": FLOAT}, 18,
                     {"scales": np.array([1, 1, 0.7, 1.5], np.float32)})
    model.producer_name = "pytorch"
    x = noise(1, 2, 7, 9)
    made = check(model, {"x": x})
    np.testing.assert_array_equal(run(made, {"x": x})[0][..., -1, -1], x[..., -1, -1])


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


def refusal(model, inputs, frozen=None):
    with pytest.raises(ToolError) as caught:
        repair(model, {n: a.shape for n, a in inputs.items()}, frozen, "net.onnx")
    assert caught.value.code == 4
    return str(caught.value)


def test_refusals_name_the_node():
    model = model_of([helper.make_node("NonZero", ["x"], ["y"], name="where_is_it")],
                     {"x": (FLOAT, [4])}, {"y": INT64}, 13)
    said = refusal(model, {"x": noise(4)})
    assert "net.onnx" in said and "'where_is_it' (NonZero, opset 13)" in said
    model = model_of([helper.make_node("Wonder", ["x"], ["y"], domain="com.example")],
                     {"x": (FLOAT, [4])}, {"y": FLOAT}, 13,
                     imports=[helper.make_opsetid("com.example", 3)])
    assert "(com.example.Wonder, opset 3)" in refusal(model, {"x": noise(4)})


def test_a_parameter_that_is_an_input_has_to_be_frozen():
    model = model_of([helper.make_node("Reshape", ["x", "to"], ["y"])],
                     {"x": (FLOAT, [6]), "to": (INT64, [2])}, {"y": FLOAT}, 13)
    x, to = noise(6), np.array([2, 3])
    assert "--freeze to=NUMBER,... or --freeze to=FILE.npy" in refusal(model, {"x": x, "to": to})
    made = repaired(model, {"x": x}, {"to": to})
    assert [i.name for i in made.graph.input] == ["x"]
    np.testing.assert_array_equal(run(made, {"x": x})[0], x.reshape(2, 3))


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


@pytest.mark.parametrize("form", ["npy", "npz", "pb"])
def test_frozen_inputs_come_from_files(tmp_path, form):
    array = np.arange(3)
    path = tmp_path / f"a.{form}"
    if form == "pb":
        path.write_bytes(numpy_helper.from_array(array).SerializeToString())
    elif form == "npy":
        np.save(path, array)
    else:
        np.savez(path, other=array)
    np.testing.assert_array_equal(read_frozen([f"a={path}"])["a"], array)


def test_numbers_that_are_written_out_get_the_type_of_the_input_that_they_freeze(tmp_path):
    path = tmp_path / "net.onnx"
    onnx.save(model_of([helper.make_node("Reshape", ["x", "to"], ["a"]),
                        helper.make_node("Where", ["flag", "a", "half"], ["y"])],
                       {"x": (FLOAT, [6]), "to": (INT64, [2]), "flag": (onnx.TensorProto.BOOL, []),
                        "half": (FLOAT, [1])}, {"y": FLOAT}, 13), path)
    frozen = read_model(path, read_frozen(["to=2,3", "flag=false", "half=1"])).frozen
    assert [(n, a.dtype, a.shape, a.tolist()) for n, a in frozen.items()] == [
        ("to", np.int64, (2,), [2, 3]), ("flag", np.bool_, (), False),
        ("half", np.float32, (1,), [1.0])]
    for text, kind in (("to=2,0.5", "int64"), ("flag=2", "bool")):
        with pytest.raises(ToolError, match=f"declares {kind}, of which .* is none") as caught:
            read_model(path, read_frozen([text]))
        assert caught.value.code == 6
    model = onnx.load(path)
    with pytest.raises(ToolError, match=r"--freeze to: it is given the shape \[3\] and .* \[2\]"):
        repaired(model, {"x": np.zeros(6, np.float32)}, {"to": np.array([1, 2, 3])})


def test_a_branch_that_does_not_fit_the_shape_is_left_out_by_the_input_that_chooses():
    """As a network for sounds of two rates has them."""
    def branch(size):
        made = helper.make_node("MatMul", ["x", f"w{size}"], [f"y{size}"])
        return helper.make_graph([made], f"of_{size}", [], [
            helper.make_tensor_value_info(f"y{size}", FLOAT, None)],
            [numpy_helper.from_array(np.ones((size, 3), np.float32), f"w{size}")])

    model = model_of([helper.make_node("Equal", ["rate", "sixteen"], ["is_sixteen"]),
                      helper.make_node("If", ["is_sixteen"], ["y"], then_branch=branch(4),
                                       else_branch=branch(2))],
                     {"x": (FLOAT, [1, 4]), "rate": (INT64, [])}, {"y": FLOAT}, 13)
    model.graph.initializer.append(numpy_helper.from_array(np.array(16), "sixteen"))
    x = noise(1, 4)
    said = refusal(model, {"x": x, "rate": np.array(16)})
    assert "a branch that 'rate' may choose: with --freeze rate=NUMBER only" in said
    assert "look at what exported it" not in said
    made = repaired(model, {"x": x}, {"rate": np.array(16)})
    np.testing.assert_allclose(run(made, {"x": x})[0], x @ np.ones((4, 3)), rtol=1e-5)


@pytest.mark.parametrize("text, code", [("a", 2), ("a=b.txt", 2), ("a=none.npy", 3),
                                        ("a=bad.npy", 4), ("a=bad.npz", 4), ("a=1 a=2", 2)])
def test_frozen_inputs_that_cannot_be_read(tmp_path, monkeypatch, text, code):
    monkeypatch.chdir(tmp_path)
    for name in ("bad.npy", "bad.npz"):
        (tmp_path / name).write_bytes(b"nothing")
    with pytest.raises(ToolError) as caught:
        read_frozen(text.split())
    assert caught.value.code == code


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


def test_references_for_what_onnx_runtime_lacks(tmp_path):
    old = model_of([helper.make_node("Add", ["x", "b"], ["y"], broadcast=1, axis=1)],
                   {"x": (FLOAT, [2, 3, 4])}, {"y": FLOAT}, 6, {"b": np.ones(3, np.float32)})
    new = model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": (FLOAT, [2, 3, 4])},
                   {"y": FLOAT}, 23)
    new.ir_version = 11
    for name, model in (("old", old), ("new", new)):
        onnx.save(model, str(tmp_path / f"{name}.onnx"))
    x = noise(2, 3, 4)
    (got,), who = reference_outputs(tmp_path / "new.onnx", {"x": x})
    np.testing.assert_array_equal(got, np.maximum(x, 0))
    assert who == "onnxruntime" and read_model(tmp_path / "new.onnx").opset == 23
    np.testing.assert_array_equal(run(repaired(old, {"x": x}), {"x": x})[0], x + 1)


def test_hardswish_overflows_no_sooner_than_its_result():
    x = np.float32([3e38, -3e38, 6e37, 2, -3, 0.5])
    model = model_of([helper.make_node("HardSwish", ["x"], ["y"])], {"x": (FLOAT, [6])},
                     {"y": FLOAT}, 14)
    made = repaired(model, {"x": x})
    # TVM's importer computes x * (x + 3) / 6.
    assert "HardSwish" not in {node.op_type for node in made.graph.node}
    np.testing.assert_allclose(run(made, {"x": x})[0], [3e38, 0, 6e37, 5 / 3, 0, 0.875 / 3],
                               rtol=1e-6, atol=1e-7)


def test_a_crash_of_onnx_runtime_is_a_sentence():
    """Of a Split with an output that has no name, between others, ONNX Runtime 1.20 dies."""
    split = helper.make_node("Split", ["x"], ["a", "", "b"], axis=0, num_outputs=3)
    model = model_of([split, helper.make_node("Sub", ["a", "b"], ["y"])],
                     {"x": (FLOAT, [6])}, {"y": FLOAT}, 18)
    x = np.float32([5, 4, 3, 2, 1, 1])
    with pytest.raises(OnnxRuntimeFailed, match="crashed on it \\(SIG"):
        onnxruntime_process.run(model.SerializeToString(), {"x": x})
    np.testing.assert_array_equal(  # The next one is run by another process.
        onnxruntime_process.run(repaired(model, {"x": x}).SerializeToString(), {"x": x})[0],
        x[:2] - x[4:])


def test_outputs_without_a_name_are_compared_all_the_same(tmp_path):
    split = helper.make_node("Split", ["x"], ["a", "", "b"], axis=0, num_outputs=3)
    onnx.save(model_of([split, helper.make_node("Sub", ["a", "b"], ["y"])],
                       {"x": (FLOAT, [6])}, {"y": FLOAT}, 18), str(tmp_path / "split.onnx"))
    x = np.float32([5, 4, 3, 2, 1, 1])
    (got,), who = reference_outputs(tmp_path / "split.onnx", {"x": x})
    np.testing.assert_array_equal(got, x[:2] - x[4:])
    assert who == "onnxruntime"


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


@pytest.mark.parametrize("op", ["AveragePool", "MaxPool"])
def test_the_reference_counts_zeros_before_a_pooling(op):
    """ONNX Runtime 1.20 makes pads of them that do not count, unless it is kept from it."""
    model = model_of([helper.make_node("Pad", ["x", "pads"], ["y"]),
                      helper.make_node(op, ["y"], ["z"], kernel_shape=[3, 3])],
                     {"x": (FLOAT, [1, 1, 5, 4])}, {"z": FLOAT}, 17,
                     {"pads": np.array([0, 0, 1, 1, 0, 0, 1, 1])})
    x = noise(1, 1, 5, 4) - 2
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x[0, 0], 1), (3, 3))
    (have,) = onnxruntime_process.run(model.SerializeToString(), {"x": x})
    want = windows.mean((2, 3)) if op == "AveragePool" else windows.max((2, 3))
    np.testing.assert_allclose(have[0, 0], want, rtol=1e-5)


def test_the_reference_runs_products_of_three_axes_that_are_normalised():
    """Of which ONNX Runtime 1.20 makes a product that takes two, and then runs nothing."""
    model = model_of(
        [helper.make_node("MatMul", ["x", "w"], ["y"]),
         helper.make_node("Reshape", ["y", "flat"], ["r"]),
         helper.make_node("BatchNormalization", ["r", "s", "b", "m", "v"], ["z"], epsilon=0.0)],
        {"x": (FLOAT, [1, 5, 4])}, {"z": FLOAT}, 17,
        {"w": noise(4, 3), "flat": np.array([5, 3]), "s": np.float32([1, 2, 3]),
         "b": np.float32([0, 1, 0]), "m": np.float32([0, 0, 1]), "v": np.float32([1, 1, 4])})
    x = noise(1, 5, 4)
    (have,) = onnxruntime_process.run(model.SerializeToString(), {"x": x})
    product = x[0].astype(np.float64) @ noise(4, 3)
    want = product * [1, 2, 1.5] + [0, 1, -1.5]
    np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-5)
