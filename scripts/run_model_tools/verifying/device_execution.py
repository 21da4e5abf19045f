"""Runs an artifact for a GPU on this machine's, or on a driver that computes on the CPU."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from run_model_tools import tvm_process
from run_model_tools.compiling import artifact
from run_model_tools.compiling.graph_file import device_types
from run_model_tools.errors import FAILED_RUN, ToolError
from run_model_tools.verifying.execution import NotRun

_ENOUGH_SECONDS = 20
_CPU = 1


def run_on_device(folder: Path, device: str, inputs: list[dict[str, np.ndarray]],
                  tvm_python: str | None) -> tuple[list[list[np.ndarray]], str]:
    """The outputs of the artifact for each set of inputs, or the first ones if they take long, and
    the device's name.

    The host code has to be for this machine.  Raises NotRun, or ToolError (8) where the network was
    started and failed.
    """
    if device != "opencl":
        raise NotRun(f"there is no device of {device} here that could run it")
    types = device_types((folder / artifact.GRAPH).read_text())
    with tempfile.TemporaryDirectory(prefix="run_model-") as name:
        given = [str(Path(name, f"inputs{index}.npz")) for index in range(len(inputs))]
        made = [str(Path(name, f"outputs{index}.npz")) for index in range(len(inputs))]
        for path, values in zip(given, inputs):
            np.savez(path, **values)
        try:
            answer: dict[str, Any] = tvm_process.call(
                "run_on_device", tvm_python, directory=str(folder.resolve()), device=device,
                with_cpu=_CPU in types, inputs=given, outputs=made, enough=_ENOUGH_SECONDS)
        except ToolError as error:
            raise ToolError(FAILED_RUN, f"the compiled model cannot be run: {error}; the artifact "
                                        "was not written.") from None
        if "absent" in answer:
            raise NotRun(answer["absent"])
        results = []
        for path in made[:answer["done"]]:
            with np.load(path) as file:
                results.append([file[key] for key in file.files])
        return results, f"{device} ({answer['name']})"
