"""compile_model of networks whose outputs' shapes depend on values: TVM 0.18 makes as many rows as
there can be, and counts; to TVM 0.27 they go as they are if they come out right."""

from __future__ import annotations

import json
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from run_model_tools import tvm_process
from run_model_tools.compiling.open_sizes import open_sizes
from run_model_tools.environment import host_program
from run_model_tools.errors import MALFORMED_FILE, ToolError
from run_model_tools.onnx_model import read_model


def save(path, nodes, shape, outputs, constants):
    graph = helper.make_graph(
        [helper.make_node(*node[:4], **(node[4] if len(node) > 4 else {})) for node in nodes], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(*output) for output in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              str(path))


def save_detector(path, least=0.1):
    """Scores and boxes of a picture, suppression, and the boxes that are left."""
    weights = np.random.default_rng(1).standard_normal((7, 3, 1, 1)).astype(np.float32)
    save(path, [
        ("Conv", ["x", "w"], ["a"], "conv"), ("Reshape", ["a", "rows"], ["r"], "rows"),
        ("Split", ["r", "parts"], ["places", "logits"], "split", {"axis": 1}),
        ("Sigmoid", ["logits"], ["scores"], "scores"),
        ("Transpose", ["places"], ["boxes"], "boxes", {"perm": [0, 2, 1]}),
        ("NonMaxSuppression", ["boxes", "scores", "most", "iou", "least"], ["kept"], "suppression"),
        ("Gather", ["kept", "last"], ["column"], "column", {"axis": 1}),
        ("Squeeze", ["column", "one"], ["which"], "which"),
        ("Gather", ["boxes", "which"], ["some"], "some", {"axis": 1}),
        ("Squeeze", ["some", "zero"], ["left"], "left")], [1, 3, 6, 6],
        [("left", TensorProto.FLOAT, ["n", 4]), ("kept", TensorProto.INT64, ["n", 3])],
        {"w": weights, "rows": [1, 7, 36], "parts": [4, 3], "most": 5, "iou": np.float32(0.5),
         "least": np.float32(least), "last": [2], "one": [1], "zero": [0]})


