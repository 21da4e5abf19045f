"""driver.py -m=benchmark: what the tuners' trials say, and the tuned networks' times."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

from run_model_tools.errors import MISSING_FILE, ToolError
from run_model_tools.files import json_text, write_atomically
from run_model_tools.tuners import comparison, plots
from run_model_tools.tuners.comparison import Run
from run_model_tools.tuners.driver.jobs import Session, save_path, sessions
from run_model_tools.tuners.driver.trials import Trial, name_of, read_trials
from run_model_tools.tuning import evaluation
from run_model_tools.tuning.selection import RecordFile

SCHEMA_VERSION = 1


def run(config: dict[str, Any]) -> tuple[dict[str, Any], str]:
    every = list(sessions(config))
    measured = [(one, read_trials(one.job.log("autotvm"))) for one in every]
    if not any(trials for _, trials in measured):
        raise ToolError(MISSING_FILE, f"{save_path(config)} has no trials of these networks and "
                                      "tuners: run driver.py -m=tune with this configuration "
                                      "first.")
    by_trials = _runs(measured, lambda trials, place: place + 1)
    # Time counts from the end of a task's first batch: what came before is the network's reading.
    by_time = _runs(measured, lambda trials, place: 1 + int(trials[place].ended - trials[0].ended))
    baseline = "xgb" if any(one.tuner == "xgb" for one in every) else every[0].tuner
    report: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "baseline": baseline}
    texts = []
    ends = [trials for _, tasks in measured for trials in tasks.values()]
    most = {"trials": max(map(len, ends)),
            "seconds": max(1 + int(trials[-1].ended - trials[0].ended) for trials in ends)}
    for unit, runs in (("trials", by_trials), ("seconds", by_time)):
        budget = most[unit]
        report[unit] = {"budget": budget, **comparison.summarize(runs, budget, baseline)}
        panels = {task: comparison.curves([run for run in runs if run.task == task], budget)
                  for task in report[unit]["tasks"]}
        write_atomically(save_path(config) / f"best-so-far-{unit}.svg", plots.curves_plot(
            "Best so far, of the best known", unit, panels).encode())
        texts.append(f"## {unit.capitalize()} until a share of the best known\n\n"
                     + comparison.markdown(report[unit], budget))
    report["networks"] = _networks(every, config.get("run_settings", {}).get("seconds", 10))
    texts.append(_network_table(report["networks"]))
    text = "\n".join(texts)
    write_atomically(save_path(config) / "benchmark.json", json_text(report).encode())
    write_atomically(save_path(config) / "benchmark.md", text.encode())
    return report, text


def _runs(measured: list[tuple[Session, dict[str, list[Trial]]]],
          counted: Callable[[list[Trial], int], int]) -> list[Run]:
    """A run for each task and session; the best known is the best of all sessions."""
    best: dict[str, float] = {}
    for _, tasks in measured:
        for key, trials in tasks.items():
            for trial in trials:
                if trial.seconds is not None:
                    best[key] = min(best.get(key, trial.seconds), trial.seconds)
    runs = []
    for one, tasks in measured:
        for key, trials in tasks.items():
            steps, fastest = [], 0.0
            for place, trial in enumerate(trials):
                speed = best[key] / trial.seconds if trial.seconds else 0.0
                if speed > fastest:
                    fastest = speed
                    steps.append((counted(trials, place), speed))
            if steps:
                runs.append(Run(f"{one.job.family}: {name_of(key)}", one.tuner, one.seed,
                                tuple(steps), 0.0))
    return runs


def _networks(every: list[Session], seconds: float) -> list[dict[str, Any]]:
    """The whole networks: each session's records and none, all of a network run in turn.

    Records that do not make the network faster are not kept, neither here nor by tune_model: what
    a user ends with is the untuned network then.
    """
    of_models: dict[str, list[Session]] = {}
    for one in every:
        if one.job.records(one.job.log_dir, "autotvm").exists():
            of_models.setdefault(one.job.family, []).append(one)
    rows = []
    for family, measured in of_models.items():
        ways: dict[str, tuple[RecordFile, ...]] = {"untuned": ()}
        for one in measured:
            ways[f"{one.tuner}-{one.seed}"] = (RecordFile(
                one.job.records(one.job.log_dir, "autotvm"), family, one.job.target.name,
                "autotvm"),)
        times = evaluation.race(measured[0].job, ways,
                                measured[0].job.log_dir.parent / "evaluation", seconds)
        for one in measured:
            own = times[f"{one.tuner}-{one.seed}"]
            rows.append({"model": family, "tuner": one.tuner, "seed": one.seed,
                         "untuned_ms": round(times["untuned"]["median_ms"], 4),
                         "tuned_ms": round(own["median_ms"], 4), "ratio": round(own["ratio"], 4),
                         "kept": own["ratio"] < 1 - evaluation.LEAST_GAIN
                         and own["ratio_most"] < 1})
    return rows


def _network_table(rows: list[dict[str, Any]]) -> str:
    lines = ["## Whole networks", "", "| network | tuner | seeds | untuned | tuned | of the "
             "untuned time, each seed | median | kept |", "|---|---|---|---|---|---|---|---|"]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["model"], row["tuner"]), []).append(row)
    for (model, tuner), own in groups.items():
        ratios = [row["ratio"] for row in own]
        lines.append(
            f"| {model} | `{tuner}` | {len(own)} | {own[0]['untuned_ms']:.3f} ms | "
            f"{median(row['tuned_ms'] for row in own):.3f} ms | "
            f"{', '.join(f'{ratio:.3f}' for ratio in ratios)} | {median(ratios):.3f} | "
            f"{sum(row['kept'] for row in own)} |")
    return "\n".join(lines) + "\n"
