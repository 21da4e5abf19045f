"""Whole small networks with our kernels, in TVM's own executor, against ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx_matrices import NETWORKS as MATRIX_NETWORKS
from onnx_networks import NETWORKS, Network, random_network

from run_model_tools import tvm_process
from run_model_tools.inside_tvm import cpu

LEVEL = cpu.x86_level(cpu.cpu_flags())
TARGETS = [target for target in ("x86-64-v4", "x86-64-v3") if target <= LEVEL]
# What a change needs to see is the best of them; the other runs where everything does.
BEST_FIRST = [*TARGETS[:1], *(pytest.param(t, marks=pytest.mark.full) for t in TARGETS[1:])]


def compile_networks(models: dict[str, onnx.ModelProto], folder: Path, target: str,
                     **options) -> dict[str, dict]:
    """By name: the worker's answers; artifacts go to folder/NAME."""
    requests = []
    for name, model in models.items():
        (folder / name).mkdir(parents=True)
        onnx.save(model, str(folder / name / "model.onnx"))
        shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
        requests.append({"onnx": str(folder / name / "model.onnx"), "target": target,
                         "shapes": {"x": shape}, "opt_level": 3, "directory": str(folder / name),
                         "kernels": "ours", **options})
    results = tvm_process.call("compile_many", None, requests=requests)["results"]
    return dict(zip(models, results))


def run_networks(models: dict[str, onnx.ModelProto], folder: Path) -> dict[str, tuple[list, list]]:
    """By name: (outputs in TVM's executor, outputs of ONNX Runtime)."""
    import onnxruntime

    requests, expected = [], {}
    for name, model in models.items():
        shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
        x = np.random.default_rng(7).standard_normal(shape).astype(np.float32)
        np.savez(folder / name / "in.npz", x=x)
        requests.append({"directory": str(folder / name), "inputs": str(folder / name / "in.npz"),
                         "outputs": str(folder / name / "out.npz")})
        session = onnxruntime.InferenceSession(model.SerializeToString(),
                                               providers=["CPUExecutionProvider"])
        expected[name] = session.run(None, {"x": x})
    tvm_process.call("run_many", None, requests=requests)
    outputs = {}
    for name in models:
        with np.load(folder / name / "out.npz") as arrays:
            outputs[name] = ([arrays[k] for k in arrays.files], expected[name])
    return outputs


def check(models: dict[str, onnx.ModelProto], folder: Path, target: str) -> None:
    """That networks on our kernels, compiled for the target, give what ONNX Runtime gives."""
    answers = compile_networks(models, folder, f"llvm -mcpu={target}")
    wrong = {name: answer["error"] for name, answer in answers.items() if "error" in answer}
    assert not wrong
    assert all(answer["kernels"]["layers"] for answer in answers.values())
    for name, (got, expected) in run_networks(models, folder).items():
        assert len(got) == len(expected), name
        for a, b in zip(got, expected):
            assert a.shape == b.shape, name
            # Sums of some hundred products of numbers around 1, in float32.
            np.testing.assert_allclose(a, b, rtol=0, atol=2e-5 * max(1, np.abs(b).max()),
                                       err_msg=name)


@pytest.mark.parametrize("target", BEST_FIRST)
def test_networks_give_what_onnx_runtime_gives(tmp_path, target):
    networks = NETWORKS | MATRIX_NETWORKS
    check({name: make() for name, make in networks.items()}, tmp_path, target)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_random_networks_give_what_onnx_runtime_gives(tmp_path, target):
    seeds = range(100, 112) if target == "x86-64-v3" else range(200, 212)
    check({f"random_{seed}": random_network(seed) for seed in seeds}, tmp_path, target)


def test_what_is_left_to_the_compiler_is_said(tmp_path):
    model = NETWORKS["layers_left_to_the_compiler"]()
    kernels = compile_networks({"n": model}, tmp_path, "llvm -mcpu=x86-64-v3")["n"]["kernels"]
    assert kernels["method"] == "ours" and kernels["instruction_set"] == "avx2"
    assert kernels["left_to_tvm"] == {"add": 1}


@pytest.mark.full
def test_nothing_is_left_of_activations_transposed_convolutions_and_rows(tmp_path):
    models = {name: NETWORKS[name]()
              for name in ("activations", "transposed_convolutions", "one_row", "explicit_padding")}
    answers = compile_networks(models, tmp_path, "llvm -mcpu=x86-64-v3")
    for name, answer in answers.items():
        assert answer["kernels"]["left_to_tvm"] == {}, name


def test_shuffles_and_concatenations_move_nothing(tmp_path):
    model = NETWORKS["shuffled_units"]()
    kernels = compile_networks({"n": model}, tmp_path, "llvm -mcpu=x86-64-v3")["n"]["kernels"]
    assert kernels["left_to_tvm"] == {}
    # The two outputs go back to the network's own layout, and nothing else does.
    assert kernels["layout_changes"] == 2


def test_attention_is_all_ours(tmp_path):
    model = MATRIX_NETWORKS["encoder_with_norms_first"]()
    kernels = compile_networks({"n": model}, tmp_path, "llvm -mcpu=x86-64-v3")["n"]["kernels"]
    assert kernels["left_to_tvm"] == {} and kernels["layout_changes"] == 0
    # In each of two blocks two normalisations, four products of weights with all that follows
    # them, two of activations and a softmax; a normalisation at the end.
    assert kernels["layers"] == 2 * (2 + 4 + 2 + 1) + 1


@pytest.mark.parametrize("target, reason", [
    ("llvm -mcpu=x86-64-v3", "no layer of the network"),
    pytest.param("llvm -mcpu=x86-64-v2", "vector instructions", marks=pytest.mark.full)])
def test_networks_and_targets_that_are_not_for_them(tmp_path, target, reason):
    n = Network(1)
    models = {"ours": n.model(n.add("Softmax", ["x"], axis=1) if "v3" in target
                              else n.conv("x", 3, 8, 3))}
    answer = compile_networks(models, tmp_path, target)["ours"]
    assert reason in answer["error"]
    answer = compile_networks(models, tmp_path / "auto", target, kernels="auto")["ours"]
    assert answer["kernels"]["method"] == "stock" and reason in answer["kernels"]["reason"]
