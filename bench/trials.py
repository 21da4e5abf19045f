"""Runs the two programs of the side-by-side bench, each trial in a fresh process."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def clean_environment() -> dict[str, str]:
    """The caller's environment without what a runtime may look at."""
    return {key: value for key, value in os.environ.items()
            if not key.startswith(("TVM_", "OMP_", "GOMP_", "KMP_", "MKL_", "LD_", "PYTHON",
                                   "OPENBLAS_"))}


@dataclass(frozen=True)
class Subject:
    """A runtime under test: `command` takes RUNS and WARM_UP_RUNS after its first word.

    artifact: what it runs instead of what the others do.
    """

    name: str
    program: Path
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    artifact: Path | None = None

    def run(self, artifact: Path, inputs: Sequence[str], *, runs: int = 0, warm_up: int = 0,
            threads: int | None = None) -> dict[str, object]:
        """One process's figures (see trial.h), and process_ms: from its start to its end.

        `inputs`: the names of those that the program fills.
        """
        environment = clean_environment() | self.environment
        if threads is not None:  # None is "as installed"
            environment["TVM_NUM_THREADS"] = str(threads)
        command = [str(self.program), str(runs), str(warm_up), *self.arguments,
                   str(self.artifact or artifact), *inputs]
        start = time.perf_counter()
        # cwd: libtvm_runtime.so's run path has an empty entry, which means the current folder.
        done = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True,
                              check=False)
        elapsed = (time.perf_counter() - start) * 1e3
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()}")
        return json.loads(done.stdout) | {"process_ms": elapsed}


@dataclass
class Sample:
    """Measurements of one figure, in one unit."""

    values: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def minimum(self) -> float:
        return min(self.values)

    def as_json(self) -> dict[str, float | int]:
        return {"median": self.median, "min": self.minimum, "max": max(self.values),
                "count": len(self.values)}


def paired_ratio(of: Sample, to: Sample) -> float:
    """Median over the rounds of the ratio within a round, in which slow changes cancel out."""
    return statistics.median(a / b for a, b in zip(of.values, to.values, strict=True))


class WrongResult(Exception):
    """Two runtimes gave different bytes for the same machine code."""


def steady_times(subjects: list[Subject], artifact: Path, inputs: Sequence[str], *, rounds: int,
                 runs: int, threads: int | None) -> dict[str, Sample]:
    """Milliseconds of one inference.

    The runtimes' thread pools spin while they wait and would disturb each other within one process,
    so that processes take turns, each round in another order; a round's figure is its median.
    """
    samples = {subject.name: Sample() for subject in subjects}
    outputs = set()
    for number in range(rounds):
        order = subjects if number % 2 == 0 else subjects[::-1]
        for subject in order:
            trial = subject.run(artifact, inputs, runs=runs, warm_up=3, threads=threads)
            samples[subject.name].values.append(statistics.median(trial["run_ms"]))
            outputs.add(trial["output"])
    if all(subject.artifact is None for subject in subjects):
        _check_equal(outputs, artifact)
    return samples


def start_figures(subjects: list[Subject], artifact: Path, inputs: Sequence[str], *,
                  rounds: int) -> dict[str, dict[str, Sample]]:
    """Of fresh processes that give one result, as installed, the files in the page cache."""
    keys = ("load_ms", "first_ms", "process_ms", "peak_first_kib")
    samples = {subject.name: {key: Sample() for key in keys} for subject in subjects}
    outputs = set()
    for subject in subjects:
        subject.run(artifact, inputs)  # reads the files into the page cache
    for number in range(rounds):
        for subject in subjects if number % 2 == 0 else subjects[::-1]:
            trial = subject.run(artifact, inputs)
            outputs.add(trial["output"])
            for key in keys:
                samples[subject.name][key].values.append(trial[key])
    _check_equal(outputs, artifact)
    return samples


def _check_equal(outputs: set[object], artifact: Path) -> None:
    if len(outputs) != 1:
        raise WrongResult(f"{artifact}: the runtimes' outputs differ: {sorted(map(str, outputs))}")
