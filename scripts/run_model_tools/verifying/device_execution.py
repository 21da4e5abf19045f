"""Runs an artifact for a GPU on this machine's, or on a driver that computes on the CPU: OpenCL by
TVM's own runtime, others by run_model, where it has been built."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from run_model_tools import tvm_process
from run_model_tools.compiling import artifact
from run_model_tools.compiling.graph_file import counted_outputs, device_types, with_rows_counted
from run_model_tools.environment import host_program
from run_model_tools.errors import FAILED_RUN, WRONG_MACHINE, ToolError
from run_model_tools.verifying.execution import Machine, NotRun, judge, run_program

_ENOUGH_SECONDS = 20
_CPU = 1
_NO_BUILD = "failed to build the program"
"""What TVM says where a driver refuses OpenCL C."""


def run_on_device(folder: Path, device: str, inputs: list[dict[str, np.ndarray]],
                  tvm_python: str | None) -> tuple[list[list[np.ndarray]], str]:
    """The outputs of the artifact for each set of inputs, or the first ones if they take long, and
    the device's name.

    The host code has to be for this machine.  Raises NotRun, or ToolError (8) where the network was
    started and failed.
    """
    with tempfile.TemporaryDirectory(prefix="run_model-") as name:
        given = [Path(name, f"inputs{index}.npz") for index in range(len(inputs))]
        made = [Path(name, f"outputs{index}.npz") for index in range(len(inputs))]
        for path, values in zip(given, inputs):
            np.savez(path, **values)
        counted: list[int] = []
        if device == "opencl":
            counted = counted_outputs(json.loads((folder / artifact.GRAPH).read_text()))
            made, who = _by_tvm(folder, device, given, made, tvm_python)
        else:
            made, who = _by_run_model(folder, device, given[0], made[0])
        results = []
        for path in made:
            with np.load(path) as file:
                results.append(with_rows_counted([file[key] for key in file.files], counted))
        return results, who


def _by_tvm(folder: Path, device: str, given: list[Path], made: list[Path],
            tvm_python: str | None) -> tuple[list[Path], str]:
    graph = (folder / artifact.GRAPH).read_text()
    types = device_types(graph)
    try:
        answer: dict[str, Any] = tvm_process.call(
            "run_on_device", tvm_python, directory=str(folder.resolve()), device=device,
            with_cpu=_CPU in types, inputs=given, outputs=made, enough=_ENOUGH_SECONDS)
    except ToolError as error:
        # Drivers that compute on the CPU often have no cl_khr_fp16.
        if _NO_BUILD in str(error) and '"float16"' in graph:
            raise NotRun(f"the driver of {device} here does not compile it, probably for its "
                         "numbers of float16") from None
        raise ToolError(FAILED_RUN, f"the compiled model cannot be run: {error}; the artifact was "
                                    "not written.") from None
    if "absent" in answer:
        raise NotRun(answer["absent"])
    return made[:answer["done"]], f"{device} ({answer['name']})"


def _by_run_model(folder: Path, device: str, given: Path, made: Path) -> tuple[list[Path], str]:
    program = host_program("run_model")
    if not program.is_file():
        raise NotRun(f"{program}, which runs code for {device}, has not been built")
    done = run_program([str(program), str((folder / artifact.LIBRARY).resolve()), "--device",
                        f"{device}:0", "--inputs", str(given), "--outputs", str(made), "--json"])
    if done.returncode == WRONG_MACHINE:
        raise NotRun(done.stderr.strip()[-300:])
    judge(done, Machine(device))
    return [made], ", ".join(json.loads(done.stdout)["devices"])
