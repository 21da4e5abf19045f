"""Whole small networks with our kernels, in TVM's own executor, against ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from network_builder import Network
from onnx_matrices import NETWORKS as MATRIX_NETWORKS
from onnx_matrices import steps_quantised_at_run_time
from onnx_networks import NETWORKS, random_network
from run_model_tools import tvm_process
from run_model_tools.inside_tvm import cpu
from run_model_tools.onnx_repair import onnxruntime_process
from small_networks import run_onnxruntime, weights

LEVEL = cpu.x86_level(cpu.cpu_flags())
TARGETS = [target for target in ("x86-64-v4", "x86-64-v3") if target <= LEVEL]
# What a change needs to see is the best of them; for the other, the zoo has a network.
BEST_FIRST = [*TARGETS[:1], *(pytest.param(t, marks=pytest.mark.slow) for t in TARGETS[1:])]


def compile_networks(models: dict[str, onnx.ModelProto], folder: Path, target: str,
                     compiler: str = "", **options) -> dict[str, dict]:
    """By name: the worker's answers; artifacts go to folder/NAME. compiler: "" or "_relax"."""
    requests = []
    for name, model in models.items():
        (folder / name).mkdir(parents=True)
        onnx.save(model, str(folder / name / "model.onnx"))
        requests.append({"onnx": str(folder / name / "model.onnx"), "target": target,
                         "shapes": {"x": shape_of(model)}, "opt_level": 3,
                         "directory": str(folder / name), "kernels": "ours", **options})
    results = tvm_process.call(f"compile_many{compiler}", None, requests=requests)["results"]
    return dict(zip(models, results))


def shape_of(model: onnx.ModelProto) -> list[int]:
    return [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]


def run_networks(models: dict[str, onnx.ModelProto], folder: Path, compiler: str = "",
                 ) -> dict[str, tuple[list, list]]:
    """By name: (outputs in TVM's executor, outputs of ONNX Runtime)."""
    requests, expected, outputs = [], {}, {}
    for name, model in models.items():
        made = folder / name
        x = weights(7, x=tuple(shape_of(model)))
        expected[name] = run_onnxruntime(model, x)
        np.savez(made / "in.npz", **({"arr_0": x["x"]} if compiler else x))
        requests.append({"library": str(made / "model.so"), "inputs": [str(made / "in.npz")],
                         "outputs": str(made)} if compiler else
                        {"directory": str(made), "inputs": str(made / "in.npz"),
                         "outputs": str(made / "0.npz")})
    tvm_process.call(f"run_many{compiler}", None, requests=requests)
    for name in models:
        with np.load(folder / name / "0.npz") as arrays:
            outputs[name] = ([arrays[k] for k in arrays.files], expected[name])
    return outputs


def check_outputs(models: dict[str, onnx.ModelProto], folder: Path, compiler: str = "") -> None:
    for name, (got, expected) in run_networks(models, folder, compiler).items():
        assert [a.shape for a in got] == [b.shape for b in expected], name
        for a, b in zip(got, expected):
            # Sums of some hundred products of numbers around 1, in float32.
            np.testing.assert_allclose(a, b, rtol=0, atol=2e-5 * max(1, np.abs(b).max()),
                                       err_msg=name)


def check(models: dict[str, onnx.ModelProto], folder: Path, target: str) -> dict[str, dict]:
    """That networks on our kernels, compiled for the target, give what ONNX Runtime gives; by name
    what was said of their kernels."""
    answers = compile_networks(models, folder, f"llvm -mcpu={target}")
    wrong = {name: answer["error"] for name, answer in answers.items() if "error" in answer}
    assert not wrong
    assert all(answer["kernels"]["layers"] for answer in answers.values())
    check_outputs(models, folder)
    return {name: answer["kernels"] for name, answer in answers.items()}


