"""An artifact with this project's kernels: in TVM's own runtime too, and in the table of layers."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest

from machine import best_isa
from networks import Network, compile_network
from run_model_tools import environment
from small_networks import save_network, weights
from trials import Subject

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["RUN_MODEL_BUILD_FOLDER"])

pytestmark = pytest.mark.skipif(best_isa() is None, reason="the kernels need AVX2 on x86-64")


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Network:
    """With layers of most kernels: planar, 3x3, depthwise, 1x1 with a residual, strided, dense."""
    found = weights(1, w0=(24, 3, 3, 3), b0=(24,), w1=(24, 24, 3, 3), w2=(24, 1, 3, 3),
                    w3=(24, 24, 1, 1), b3=(24,), w4=(40, 48, 3, 3), w5=(10, 40), b5=(10,))
    path = save_network(tmp_path_factory.mktemp("ours") / "small.onnx", """
            (float[1,3,40,40] x) => (float[1,10] y) {
        c = Conv<strides=[2,2],pads=[1,1,1,1]>(x, w0, b0)
        r = Relu(c)
        k = Conv<pads=[1,1,1,1]>(r, w1)
        l = Relu(k)
        d = Conv<group=24,pads=[1,1,1,1]>(l, w2)
        q = Conv(d, w3, b3)
        s = Add(q, r)
        t = Concat<axis=1>(s, l)
        u = Conv<strides=[2,2],pads=[1,1,1,1]>(t, w4)
        g = GlobalAveragePool(u)
        f = Flatten(g)
        y = Gemm<transB=1>(f, w5, b5)
    }""", {name: array / np.float32(np.prod(array.shape[1:]) ** 0.5)
            for name, array in found.items()})
    return Network("small", "small", path)


def test_tvms_runtime_gives_the_same_bits(network):
    artifact = compile_network(network, network.onnx.parent / "work" / "artifacts")
    kernels = json.loads((artifact / "metadata.json").read_text(encoding="utf-8"))["kernels"]
    assert kernels["method"] == "ours" and kernels["layers"] >= 5
    runtime = environment.TVM_DIR / "python" / "tvm" / "libtvm_runtime.so"
    ours = Subject("run_model", BUILD / "bench" / "trial_run_model")
    tvm = Subject("tvm", BUILD / "bench" / "trial_tvm", (str(runtime),),
                  {"LD_LIBRARY_PATH": str(environment.TVM_DIR / "lib")})
    outputs = {subject.run(artifact, "x", runs=1, threads=threads)["output"]
               for subject in (ours, tvm) for threads in (1, 2)}
    assert len(outputs) == 1


def test_the_table_has_every_layer(network, tmp_path):
    done = subprocess.run(
        [ROOT / "bench" / "kernels_per_layer", "--networks", network.onnx, "--quick", "--threads",
         "1", "--build", BUILD, "--work", network.onnx.parent / "work", "--json",
         tmp_path / "table.json",
         "--markdown", tmp_path / "table.md"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (tmp_path / "table.md").read_text(encoding="utf-8")
    report = json.loads((tmp_path / "table.json").read_text(encoding="utf-8"))
    table = report["networks"]["small"]["tables"][0]
    graph = onnx.load(network.onnx).graph
    counted = sum(node.op_type in ("Conv", "Gemm") for node in graph.node)
    assert sum(len(row["layers"]) for row in table["rows"]) == counted
    # 20x20 pixels, 24 channels, a kernel of 3x3 over three channels.
    assert table["rows"][0]["multiply_adds"] == 20 * 20 * 24 * 27
    instructions = report["networks"]["small"]["instruction_set"].split("_")[0]
    peak = report["fma_peak_gflop_per_s"][instructions]["1"]
    assert peak > 0
    for row in table["rows"]:
        assert row["kernel"]["kernel"] and row["microseconds"]["ours"] > 0
        assert row["microseconds"]["stock"] > 0
        assert row["peak_share"] == pytest.approx(row["gflop_per_s"] / peak)
    assert set(table["totals"]) == {"ours", "stock", "onnxruntime"}
