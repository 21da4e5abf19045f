"""What earlier measurements have taught, out of the files that there are: recordings of whole
spaces, logs of trials, and files of best records."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from run_model_tools.tuners import recording
from run_model_tools.tuners.experience import Past
from run_model_tools.tuners.space import Knob, Space
from run_model_tools.tuning.records import workload_key


def gather(template: str, target: str, without: str, recordings: Iterable[Path] = (),
           logs: Iterable[Path] = (), records: Iterable[Path] = ()) -> list[Past]:
    """What the files have of other tasks of a template, for this target.

    without: the key of the task at hand (records.workload_key), of which nothing is taken.  A file
    that is not there or not what it is called is passed over: it is no reason not to tune.  Of
    recordings and logs, what was measured of another target is left out; records are taken for what
    their file's name says.
    """
    found = [past for path in recordings for past in _recorded(path, template, target, without)]
    trials: dict[str, list[tuple[dict[str, list[Any]], float]]] = {}
    for path, only in [*((path, target) for path in logs), *((path, None) for path in records)]:
        for key, entity, seconds in _lines(path, template, only):
            if key != without:
                trials.setdefault(key, []).append((entity, seconds))
    return found + [_of_trials(json.loads(key)[1], own) for key, own in trials.items()]


def _recorded(path: Path, template: str, target: str, without: str) -> list[Past]:
    # Most files are of other templates, which their first lines say.
    try:
        with open(path, encoding="utf-8") as file:
            if f'"{template}"' not in file.read(400):
                return []
        one = recording.read(path)
    except Exception:
        return []
    if one.template != template or not _alike(one.target, target) \
            or workload_key(one.template, one.arguments) == without:
        return []
    return [Past(one.arguments, one.space, dict(enumerate(one.speeds.tolist())))]


def _lines(path: Path, template: str,
           target: str | None) -> Iterable[tuple[str, dict[str, list[Any]], float]]:
    """(key, {knob: choice}, seconds or 0 where it failed) of the trials in a log."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        if f'"{template}"' not in line:
            continue
        try:
            value = json.loads(line)
            of_target, of_template, arguments = value["input"][:3]
            if of_template != template or not (target is None or _alike(of_target, target)):
                continue
            costs, error = value["result"][:2]
            entity = {name: list(choice) if isinstance(choice, list) else [choice]
                      for name, _, choice in value["config"]["entity"]}
            seconds = 0.0 if error else float(np.mean(costs))
            yield workload_key(template, arguments), entity, seconds
        except (ValueError, KeyError, TypeError, IndexError):
            continue


def _alike(one: str, other: str) -> bool:
    """Whether code for two targets is for the same CPU: what is fastest on another misleads."""
    def words(text: str) -> set[str]:
        # TVM adds keys and the host's triple when it prints a target.
        return {word for word in text.split() if not word.startswith(("-keys=", "-mtriple="))}

    return words(one) == words(other)


def _of_trials(arguments: Any, trials: list[tuple[dict[str, list[Any]], float]]) -> Past:
    """A space of just what was tried of each knob."""
    names = list(dict.fromkeys(name for entity, _ in trials for name in entity))
    choices: dict[str, list[list[Any]]] = {name: [] for name in names}
    for entity, _ in trials:
        for name in names:
            choice = entity.get(name, [0])
            if choice not in choices[name]:
                choices[name].append(choice)
    space = Space(tuple(Knob(name, choices[name]) for name in names))
    speeds: dict[int, float] = {}
    for entity, seconds in trials:
        genes = np.array([choices[name].index(entity.get(name, [0])) for name in names])
        speeds[space.index(genes)] = 1 / seconds if seconds > 0 else 0.0
    return Past(arguments, space, speeds)
