"""Runs a Relax executable: on this machine in TVM's virtual machine, under an
emulator in run_model, where it has been built for that machine."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from run_model_tools import tvm_process
from run_model_tools.compiling import artifact
from run_model_tools.environment import BUILD_DIR
from run_model_tools.errors import FAILED_RUN, ToolError
from run_model_tools.targets import named_targets
from run_model_tools.verifying.execution import Machine, NotRun, judge, run_program


def run_executable(folder: Path, machine: Machine, inputs: list[dict[str, np.ndarray]],
                   order: list[str], tvm_python: str | None) -> list[list[np.ndarray]]:
    """The outputs of model.so in `folder` for each set of inputs, or, under an emulator, for the
    first one.

    order: of the function's parameters.  Raises NotRun, or ToolError (8) where it was started and
    failed.
    """
    library = (folder / artifact.LIBRARY).resolve()
    with tempfile.TemporaryDirectory(prefix="run_model-") as name:
        scratch = Path(name)
        if machine.emulator:
            return [_emulated(library, machine, inputs[0], scratch)]
        given = []
        for index, values in enumerate(inputs):
            given.append(str(scratch / f"inputs{index}.npz"))
            np.savez(given[-1], *[values[item] for item in order])
        try:
            tvm_process.call("run_relax", tvm_python, compiler="relax", inputs=given, outputs=name,
                             library=str(library))
        except ToolError as error:
            raise ToolError(FAILED_RUN, f"the compiled model cannot be run: {error}; the artifact "
                                        "was not written.") from None
        return [_read(scratch / f"{index}.npz") for index in range(len(inputs))]


def _read(path: Path) -> list[np.ndarray]:
    with np.load(path) as file:
        return [file[name] for name in file.files]


def _emulated(library: Path, machine: Machine, inputs: dict[str, np.ndarray],
              scratch: Path) -> list[np.ndarray]:
    program = _run_model_for(artifact.library_machine(library))
    np.savez(scratch / "inputs.npz", **inputs)
    command = [*machine.emulator, str(program), str(library), "--inputs",
               str(scratch / "inputs.npz"), "--outputs", str(scratch / "outputs.npz")]
    # run_model ends in the same way for a network that fails and for outputs that are not finite.
    judge(run_program(command), machine)
    return _read(scratch / "outputs.npz")


def _run_model_for(library_machine: str) -> Path:
    """The program, as the preset of that machine's targets builds it."""
    presets = [named.preset for named in named_targets().values()
               if named.machine == library_machine]
    for preset in dict.fromkeys(presets):
        program = BUILD_DIR / preset / "bin" / "run_model"
        if program.is_file():
            return program
    raise NotRun("run_model has not been built for it" + (
        f" (cmake --preset {presets[0]})" if presets else ""))
