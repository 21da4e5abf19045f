"""Lets runtimes take turns, and stops when the ratio that matters is known well enough."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from peers.intervals import median_interval
from peers.processes import Process, RunnerFailed

WARM_UP = 3  # runs of each turn that are not counted: the others have used the caches meanwhile
TURN_SECONDS = 0.1
MAX_ROUNDS = 400


@dataclass(frozen=True)
class StopRule:
    """Stops once the interval of ours ÷ the best peer is no wider than `width` of the ratio.

    rounds: at least as many. seconds: at most about as long. width None: `rounds`, no more.
    """

    rounds: int = 8
    seconds: float = 60.0
    width: float | None = 0.02


@dataclass
class Steady:
    """medians: by runner, the median milliseconds of an inference in each round. best: the shortest
    of all."""

    medians: dict[str, list[float]] = field(default_factory=dict)
    best: dict[str, float] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    stopped_by: str = ""

    @property
    def rounds(self) -> int:
        return max(map(len, self.medians.values()), default=0)

    def drop(self, name: str, reason: str) -> None:
        """A runner that failed is not in the figures at all."""
        self.failures[name] = reason
        self.medians.pop(name, None)
        self.best.pop(name, None)


def in_turn(items: Sequence, number: int) -> Iterator:
    """The items in the order of round `number`: another one starts, and every other round goes
    backwards, so that none always follows the same one."""
    shift = (number // 2) % len(items) if items else 0
    ordered = [*items[shift:], *items[:shift]]
    return iter(ordered if number % 2 == 0 else ordered[::-1])


def best_peer(medians: dict[str, list[float]], peers: Sequence[str]) -> str | None:
    """The peer with the smallest median."""
    there = [name for name in peers if medians.get(name)]
    return min(there, key=lambda name: statistics.median(medians[name]), default=None)


def ratios(of: Sequence[float], to: Sequence[float]) -> list[float]:
    """Within each round, in which slow changes of the machine's speed cancel out."""
    return [a / b for a, b in zip(of, to, strict=True)]


def steady_times(processes: Sequence[Process], ours: str, peers: Sequence[str], rule: StopRule,
                 clock: Callable[[], float] = time.monotonic) -> Steady:
    """Milliseconds of one inference. The models are loaded and the processes frozen, as all of them
    are while another has its turn."""
    steady = Steady(medians={p.name: [] for p in processes}, best={})
    running = list(processes)
    runs: dict[str, int] = {}
    start = clock()

    def turn(process: Process) -> None:
        process.thaw()
        # The first turn only tells how many runs make up a turn.
        reply = process.ask(f"run {WARM_UP} {runs.get(process.name, 3)}")
        process.freeze()
        times = reply["run_ms"]
        if process.name not in runs:
            runs[process.name] = min(30, max(3, round(TURN_SECONDS * 1e3 / min(times))))
            return
        steady.medians[process.name].append(statistics.median(times))
        steady.best[process.name] = min([*times, steady.best.get(process.name, times[0])])

    for number in range(-1, MAX_ROUNDS):
        for process in list(in_turn(running, number)):
            try:
                turn(process)
            except RunnerFailed as error:
                running.remove(process)
                steady.drop(process.name, str(error))
        steady.stopped_by = _why_stop(steady, ours, peers, rule, clock() - start)
        if steady.stopped_by:
            break
    else:
        steady.stopped_by = "rounds"
    return steady


def _why_stop(steady: Steady, ours: str, peers: Sequence[str], rule: StopRule,
              seconds: float) -> str:
    """"stable", "rounds" or "time"; empty: go on."""
    if steady.rounds < rule.rounds:
        # An interval needs six rounds.
        return "time" if seconds > rule.seconds and steady.rounds >= 6 else ""
    if rule.width is None:
        return "rounds"
    peer = best_peer(steady.medians, peers)
    if peer is None or ours not in steady.medians:
        return "rounds"
    within = ratios(steady.medians[ours], steady.medians[peer])
    interval = median_interval(within)
    if interval and interval[1] - interval[0] <= rule.width * statistics.median(within):
        return "stable"
    return "time" if seconds > rule.seconds else ""
