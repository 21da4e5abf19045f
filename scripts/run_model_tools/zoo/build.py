"""Compiles models of the zoo for targets, several at a time, each by a compile_model of its own.

A process for each keeps a crash of the compiler to one artifact, and the memory that it used with
it.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from run_model_tools.environment import SCRIPTS
from run_model_tools.errors import ToolError
from run_model_tools.files import locked
from run_model_tools.zoo import models as zoo
from run_model_tools.zoo.manifest import Model


@dataclass(frozen=True)
class Cell:
    """What became of one model for one target: `made`, `up to date` or `failed`."""

    model: str
    target: str
    state: str
    code: int = 0
    reason: str | None = None


class Builder:
    """Makes artifacts below one folder.

    forms: what compile_model's --forms takes, or None for the usual form only; verified: whether
    it compares them.
    """

    def __init__(self, out: Path, forms: str | None, jobs: int, verified: bool,
                 quiet: bool) -> None:
        self._out = out
        self._forms = forms
        self._verified = verified
        self._jobs = jobs
        self._progress = _Progress(quiet)

    def compile(self, models: list[Model], targets: list[str]) -> list[Cell]:
        """One cell for each model and target, in this order."""
        pairs = [(model, target) for model in models for target in targets]
        self._progress.start(len(pairs))
        with ThreadPoolExecutor(self._jobs) as pool:
            cells = list(pool.map(lambda pair: self._make(*pair), pairs))
        self._progress.finish()
        return cells

    def check(self, models: list[Model], targets: list[str]) -> bool:
        """Whether there is nothing to compile."""
        return all(self._run(model, target, "--check").returncode == 0
                   for model in models for target in targets)

    def make_golden(self, models: list[Model]) -> None:
        """The reference results of the models that have none in the repository."""
        for model in models:
            if model.is_committed:
                continue
            with locked(zoo.ZOO_DIR / f".{model.name}.golden.lock"):
                result = subprocess.run(
                    [sys.executable, str(SCRIPTS / "make_golden"), "--missing", "--zoo",
                     model.name], capture_output=True, text=True, check=False)
            if result.returncode != 0:
                raise ToolError(result.returncode, _last_line(result.stderr))

    def _make(self, model: Model, target: str) -> Cell:
        # Wherever the artifact goes: compiling it twice at once gains nothing either.
        with locked(zoo.ZOO_DIR / f".{model.name}.{target}.lock"):
            if self._run(model, target, "--check").returncode == 0:
                cell = Cell(model.name, target, "up to date")
            else:
                result = self._run(model, target)
                cell = (Cell(model.name, target, "made") if result.returncode == 0 else
                        Cell(model.name, target, "failed", result.returncode,
                             _last_line(result.stderr)))
        self._progress.show(cell)
        return cell

    def _run(self, model: Model, target: str, *options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(SCRIPTS / "compile_model"), str(zoo.paths(model)[0]),
                   "--name", model.name, "--target", target, "--out", str(self._out), *options]
        if self._forms:
            command += ["--forms", self._forms]
        if not self._verified:
            command.append("--no-verify")
        return subprocess.run(command, capture_output=True, text=True, check=False)


class _Progress:
    """A line for each artifact on a terminal: what it is, and how many are done."""

    def __init__(self, quiet: bool) -> None:
        self._active = sys.stderr.isatty() and not quiet
        self._lock = threading.Lock()
        self._done = self._total = 0

    def start(self, total: int) -> None:
        self._total = total
        self._write(f"0 of {total}")

    def show(self, cell: Cell) -> None:
        with self._lock:
            self._done += 1
            end = "\n" if cell.state != "up to date" else ""
            self._write(f"{cell.model} for {cell.target}: {cell.state} "
                        f"({self._done} of {self._total}){end}")

    def finish(self) -> None:
        self._write("")

    def _write(self, text: str) -> None:
        if self._active:
            sys.stderr.write(f"\r\033[K{text}")
            sys.stderr.flush()


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "no message"
