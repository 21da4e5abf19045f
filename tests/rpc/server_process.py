"""The server under test: started, stopped, and asked what it leaves behind."""

from __future__ import annotations

import gc
import os
import shlex
import signal
import subprocess
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any, Callable

# Set by CTest: the program, what runs it where it is for another machine, and for which target of
# artifacts/targets.json models are compiled.
PROGRAM = os.environ.get("RUN_MODEL_RPC_SERVER", "")
EMULATOR = shlex.split(os.environ.get("RUN_MODEL_RPC_EMULATOR", ""))
TARGET = os.environ.get("RUN_MODEL_RPC_TARGET", "native")

# A variable in the environment of a server and all that it starts, by which they are found again.
_MARK = "RUN_MODEL_TEST_SERVER"
_LISTENING = "listening on "

# A machine that does much else at the same time is slow; a test that fails waits that long.
PATIENCE_SECONDS = 60


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Fails when `condition` does not become true in time."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited {PATIENCE_SECONDS} s in vain for: {what}"
        time.sleep(0.02)


class ServerProcess:
    """A running rpc_server, on a free port of the loopback unless the flags say otherwise."""

    def __init__(self, *flags: str, program: str = PROGRAM,
                 environment: dict[str, str] | None = None, **process: Any):
        """`process`: what subprocess.Popen is to be told otherwise."""
        assert program, "RUN_MODEL_RPC_SERVER has to name the server's program"
        self._mark = uuid.uuid4().hex
        self._temporary = tempfile.TemporaryDirectory(prefix="rpc_test-")
        self.work_folder = Path(self._temporary.name, "work")
        self.work_folder.mkdir()
        self._log = Path(self._temporary.name, "log")
        command = [*EMULATOR, program, "--work-dir", str(self.work_folder)]
        if "--port" not in flags and "--proxy" not in flags:
            command += ["--port", "0"]
        env = {**os.environ, **(environment or {}), _MARK: self._mark}
        # The server is to need nothing of TVM.
        for name in ("LD_LIBRARY_PATH", "PYTHONPATH"):
            env.pop(name, None)
        with open(self._log, "wb") as log:
            self.process = subprocess.Popen(
                [*command, *flags],
                **{"env": env, "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                   "stderr": log, "text": True, **process})
        try:
            self.host, self.port = self._read_address()
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise

    def _read_address(self) -> tuple[str, int]:
        line = self.process.stdout.readline()
        assert line.startswith(_LISTENING), f"first line {line!r}; log:\n{self.log()}"
        host, port = line[len(_LISTENING):].strip().rsplit(":", 1)
        return host, int(port)

    @property
    def pid(self) -> int:
        return self.process.pid

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def processes(self) -> list[int]:
        """The server and all processes that it has started and that still run."""
        wanted = f"{_MARK}={self._mark}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue  # it has just ended
        return found

    def session_folders(self) -> list[Path]:
        """One for each session that runs."""
        return [folder for own in self.work_folder.iterdir() for folder in own.iterdir()
                if folder.is_dir()]

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def resident_kilobytes(self) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0])

    def sleeps(self) -> bool:
        status = Path(f"/proc/{self.pid}/stat").read_text()  # proc(5): "pid (name) state …"
        return status.rsplit(")", 1)[1].split()[0] == "S"

    def wait_until_idle(self) -> None:
        """Until no session runs, no folder of one is left, and what belonged to it is closed."""
        gc.collect()  # TVM's client ends a session when nothing refers to it
        # In this order: the server closes a session's descriptors when its folder is gone, and
        # sleeps when it has.
        wait_until(lambda: self.processes() == [self.pid] and not self.session_folders()
                   and self.sleeps(), "the end of all sessions")

    def stop(self, signal_number: int = signal.SIGTERM) -> None:
        """Ends the server; fails unless that is its own orderly end and nothing is left."""
        try:
            assert self.process.poll() is None, (
                f"the server has ended by itself ({self.process.returncode}):\n{self.log()}")
            self.process.send_signal(signal_number)
            assert self.process.wait(PATIENCE_SECONDS) == 0, self.log()
            assert self.processes() == []
            assert list(self.work_folder.iterdir()) == []
        finally:
            for pid in self.processes():
                os.kill(pid, signal.SIGKILL)
            self.process.wait()
            self.process.stdout.close()
            self._temporary.cleanup()

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()
