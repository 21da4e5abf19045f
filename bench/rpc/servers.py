"""Starts the two servers that rpc_vs_tvm compares."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from trials import clean_environment

#: Both get one thread for kernels, so that their times tell about the server and not about the
#: pools.
_THREADS = {"TVM_NUM_THREADS": "1"}
_START_SECONDS = 60


def _wait_for(log: Path, pattern: str, process: subprocess.Popen) -> int:
    """The port in the first line that matches; exits with the log if the server ends first."""
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end:
        text = log.read_text(encoding="utf-8", errors="replace")
        if found := re.search(pattern, text):
            return int(found.group(1))
        if process.poll() is not None:
            break
        time.sleep(0.05)
    sys.exit(f"rpc_vs_tvm: the server {process.args[0]} did not start:\n"
             f"{log.read_text(encoding='utf-8', errors='replace')}")


@contextlib.contextmanager
def _running(command: list[str], environment: dict[str, str], pattern: str) -> Iterator[int]:
    """The port that a server listens on; the server and its children end with the block."""
    with tempfile.TemporaryDirectory(prefix="rpc_vs_tvm-") as folder:
        log = Path(folder, "log")
        with log.open("wb") as output:
            process = subprocess.Popen(command, env=environment, cwd=folder, stdout=output,
                                       stderr=output, start_new_session=True)
            try:
                yield _wait_for(log, pattern, process)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, 15)
                process.wait()


@contextlib.contextmanager
def start_ours(program: Path) -> Iterator[int]:
    """The port of this project's rpc_server."""
    command = [str(program.resolve()), "--host", "127.0.0.1", "--port", "0"]
    with _running(command, clean_environment() | _THREADS, r"listening on \S*:(\d+)") as port:
        yield port


@contextlib.contextmanager
def start_tvm() -> Iterator[int]:
    """The port of TVM's own server, run by this interpreter and in its environment."""
    command = [sys.executable, "-m", "tvm.exec.rpc_server", "--host", "127.0.0.1", "--port", "9300",
               "--port-end", "9390"]
    with _running(command, dict(os.environ) | _THREADS, r"bind to \S*:(\d+)") as port:
        yield port