def test_suppression_inside_a_network(tmp_path, command):
    save_detector(tmp_path / "detector.onnx")
    made = command("compile_model", "detector.onnx", "--compiler", "relax", "--out", "out",
                   "--json", "--preprocessing", "none", cwd=tmp_path)
    metadata = json.loads(made.stdout)["metadata"]
    # TVM says 108 rows, the most that there can be.
    assert [o["shape"] for o in metadata["outputs"]] == [[-1, 4], [-1, 3]]
    assert metadata["verification"]["done"]
    assert "'suppression' (NonMaxSuppression" in metadata["kernels"]["reason"]
    assert (metadata["kernels"]["method"], metadata["kernels"]["layers"]) == ("ours", 3)
    assert {f["kernel"] for f in metadata["kernels"]["functions"].values()} == {
        "pointwise", "elementwise", "transpose"}
    x = np.random.default_rng(9).standard_normal((1, 3, 6, 6)).astype(np.float32)
    np.savez(tmp_path / "in.npz", x)
    tvm_process.call("run_relax", None, inputs=[str(tmp_path / "in.npz")], outputs=str(tmp_path),
                     library=str(tmp_path / "out/detector/native/model.so"))
    expected = onnxruntime.InferenceSession(str(tmp_path / "detector.onnx")).run(None, {"x": x})
    with np.load(tmp_path / "0.npz") as file:
        assert len(expected[1]) > 5
        np.testing.assert_allclose(file["arr_0"], expected[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(file["arr_1"], expected[1])


def save_open_detector(path):
    """Boxes around the places of a picture of any size, numbered by Range, of which torchvision
    suppresses those of other classes apart, and none in a branch of its own."""
    def branch(name, node):
        return helper.make_graph([node], name, [], [
            helper.make_tensor_value_info(node.output[0], TensorProto.INT64, None)])

    branches = {
        "then_branch": branch("none", helper.make_node("Identity", ["nothing"], ["of_none"])),
        "else_branch": branch("some", helper.make_node("Squeeze", ["column", "one"], ["of_some"]))}
    weights = np.random.default_rng(2).standard_normal((6, 3, 1, 1)).astype(np.float32)
    save(path, [
        ("Conv", ["x", "w"], ["a"]), ("Reshape", ["a", "rows"], ["r"]),
        ("Split", ["r", "parts"], ["sizes", "logits"], "split", {"axis": 1}),
        ("Shape", ["x"], ["all"]), ("Gather", ["all", "two"], ["height"]),
        ("Gather", ["all", "three"], ["width"]), ("Mul", ["height", "width"], ["count"]),
        ("Range", ["zero0", "count", "one0"], ["numbers"]),
        ("Cast", ["numbers"], ["places"], "places", {"to": TensorProto.FLOAT}),
        ("Exp", ["sizes"], ["extents"]), ("Sub", ["places", "extents"], ["low"]),
        ("Add", ["places", "extents"], ["high"]),
        ("Concat", ["low", "high"], ["corners"], "corners", {"axis": 1}),
        ("Transpose", ["corners"], ["boxes"], "boxes", {"perm": [0, 2, 1]}),
        ("NonMaxSuppression", ["boxes", "logits", "most", "iou", "least"], ["kept"]),
        ("Gather", ["kept", "last"], ["column"], "column", {"axis": 1}),
        ("Shape", ["boxes"], ["many"]), ("ReduceProd", ["many"], ["size"], "size", {"keepdims": 0}),
        ("Equal", ["size", "zero0"], ["is_none"]),
        ("If", ["is_none"], ["which"], "which", branches),
        ("Slice", ["which", "zero", "twenty"], ["best"]),
        ("Gather", ["boxes", "best"], ["some"], "some", {"axis": 1}),
        ("Squeeze", ["some", "zero"], ["left"])], [1, 3, "height", "width"],
        [("left", TensorProto.FLOAT, ["n", 4]), ("kept", TensorProto.INT64, ["m", 3])],
        {"w": weights, "rows": [1, 6, -1], "parts": [2, 4], "two": np.array(2), "zero": [0],
         "three": np.array(3), "zero0": np.array(0), "one0": np.array(1), "most": [2 ** 63 - 1],
         "iou": np.float32(0.3), "least": np.float32(0.2), "last": [2], "one": [1],
         "twenty": [20], "nothing": np.zeros(0, np.int64)})


def test_suppression_in_pictures_of_any_size(tmp_path, command):
    save_open_detector(tmp_path / "detector.onnx")
    made = command("compile_model", "detector.onnx", "--dynamic", "--out", "out", "--json",
                   "--preprocessing", "none", cwd=tmp_path)
    assert json.loads(made.stdout)["metadata"]["verification"]["done"]
    session = onnxruntime.InferenceSession(str(tmp_path / "detector.onnx"))
    for shape in ((1, 3, 5, 4), (1, 3, 21, 34)):
        x = np.random.default_rng(shape[2]).standard_normal(shape).astype(np.float32)
        np.savez(tmp_path / "in.npz", x=x)
        subprocess.run(
            [host_program("run_model"), "detector", "out", "--inputs", "in.npz", "--outputs",
             "out.npz"], cwd=tmp_path, check=True, capture_output=True, text=True)
        expected = session.run(None, {"x": x})
        assert len(expected[1]) > 5
        with np.load(tmp_path / "out.npz") as file:
            np.testing.assert_allclose(file["output_0"], expected[0], rtol=1e-4, atol=1e-4)
            np.testing.assert_array_equal(file["output_1"], expected[1])


def save_resizing_detector(path):
    """As torchvision's: a picture is made as large as a scale says, filled up to whole steps, and
    of the places above a score a computed number of the best is kept, with the list's -1 and 0."""
    weights = np.random.default_rng(3).standard_normal((4, 3, 3, 3)).astype(np.float32)
    save(path, [
        ("Shape", ["x"], ["all"]), ("Gather", ["all", "one0"], ["height"]),
        ("Gather", ["all", "two"], ["width"]),
        ("Slice", ["all", "one", "three"], ["sides"]),
        ("Cast", ["sides"], ["sides1"], "sides1", {"to": TensorProto.FLOAT}),
        ("ReduceMin", ["sides1"], ["short"], "short", {"keepdims": 0}),
        ("Div", ["wanted", "short"], ["scale"]),
        *((op, [a.format(side), *more], [b.format(side)], b.format(side), attributes)
          for side in ("height", "width") for op, a, more, b, attributes in (
              ("Cast", "{}", [], "{}1", {"to": TensorProto.FLOAT}),
              ("Mul", "{}1", ["scale"], "{}2", {}), ("Floor", "{}2", [], "{}3", {}),
              ("Unsqueeze", "{}3", ["zero"], "{}4", {}))),
        ("Concat", ["height4", "width4"], ["size"], "size", {"axis": 0}),
        ("Cast", ["size"], ["size1"], "size1", {"to": TensorProto.INT64}),
        ("Unsqueeze", ["x", "zero"], ["x1"]), ("Shape", ["x1"], ["all1"]),
        ("Slice", ["all1", "zero", "two1"], ["front"]),
        ("Concat", ["front", "size1"], ["size2"], "size2", {"axis": 0}),
        ("Resize", ["x1", "", "", "size2"], ["resized"], "resized", {
            "mode": "linear", "coordinate_transformation_mode": "half_pixel"}),
        ("Shape", ["resized"], ["before"]), ("Div", ["before", "steps"], ["whole"]),
        ("Mul", ["whole", "steps"], ["cut"]), ("Sub", ["before", "cut"], ["over"]),
        ("Sub", ["steps", "over"], ["missing"]), ("Mod", ["missing", "steps"], ["after"]),
        ("Concat", ["none", "after"], ["widths"], "widths", {"axis": 0}),
        ("Pad", ["resized", "widths"], ["filled"]),
        ("Conv", ["filled", "w"], ["a"], "conv", {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ("Shape", ["a"], ["shape"]), ("Slice", ["shape", "one", "two1"], ["channels"]),
        ("Concat", ["zero", "channels", "rest"], ["rows"], "rows", {"axis": 0}),
        ("Reshape", ["a", "rows"], ["r"]), ("Transpose", ["r"], ["t"], "t", {"perm": [0, 2, 1]}),
        ("Squeeze", ["t", "zero"], ["boxes"]),
        ("Split", ["boxes", "parts"], ["scores", "places"], "split", {"axis": 1}),
        ("Squeeze", ["scores", "one"], ["scores1"]), ("Greater", ["scores1", "least"], ["is_left"]),
        ("NonZero", ["is_left"], ["which"]), ("Squeeze", ["which", "zero"], ["which1"]),
        ("Gather", ["scores1", "which1"], ["left"]), ("Gather", ["places", "which1"], ["of_left"]),
        ("Shape", ["left"], ["count"]), ("Concat", ["count", "most"], ["counts"], "counts",
                                         {"axis": 0}),
        ("ReduceMin", ["counts"], ["k"], "k", {"keepdims": 1}),
        ("TopK", ["left", "k"], ["best", "at"]), ("Gather", ["of_left", "at"], ["best_places"])],
        [3, "height", "width"],
        [("best", TensorProto.FLOAT, ["n"]), ("best_places", TensorProto.FLOAT, ["n", 3])],
        {"w": weights, "one0": np.array(1), "two": np.array(2), "zero": [0], "one": [1],
         "two1": [2], "three": [3], "wanted": np.float32(24), "steps": [1, 1, 8, 8],
         "none": np.zeros(4, np.int64), "rest": [-1], "parts": [1, 3], "least": np.float32(1),
         "most": [50]})


def test_pictures_are_resized_and_filled_as_computed(tmp_path, command):
    save_resizing_detector(tmp_path / "detector.onnx")
    made = command("compile_model", "detector.onnx", "--dynamic", "--shape", "x:3,30,41", "--out",
                   "out", "--json", "--preprocessing", "none", cwd=tmp_path)
    assert json.loads(made.stdout)["metadata"]["verification"]["done"]
    session = onnxruntime.InferenceSession(str(tmp_path / "detector.onnx"))
    counts = set()
    for shape, size in (((3, 24, 33), 1), ((3, 57, 40), 1), ((3, 40, 21), 0.2), ((3, 9, 9), 0)):
        x = (np.random.default_rng(9).standard_normal(shape) * size).astype(np.float32)
        np.savez(tmp_path / "in.npz", x=x)
        subprocess.run(
            [host_program("run_model"), "detector", "out", "--inputs", "in.npz", "--outputs",
             "out.npz"], cwd=tmp_path, check=True, capture_output=True, text=True)
        expected = session.run(None, {"x": x})
        counts.add(len(expected[0]))
        with np.load(tmp_path / "out.npz") as file:
            for i, wanted in enumerate(expected):
                np.testing.assert_allclose(file[f"output_{i}"], wanted, rtol=1e-4, atol=1e-4)
    assert {0, 50} < counts


def test_outputs_have_as_many_rows_as_a_run_finds(tmp_path, command):
    save_detector(tmp_path / "detector.onnx", 0.7)
    made = command("compile_model", "detector.onnx", "--compiler", "auto", "--out", "out", "--json",
                   "--preprocessing", "none", cwd=tmp_path)
    metadata = json.loads(made.stdout)["metadata"]
    assert [o["shape"] for o in metadata["outputs"]] == [[-1, 4], [-1, 3]]
    assert metadata["verification"]["done"] and "compiler" not in metadata
    session = onnxruntime.InferenceSession(str(tmp_path / "detector.onnx"))
    counts = set()
    for size in (1, 0.3, 0):
        x = (np.random.default_rng(9).standard_normal((1, 3, 6, 6)) * size).astype(np.float32)
        np.savez(tmp_path / "in.npz", x=x)
        done = subprocess.run(
            [host_program("run_model"), "detector", "out", "--inputs", "in.npz", "--outputs",
             "out.npz"], cwd=tmp_path, check=True, capture_output=True, text=True)
        expected = session.run(None, {"x": x})
        counts.add(len(expected[1]))
        assert f"Output output_1: int64 {len(expected[1])} 3" in done.stdout
        with np.load(tmp_path / "out.npz") as file:
            np.testing.assert_allclose(file["output_0"], expected[0], rtol=1e-4, atol=1e-5)
            np.testing.assert_array_equal(file["output_1"], expected[1])
    assert 0 in counts and max(counts) > 5
    refused = command("compile_model", "detector.onnx", "--single-file", "--out", "one",
                      "--preprocessing", "none", cwd=tmp_path, code=None)
    assert "only the run time knows how many rows" in refused.stderr


def test_functions_of_a_network_that_goes_as_it_is(tmp_path, command):
    save(tmp_path / "net.onnx", [("Greater", ["x", "limit"], ["c"], "above"),
                                 ("NonZero", ["c"], ["i"], "places"),
                                 ("Twice", ["i"], ["j"], "twice", {"domain": "local"})],
         [12], [("j", TensorProto.INT64, [1, "n"])], {"limit": np.float32(0)})
    model = onnx.load(str(tmp_path / "net.onnx"))
    opset = helper.make_opsetid("", 17)
    model.functions.append(helper.make_function(
        "local", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], [opset]))
    model.opset_import.append(helper.make_opsetid("local", 1))
    onnx.save(model, str(tmp_path / "net.onnx"))
    made = command("compile_model", "net.onnx", "--compiler", "relax", "--out", "out", "--json",
                   "--preprocessing", "none", cwd=tmp_path)
    assert json.loads(made.stdout)["metadata"]["verification"]["done"]


def test_rows_are_repeated_as_often_as_computed(tmp_path, command):
    """As today's exporter writes repeat_interleave, with a number of rows that is open: it computes
    with a shape."""
    save(tmp_path / "repeated.onnx", [
        ("Abs", ["x"], ["size"]), ("Ceil", ["size"], ["whole"]),
        ("Cast", ["whole"], ["often"], "often", {"to": TensorProto.INT64}),
        ("CumSum", ["often", "zero"], ["ends"]), ("Gather", ["ends", "last"], ["total"]),
        ("Range", ["zero", "total", "one"], ["places"]),
        ("Unsqueeze", ["ends", "ones"], ["column"]), ("Less", ["places", "column"], ["ahead"]),
        ("Cast", ["ahead"], ["ahead1"], "ahead", {"to": TensorProto.INT64}),
        ("ReduceSum", ["ahead1", "zeros"], ["left"], "left", {"keepdims": 0}),
        ("Shape", ["x"], ["rows"]), ("Sub", ["rows", "left"], ["row"]),
        ("Gather", ["x", "row"], ["y"])], ["rows"], [("y", TensorProto.FLOAT, ["n"])],
        {"zero": np.array(0), "one": np.array(1), "last": np.array(-1), "ones": [1], "zeros": [0]})
    made = command("compile_model", "repeated.onnx", "--dynamic", "--out", "out", "--json",
                   "--preprocessing", "none", cwd=tmp_path)
    assert json.loads(made.stdout)["metadata"]["verification"]["done"]
    for rows in (1, 7):
        x = np.random.default_rng(rows).uniform(-4, 4, rows).astype(np.float32)
        np.savez(tmp_path / "in.npz", x)
        tvm_process.call("run_relax", None, inputs=[str(tmp_path / "in.npz")],
                         outputs=str(tmp_path),
                         library=str(tmp_path / "out/repeated/native/model.so"))
        with np.load(tmp_path / "0.npz") as file:
            np.testing.assert_array_equal(
                file["arr_0"], np.repeat(x, np.ceil(abs(x)).astype(int)))


@pytest.mark.parametrize("flags, limit, said", [
    ((), 100.0, "output 'i' was empty for all inputs"), (("--no-verify",), 0.0, "not asked for")])
def test_what_was_not_compared_is_refused(tmp_path, command, flags, limit, said):
    save(tmp_path / "net.onnx", [("Greater", ["x", "limit"], ["c"], "above"),
                                 ("NonZero", ["c"], ["i"], "places")],
         [12], [("i", TensorProto.INT64, [1, "n"])], {"limit": np.float32(limit)})
    made = command("compile_model", "net.onnx", "--compiler", "relax", "--out", "out", *flags,
                   cwd=tmp_path, code=MALFORMED_FILE)
    assert "'places' (NonZero" in made.stderr and said in made.stderr
    assert not list(tmp_path.rglob("model.so"))


def test_a_network_whose_constants_could_not_be_aligned_says_so(tmp_path, command):
    """With a compiler that does not assemble."""
    save(tmp_path / "net.onnx", [("Add", ["x", "c"], ["y"], "sum")], [3],
         [("y", TensorProto.FLOAT, [3])], {"c": np.ones(3, np.float32)})
    compiler = tmp_path / "compiler"
    compiler.write_text("""#!/bin/sh
case "$*" in *modules.S*) echo "modules.S: no assembler" >&2; exit 1;; esac
exec g++ "$@"
""")
    compiler.chmod(0o755)
    made = command("compile_model", "net.onnx", "--compiler", "relax", "--out", "out", "--cc",
                   str(compiler), cwd=tmp_path)
    assert "could not be aligned in the library (modules.S: no assembler)" in made.stdout


def test_that_a_length_of_values_hides_what_sizes_are_taken_is_said(tmp_path):
    """Numbers above 9 are in no input that is tried."""
    save(tmp_path / "above.onnx", [
        ("Greater", ["x", "high"], ["is_above"]),
        ("Compress", ["x", "is_above"], ["above"], "above", {"axis": 0}),
    ], ["words"], [("above", TensorProto.FLOAT, [None])], {"high": np.float32(9)})
    with pytest.raises(ToolError, match="the output 'above' .* is empty for some inputs"):
        open_sizes(read_model(tmp_path / "above.onnx"), {})
