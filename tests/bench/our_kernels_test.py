"""An artifact with this project's kernels: in TVM's own runtime too, and in the table of layers."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from machine import best_isa
from networks import Network, compile_network
from run_model_tools import environment
from trials import Subject

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["RUN_MODEL_BUILD_FOLDER"])

pytestmark = pytest.mark.skipif(best_isa() is None, reason="the kernels need AVX2 on x86-64")


def save_network(path: Path) -> None:
    """Has layers of most kernels: planar, 3x3, depthwise, 1x1 with a residual, strided, dense."""
    random = np.random.default_rng(1)
    weights = []

    def weight(*shape: int) -> str:
        values = random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
        weights.append(numpy_helper.from_array(values.astype(np.float32), f"w{len(weights)}"))
        return weights[-1].name

    value, node = helper.make_tensor_value_info, helper.make_node
    padded = {"pads": [1] * 4}
    nodes = [
        node("Conv", ["x", weight(24, 3, 3, 3), weight(24)], ["c"], strides=[2, 2], **padded),
        node("Relu", ["c"], ["r"]),
        node("Conv", ["r", weight(24, 24, 3, 3)], ["k"], **padded), node("Relu", ["k"], ["l"]),
        node("Conv", ["l", weight(24, 1, 3, 3)], ["d"], group=24, **padded),
        node("Conv", ["d", weight(24, 24, 1, 1), weight(24)], ["q"]),
        node("Add", ["q", "r"], ["s"]), node("Concat", ["s", "l"], ["t"], axis=1),
        node("Conv", ["t", weight(40, 48, 3, 3)], ["u"], strides=[2, 2], **padded),
        node("GlobalAveragePool", ["u"], ["g"]), node("Flatten", ["g"], ["f"]),
        node("Gemm", ["f", weight(10, 40), weight(10)], ["y"], transB=1)]
    graph = helper.make_graph(nodes, "small", [value("x", TensorProto.FLOAT, [1, 3, 40, 40])],
                              [value("y", TensorProto.FLOAT, [1, 10])], weights)
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)]),
              path)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Network:
    path = tmp_path_factory.mktemp("ours") / "small.onnx"
    save_network(path)
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
