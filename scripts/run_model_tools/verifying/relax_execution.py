"""Runs a Relax executable: on this machine in TVM's virtual machine."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from run_model_tools import tvm_process
from run_model_tools.compiling import artifact
from run_model_tools.errors import FAILED_RUN, ToolError
from run_model_tools.verifying.execution import Machine, NotRun


def run_executable(folder: Path, machine: Machine, inputs: list[dict[str, np.ndarray]],
                   order: list[str], tvm_python: str | None) -> list[list[np.ndarray]]:
    """The outputs of model.so in `folder` for each set of inputs, which its function takes in an
    `order`.  Raises NotRun, or ToolError (8) where it was started and failed."""
    if machine.emulator:
        raise NotRun("TVM's virtual machine runs on this machine only")
    with tempfile.TemporaryDirectory(prefix="run_model-") as name:
        given = []
        for index, values in enumerate(inputs):
            given.append(str(Path(name, f"inputs{index}.npz")))
            np.savez(given[-1], *[values[item] for item in order])
        try:
            tvm_process.call("run_relax", tvm_python, compiler="relax", inputs=given, outputs=name,
                             library=str((folder / artifact.LIBRARY).resolve()))
        except ToolError as error:
            raise ToolError(FAILED_RUN, f"the compiled model cannot be run: {error}; the artifact "
                                        "was not written.") from None
        results = []
        for index in range(len(inputs)):
            with np.load(Path(name, f"{index}.npz")) as file:
                results.append([file[f"arr_{i}"] for i in range(len(file.files))])
        return results
