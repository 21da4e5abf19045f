"""The whole bench on a small network, with ONNX Runtime out of the tools' own environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from networks import Network, compile_network, reference_output
from peers.processes import Process, RunnerFailed
from peers.resume import earlier_report
from peers.runners import our_runner
from small_networks import save_network, save_two_by_two, weights

ROOT = Path(__file__).resolve().parents[2]
SMALL = ("""(float[1,3,16,16] x) => (float[1,5] y) {
    c = Conv<pads=[1,1,1,1]>(x, w)
    r = Relu(c)
    p = GlobalAveragePool(r)
    y = Flatten(p)
}""", weights(1, w=(5, 3, 3, 3)))


def run(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run([ROOT / "bench" / "runtime_vs_peers", *map(str, arguments)], cwd="/",
                          capture_output=True, text=True, check=False)


def measure(folder: Path, *more: object, threads: int = 2) -> subprocess.CompletedProcess:
    return run("--networks", folder / "small.onnx", "--peers", "onnxruntime", "ncnn", "--threads",
               threads, "--quick", "--build", os.environ["RUN_MODEL_BUILD_FOLDER"], "--work",
               folder / "work", "--peers-venv", Path(sys.prefix), "--json", folder / "report.json",
               "--markdown", folder / "report.md", *more)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess, Path]:
    folder = tmp_path_factory.mktemp("bench")
    save_network(folder / "small.onnx", *SMALL)
    prepared = measure(folder, "--prepare")
    assert (prepared.returncode, prepared.stdout) == (0, ""), prepared.stderr
    assert not (folder / "report.json").exists()
    return measure(folder), folder


def test_measures_and_reports(outcome):
    done, folder = outcome
    assert done.returncode == 0, done.stderr
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    small = report["networks"]["small"]
    assert {name for name, found in small["agreement"].items() if found["agrees"]} == {
        "run_model", "onnxruntime", "stock", "tvm"}
    steady = small["steady"][0]
    assert (steady["threads"], steady["rounds"], steady["best_peer"]) == (2, 3, "onnxruntime")
    for figures in (steady["runners"], small["starts"]["runners"]):
        assert set(figures) == {"run_model", "onnxruntime", "stock", "tvm"}
    assert small["kernels"]["method"] == "ours" and small["tuning"] == []
    assert steady["stock"]["ratio"] > 0 and steady["stock"]["best_peer"] == "stock"
    for figures in small["starts"]["runners"].values():
        assert 0 < figures["load_ms"] < figures["first_ms"]
        assert 0 < figures["bare_kib"] <= figures["idle_kib"] < figures["whole_kib"]
    assert done.stdout == (folder / "report.md").read_text(encoding="utf-8")
    assert "| small | 2 |" in done.stdout


def test_says_what_is_left_out(outcome):
    done, folder = outcome
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert [item["runner"] for item in report["left_out"]] == ["ncnn"]
    assert "ncnn is left out: it is not installed: ModuleNotFoundError" in done.stderr
    assert "- left out: ncnn: it is not installed" in done.stdout


def test_goes_on_with_an_earlier_report(outcome):
    _, folder = outcome
    before = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    done = measure(folder, "--resume")
    assert done.returncode == 0, done.stderr
    after = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert after["networks"] == before["networks"]  # figures that no second run would repeat
    assert "| small | 2 |" in done.stdout
    other = measure(folder, "--resume", threads=1)
    assert other.returncode != 0
    assert "report.json was measured with threads [2], not [1]" in other.stderr


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema_version": 0}'])
def test_does_not_go_on_with_what_is_no_report(tmp_path, text):
    (tmp_path / "report.json").write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit, match="leave --resume out to measure anew"):
        earlier_report(tmp_path / "report.json", {})


def test_a_network_that_does_not_compile_is_named(tmp_path):
    save_network(tmp_path / "small.onnx", *SMALL)
    done = run("--networks", tmp_path / "small.onnx", "--peers", "onnxruntime", "--kernels", "auto",
               "--no-tvm", "--compile-seconds", 0.01, "--build",
               os.environ["RUN_MODEL_BUILD_FOLDER"], "--work", tmp_path / "work", "--peers-venv",
               Path(sys.prefix), "--json", tmp_path / "report.json")
    assert done.returncode == 1
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert list(report["failed"]) == ["small"] and report["networks"] == {}
    assert "did not end within 0.01 seconds" in report["failed"]["small"]
    assert "- run_model does not run small: compile_model" in done.stdout


def test_inputs_of_several_types(tmp_path):
    """Both go to the program in one file, in the order of their names on its command line."""
    inputs = {"n": np.arange(6, dtype=np.int64).reshape(2, 3),
              "x": np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3)}
    network = Network("two", "two", save_two_by_two(tmp_path / "two.onnx"), inputs)
    artifact = compile_network(network, tmp_path, kernels="auto")
    (tmp_path / "inputs").write_bytes(b"".join(array.tobytes() for array in inputs.values()))
    program = Path(os.environ["RUN_MODEL_BUILD_FOLDER"], "bench", "trial_run_model")
    with Process(our_runner(program, artifact, list(inputs), tmp_path / "inputs"), 1,
                 tmp_path / "output") as process:
        process.ask("load")
    expected = reference_output(network, inputs)
    np.testing.assert_allclose(np.fromfile(tmp_path / "output", np.float32), expected.ravel(),
                               rtol=1e-6)
    (tmp_path / "inputs").write_bytes(bytes(10))
    with Process(our_runner(program, artifact, list(inputs), tmp_path / "inputs"), 1,
                 tmp_path / "output") as process:
        with pytest.raises(RunnerFailed, match="input file is too short"):
            process.ask("load")


@pytest.mark.parametrize(("arguments", "message"), [
    (["--networks", "alexnet"], "there is no network 'alexnet'"),
    (["--networks", "not_there.onnx"], "not_there.onnx is not there"),
    (["--peers", "torch"], "there is no peer 'torch'"),
    (["--json", "/not/there/report.json"], "its folder is not there"),
    (["--plot", "picture.jpeg"], "draws .png and .svg"),
    (["--kernels", "stock", "ours"], "--kernels is auto, ours, stock, or ours stock"),
    (["--threads", "0"], "numbers above 0"),
    (["--resume"], "--resume needs --json FILE")])
def test_what_cannot_be_measured(arguments, message):
    done = run(*arguments, "--peers-venv", Path(sys.prefix))
    assert done.returncode != 0 and message in done.stderr
