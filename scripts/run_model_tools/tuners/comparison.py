"""What runs of tuners over recordings say: trials until a share of the best known is reached, and
the best so far against trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

SHARES = (0.90, 0.95, 0.99)

# Samples of the seeds for an interval, and the part of them that lies in it.
_SAMPLES, _WITHIN = 1000, 0.95


@dataclass(frozen=True)
class Run:
    """One search of one task. steps: (trial, speed as a share of the task's best), at each gain."""

    task: str
    tuner: str
    seed: int
    steps: tuple[tuple[int, float], ...]
    overhead: float
    """Seconds of the tuner itself."""

    def trials_to(self, share: float, budget: int) -> int:
        """budget + 1 where it was not reached."""
        return next((trial for trial, speed in self.steps if speed >= share), budget + 1)

    def best_after(self, budget: int) -> np.ndarray:
        """The best so far after each trial from the first."""
        curve = np.zeros(budget)
        for trial, speed in self.steps:
            if trial <= budget:
                curve[trial - 1:] = speed
        return curve


def summarize(runs: Sequence[Run], budget: int, baseline: str) -> dict[str, Any]:
    """{"tasks": {task: {tuner: ...}}, "tuners": {tuner: ...}} for a report.

    Of each tuner: the median trials to each share with an interval, None where the median run did
    not get there, and, over all tasks, `ratio`: the geometric mean over the tasks of its median
    trials to 95 % divided by the baseline's.
    """
    tasks = list(dict.fromkeys(run.task for run in runs))
    tuners = list(dict.fromkeys(run.tuner for run in runs))
    needed = {(task, tuner): np.array([[run.trials_to(share, budget) for share in SHARES]
                                       for run in runs if run.task == task and run.tuner == tuner])
              for task in tasks for tuner in tuners}
    report: dict[str, Any] = {"tasks": {}, "tuners": {}}
    for task in tasks:
        report["tasks"][task] = {tuner: _of_one(needed[task, tuner], budget) for tuner in tuners}
    for tuner in tuners:
        pooled = np.concatenate([needed[task, tuner] for task in tasks])
        # A median is at least one trial, so that ratios mean something.
        ratios = {task: _middle(needed[task, tuner][:, 1]) / _middle(needed[task, baseline][:, 1])
                  for task in tasks} if baseline in tuners else {}
        report["tuners"][tuner] = {
            **_of_one(pooled, budget),
            "overhead_ms_a_trial": round(_overhead([r for r in runs if r.tuner == tuner]), 2)}
        if ratios:
            low, high = _ratio_interval([needed[task, tuner][:, 1] for task in tasks],
                                        [needed[task, baseline][:, 1] for task in tasks])
            report["tuners"][tuner]["ratio"] = {
                "to": baseline, "mean": _geometric(list(ratios.values())), "low": low, "high": high,
                "of_medians_over_all": round(_middle(pooled[:, 1]) / _middle(np.concatenate(
                    [needed[task, baseline][:, 1] for task in tasks])), 3)}
    return report


def _of_one(needed: np.ndarray, budget: int) -> dict[str, Any]:
    described: dict[str, Any] = {"runs": len(needed)}
    for column, share in enumerate(SHARES):
        values = needed[:, column]
        low, high = _interval(values)
        described[f"trials_to_{round(100 * share)}"] = {
            "median": _or_none(_middle(values), budget), "low": _or_none(low, budget),
            "high": _or_none(high, budget),
            "reached": round(float(np.mean(values <= budget)), 4)}
    return described


def _middle(values: np.ndarray) -> float:
    return float(np.median(values))


def _or_none(trials: float, budget: int) -> float | None:
    return None if trials > budget else trials


def _interval(values: np.ndarray) -> tuple[float, float]:
    """Of the median, by drawing the seeds again and again."""
    random = np.random.default_rng(0)
    drawn = np.median(random.choice(values, size=(_SAMPLES, len(values))), axis=1)
    tail = 50 * (1 - _WITHIN)
    return float(np.percentile(drawn, tail)), float(np.percentile(drawn, 100 - tail))


def _ratio_interval(own: list[np.ndarray], base: list[np.ndarray]) -> tuple[float, float]:
    random = np.random.default_rng(0)
    means = []
    for _ in range(_SAMPLES):
        ratios = [np.median(random.choice(a, len(a))) / np.median(random.choice(b, len(b)))
                  for a, b in zip(own, base)]
        means.append(_geometric([float(ratio) for ratio in ratios]))
    tail = 50 * (1 - _WITHIN)
    return (round(float(np.percentile(means, tail)), 3),
            round(float(np.percentile(means, 100 - tail)), 3))


def _geometric(values: list[float]) -> float:
    return round(float(np.exp(np.mean(np.log(values)))), 3)


def _overhead(runs: Sequence[Run]) -> float:
    """Milliseconds of the tuner itself for each trial that it was asked for."""
    return 1e3 * median(run.overhead for run in runs) if runs else 0.0


def curves(runs: Sequence[Run], budget: int) -> dict[str, np.ndarray]:
    """{tuner: [3, budget]}: the median of the best so far, and the interval that half of the runs
    lie in."""
    found = {}
    for tuner in dict.fromkeys(run.tuner for run in runs):
        all_of_it = np.stack([run.best_after(budget) for run in runs if run.tuner == tuner])
        found[tuner] = np.percentile(all_of_it, [50, 25, 75], axis=0)
    return found


def markdown(report: dict[str, Any], budget: int) -> str:
    """The tables of a report, for people."""
    tuners = list(report["tuners"])
    # Trials on hardware do not tell how long the tuner itself took.
    timed = any(row["overhead_ms_a_trial"] for row in report["tuners"].values())
    lines = ["| tuner | 90 % | 95 % | 99 % | 95 %, of the baseline's | reached 95 % |"
             + (" the tuner itself, ms a trial |" if timed else ""),
             "|---|---|---|---|---|---|" + ("---|" if timed else "")]
    for tuner, row in report["tuners"].items():
        ratio = row.get("ratio")
        ratio_text = (f"{ratio['mean']:.2f} ({ratio['low']:.2f}–{ratio['high']:.2f})"
                      if ratio else "")
        lines.append(f"| `{tuner}` | " + " | ".join(
            _cell(row[f"trials_to_{share}"], budget) for share in (90, 95, 99))
            + f" | {ratio_text} | {row['trials_to_95']['reached']:.0%} |"
            + (f" {row['overhead_ms_a_trial']:.1f} |" if timed else ""))
    lines += ["", "| to 95 %: task | " + " | ".join(f"`{t}`" for t in tuners) + " |",
              "|---" * (len(tuners) + 1) + "|"]
    for task, row in report["tasks"].items():
        lines.append(f"| {task} | " + " | ".join(
            _cell(row[tuner]["trials_to_95"], budget) for tuner in tuners) + " |")
    return "\n".join(lines) + "\n"


def _cell(of: dict[str, Any], budget: int) -> str:
    """The median and its interval."""
    def text(trials: float | None) -> str:
        return f"> {budget}" if trials is None else f"{trials:g}"

    return f"{text(of['median'])} ({text(of['low'])}–{text(of['high'])})"