# Between them, every kind of layer, and what has to become of them.
FOUND = {
    "activations": {"left_to_tvm": {}},
    "transposed_convolutions": {"left_to_tvm": {}},
    "one_row": {"left_to_tvm": {}},
    "rows_cut_and_joined": {"left_to_tvm": {}},
    # Windows that no picture by picture reads: under sums and softmax along channels, an output.
    "windows_of_pictures": {"left_to_tvm": {"cumsum": 1, "strided_slice": 3}},
    # Two pictures of one channel each are in no blocks.
    "numbers_of_planes": {"left_to_tvm": {"concatenate": 1}},
    "branches_that_are_added": {"left_to_tvm": {}, "layers": 4 + 2 + 2 + 3},
    "explicit_padding": {"left_to_tvm": {}},
    "channels_that_are_there_twice": {"left_to_tvm": {}},
    "layers_left_to_the_compiler": {"method": "ours", "left_to_tvm": {"add": 1}},
    # The two outputs go back to the network's own layout, and nothing else does.
    "shuffled_units": {"left_to_tvm": {}, "layout_changes": 2},
    # In each of two blocks two normalisations, four products of weights with all that follows
    # them, two of activations and a softmax; a normalisation at the end.
    "encoder_with_norms_first": {"left_to_tvm": {}, "layout_changes": 0,
                                 "layers": 2 * (2 + 4 + 2 + 1) + 1},
    "rows_of_one_number": {"method": "ours"},
    "nothing_left_of_numbers_that_are_alike": {"method": "ours"},
    "numbers_chosen_by_comparison": {"left_to_tvm": {}, "layers": 2},
    "numbers_in_other_places": {"left_to_tvm": {}},
    # Of four groups of two channels each is left to the compiler.
    "weights_made_at_run_time": {"left_to_tvm": {"nn.conv2d": 1}},
    "batch_of_three": {}, "recurrent_in_both_directions": {}}


@pytest.mark.parametrize("target", BEST_FIRST)
def test_layers_find_their_kernels_and_give_what_onnx_runtime_gives(tmp_path, target):
    networks = NETWORKS | MATRIX_NETWORKS
    found = check({name: networks[name]() for name in FOUND}, tmp_path, target)
    for name, expected in FOUND.items():
        assert {key: found[name][key] for key in expected} == expected, name
        assert found[name]["instruction_set"] == ("avx2" if target.endswith("v3") else "avx512")


@pytest.mark.parametrize("kernels", ["ours", pytest.param("stock", marks=pytest.mark.slow)])
def test_states_are_quantised_at_every_step(tmp_path, kernels):
    """As ONNX Runtime has it on one thread: on several, each takes the range of its own rows."""
    model = steps_quantised_at_run_time()
    answers = compile_networks({"lstm": model}, tmp_path, f"llvm -mcpu={TARGETS[0]}",
                               kernels=kernels)
    assert "error" not in answers["lstm"]
    if kernels == "ours":
        # The products of inputs, of both at once, and all steps of each.
        assert answers["lstm"]["kernels"]["layers"] >= 4
    got, _ = run_networks({"lstm": model}, tmp_path)["lstm"]
    want = onnxruntime_process.run(model.SerializeToString(),
                                   weights(7, x=tuple(shape_of(model))))
    for have, expected in zip(got, want, strict=True):
        np.testing.assert_allclose(have, expected, rtol=0, atol=2e-5)


@pytest.mark.slow
def test_other_networks_give_what_onnx_runtime_gives(tmp_path):
    networks = NETWORKS | MATRIX_NETWORKS
    check({name: networks[name]() for name in networks.keys() - FOUND}, tmp_path, TARGETS[0])


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_random_networks_give_what_onnx_runtime_gives(tmp_path, target):
    seeds = range(100, 112) if target == "x86-64-v3" else range(200, 212)
    check({f"random_{seed}": random_network(seed) for seed in seeds}, tmp_path, target)


@pytest.mark.parametrize("target, reason", [
    ("llvm -mcpu=x86-64-v3", "no layer of the network"),
    pytest.param("llvm -mcpu=x86-64-v2", "vector instructions", marks=pytest.mark.full)])
def test_networks_and_targets_that_are_not_for_them(tmp_path, target, reason):
    n = Network(1)
    models = {"ours": n.model(n.add("Floor", ["x"]) if "v3" in target
                              else n.conv("x", 3, 8, 3))}
    answer = compile_networks(models, tmp_path, target)["ours"]
    assert reason in answer["error"]
    answer = compile_networks(models, tmp_path / "auto", target, kernels="auto")["ours"]
    assert answer["kernels"]["method"] == "stock" and reason in answer["kernels"]["reason"]
