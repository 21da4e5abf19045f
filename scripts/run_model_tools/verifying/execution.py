"""Runs an artifact on this machine, or under an emulator of the one that it is for.

run_graph.c is compiled by what linked the artifact's library, so it runs wherever that does, and
needs neither TVM nor run_model for the machine.
"""

from __future__ import annotations

import platform
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from run_model_tools import params_file
from run_model_tools.compiling import artifact, c_target
from run_model_tools.errors import FAILED_RUN, MISMATCH, WRONG_MACHINE, ToolError
from run_model_tools.targets import named_targets
from run_model_tools.verifying.graph_program import graph_program

_SOURCE = Path(__file__).with_name("run_graph.c")
_FAILED = 4
"""What run_graph ends with when the compiled network itself is at fault."""

# ResNet-18 for RISC-V, which has no vectors there, takes QEMU some minutes on a busy machine.
_MOST_SECONDS = 900
_ENOUGH_SECONDS = 20
"""When this much time has gone, no further set of inputs is run."""

_ILLEGAL = "an instruction that this CPU does not know"
"""What run_model says of one before it ends."""


class NotRun(Exception):
    """Why an artifact could not be executed in some way; another one may do."""


@dataclass(frozen=True)
class Machine:
    """Where an artifact is executed: `where` for reports, and the command before a program's."""

    where: str
    emulator: tuple[str, ...] = ()
    is_targets: bool = False
    """Whether the emulator plays the target's own CPU."""


def machines(library_machine: str, target: str) -> list[Machine]:
    """What may run code for a machine (as `uname -m` says) that was compiled for `target`."""
    found = [Machine("native")] if library_machine == platform.machine() else []
    alike = [named for named in named_targets().values()
             if named.machine == library_machine and named.emulator]
    named = next((one for one in alike if one.tvm == target), None)
    if named is not None:
        emulator = named.emulator
    elif alike:
        # Of a target that has no name the emulator plays the CPU that has everything.
        emulator = _with_cpu(alike[0].emulator, _LARGEST_CPU.get(library_machine, "max"))
    else:
        return found
    if shutil.which(emulator[0]):
        found.append(Machine(emulator[0], emulator, named is not None))
    return found


_LARGEST_CPU = {"riscv64": "rv64,v=true,vext_spec=v1.0,vlen=1024,zba=true,zbb=true,zbs=true"}


def _with_cpu(emulator: tuple[str, ...], cpu: str) -> tuple[str, ...]:
    at = emulator.index("-cpu") + 1
    return (*emulator[:at], cpu, *emulator[at + 1:])


def run_artifact(folder: Path, machine: Machine, compilers: list[list[str]],
                 inputs: list[dict[str, np.ndarray]]) -> list[list[np.ndarray]]:
    """The outputs of an artifact's files for each set of inputs, or, if these take long, for the
    first ones.

    compilers: commands for C code; the first that is there and makes a program is taken.  Raises
    NotRun, or ToolError (6) where the network was started and failed.
    """
    program = graph_program((folder / artifact.GRAPH).read_text(),
                            params_file.read_params_file(folder / artifact.PARAMS))
    with tempfile.TemporaryDirectory(prefix="run_model-") as name:
        scratch = Path(name)
        runner = _compile(scratch, compilers)
        (scratch / "program").write_text(program.with_runs(len(inputs)))
        with open(scratch / "inputs", "wb") as file:
            for values in inputs:
                file.write(program.input_bytes(values))
        command = [*machine.emulator, str(runner), str((folder / artifact.LIBRARY).resolve()),
                   str(scratch / "program"), str(folder / artifact.PARAMS), str(scratch / "inputs"),
                   str(scratch / "outputs"), str(_ENOUGH_SECONDS)]
        judge(run_program(command), machine, failed=_FAILED)
        return program.split_outputs((scratch / "outputs").read_bytes())


def run_program(command: list[str]) -> subprocess.CompletedProcess[str]:
    """The program after its end.  Raises NotRun where it does not start or does not end."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False,
                              errors="replace", timeout=_MOST_SECONDS)
    except subprocess.TimeoutExpired:
        raise NotRun(f"it took more than {_MOST_SECONDS} seconds") from None
    except OSError as error:
        raise NotRun(f"{command[0]}: {error.strerror}") from None


def _compile(scratch: Path, compilers: list[list[str]]) -> Path:
    runner = scratch / "run_graph"
    reasons = []
    for command in compilers:
        if shutil.which(command[0]) is None:
            reasons.append(f"{command[0]} was not found")
            continue
        # A C++ compiler, which links the library, has to be told that this is C.
        done = subprocess.run(
            [*command, "-x", "c", "-std=gnu11", "-O1", "-w", f"-I{c_target.OWN_HEADERS}",
             str(_SOURCE), "-o", str(runner), "-rdynamic", "-pthread", "-ldl", "-lm"],
            capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return runner
        reasons.append(f"{command[0]} makes no program: {done.stderr.strip()[-300:]}")
    raise NotRun("; ".join(reasons) or "there is no C compiler")


def judge(done: subprocess.CompletedProcess[str], machine: Machine,
          failed: int | None = None) -> None:
    """Raises what a run that did not end well means.

    failed: what the program ends with only when the compiled network itself is at fault.
    """
    words = done.stderr.strip()[-2000:]
    if done.returncode == failed:
        raise ToolError(MISMATCH, f"the compiled model cannot be run: {words}; the artifact was "
                                  "not written.")
    if done.returncode == -signal.SIGILL or done.returncode == WRONG_MACHINE and _ILLEGAL in words:
        if machine.is_targets:
            raise ToolError(FAILED_RUN, "the compiled model has instructions that its target's CPU "
                                        f"lacks ({machine.where}): the artifact was not written.")
        raise NotRun("it has instructions that the CPU lacks")
    if done.returncode == -signal.SIGKILL:
        raise NotRun("it was killed, as it would be without enough memory")
    if done.returncode == -signal.SIGFPE:
        raise ToolError(FAILED_RUN, (
            f"the compiled model divides a whole number by zero ({machine.where}) for random "
            "inputs, of which nothing says that they are divisors: the artifact was not written. "
            "--freeze makes a constant of such an input, --no-verify runs nothing."))
    if words.startswith("qemu-") and "Assertion" in words:
        raise NotRun(f"the emulator broke down: {words}")
    if done.returncode < 0:
        raise ToolError(FAILED_RUN, f"the compiled model crashed ({machine.where}, signal "
                                    f"{-done.returncode}): the artifact was not written. {words}")
    if done.returncode != 0:
        raise NotRun(words or f"exit status {done.returncode}")
