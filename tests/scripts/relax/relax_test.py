"""compile_model --compiler relax as a user runs it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from conftest import run_command
from tvm_outputs import outputs_in

from run_model_tools import tvm_process
from run_model_tools.compiling import compile_model, relax_job, relay_job
from run_model_tools.compiling.exact_sizes import ExactSizes
from run_model_tools.compiling.open_sizes import OpenSizes
from run_model_tools.errors import MALFORMED_FILE, ToolError
from run_model_tools.verifying import relax_execution
from run_model_tools.verifying.execution import Machine, NotRun
from small_networks import network, run_onnxruntime, save_classifier, save_network, weights


def save_rows(path):
    """Two layers on any number of rows."""
    model = network("""(float[rows,6] x) => (float[rows,3] y) {
        a = MatMul(x, w)
        c = Add(a, b)
        d = Relu(c)
        y = MatMul(d, v)
    }""", weights(1, w=(6, 8), b=(8,), v=(8, 3)), 17)
    # Keras's exporter gives such names.
    model.graph.input[0].name = model.graph.node[0].input[0] = "x:0"
    onnx.save(model, str(path))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("relax")
    save_classifier(made / "tiny.onnx")
    save_rows(made / "rows.onnx")
    return made


TINY = ("compile_model", "tiny.onnx", "--compiler", "relax", "--out", "out", "--json")


@pytest.fixture(scope="module")
def tiny(folder):
    """What compile_model says of tiny.onnx, of which it made out/tiny/native."""
    made = run_command(*TINY, cwd=folder)
    assert made.returncode == 0, made.stderr
    return json.loads(made.stdout)


def outputs_of(library, arrays):
    """By TVM's virtual machine, the outputs for each of the arrays."""
    with TemporaryDirectory() as folder:
        inputs = [f"{folder}/in{number}.npz" for number in range(len(arrays))]
        for path, array in zip(inputs, arrays):
            np.savez(path, array)
        tvm_process.call("run_relax", None, inputs=inputs, outputs=folder, library=str(library))
        return [outputs_in(Path(folder) / f"{number}.npz") for number in range(len(arrays))]


def test_one_library_is_made_compared_and_described(folder, tiny, command):
    metadata, directory = tiny["metadata"], folder / "out/tiny/native"
    assert json.loads((directory / "metadata.json").read_text()) == metadata
    assert sorted(p.name for p in directory.iterdir()) == ["metadata.json", "model.so"]
    assert metadata["compiler"] == "relax" and list(metadata["files"]) == ["model.so"]
    assert metadata["tvm_version"].startswith("0.27.")
    assert metadata["inputs"] == [
        {"name": "image", "shape": [1, 3, 8, 8], "dtype": "float32", "layout": "NCHW"}]
    assert metadata["outputs"] == [{"name": "prob", "shape": [1, 3], "dtype": "float32"}]
    assert metadata["verification"]["done"] and metadata["verification"]["where"] == "native"
    assert metadata["kernels"]["method"] == "ours" and metadata["kernels"]["functions"]
    assert json.loads(command(*TINY, cwd=folder).stdout)["up_to_date"]


