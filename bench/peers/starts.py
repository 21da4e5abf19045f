"""What a fresh process takes until its first result: time and memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from peers.processes import Process, RunnerFailed
from peers.rounds import in_turn


@dataclass
class Starts:
    """figures: by runner, each figure's value in every round (FIGURES says what they are)."""

    figures: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def values(self, figure: str) -> dict[str, list[float]]:
        """By runner, one figure's value in every round."""
        return {name: values[figure] for name, values in self.figures.items()}


#: load_ms: from the files in the page cache to a loaded model. first_ms: to its first output.
#: growth_kib: the most memory resident until then beyond that of the idle process, which has the
#: interpreter, the library and the input loaded. anonymous_growth_kib: the growth, at that moment,
#: of what no file stands behind. whole_kib: the most memory of the process altogether. idle_kib:
#: the idle process's. bare_kib: that of the interpreter or program alone.
FIGURES = ("load_ms", "first_ms", "growth_kib", "anonymous_growth_kib", "whole_kib", "idle_kib",
           "bare_kib")


def figures_of(ready: dict, loaded: dict) -> dict[str, float]:
    """One process's figures out of what it said when idle and after the first output."""
    return {"load_ms": loaded["load_ms"], "first_ms": loaded["first_ms"],
            "growth_kib": loaded["peak_kib"] - ready["idle_kib"],
            "anonymous_growth_kib": loaded["anonymous_kib"] - ready["idle_anonymous_kib"],
            "whole_kib": loaded["peak_kib"], "idle_kib": ready["idle_kib"],
            "bare_kib": ready["bare_kib"]}


def start_figures(names: Sequence[str], start: Callable[[str], Process], rounds: int) -> Starts:
    """`start` gives a new idle process of the runner with that name."""
    starts = Starts(figures={name: {figure: [] for figure in FIGURES} for name in names})
    # Round -1 brings the files into the page cache.
    for number in range(-1, rounds):
        for name in list(in_turn(list(starts.figures), number)):
            try:
                with start(name) as process:
                    figures = figures_of(process.ready, process.ask("load"))
            except RunnerFailed as error:
                starts.failures[name] = str(error)
                del starts.figures[name]
                continue
            if number >= 0:
                for figure, value in figures.items():
                    starts.figures[name][figure].append(value)
    return starts
