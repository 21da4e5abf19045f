"""Turns of the runtimes, alone and beside programs that never rest, and what they come to."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from peers.processes import Process, Runner
from peers.rounds import in_turn
from peers.runners import TITLES

TURN_SECONDS = 0.3
WARM_UP = 3


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """As many processes that compute without end, and have begun to.

    They belong to this process's session: where the kernel shares CPUs out among sessions, those of
    another one would take less from the runtimes.
    """
    loops = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"])
             for _ in range(count)]
    try:
        time.sleep(0.3)
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def measure(runners: Sequence[Runner], threads: int, loops: int, rounds: int) -> dict:
    """By runner: milliseconds of an inference alone and beside the loops, and their ratio.

    A turn's figure is the mean of its inferences: while others compute, most inferences are fast
    and some wait for whole time slices.
    """
    times: dict[str, dict[str, list[float]]] = {
        runner.name: {"idle_ms": [], "busy_ms": []} for runner in runners}
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        processes = [stack.enter_context(Process(runner, threads, scratch / runner.name))
                     for runner in runners]
        runs = {}
        for process in processes:
            process.ask("load")
            shortest = min(process.ask(f"run {WARM_UP} 5")["run_ms"])
            runs[process.name] = max(5, round(TURN_SECONDS * 1e3 / shortest))
            process.freeze()
        for number in range(rounds):
            for process in in_turn(processes, number):
                times[process.name]["idle_ms"].append(_turn(process, runs[process.name]))
            with busy_loops(loops):
                for process in in_turn(processes, number):
                    times[process.name]["busy_ms"].append(_turn(process, runs[process.name]))
    return {name: _figures(**each) for name, each in times.items()}


def _turn(process: Process, runs: int) -> float:
    process.thaw()
    times = process.ask(f"run {WARM_UP} {runs}")["run_ms"]
    process.freeze()
    return statistics.fmean(times)


def _figures(idle_ms: list[float], busy_ms: list[float]) -> dict[str, object]:
    slower = statistics.median(b / i for i, b in zip(idle_ms, busy_ms, strict=True))
    return {"idle_ms": statistics.median(idle_ms), "busy_ms": statistics.median(busy_ms),
            "slower": slower, "samples": {"idle_ms": idle_ms, "busy_ms": busy_ms}}


def as_markdown(networks: dict[str, dict]) -> str:
    """The slowdowns side by side; ours is to be no larger than the other."""
    names = list(next(iter(networks.values())))
    title = {name: TITLES[name] for name in names}
    lines = ["| network | " + " | ".join(f"{title[n]}: idle, ms | busy, ms | slower" for n in names)
             + " | ours ÷ theirs | to reach |  |",
             "|---|" + "--:|" * (3 * len(names) + 1) + "---|---|"]
    for network, figures in networks.items():
        cells = " | ".join(f"{f['idle_ms']:.2f} | {f['busy_ms']:.2f} | {f['slower']:.2f}×"
                           for f in figures.values())
        ours, theirs = (f["slower"] for f in figures.values())
        verdict = "reached" if ours <= theirs else "not reached"
        lines.append(f"| {network} | {cells} | {ours / theirs:.2f} | ≤ 1.00 | {verdict} |")
    return "\n".join(lines) + "\n"