def test_open_extents_stay_open_and_are_tried_at_several(folder, command):
    made = command("compile_model", "rows.onnx", "--dynamic", "--shape",
                   "x:0:4,6", "--out", "out", "--json", cwd=folder)
    metadata = json.loads(made.stdout)["metadata"]
    assert [i["shape"] for i in metadata["inputs"]] == [[-1, 6]]
    assert [i["name"] for i in metadata["inputs"]] == ["x:0"]
    assert [o["shape"] for o in metadata["outputs"]] == [[-1, 3]]
    shapes = [tried["x:0"] for tried in metadata["verification"]["shapes"]]
    assert shapes[0] == [4, 6] and len({tuple(s) for s in shapes}) == 3
    # Rows do not meet, so that there may be any number of them, and they are computed together.
    assert metadata["kernels"]["method"] == "ours"
    assert metadata["open_extents"] == {"rows": {"least": 0, "most": 2 ** 31 - 1, "step": 1}}
    given = [np.random.default_rng(rows).standard_normal((rows, 6)).astype(np.float32)
             for rows in (0, 11)]
    for x, [got] in zip(given, outputs_of(folder / "out/rows/native/model.so", given)):
        expected, = run_onnxruntime(folder / "rows.onnx", {"x:0": x})
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_inputs_keep_names_that_are_no_identifiers(folder, command):
    made = command("compile_model", "rows.onnx", "--name", "fixed", "--compiler", "relax",
                   "--shape", "x:0:4,6", "--out", "out", "--json", cwd=folder)
    metadata = json.loads(made.stdout)["metadata"]
    assert [i["name"] for i in metadata["inputs"]] == ["x:0"] and metadata["verification"]["done"]


