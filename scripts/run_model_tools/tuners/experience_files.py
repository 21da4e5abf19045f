"""What earlier measurements have taught, out of the files that there are: recordings of whole
spaces, logs of trials, and files of best records."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from run_model_tools.tuners import recording
from run_model_tools.tuners.experience import Past
from run_model_tools.tuners.space import Knob, Space
from run_model_tools.tuning.records import autotvm_trial, target_words, workload_key


@dataclass(frozen=True)
class _Trial:
    """A line of a log. key: of the workload; seconds: 0 where it failed."""

    key: str
    target: str
    entity: dict[str, list[Any]]
    seconds: float


def gather(template: str, target: str, without: str, recordings: Iterable[Path] = (),
           logs: Iterable[Path] = (), records: Iterable[Path] = ()) -> list[Past]:
    """What the files have of other tasks of a template, for this target.

    without: the key of the task at hand (records.workload_key), of which nothing is taken.  A file
    that is not there or not what it is called is passed over: it is no reason not to tune.  Of
    recordings and logs, what was measured of another target is left out; records are taken for what
    their file's name says.
    """
    found = [past for path in recordings for past in _recorded(path, template, target, without)]
    trials: dict[str, list[_Trial]] = {}
    for path, of_any in [*((path, False) for path in logs), *((path, True) for path in records)]:
        for trial in _lines(path, template):
            if trial.key != without and (of_any or _alike(trial.target, target)):
                trials.setdefault(trial.key, []).append(trial)
    return found + [_of_trials(own) for own in trials.values()]


def elsewhere(key: str, target: str, history: Iterable[Path]) -> list[Past]:
    """What logs of other machines have of the template and types of numbers of a task
    (records.workload_key), also of this very task.

    Where some of it is for this target's architecture, the rest is left out: among TopHub's boards,
    those of 64 bits say little of those of 32 (bench/tuners).  Times of different machines are not
    compared, so a layer counts once for each.
    """
    template, arguments = json.loads(key)
    trials: dict[tuple[str, str], list[_Trial]] = {}
    for path in history:
        for trial in _lines(path, template):
            if dtypes_of(json.loads(trial.key)[1]) != dtypes_of(arguments):
                continue
            trials.setdefault((trial.target, trial.key), []).append(trial)
    here = target_words(target)["machine"]
    near = [own for (of, _), own in trials.items() if target_words(of)["machine"] == here]
    return [_of_trials(own) for own in near or trials.values()]


def dtypes_of(arguments: Any) -> list[str]:
    """Of a workload's tensors."""
    return [item[2] for item in arguments if isinstance(item, list) and item[:1] == ["TENSOR"]]


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


def _lines(path: Path, template: str) -> Iterable[_Trial]:
    """The trials of a template in a log."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        trial = autotvm_trial(line) if f'"{template}"' in line else None
        if trial is not None and trial[1] == template:
            target, _, arguments, knobs, seconds = trial
            yield _Trial(workload_key(template, arguments), target,
                         {name: choice for name, _, choice in knobs}, seconds)


def _alike(one: str, other: str) -> bool:
    """Whether code for two targets is for the same CPU: what is fastest on another misleads."""
    def words(text: str) -> set[str]:
        # TVM adds keys and the host's triple when it prints a target.
        return {word for word in text.split() if not word.startswith(("-keys=", "-mtriple="))}

    return words(one) == words(other)


def _of_trials(trials: list[_Trial]) -> Past:
    """A space of just what was tried of each knob, of one workload."""
    names = list(dict.fromkeys(name for trial in trials for name in trial.entity))
    choices: dict[str, list[list[Any]]] = {name: [] for name in names}
    for trial in trials:
        for name in names:
            choice = trial.entity.get(name, [0])
            if choice not in choices[name]:
                choices[name].append(choice)
    space = Space(tuple(Knob(name, choices[name]) for name in names))
    speeds: dict[int, float] = {}
    for trial in trials:
        genes = np.array([choices[name].index(trial.entity.get(name, [0])) for name in names])
        speeds[space.index(genes)] = 1 / trial.seconds if trial.seconds > 0 else 0.0
    return Past(json.loads(trials[0].key)[1], space, speeds)
