"""compile_model as a user runs it."""

import json
import os
import subprocess
import sys

import numpy as np
import onnx
import pytest
from conftest import ROOT, run_command

from run_model_tools import environment, params_file
from run_model_tools.compiling.artifact import library_machine
from run_model_tools.compiling.report import describe_verification
from run_model_tools.files import sha256_of
from small_networks import network, save_classifier, save_two_by_two

FLAGS = ("--name", "tiny", "--out", "out", "--preprocessing", "imagenet", "--resize", "8",
         "--crop", "8")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A folder with tiny.onnx and its artifact in every form, and compile_model's report."""
    folder = tmp_path_factory.mktemp("compiled")
    save_classifier(folder / "tiny.onnx")
    result = run_command("compile_model", "tiny.onnx", *FLAGS, "--flat", "--single-file", "--json",
                         cwd=folder)
    assert result.returncode == 0, result.stderr
    return folder, json.loads(result.stdout)


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def test_metadata_says_what_was_made(compiled):
    folder, report = compiled
    directory = folder / "out" / "tiny" / "native"
    metadata = json.loads((directory / "metadata.json").read_text())
    assert report["metadata"] == metadata and report["directory"] == "out/tiny/native"
    assert metadata["schema_version"] == 1 and metadata["model"] == "tiny"
    assert metadata["target"]["name"] == "native"
    assert metadata["target"]["tvm"].startswith("llvm ")
    assert metadata["target"]["machine"] == os.uname().machine
    assert metadata["tvm_version"] == "0.18.0"
    assert metadata["inputs"] == [
        {"name": "image", "shape": [1, 3, 8, 8], "dtype": "float32", "layout": "NCHW"}]
    assert metadata["outputs"] == [{"name": "prob", "shape": [1, 3], "dtype": "float32"}]
    assert metadata["preprocessing"] == {
        "resizer": "pil-bilinear", "fit": "crop", "resize": 8, "crop": 8, "color_order": "RGB",
        "divide_by": 255.0, "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
    assert metadata["source"] == {"onnx_sha256": sha256_of(folder / "tiny.onnx"), "onnx_opset": 13}
    assert set(metadata["files"]) == {"model.so", "model.json", "model.params", "model_single.so"}
    for name, described in metadata["files"].items():
        assert described["sha256"] == sha256_of(directory / name)
        assert described["bytes"] == (directory / name).stat().st_size
    assert names(directory) == sorted([*metadata["files"], "metadata.json"])
    assert names(directory.parent) == ["native"]


def test_it_explains_node_by_node_what_became_of_the_network(compiled, command):
    folder, report = compiled
    result = command("compile_model", "tiny.onnx", *FLAGS, "--flat", "--single-file", "--explain",
                     "--report", "report.json", cwd=folder)
    written = json.loads((folder / "report.json").read_text())
    assert written["schema_version"] == 1 and written["metadata"] == report["metadata"]
    nodes, sums = written["explanation"]["nodes"], written["explanation"]["sums"]
    graph = json.loads((folder / "out/tiny/native/model.json").read_text())
    assert [node["name"] for node in nodes] == [
        node["name"] for node in graph["nodes"] if node["op"] == "tvm_op"]
    assert nodes[-1]["outputs"] == [{"shape": [1, 3], "dtype": "float32"}]
    ours = [node for node in nodes if node["by"] == "ours"]
    assert len(ours) == sums["ours"] == report["metadata"]["kernels"].get("layers", 0)
    assert all(node["kernel"]["kernel"] for node in ours)
    assert all(node["name"] in result.stdout for node in nodes)


def test_it_was_compared_with_onnx_runtime(compiled):
    _, report = compiled
    assert report["verification"]["done"]
    assert 0 <= report["verification"]["relative_difference"] < 1e-5


def test_parameters_are_aligned_and_those_of_the_graph(compiled):
    folder, _ = compiled
    data = (folder / "out/tiny/native/model.params").read_bytes()
    graph = json.loads((folder / "out/tiny/native/model.json").read_text())
    arguments = [graph["nodes"][n]["name"] for n in graph["arg_nodes"]]
    tensors = params_file.read_params(data)
    real = [name for name in tensors if not params_file.is_padding(name)]
    assert real == [name for name in arguments if name != "image"] and real
    whole = memoryview(data)
    for name in real:
        start = np.frombuffer(tensors[name].data, np.uint8).__array_interface__["data"][0]
        base = np.frombuffer(whole, np.uint8).__array_interface__["data"][0]
        assert (start - base) % 128 == 0


def test_the_flat_form_holds_the_same_bytes(compiled):
    folder, report = compiled
    assert names(folder / "out") == ["tiny", "tiny_tvm.json", "tiny_tvm.metadata.json",
                                     "tiny_tvm.params", "tiny_tvm.so"]
    for suffix in ("so", "json", "params"):
        assert sha256_of(folder / "out" / f"tiny_tvm.{suffix}") == \
            report["metadata"]["files"][f"model.{suffix}"]["sha256"]
    flat = json.loads((folder / "out" / "tiny_tvm.metadata.json").read_text())
    assert flat["files"] == {f"tiny_tvm.{suffix}": report["metadata"]["files"][f"model.{suffix}"]
                             for suffix in ("so", "json", "params")}
    assert library_machine(folder / "out" / "tiny_tvm.so") == os.uname().machine


def test_tvm_runs_the_single_file(compiled):
    folder, _ = compiled
    script = """
import sys, numpy as np, tvm
from tvm.contrib import graph_executor
module = graph_executor.GraphModule(tvm.runtime.load_module(sys.argv[1])["default"](tvm.cpu(0)))
module.set_input("image", np.ones((1, 3, 8, 8), np.float32))
module.run()
print(float(module.get_output(0).numpy().sum()))
"""
    result = subprocess.run(
        [sys.executable, "-c", script, str(folder / "out/tiny/native/model_single.so")],
        env=environment.tvm_environment(), capture_output=True, text=True, check=True)
    assert float(result.stdout) == pytest.approx(1, abs=1e-5)


def test_nothing_is_compiled_twice(compiled, command):
    folder, report = compiled
    library = folder / "out/tiny/native/model.so"
    before = library.stat().st_mtime_ns, library.stat().st_ino
    again = command("compile_model", "tiny.onnx", *FLAGS, "--flat", "--single-file", "--json",
                    cwd=folder)
    assert json.loads(again.stdout)["up_to_date"] is True
    assert json.loads(again.stdout)["metadata"] == report["metadata"]
    assert (library.stat().st_mtime_ns, library.stat().st_ino) == before
    for change, ready in (((), 0), (("--opt-level", "2"), 1), (("--mean", "0", "0", "0"), 1),
                          (("--optimize-for", "speed"), 0), (("--optimize-for", "size"), 1),
                          (("--target", "x86-64-v2"), 1)):
        command("compile_model", "tiny.onnx", *FLAGS, "--flat", "--single-file", *change,
                "--check", cwd=folder, code=ready)


def test_a_damaged_artifact_is_not_up_to_date(compiled, command, tmp_path):
    folder, _ = compiled
    copy = tmp_path / "out" / "tiny" / "native"
    copy.mkdir(parents=True)
    for path in (folder / "out/tiny/native").iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    flags = (folder / "tiny.onnx", "--out", tmp_path / "out", *FLAGS[:2], *FLAGS[4:],
             "--single-file", "--check")
    command("compile_model", *flags)
    damaged = bytearray((copy / "model.params").read_bytes())
    damaged[-1] ^= 1
    (copy / "model.params").write_bytes(damaged)
    command("compile_model", *flags, code=1)


def test_several_inputs_and_outputs_without_pictures(command, tmp_path):
    save_two_by_two(tmp_path / "two.onnx")
    result = command("compile_model", "two.onnx", "--json", "--target", "llvm", "--target-name",
                     "plain", cwd=tmp_path)
    report = json.loads(result.stdout)
    metadata = report["metadata"]
    assert report["directory"] == "artifacts/two/plain"
    assert sorted(metadata["inputs"], key=lambda i: i["name"]) == [
        {"name": "n", "shape": [2, 3], "dtype": "int64"},
        {"name": "x", "shape": [2, 3], "dtype": "float32"}]
    assert [o["name"] for o in metadata["outputs"]] == ["sum", "product"]
    assert metadata["preprocessing"] is None and report["verification"]["done"]


def test_inputs_may_be_called_as_tvm_calls_constants(command, tmp_path):
    onnx.save(network("(float[2,3] p0, float[2,3] p1) => (float[2,3] p2) "
                      "{ sum = Add(p0, p1) p2 = Mul(sum, weight) }",
                      {"weight": np.arange(6, dtype=np.float32).reshape(2, 3)}, 17),
              str(tmp_path / "net.onnx"))
    result = command("compile_model", tmp_path / "net.onnx", "--out", tmp_path / "out", "--json")
    report = json.loads(result.stdout)
    assert report["verification"]["done"]
    assert [one["name"] for one in report["metadata"]["inputs"]] == ["p0", "p1"]
    graph = json.loads((tmp_path / "out" / "net" / "native" / "model.json").read_text())
    held = [node["name"] for node in graph["nodes"] if node["op"] == "null"]
    assert held[:2] == ["p0", "p1"] and len(set(held)) == len(held) == 3
    result = command("compile_model", tmp_path / "net.onnx", "--out", tmp_path / "out",
                     "--forms", "single", code=4)
    assert "called as TVM calls constants" in result.stderr


def test_a_batch_that_the_model_leaves_open(command, tmp_path):
    save_classifier(tmp_path / "m.onnx", batch="N")
    result = command("compile_model", "m.onnx", "--shape", "image:2,3,8,8", "--json", cwd=tmp_path)
    metadata = json.loads(result.stdout)["metadata"]
    assert metadata["inputs"][0]["shape"] == [2, 3, 8, 8]
    assert metadata["outputs"][0]["shape"] == [2, 3]


def test_a_difference_from_onnx_runtime_writes_nothing(command, classifier):
    folder = classifier.parent
    result = command("compile_model", "tiny.onnx", "--tolerance", "-1", cwd=folder, code=8)
    assert "'prob'" in result.stderr and "was not written" in result.stderr
    assert names(folder / "artifacts" / "tiny") == []


def test_a_failure_keeps_the_artifact_that_was_there(command, classifier):
    folder = classifier.parent
    directory = folder / "artifacts" / "tiny" / "native"
    directory.mkdir(parents=True)
    (directory / "model.so").write_text("old")
    compiler = folder / "bad-g++"
    compiler.write_text("#!/bin/sh\necho 'the disk is on fire' >&2\nexit 1\n")
    compiler.chmod(0o755)
    result = command("compile_model", "tiny.onnx", "--cc", compiler, cwd=folder, code=6)
    assert "the disk is on fire" in result.stderr and "Traceback" not in result.stderr
    assert (directory / "model.so").read_text() == "old"
    assert names(directory.parent) == ["native"] and names(directory) == ["model.so"]


@pytest.mark.parametrize("flags, code, says", [
    (("missing.onnx",), 3, "missing.onnx"),
    (("tiny.onnx", "--name", "../evil"), 2, "--name"),
    (("tiny.onnx", "--target-name", "a/b"), 2, "--target-name"),
    (("tiny.onnx", "--shape", "image"), 2, "--shape image"),
    (("tiny.onnx", "--shape", "image:1,0,8,8"), 2, "above 0"),
    (("tiny.onnx", "--shape", "picture:1,3,8,8"), 6, "it has image"),
    (("tiny.onnx", "--input-layout", "image:CHWN"), 2, "NCHW"),
    (("tiny.onnx", "--preprocessing", "nonsense"), 2, "nonsense"),
    (("tiny.onnx", "--verify-with", "."), 2, "--verify-with needs the model's preprocessing"),
    (("tiny.onnx", "--verify-with", ".", "--no-verify"), 2, "leave it out"),
    (("tiny.onnx", "--verify-with", ".", "--preprocessing", "imagenet", "--fit", "squash"), 3,
     "no pictures"),
    (("tiny.onnx", "--preprocessing", "imagenet"), 6, "--resize 9 --crop 8, --fit squash"),
    (("tiny.onnx", "--mean", "1", "2"), 2, "--mean"),
    (("tiny.onnx", "--target", "hovercraft -full=eels"), 2, "hovercraft"),
    (("tiny.onnx", "--cc", "no-such-g++"), 2, "no-such-g++"),
    (("tiny.onnx", "--tuning-records", "no.log"), 3, "no.log"),
    (("tiny.onnx", "--tvm-python", "/no/such/python"), 3, "/no/such/python"),
])
def test_mistakes_get_a_sentence(command, classifier, flags, code, says):
    result = command("compile_model", *flags, cwd=classifier.parent, code=code)
    assert says in result.stderr and "Traceback" not in result.stderr
    assert not list(classifier.parent.glob("artifacts/*/*/*"))


def test_a_python_without_tvm_is_named(command, classifier):
    env = {**os.environ, "RUN_MODEL_TVM_PYTHON": str(environment.VENV_PYTHON)}
    env.pop("PYTHONPATH", None)
    result = command("compile_model", "tiny.onnx", cwd=classifier.parent, env=env, code=3)
    assert "cannot import TVM" in result.stderr and str(environment.VENV_PYTHON) in result.stderr


def test_works_through_a_link_and_any_python(classifier, tmp_path):
    """The system's Python starts it, through a link, and the environment is found all the same."""
    link = tmp_path / "link"
    link.symlink_to(ROOT / "scripts" / "compile_model")
    result = subprocess.run(["/usr/bin/python3", str(link), "--help"], cwd="/", check=False,
                            capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})
    assert result.returncode == 0, result.stderr
    assert "--tuning-records" in result.stdout


@pytest.mark.parametrize(("difference", "allowed"), [
    (2e-5, "by 2.0e-05 (0.001 allowed)"),
    (3.2e-2, "by 3.2e-02 (0.001 allowed; more where rounding alone changes the reference as much)"),
])
def test_a_difference_beyond_the_tolerance_is_explained(difference, allowed):
    said = describe_verification({"done": True, "where": "native", "reference": "onnxruntime",
                                  "tolerance": 1e-3, "relative_difference": difference})
    assert said == f"verified: run on this machine; differs from onnxruntime {allowed}"
