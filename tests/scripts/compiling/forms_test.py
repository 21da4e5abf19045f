"""Every form of an artifact computes the same, run by the program run_model."""

import io
import json
import os
import shutil
import subprocess
import tarfile

import numpy as np
import onnx
import pytest
from conftest import ROOT, run_command
from onnx import TensorProto, helper
from repaired_models import model_of

from run_model_tools.compiling import c_target, forms
from run_model_tools.environment import host_program
from run_model_tools.errors import ToolError
from run_model_tools.params_file import is_padding, read_params_file
from small_networks import save_classifier

PROGRAM = host_program("run_model")
NATIVE = "out/tiny/native"

needs_program = pytest.mark.skipif(not PROGRAM.exists(),
                                   reason=f"{PROGRAM} is not built, nor RUN_MODEL_PROGRAM set")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """tiny.onnx, compiled for this machine and to C in every form; inputs.npz."""
    folder = tmp_path_factory.mktemp("forms")
    save_classifier(folder / "tiny.onnx")
    for target in ("native", "c"):
        done = run_command("compile_model", "tiny.onnx", "--out", "out", "--target", target,
                           "--forms", "all", cwd=folder)
        assert done.returncode == 0, done.stderr
    random = np.random.default_rng(0)
    np.savez(folder / "inputs.npz", image=random.standard_normal((1, 3, 8, 8), np.float32))
    return folder


def run(folder, artifact, *flags):
    return subprocess.run([PROGRAM, "tiny", artifact, *flags], cwd=folder, capture_output=True,
                          text=True, check=False)


def outputs(folder, artifact):
    result = run(folder, artifact, "--inputs", "inputs.npz", "--outputs", "outputs.npz")
    assert result.returncode == 0, result.stderr
    with np.load(folder / "outputs.npz") as arrays:
        return arrays["output_0"].tobytes()


def link(folder, *arguments):
    """link_mlf under a Python that has nothing but its standard library."""
    return subprocess.run(["/usr/bin/python3", str(ROOT / "scripts" / "link_mlf"), *arguments],
                          cwd=folder, capture_output=True, text=True, check=False)


@needs_program
@pytest.mark.parametrize("form", [
    "flat", "flat/tiny_tvm", "mod", "mod/mod.so", "tar", "tar/tiny.tar", "single",
    "single/tiny.so", "linked"])
def test_every_form_runs_to_the_same_bits(made, form):
    expected = outputs(made, NATIVE)
    assert outputs(made, f"{NATIVE}/forms/{form}") == expected
    inspected = json.loads(run(made, f"{NATIVE}/forms/{form}", "--inspect", "--json").stdout)
    graph = inspected["graph"]
    assert [i["name"] for i in graph["inputs"]] == ["image"]
    assert [o["shape"] for o in graph["outputs"]] == [[1, 3]]
    assert inspected["problems"] == []


@pytest.mark.parametrize("target", ["native", "c"])
def test_parameters_of_a_form_are_as_tvm_writes_them(made, target):
    artifact = made / "out/tiny" / target
    ours, tvms = (read_params_file(path) for path in (
        artifact / "model.params", artifact / "forms/flat/tiny_tvm.params"))
    assert any(map(is_padding, ours)) and not any(map(is_padding, tvms))
    assert {name: ours[name] for name in tvms} == tvms


@needs_program
def test_packages_run_from_anywhere(made, tmp_path):
    whole = (made / NATIVE / "forms/tar/tiny.tar").read_bytes()
    (tmp_path / "net.tar.gz").write_bytes(_gzipped(whole))
    assert outputs(made, str(tmp_path / "net.tar.gz")) == outputs(made, NATIVE)


def _gzipped(data):
    import gzip
    return gzip.compress(data)


@needs_program
@pytest.mark.parametrize("target", ["native", "c"])
def test_library_format_runs_once_linked(made, tmp_path, target):
    archive = f"out/tiny/{target}/forms/mlf/tiny.tar"
    refused = run(made, archive, "--inspect")
    assert refused.returncode == 5 and "scripts/link_mlf" in refused.stderr
    result = link(made, archive, "--out", str(tmp_path / "linked"))
    assert result.returncode == 0, result.stderr
    assert sorted(p.name for p in (tmp_path / "linked").iterdir()) == [
        "model.json", "model.params", "model.so"]
    assert outputs(made, str(tmp_path / "linked")) == outputs(made, f"out/tiny/{target}")


@needs_program
def test_library_format_with_a_library_runs_as_it_is(made, tmp_path):
    with tarfile.open(made / NATIVE / "forms/mlf/tiny.tar") as old, \
            tarfile.open(tmp_path / "net.tar", "w") as new:
        for member in old.getmembers():
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
        new.add(made / NATIVE / "model.so", "./codegen/host/lib/default.so")
    assert outputs(made, str(tmp_path / "net.tar")) == outputs(made, NATIVE)


@needs_program
def test_the_board_builds_c_source(made, tmp_path):
    board = tmp_path / "c"
    shutil.copytree(made / "out/tiny/c", board, ignore=shutil.ignore_patterns("forms"))
    built_here = outputs(made, "out/tiny/c")
    (board / "model.so").unlink()
    refused = run(made, str(board), "--inspect")
    assert refused.returncode == 3 and "run make in its folder" in refused.stderr
    subprocess.run(["make", "-s", "-C", str(board), "CFLAGS=-O1"], check=True)
    assert np.allclose(np.frombuffer(outputs(made, str(board)), np.float32),
                       np.frombuffer(built_here, np.float32), rtol=1e-5)


