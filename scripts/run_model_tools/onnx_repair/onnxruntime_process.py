"""ONNX Runtime in a process of its own, where a model that makes it crash ends that process only.

The process is started with the first model and lasts as long as this one.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np

_PROGRAM = Path(__file__).with_name("serve_onnxruntime.py")


class OnnxRuntimeFailed(Exception):
    """What it said of a model that it does not run, or that it crashed."""


class OnnxRuntimeCrashed(OnnxRuntimeFailed):
    """The process ended on the model."""


class _Server:
    """The process; `ask` is for any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, request: dict[str, Any]) -> list[Any]:
        with self._lock:
            process = self._started()
            assert process.stdin is not None and process.stdout is not None
            try:
                pickle.dump(request, process.stdin, pickle.HIGHEST_PROTOCOL)
                process.stdin.flush()
                answer = pickle.load(process.stdout)
            except (EOFError, OSError, pickle.UnpicklingError):
                raise OnnxRuntimeCrashed(f"it {_ended(self._close())}") from None
            except BaseException:  # An answer that nobody reads must not be taken for the next.
                self._close()
                raise
        if "error" in answer:
            raise OnnxRuntimeFailed(answer["error"])
        return answer["outputs"]

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            # Of a session of its own, so that an interrupt is for us, who then end it.
            self._process = subprocess.Popen(
                [sys.executable, str(_PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, start_new_session=True)
            atexit.register(self._close)
        return self._process

    def _close(self) -> int:
        """Ends the process and gives its exit status."""
        process, self._process = self._process, None
        atexit.unregister(self._close)
        if process is None:
            return 0
        assert process.stdin is not None and process.stdout is not None
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):  # Of what it has not read of a request.
                pipe.close()
        try:
            return process.wait(1)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()


_SERVER = _Server()


def run(model: str | bytes, inputs: dict[str, np.ndarray], optimized: bool = True) -> list[Any]:
    """The outputs of a model, a file or serialized; raises OnnxRuntimeFailed.

    Inputs that the model has not are left out: nodes that are cut off may have been all that took
    them.  optimized: with ONNX Runtime's own changes to the graph.
    """
    # The process stays in the folder where it was started.
    where = os.path.abspath(model) if isinstance(model, str) else model
    request = {"model": where, "inputs": inputs, "optimized": optimized, "exact": optimized}
    try:
        return _SERVER.ask(request)
    except OnnxRuntimeCrashed:
        if not optimized:
            raise
        # As 1.20 does on products of bytes without a zero point, where sums are to be exact.
        return _SERVER.ask({**request, "exact": False})


def _ended(status: int) -> str:
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = str(-status)
        return f"crashed on it ({name})"
    return f"ended on it with exit status {status}"
