"""The bench of GPUs: whose figures it takes, and whom it leaves out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from small_networks import network, weights

BENCH = Path(__file__).resolve().parents[2] / "bench" / "gpu_vs_peers"
STAND_IN = """#!{python}
import json, sys
import numpy as np
flags = dict(zip(sys.argv, sys.argv[1:]))
target = flags["--target"]
with np.load({expected!r}) as file:
    np.savez(flags["--outputs"], output_0=file["output_0"] * (1.01 if target == "vulkan" else 1),
             output_1=file["output_1"] * (np.nan if target == "opencl" else 1))
print(json.dumps({{"devices": ["cuda:0 (a stand-in)"], "timing": {{
    "load": 3.0, "run": 1.0, "repeated": {{"median": 0.5, "min": 0.25}}}}}}))
"""


@pytest.fixture(name="prepared")
def prepared_fixture(tmp_path: Path) -> Path:
    """What `prepare` makes, with a program in run_model's place whose Vulkan is wrong and
    whose OpenCL gives NaNs."""
    folder = tmp_path / "folder"
    for one in ("onnx", "inputs", "expected", "artifacts/net/cuda-sm_90", "artifacts/net/opencl",
                "artifacts/net/vulkan"):
        (folder / one).mkdir(parents=True)
    model = network("(float[1, 8] x) => (float[1, 4] y) { y = MatMul(x, w) }", weights(1, w=(8, 4)))
    onnx.save(model, str(folder / "onnx" / "net.onnx"))
    np.savez(folder / "inputs" / "net.npz", x=np.ones((1, 8), np.float32))
    expected = folder / "expected" / "net.npz"
    np.savez(expected, output_0=np.array([[1, 2, 3, 4]], np.float32),
             output_1=np.ones(2, np.float32))
    program = tmp_path / "run_model"
    program.write_text(STAND_IN.format(python=sys.executable, expected=str(expected)))
    program.chmod(0o755)
    return tmp_path


def measure(prepared: Path, *flags: str) -> tuple[subprocess.CompletedProcess[str], dict]:
    report = prepared / "report.json"
    done = subprocess.run(
        [sys.executable, BENCH, "measure", prepared / "folder", "--run-model",
         prepared / "run_model", "--json", report, "--seconds", "0.1", "--rounds", "2", *flags],
        capture_output=True, text=True, check=False)
    return done, json.loads(report.read_text()) if report.exists() else {}


def test_who_differs_or_cannot_run_is_left_out_with_the_reason(prepared):
    done, report = measure(prepared, "--peers", "onnxruntime", "ncnn")
    assert done.returncode == 0, done.stderr
    assert set(report["networks"]["net"]) == {"run_model cuda-sm_90"}
    figures = report["networks"]["net"]["run_model cuda-sm_90"]
    assert figures == {"version": "cuda:0 (a stand-in)", "median_ms": 0.5, "min_ms": 0.25,
                       "first_ms": 4.0, "difference": 0.0}
    left_out = report["left_out"]
    assert "differs by 1.0e-02" in left_out["net: run_model vulkan"]
    assert "differs by nan" in left_out["net: run_model opencl"]
    assert "no CUDA provider" in left_out["net: onnxruntime"]
    assert "ncnn" in left_out["net: ncnn"]
    assert "run_model cuda-sm_90" in done.stdout and "left out: net: ncnn" in done.stderr


def test_a_folder_that_was_not_prepared_is_refused(tmp_path):
    done = subprocess.run([sys.executable, BENCH, "measure", tmp_path], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 1 and "prepare it first" in done.stderr
