"""A runtime in a process of its own that is asked over a pipe (serve.h, workers/worker.py)."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from peers.held.avx512 import used_by
from trials import clean_environment

#: Stand in a Runner's command for what each process is given.
OUTPUT = "{output}"
THREADS = "{threads}"

_TIMEOUT = 300.0  # seconds; a slow start is one of a fraction of this


@dataclass(frozen=True)
class Runner:
    """How a runtime is started on one network.

    name: as reports call it. command: OUTPUT and THREADS in it are replaced; the environment gets
    TVM_NUM_THREADS as well. peer: whether it is one that ours is compared with.
    """

    name: str
    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    peer: bool = True


class RunnerFailed(Exception):
    """A process ended, or said something that it should not."""


class Process:
    """Starts the process, and has it ready but idle: nothing of the model is loaded."""

    def __init__(self, runner: Runner, threads: int, output: Path) -> None:
        self.name = runner.name
        self.failed = False
        replaced = {OUTPUT: str(output), THREADS: str(threads)}
        environment = clean_environment() | runner.environment
        environment["TVM_NUM_THREADS"] = str(threads)
        self._messages = tempfile.TemporaryFile()  # noqa: SIM115  (as long as the process)
        self._unread = b""
        # cwd: libtvm_runtime.so's run path has an empty entry, which means the current folder.
        self._process = subprocess.Popen(
            [replaced.get(part, part) for part in runner.command], env=environment, cwd="/",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._messages)
        try:
            self.ready = self._reply()
        except RunnerFailed:
            self.close()
            raise
        self._ready_at = time.monotonic()

    def used_avx512(self) -> bool | None:
        """Whether the process did so since it was ready; None where the kernel does not tell.

        To be asked of a frozen process: the kernel looks when it takes a thread off a CPU.
        """
        return used_by(self._process.pid, time.monotonic() - self._ready_at)

    def ask(self, command: str) -> dict:
        """The reply to a command; raises RunnerFailed where there is none."""
        try:
            self._process.stdin.write(command.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the missing reply says it
        return self._reply()

    def freeze(self) -> None:
        """Stops every thread of the process, also those that would go on spinning for a while."""
        os.kill(self._process.pid, signal.SIGSTOP)
        _, status = os.waitpid(self._process.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            raise RunnerFailed(f"the process ended ({self._last_message()})")

    def thaw(self) -> None:
        os.kill(self._process.pid, signal.SIGCONT)

    def close(self) -> None:
        if self._process.poll() is None:
            self.thaw()
            self._process.stdin.close()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._process.stdout.close()
        self._messages.close()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def _reply(self) -> dict:
        line = self._read_line()
        try:
            return json.loads(line)
        except ValueError:
            message = self._last_message()
            self.failed = True
            self._process.kill()
            raise RunnerFailed(message or f"it said {line[:80]!r} instead of a line of JSON") \
                from None

    def _read_line(self) -> bytes:
        deadline = time.monotonic() + _TIMEOUT
        pipe = self._process.stdout.fileno()
        while b"\n" not in self._unread:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                self.failed = True
                self._process.kill()
                raise RunnerFailed(f"no reply within {_TIMEOUT:.0f} s")
            piece = os.read(pipe, 1 << 16)
            if not piece:
                self._process.wait()
                break
            self._unread += piece
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _last_message(self) -> str:
        """The last line that the process wrote to standard error."""
        self._messages.seek(0)
        lines = self._messages.read().decode(errors="replace").strip().splitlines()
        if lines:
            return lines[-1].strip()
        code = self._process.poll()
        return "" if code is None else f"it ended with code {code}"
