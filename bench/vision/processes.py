"""Programs that are asked for one picture after the other: a path on a line, JSON on a line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from repository import ROOT

# isort: split
from run_model_tools.setup.pip_site import pip_site

_HERE = Path(__file__).resolve().parent


class Asked:
    """A process that answers every line with one of JSON; sys.exit() with what it says if not."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._messages = tempfile.TemporaryFile("w+")  # noqa: SIM115  (as long as the process)
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=self._messages, text=True, cwd=ROOT,
                                         env=os.environ | environment)
        self._command = command

    def ask(self, line: str) -> tuple[float, dict[str, Any]]:
        """The milliseconds until the answer was there, and the answer."""
        assert self._process.stdin is not None and self._process.stdout is not None
        start = time.perf_counter()
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
            said = self._process.stdout.readline()
        except BrokenPipeError:
            said = ""
        took = (time.perf_counter() - start) * 1e3
        answer = json.loads(said) if said else {"error": "it ended"}
        if "error" in answer:
            self._messages.seek(0)
            lines = self._messages.read().strip().splitlines()
            sys.exit(f"{' '.join(self._command[:4])} … could not do {line}: {answer['error']} "
                     f"({lines[-1] if lines else 'nothing on standard error'})")
        return took, answer

    def __enter__(self) -> Asked:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._messages.close()


def run_model(build: Path, artifacts: Path, network: str, threads: int, *flags: str) -> Asked:
    program = build.resolve() / "bin" / "run_model"
    if not program.exists():
        sys.exit(f"{program} is not there: build it with cmake --preset host && "
                 "cmake --build --preset host")
    return Asked([str(program), network, str(artifacts), "-", "--json", "--threads", str(threads),
                  *flags], {})


def peer(worker: str, *arguments: str) -> Asked:
    """A program of this folder, with the peers' packages and no others before them."""
    site = pip_site(_HERE / "requirements.txt", ROOT / "build" / "bench" / "vision_site",
                    "the packages that this is compared with")
    return Asked([sys.executable, str(_HERE / worker), *arguments], {"PYTHONPATH": str(site)})
