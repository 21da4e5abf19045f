"""What tune_model shows while it tunes: one line on a terminal, nothing in a pipe."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import Any

_BAR = 20


@dataclass
class TaskState:
    """One task as far as its trials have come."""

    name: str
    flops: float
    occurrences: int
    weight: float
    trials: int = 0
    failed: int = 0
    best_seconds: float | None = None

    def gflops(self) -> float | None:
        """Of the best trial; None before one succeeded."""
        return self.flops / self.best_seconds / 1e9 if self.best_seconds else None


@dataclass
class Progress:
    """Follows the worker's events; `minutes` is the time box, for the estimate."""

    title: str
    minutes: float
    trials_wanted: int | None = None
    tasks: dict[int, TaskState] = field(default_factory=dict)
    _start: float = field(default_factory=time.monotonic)
    _drawn: float = 0.0
    _current: int | None = None
    _stage: str = "reading the network"

    def __call__(self, event: dict[str, Any]) -> None:
        if event["event"] == "tasks":
            self._start = time.monotonic()
            for task in event["tasks"]:
                self.tasks[task["index"]] = TaskState(task["name"], task["flops"],
                                                      task["occurrences"], task["weight"])
        elif event["event"] == "task":
            self._current, self._stage = event["index"], ""
        elif event["event"] == "stage":
            self._stage = event["text"]
        elif event["event"] == "trial":
            task = self.tasks[event["index"]]
            task.trials += 1
            if event["seconds"] is None:
                task.failed += 1
            elif task.best_seconds is None or event["seconds"] < task.best_seconds:
                task.best_seconds = event["seconds"]
        self._draw()

    def trials(self) -> int:
        """How many there were."""
        return sum(task.trials for task in self.tasks.values())

    def line(self, elapsed: float) -> str:
        """The line as it stands `elapsed` seconds after the first task."""
        if not self.minutes:
            return f"{self.title}: {self._stage}"
        done = elapsed / (60 * self.minutes)
        if self.trials_wanted:
            done = max(done, self.trials() / self.trials_wanted)
        done = min(done, 1.0)
        left = max(0.0, 60 * self.minutes - elapsed)
        if self.trials_wanted and self.trials():
            left = min(left, elapsed / self.trials() * max(0, self.trials_wanted - self.trials()))
        bar = "#" * round(_BAR * done) + "." * (_BAR - round(_BAR * done))
        tried = sum(1 for task in self.tasks.values() if task.trials)
        text = (f"{self.title} [{bar}] {tried}/{len(self.tasks)} tasks, {self.trials()} trials, "
                f"{int(left) // 60}:{int(left) % 60:02d} left")
        if self._stage:
            return f"{text}, {self._stage}"
        task = self.tasks.get(self._current) if self._current is not None else None
        if task is None:
            return text
        speed = task.gflops()
        return f"{text}, {task.name}" + (f" {speed:.1f} GFLOP/s" if speed else "")

    def _draw(self) -> None:
        if not sys.stderr.isatty() or time.monotonic() - self._drawn < 0.2:
            return
        self._drawn = time.monotonic()
        width = _width()
        sys.stderr.write("\r" + self.line(self._drawn - self._start)[:width - 1] + "\033[K")
        sys.stderr.flush()

    def finish(self) -> None:
        """Leaves a whole line behind."""
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{self.title}: {self.trials()} trials in "
                             f"{time.monotonic() - self._start:.0f} s\033[K\n")
            sys.stderr.flush()


def _width() -> int:
    import shutil

    return shutil.get_terminal_size().columns