def test_c_source_includes_own_headers_only(made):
    source = (made / "out/tiny/c/model.c").read_text()
    included = {line.split()[1] for line in source.splitlines() if line.startswith("#include")}
    ours = {f'"{p.relative_to(c_target.OWN_HEADERS)}"' for p in c_target.OWN_HEADERS.rglob("*.h")}
    assert included - ours == {"<math.h>", "<stdbool.h>"}


def test_c_source_with_infinity(command, tmp_path):
    """Which TVM begins to look for the largest number with; with a NaN and fabs()."""
    network = model_of([helper.make_node("ArgMax", ["x"], ["y"], axis=1),
                        helper.make_node("IsInf", ["x"], ["z"]),
                        helper.make_node("Abs", ["x"], ["a"]),
                        helper.make_node("Mul", ["a", "nothing"], ["w"])],
                       {"x": (TensorProto.FLOAT, [2, 5])},
                       {"y": TensorProto.INT64, "z": TensorProto.BOOL, "w": TensorProto.FLOAT}, 13,
                       {"nothing": np.float32(0)})
    onnx.save(network, tmp_path / "most.onnx")
    command("compile_model", tmp_path / "most.onnx", "--out", tmp_path, "--target", "c",
            "--no-verify")


@pytest.mark.full
def test_source_only_lists_no_library(made, command):
    result = command("compile_model", made / "tiny.onnx", "--out", made / "source", "--target", "c",
                     "--no-build", "--forms", "all", "--json")
    metadata = json.loads(result.stdout)["metadata"]
    assert not (made / "source/tiny/c/model.so").exists()
    assert "machine" not in metadata["target"]
    assert forms.present(metadata) == ("mlf",)
    command("compile_model", made / "tiny.onnx", "--out", made / "source", "--target", "c",
            "--no-build", "--forms", "all", "--check")


def test_forms_stay_when_fewer_are_asked_for(made, command):
    known = (made / NATIVE / "metadata.json").read_text()
    command("compile_model", made / "tiny.onnx", "--out", made / "out", "--forms", "tar")
    assert (made / NATIVE / "metadata.json").read_text() == known
    assert forms.present(json.loads(known)) == forms.ALL


def test_names_of_forms(command, classifier):
    assert forms.parse("tar, mod") == ("mod", "tar")
    assert forms.parse("triple") == forms.parse(None) == ()
    assert forms.parse("all") == forms.ALL
    with pytest.raises(ToolError, match="'zip': choose from"):
        forms.parse("tar,zip")
    command("compile_model", classifier, "--forms", "zip", code=2)


def _tar(path, members, kind=tarfile.REGTYPE):
    with tarfile.open(path, "w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size, info.type = len(data), kind
            archive.addfile(info, io.BytesIO(data))
    return str(path)


MLF = {"version": 7, "modules": {"default": {"executors": ["graph"]}}}


@pytest.mark.parametrize("members, kind, code, message", [
    ({"../../evil.o": b"x"}, tarfile.REGTYPE, 4, "no file inside of the archive"),
    ({"/etc/evil.o": b"x"}, tarfile.REGTYPE, 4, "no file inside of the archive"),
    ({"a.o": b""}, tarfile.SYMTYPE, 4, "no file inside of the archive"),
    ({"a.txt": b"x"}, tarfile.REGTYPE, 4, "neither metadata.json"),
    ({"mod.so": b"x"}, tarfile.REGTYPE, 2, "linked already"),
    ({"metadata.json": b"{}"}, tarfile.REGTYPE, 4, "not that of the Model Library Format"),
    ({"metadata.json": json.dumps({**MLF, "version": 8}).encode()}, tarfile.REGTYPE, 5,
     "in version 8"),
    ({"metadata.json": json.dumps({"version": 5, "executors": ["aot"]}).encode()}, tarfile.REGTYPE,
     5, "for the executor aot"),
    ({"metadata.json": json.dumps(MLF).encode()}, tarfile.REGTYPE, 4, "neither objects"),
    ({"metadata.json": json.dumps(MLF).encode(), "codegen/host/lib/a.o": b"x",
      "codegen/cuda/src/b.c": b"x"}, tarfile.REGTYPE, 5, "code for cuda"),
])
def test_archives_that_cannot_be_linked(tmp_path, members, kind, code, message):
    archive = _tar(tmp_path / "a.tar", members, kind)
    result = link(tmp_path, archive, "--out", "out")
    assert result.returncode == code and message in result.stderr, result.stderr
    assert os.listdir(tmp_path) == ["a.tar"]


def test_objects_of_another_machine_leave_nothing(made, tmp_path):
    archive = _tar(tmp_path / "a.tar", {
        "metadata.json": json.dumps(MLF).encode(), "codegen/host/lib/-o.o": b"not an object",
        "executor-config/graph/default.graph": b"{}", "parameters/default.params": b""})
    result = link(tmp_path, archive, "--out", "out")
    assert result.returncode == 6 and "for another machine" in result.stderr
    assert os.listdir(tmp_path) == ["a.tar"]
