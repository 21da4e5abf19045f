"""Networks that TVM compiles and runs, several at a time: each start of it takes seconds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx

from run_model_tools import tvm_process
from run_model_tools.compiling.graph_file import counted_outputs, with_rows_counted
from small_networks import run_onnxruntime

Inputs = dict[str, np.ndarray]
Networks = Mapping[str, tuple[onnx.ModelProto, list[Inputs]]]


def compiled_outputs(folder: Path, networks: Networks, kernels: str | Mapping[str, str] = "stock",
                     compiler: str = "relay") -> dict[str, list[list[np.ndarray]]]:
    """By the networks' names, their outputs for each of their inputs; `kernels` may differ by name.

    `folder` gets a folder for each of them, with net.onnx and what was compiled, in0.npz ... and
    0.npz ..., their inputs and outputs.
    """
    is_relax = compiler == "relax"
    ending = "_relax" if is_relax else ""
    requests, runs = [], []
    for name, (model, inputs) in networks.items():
        place = folder / name
        place.mkdir()
        onnx.save(model, str(place / "net.onnx"))
        requests.append({"onnx": str(place / "net.onnx"), "target": "llvm -mcpu=x86-64-v3",
                         "opt_level": 3, "directory": str(place),
                         "kernels": kernels if isinstance(kernels, str) else kernels[name],
                         "shapes": {key: array.shape for key, array in inputs[0].items()}})
        given = [str(place / f"in{i}.npz") for i in range(len(inputs))]
        for path, arrays in zip(given, inputs):
            np.savez(path, *(arrays.values() if is_relax else ()), **({} if is_relax else arrays))
        runs += [{"library": str(place / "model.so"), "inputs": given, "outputs": str(place)}
                 ] if is_relax else [
                 {"directory": str(place), "inputs": path, "outputs": str(place / f"{i}.npz")}
                 for i, path in enumerate(given)]
    answers = tvm_process.call(f"compile_many{ending}", None, requests=requests)["results"]
    assert not [answer for answer in answers if "error" in answer], answers
    assert all(request["kernels"] in ("auto", answer["kernels"]["method"])
               for request, answer in zip(requests, answers)), answers
    tvm_process.call(f"run_many{ending}", None, requests=runs)
    return {name: [outputs_in(folder / name / f"{i}.npz") for i in range(len(inputs))]
            for name, (_, inputs) in networks.items()}


def outputs_in(path: Path) -> list[np.ndarray]:
    """The arrays of a file, in their order."""
    with np.load(path) as file:
        return [file[name] for name in file.files]


def same_as_onnxruntime(folder: Path, tolerance: float = 0) -> list[np.ndarray]:
    """That each output that compiled_outputs() left in a network's folder for its first inputs is
    ONNX Runtime's, to the last bit or within a tolerance."""
    graph = json.loads((folder / "model.json").read_text())
    have = with_rows_counted(outputs_in(folder / "0.npz"), counted_outputs(graph))
    with np.load(folder / "in0.npz") as inputs:
        want = run_onnxruntime(folder / "net.onnx", dict(inputs))
    for index, (one, other) in enumerate(zip(have, want, strict=True)):
        assert one.dtype == other.dtype and one.shape == other.shape, index
        np.testing.assert_allclose(one, other, tolerance, tolerance, err_msg=str(index))
    return want
