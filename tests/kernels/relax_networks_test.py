"""Whole small networks with our kernels through Relax, in TVM's virtual machine, against ONNX
Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from networks_test import LEVEL
from onnx_matrices import NETWORKS as MATRIX_NETWORKS
from onnx_networks import NETWORKS

from run_model_tools import tvm_process

pytestmark = pytest.mark.skipif(LEVEL < "x86-64-v3", reason="this CPU is no x86-64-v3")


# The kernels are Relay's, which networks_test tries: what a change needs to see here is that layers
# find them.
FEW = ("activations", "shuffled_units", "encoder_with_norms_first")


@pytest.fixture(scope="module", params=["few", pytest.param("others", marks=pytest.mark.slow)])
def compiled(tmp_path_factory, request) -> tuple[Path, dict[str, onnx.ModelProto],
                                                 dict[str, dict]]:
    """A folder with model.so of every network in NAME/, the networks, the worker's answers."""
    folder = tmp_path_factory.mktemp("relax")
    models = {name: make() for name, make in (NETWORKS | MATRIX_NETWORKS).items()
              if (name in FEW) == (request.param == "few")}
    requests = []
    for name, model in models.items():
        (folder / name).mkdir()
        onnx.save(model, str(folder / name / "model.onnx"))
        shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
        requests.append({"onnx": str(folder / name / "model.onnx"), "shapes": {"x": shape},
                         "target": "llvm -mcpu=x86-64-v3", "opt_level": 3, "kernels": "ours",
                         "directory": str(folder / name)})
    answers = tvm_process.call("compile_many_relax", None, requests=requests)["results"]
    return folder, models, dict(zip(models, answers))


def test_networks_give_what_onnx_runtime_gives(compiled):
    folder, models, answers = compiled
    assert {name: a["error"] for name, a in answers.items() if "error" in a} == {}
    # As with Relay, there is a kernel of ours for every layer.
    for name in answers.keys() & set(FEW):
        assert answers[name]["kernels"]["left_to_tvm"] == {}, name
    requests, expected = [], {}
    for name, model in models.items():
        shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
        x = np.random.default_rng(7).standard_normal(shape).astype(np.float32)
        np.savez(folder / name / "in.npz", x)
        requests.append({"library": str(folder / name / "model.so"),
                         "inputs": [str(folder / name / "in.npz")],
                         "outputs": str(folder / name)})
        session = onnxruntime.InferenceSession(model.SerializeToString(),
                                               providers=["CPUExecutionProvider"])
        expected[name] = session.run(None, {"x": x})
    tvm_process.call("run_many_relax", None, requests=requests)
    for name, wanted in expected.items():
        with np.load(folder / name / "0.npz") as arrays:
            got = [arrays[key] for key in arrays.files]
        assert [a.shape for a in got] == [b.shape for b in wanted], name
        for a, b in zip(got, wanted):
            # Sums of some hundred products of numbers around 1, in float32.
            np.testing.assert_allclose(a, b, rtol=0, atol=2e-5 * max(1, np.abs(b).max()),
                                       err_msg=name)
