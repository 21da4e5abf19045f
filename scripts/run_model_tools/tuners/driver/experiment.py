"""driver.py -m=experiment: GA-DQN with combinations of its parameters, over recordings."""

from __future__ import annotations

from dataclasses import fields
from itertools import product
from statistics import median
from typing import Any

from run_model_tools.files import json_text, write_atomically
from run_model_tools.progress import stage
from run_model_tools.tuners import recording
from run_model_tools.tuners.comparison import Run
from run_model_tools.tuners.dqn import DqnSettings
from run_model_tools.tuners.driver.jobs import save_path
from run_model_tools.tuners.genetic_dqn import GeneticDqn, GeneticSettings
from run_model_tools.tuners.recording import Recording

SCHEMA_VERSION = 1
DEFAULT = {"explore_decay": [0.97, 0.985, 0.995], "discount": [0.3, 0.6, 0.9]}
_GENETIC = {"pop_size": "population", "elite_num": "elite"}


def run(config: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Trials to 95 % of the best known; only tasks that searches may be made with take part."""
    settings = config.get("experiment", {})
    values = settings.get("hyperparameters") or DEFAULT
    seeds, budget = settings.get("seeds", 20), settings.get("trials", 128)
    tasks = [one for one in map(recording.read, sorted(recording.FOLDER.glob("*.json")))
             if one.group == "develop"]
    rows = []
    with stage("trial_hyperparameters") as tell:
        for combination in product(*values.values()):
            chosen = dict(zip(values, combination))
            tell(str(chosen))
            needed = {task.name: median(search(task, settings_of(chosen), seed, budget).trials_to(
                0.95, budget) for seed in range(seeds)) for task in tasks}
            rows.append({"hyperparameters": chosen, "median_trials_to_95": needed,
                         "mean": round(sum(needed.values()) / len(needed), 2)})
    rows.sort(key=lambda row: float(str(row["mean"])))
    report = {"schema_version": SCHEMA_VERSION, "experiment": "trial_hyperparameters",
              "seeds": seeds, "trials": budget, "combinations": rows}
    write_atomically(save_path(config) / "trial_hyperparameters.json", json_text(report).encode())
    lines = [f"| {' | '.join(values)} | {' | '.join(task.name for task in tasks)} | mean |",
             "|---" * (len(values) + len(tasks) + 1) + "|"]
    lines += [f"| {' | '.join(str(v) for v in product_row(row))} | {row['mean']} |" for row in rows]
    text = "\n".join(lines) + "\n"
    write_atomically(save_path(config) / "trial_hyperparameters.md", text.encode())
    return report, text


def product_row(row: dict[str, Any]) -> list[Any]:
    return [*row["hyperparameters"].values(), *row["median_trials_to_95"].values()]


def settings_of(chosen: dict[str, Any]) -> GeneticSettings:
    """What the configuration's names mean."""
    genetic = {_GENETIC[name]: value for name, value in chosen.items() if name in _GENETIC}
    known = {field.name for field in fields(DqnSettings)}
    return GeneticSettings(**genetic, dqn=DqnSettings(
        **{name: value for name, value in chosen.items() if name in known}))


def search(task: Recording, settings: GeneticSettings, seed: int, budget: int) -> Run:
    ga_dqn = GeneticDqn(task.space, seed, settings)
    steps: list[tuple[int, float]] = []
    for trial in range(1, budget + 1):
        for index in ga_dqn.propose(1):
            speed = float(task.speeds[index])
            ga_dqn.learn([(index, speed)])
            if speed > (steps[-1][1] if steps else 0.0):
                steps.append((trial, speed))
        if steps and steps[-1][1] >= 0.95:
            break
    return Run(task.name, "ga-dqn", seed, tuple(steps), 0.0)
