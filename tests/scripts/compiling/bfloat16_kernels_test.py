"""compile_model --precision bfloat16: which networks it makes, and which it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from float16_kernels_test import save_residual_network

from run_model_tools.compiling.job import Job
from run_model_tools.compiling.relay_job import compile_job
from run_model_tools.errors import ToolError
from run_model_tools.onnx_model import read_model
from run_model_tools.targets import find_target
from run_model_tools.verifying import verification
from small_networks import save_network, weights

TARGET = "llvm -mcpu=sapphirerapids"


def job_of(path: Path, target: str = TARGET, **options) -> Job:
    model = read_model(path)
    shapes = {item.name: tuple(item.shape) for item in model.inputs}
    return Job("net", model, find_target(target), path.parent, shapes, kernels="ours",
               precision="bfloat16", **options)


def save_attention(path: Path) -> Path:
    """Two heads that look at each other's 70 rows, and a fully connected layer."""
    constants = {name: array * np.float32(0.1) for name, array in weights(
        5, wq=(96, 96), wk=(96, 96), wv=(96, 96), wo=(96, 7), bo=(7,)).items()}
    return save_network(path, """(float[1,70,96] x) => (float[1,70,7] y) {
        apart = Constant<value_ints=[1,70,2,48]>()
        q = MatMul(x, wq)
        k = MatMul(x, wk)
        v = MatMul(x, wv)
        qh = Reshape(q, apart)
        kh = Reshape(k, apart)
        vh = Reshape(v, apart)
        qt = Transpose<perm=[0,2,1,3]>(qh)
        kt = Transpose<perm=[0,2,3,1]>(kh)
        vt = Transpose<perm=[0,2,1,3]>(vh)
        scores = MatMul(qt, kt)
        weights = Softmax<axis=-1>(scores)
        mixed = MatMul(weights, vt)
        back = Transpose<perm=[0,2,1,3]>(mixed)
        together = Constant<value_ints=[1,70,96]>()
        rows = Reshape(back, together)
        out = MatMul(rows, wo)
        y = Add(out, bo)
    }""", constants)


@pytest.mark.parametrize("save, kinds", [
    (save_residual_network, {"conv2d_bf16", "dense_bf16"}), (save_attention, {"matmul_bf16"})])
def test_networks_answer_as_in_float32(tmp_path: Path, save, kinds) -> None:
    """On a CPU with AMX by its tiles, else as the same plan compiled for what there is."""
    metadata = compile_job(job_of(save(tmp_path / "net.onnx")))["metadata"]
    kernels, checked = metadata["kernels"], metadata["verification"]
    assert kernels["precision"] == "bfloat16" and kernels["instruction_set"] == "avx512"
    assert checked["done"] and checked["where"] in ("native", "host plan")
    # Less than what was asked for, and more than float32 rounds.
    assert 1e-5 < checked["relative_error"] < verification.HALF_TOLERANCE
    graph = json.loads((tmp_path / "net/llvm-mcpu-sapphirerapids/model.json").read_text())
    names = [node["name"] for node in graph["nodes"] if "_bf16" in node["name"]]
    assert len(names) == kernels["bfloat16_layers"] >= 2
    assert all(any(kind in name for name in names) for kind in kinds)


@pytest.mark.full
def test_without_such_a_cpu_the_same_plan_runs_here(
        monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(verification, "machines", lambda machine, target: [])
    path = save_residual_network(tmp_path / "net.onnx")
    checked = compile_job(job_of(path))["metadata"]["verification"]
    assert checked["done"] and checked["where"] == "host plan"
    assert 1e-5 < checked["relative_error"] < verification.HALF_TOLERANCE


@pytest.mark.parametrize("target, cpu", [("x86_64_v4", "x86-64-v4"),
                                         ("raspi5_aarch64", "cortex-a76")])
def test_a_cpu_without_tiles_is_refused_by_its_name(tmp_path: Path, target: str,
                                                    cpu: str) -> None:
    path = save_residual_network(tmp_path / "net.onnx")
    with pytest.raises(ToolError, match=rf"target's CPU \({cpu}\).*AMX") as refused:
        compile_job(job_of(path, target, cc="true"))
    assert refused.value.code == 2


def test_a_network_that_gains_nothing_is_refused(tmp_path: Path) -> None:
    path = save_network(tmp_path / "net.onnx", """(float[1,3,33,30] x) => (float[1,3,33,30] y) {
        c = Conv<group=3, pads=[1,1,1,1]>(x, w, b)
        y = Relu(c)
    }""", weights(1, w=(3, 1, 3, 3), b=(3,)))
    with pytest.raises(ToolError, match="no layer of the network is faster") as refused:
        compile_job(job_of(path))
    assert refused.value.code == 2
