"""The GPU that tuning measures: this machine's or a board's."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from run_model_tools import tvm_process
from run_model_tools.environment import PACKAGE, VENV_PYTHON, host_program, tvm_environment
from run_model_tools.errors import MISSING_FILE, ToolError
from run_model_tools.tuning.session import TuningJob

_SERVER = PACKAGE / "inside_tvm" / "tuning" / "gpu_server.py"
KEY = "gpu"
_OF_TVM = "opencl"
"""What TVM's own runtime drives."""


@contextmanager
def reached(job: TuningJob) -> Iterator[TuningJob]:
    """The job with its GPU's name, and with a way to it: where TVM's runtime has none, rpc_server
    drives this machine's. A job for a CPU stays as it is.

    Raises ToolError where there is no such GPU (3), or no rpc_server.
    """
    if job.target.device is None:
        yield job
    elif job.tracker:
        yield replace(job, device_name=f"{_name(job, here=False)}, device {job.tracker[1]}")
    elif job.target.device == _OF_TVM:
        yield replace(job, device_name=_name(job))
    else:
        with served() as address:
            job = replace(job, tracker=(address, KEY))
            yield replace(job, device_name=_name(job))


def _name(job: TuningJob, here: bool = True) -> str:
    found = tvm_process.call("find_device", None, device=job.target.device, tracker=job.tracker,
                             here=here)
    return found["name"]


@contextmanager
def served() -> Iterator[str]:
    """rpc_server behind a tracker on this machine: the tracker's HOST:PORT, where the board is KEY.
    Both end with the context or with this process."""
    program = host_program("rpc_server")
    if not program.is_file():
        raise ToolError(MISSING_FILE, f"{program}, which drives this machine's GPU for TVM's "
                                      "tuner, has not been built: run scripts/test.sh or cmake.")
    with subprocess.Popen([str(VENV_PYTHON), str(_SERVER), str(program), KEY], text=True,
                          env=tvm_environment(), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            if not address:
                raise ToolError(MISSING_FILE, f"{program} could not be started for TVM's tuner.")
            yield address
        finally:
            process.stdin.close()