def test_several_outputs_of_a_batch_of_pictures(folder, command):
    """The second one has two rows for each picture."""
    save_network(folder / "two.onnx", """(float[n,3,9,9] x) => (float[] c, float[] rows) {
        a = Conv(x, w)
        b = Relu(a)
        c = GlobalAveragePool(b)
        rows = Reshape(c, pairs)
    }""", weights(2, w=(8, 3, 3, 3)) | {"pairs": np.array([-1, 4])}, 17)
    made = command("compile_model", "two.onnx", "--dynamic", "--out", "out",
                   "--json", "--preprocessing", "none", cwd=folder)
    metadata = json.loads(made.stdout)["metadata"]
    assert metadata["kernels"]["method"] == "ours" and not metadata["kernels"]["left_to_tvm"]
    assert [o["shape"] for o in metadata["outputs"]] == [[-1, 8, 1, 1], [-1, 4]]
    x = np.random.default_rng(3).standard_normal((5, 3, 9, 9)).astype(np.float32)
    [made] = outputs_of(folder / "out/two/native/model.so", [x])
    for got, wanted in zip(made, run_onnxruntime(folder / "two.onnx", {"x": x}), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_extents_stay_open_of_what_is_left_of_a_network(folder, command):
    """A branch that a frozen input chooses, as decoders with and without a cache are exported in
    one file, up to a tensor of the middle."""
    save_network(folder / "part.onnx", """(float[n,length] x, float[n,past] old, bool cached)
        => (int64[2,rows] places) {
        y = If (cached) <
            then_branch = with () => (float[n,all] a) { a = Concat<axis=1>(old, x) },
            else_branch = without () => (float[n,length] b) { b = Identity(x) }>
        z = Softmax(y)
        places = NonZero(z)
    }""", opset=17)
    made = command("compile_model", "part.onnx", "--compiler", "relax", "--dynamic", "--shape",
                   "x:2,3", "--shape", "old:2,5", "--freeze", "cached=1", "--outputs", "z",
                   "--out", "out", "--json", cwd=folder)
    metadata = json.loads(made.stdout)["metadata"]
    assert [(i["name"], i["shape"]) for i in metadata["inputs"]] == [("x", [-1, -1]),
                                                                     ("old", [-1, -1])]
    x, old = (np.random.default_rng(1).standard_normal((4, n)).astype(np.float32) for n in (7, 9))
    np.savez(folder / "in.npz", x, old)
    tvm_process.call("run_relax", None, inputs=[str(folder / "in.npz")], outputs=str(folder),
                     library=str(folder / "out/part/native/model.so"))
    powers = np.exp(np.concatenate([old, x], 1))
    with np.load(folder / "0.npz") as file:
        np.testing.assert_allclose(file["arr_0"], powers / powers.sum(1, keepdims=True), rtol=1e-5)


def test_a_network_that_mixes_samples_says_why_no_kernel_is_ours(folder, command):
    save_network(folder / "mixed.onnx", """(float[n,3] x) => (float[n,3] y) {
        [over_all] y = Softmax<axis=0>(x)
    }""", opset=17)
    made = command("compile_model", "mixed.onnx", "--dynamic", "--out",
                   "out", "--json", cwd=folder)
    kernels = json.loads(made.stdout)["metadata"]["kernels"]
    assert kernels["method"] == "stock" and "Softmax 'over_all' mixes samples" in kernels["reason"]


@pytest.mark.full
def test_a_wrong_artifact_is_not_written(folder, command):
    made = command("compile_model", "tiny.onnx", "--compiler", "relax", "--out", "wrong",
                   "--tolerance", "-1", cwd=folder, code=8)
    assert "differs from the reference" in made.stderr
    assert not list((folder / "wrong").rglob("model.so"))


@pytest.mark.parametrize("flags, said", [
    (("--forms", "tar"), "--forms"), (("--flat",), "--flat"), (("--target", "c"), "the target c"),
    (("--dynamic",), "leaves no extent")])
def test_what_has_no_meaning_is_refused(folder, command, flags, said):
    made = command("compile_model", "tiny.onnx", "--compiler", "relax", "--out", "refused", *flags,
                   cwd=folder, code=2)
    assert said in made.stderr


def test_dynamic_is_not_for_graphs(folder, command):
    made = command("compile_model", "rows.onnx", "--dynamic", "--compiler", "relay", "--out",
                   "refused", cwd=folder, code=2)
    assert "--dynamic is not for --compiler relay" in made.stderr


def test_the_other_compiler_is_tried_and_the_report_says_so(folder, monkeypatch, capsys):
    def fails(job):
        raise ToolError(MALFORMED_FILE, "TVM cannot take it: at node 'n' (Odd).")
    monkeypatch.setattr(relay_job, "compile_job", fails)
    arguments = ["compile_model", str(folder / "tiny.onnx"), "--out", str(folder / "auto"),
                 "--no-verify"]
    monkeypatch.setattr(sys, "argv", [*arguments, "--compiler", "auto"])
    with pytest.raises(SystemExit) as ended:
        compile_model.main()
    assert ended.value.code == 0
    assert "since --compiler relay could not: TVM cannot take it: at node 'n'" in (
        capsys.readouterr().out)
    assert (folder / "auto/tiny/native/model.so").is_file()
    # By itself it is TVM 0.18, and that is what is said.
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as ended:
        compile_model.main()
    assert ended.value.code == MALFORMED_FILE


@pytest.mark.full
def test_constants_of_64_bits_stay_what_they_are(folder, command):
    save_network(folder / "wide.onnx", """(int64[3] x) => (double[3] y) {
        a = Add(x, more)
        b = Cast<to=11>(a)
        y = Mul(b, third)
    }""", {"more": np.array([1 << 40]), "third": np.array([1 / 3])}, 17)
    made = command("compile_model", "wide.onnx", "--compiler", "relax", "--out", "out", "--json",
                   cwd=folder)
    assert json.loads(made.stdout)["metadata"]["verification"]["relative_difference"] < 1e-12


@pytest.mark.usefixtures("tiny")
def test_under_an_emulator_run_model_runs_it(folder, tmp_path, monkeypatch):
    """With a stand-in for run_model: that it gets the files and its answer is taken."""
    program = tmp_path / "host" / "bin" / "run_model"
    monkeypatch.setattr(relax_execution, "BUILD_DIR", tmp_path)
    x = np.zeros((1, 3, 8, 8), np.float32)

    def run():
        return relax_execution.run_executable(
            folder / "out/tiny/native", Machine("env", ("env",)), [{"image": x}], ["image"],
            None)
    with pytest.raises(NotRun, match="has not been built"):
        run()
    program.parent.mkdir(parents=True)
    program.write_text(f"""#!{sys.executable}
import sys, numpy as np
library, inputs, outputs = sys.argv[1], sys.argv[3], sys.argv[5]
assert library.endswith("model.so") and np.load(inputs)["image"].shape == (1, 3, 8, 8)
np.savez(outputs, output_0=np.arange(3))
""")
    program.chmod(0o755)
    assert [a.tolist() for a in run()[0]] == [[0, 1, 2]]
    program.write_text("#!/bin/sh\necho 'it is not for this' >&2; exit 6\n")
    with pytest.raises(NotRun, match="not for this"):
        run()
    program.write_text("#!/bin/sh\nkill -SEGV $$\n")
    with pytest.raises(ToolError, match="crashed"):
        run()
    for signal, why in (("ILL", "instructions that the CPU lacks"), ("KILL", "enough memory")):
        program.write_text(f"#!/bin/sh\nkill -{signal} $$\n")
        with pytest.raises(NotRun, match=why):
            run()


@pytest.mark.full
def test_weights_kept_in_bytes_are_weights(folder, command):
    """DequantizeLinear of a constant, one scale for each row: TVM gets the product's weights."""
    random = np.random.default_rng(3)
    save_network(folder / "bytes.onnx", """(float[4,16] x) => (float[4,8] y) {
        d = DequantizeLinear<axis=1>(w, s, z)
        y = MatMul(x, d)
    }""", {"w": random.integers(-127, 128, (16, 8), np.int8), "z": np.zeros(8, np.int8),
           "s": random.uniform(0.01, 0.02, 8).astype(np.float32)}, 17)
    made = command("compile_model", "bytes.onnx", "--compiler", "relax", "--out", "out", "--json",
                   cwd=folder)
    metadata = json.loads(made.stdout)["metadata"]
    assert metadata["verification"]["done"] and metadata["kernels"].get("left_to_tvm") == {}


def test_why_a_network_went_to_the_importer_as_it_is_stands_in_its_refusal(monkeypatch, tmp_path):
    def refuse(*_, **__):
        raise ToolError(MALFORMED_FILE, "TVM cannot take net.onnx: an axis.")

    monkeypatch.setattr(relax_job, "_call_tvm", refuse)
    job = SimpleNamespace(model=SimpleNamespace(path="net.onnx"), shapes={})
    with pytest.raises(ToolError, match="^net.onnx cannot be compiled with open extents: they "
                                        "depend on each other. As it is, TVM cannot take net.onnx: "
                                        "an axis. Leave --dynamic out and name sizes with --shape"):
        relax_job._compile(job, relax_job._as_it_is(job, "they depend on each other."), None,
                           tmp_path)
    with pytest.raises(ToolError, match="^TVM cannot take"):
        relax_job._compile(job, relax_job._Shapes({}), None, tmp_path)


def test_functions_of_exact_sizes_are_asked_for_whatever_the_network_is_read_as(
        monkeypatch, tmp_path):
    asked = []

    def call(*_, **request):
        asked.append(request)
        if "opened" in request:
            raise tvm_process.SizesDiffer(MALFORMED_FILE, "an axis.")
        return "made"

    monkeypatch.setattr(tvm_process, "call", call)
    job = SimpleNamespace(model=SimpleNamespace(request=dict), tvm_python=None, opt_level=3,
                          optimize_for="speed")
    small, large = {"n": 2}, {"n": 3}
    sizes = OpenSizes({"x": ("n",)}, [small, large], small, {"n": 1}, [])
    shapes = relax_job._Shapes.at_several(sizes, relax_job._Shapes({"batch_axes": "first"}))
    made, refused, read_as = relax_job._compile(job, shapes, ExactSizes([small], [{"x": (2,)}]),
                                                tmp_path)
    assert (made, refused, read_as) == ("made", None, shapes.instead)
    assert [(len(r.get("opened", {}).get("samples", ())), r.get("batch_axes"),
             [one["sizes"] for one in r["exact"]]) for r in asked] == [
        (2, None, [small]), (2, None, [small]), (0, "first", [small])]
