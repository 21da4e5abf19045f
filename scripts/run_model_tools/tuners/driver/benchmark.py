"""driver.py -m=benchmark: what the tuners' trials say, and the tuned networks' times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from run_model_tools.errors import MISSING_FILE, ToolError
from run_model_tools.files import json_text, write_atomically
from run_model_tools.tuners import comparison, plots
from run_model_tools.tuners.comparison import Run
from run_model_tools.tuners.driver.jobs import Session, save_path, sessions
from run_model_tools.tuners.driver.trials import Trial, name_of, read_trials
from run_model_tools.tuning import evaluation

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
    """The whole network with each session's records and without any, run in turn."""
    rows = []
    for one in every:
        if not one.job.records(one.job.log_dir, "autotvm").exists():
            continue
        times = evaluation.evaluate(one.job, one.job.log_dir, seconds)
        rows.append({"model": one.job.family, "tuner": one.tuner, "seed": one.seed,
                     "untuned_ms": round(times["untuned"]["median_ms"], 4),
                     "tuned_ms": round(times["autotvm"]["median_ms"], 4),
                     "ratio": round(times["autotvm"]["ratio"], 4)})
    return rows


def _network_table(rows: list[dict[str, Any]]) -> str:
    lines = ["## Whole networks", "", "| network | tuner | seed | untuned | tuned | ratio |",
             "|---|---|---|---|---|---|"]
    lines += [f"| {row['model']} | `{row['tuner']}` | {row['seed']} | {row['untuned_ms']:.3f} ms | "
              f"{row['tuned_ms']:.3f} ms | {row['ratio']:.3f} |" for row in rows]
    return "\n".join(lines) + "\n"
