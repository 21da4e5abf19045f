"""Inputs whose values a user gives beforehand (--freeze), and what is decided by them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from repaired_models import FLOAT, INT64, model_of, noise, refusal, repaired, run

from run_model_tools.errors import ToolError
from run_model_tools.frozen_inputs import read_frozen
from run_model_tools.onnx_model import read_model


def test_a_parameter_that_is_an_input_has_to_be_frozen():
    model = model_of([helper.make_node("Reshape", ["x", "to"], ["y"])],
                     {"x": (FLOAT, [6]), "to": (INT64, [2])}, {"y": FLOAT}, 13)
    x, to = noise(6), np.array([2, 3])
    assert "--freeze to=NUMBER,... or --freeze to=FILE.npy" in refusal(model, {"x": x, "to": to})
    made = repaired(model, {"x": x}, {"to": to})
    assert [i.name for i in made.graph.input] == ["x"]
    np.testing.assert_array_equal(run(made, {"x": x})[0], x.reshape(2, 3))


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
