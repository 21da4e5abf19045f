"""The two readers of descriptions, run_model's and compile_model's, take and refuse the same ones.

Descriptions are those of the golden cases and of artifacts/tasks.json, with a member left out, a
value in the place of another, or a member that belongs to another form.
"""

from __future__ import annotations

import copy
import json
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from run_model_tools.errors import ToolError
from run_model_tools.tasks.description import check_tasks
from run_model_tools.tasks.presets import read_presets

GOLDEN = Path(__file__).parent / "data" / "golden.json"
OTHER_VALUES = [None, True, False, 0, 1, 2, -1, 0.5, 1.5, 70000, 10**9, "", "none", "sigmoid",
                "softmax", "pixels", "normalized", "best", "NCHW", "x", [], [1], [1, 2], [[8, 8]],
                [[1.0]], {}, {"count": 2}, {"iou": 0.5, "per_class": True}, {"square": "long"}]
SEED = 18
OF_EACH = 130
"""Changes of each description; all of them take four seconds."""


def descriptions() -> list[dict[str, Any]]:
    found = [case["task"] for case in json.loads(GOLDEN.read_text())["cases"]]
    return found + [task for preset in read_presets().values() for task in preset.tasks]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Of everything inside, but of long lists the first three."""
    if isinstance(value, dict):
        for key in value:
            yield (*path, key)
            yield from places(value[key], (*path, key))
    elif isinstance(value, list):
        for i in range(min(3, len(value))):
            yield (*path, i)
            yield from places(value[i], (*path, i))


def changed(task: dict[str, Any], others: list[dict[str, Any]],
            chance: random.Random) -> dict[str, Any]:
    task = copy.deepcopy(task)
    *way, key = chance.choice(list(places(task)))
    owner = task
    for step in way:
        owner = owner[step]
    kind = chance.randrange(3)
    if kind == 0:
        del owner[key]
    elif kind == 1:
        owner[key] = copy.deepcopy(chance.choice(OTHER_VALUES))
    else:
        other = chance.choice(others)
        name = chance.choice(list(other))
        task[name] = copy.deepcopy(other[name])
    return task


def taken(task: dict[str, Any]) -> str:
    try:
        check_tasks(json.loads(json.dumps(task)), "task")
    except ToolError as error:
        return f"refused: {error}"
    return "taken"


def test_both_readers_take_the_same():
    program = os.environ.get("RUN_MODEL_READ_TASKS")
    if not program:
        pytest.skip("RUN_MODEL_READ_TASKS does not name the program (ctest does)")
    chance = random.Random(SEED)
    originals = descriptions()
    tasks = originals + [changed(task, originals, chance) for task in originals
                         for _ in range(OF_EACH)]
    said = subprocess.run([program], input="\n".join(map(json.dumps, tasks)) + "\n", text=True,
                          capture_output=True, check=True).stdout.splitlines()
    assert len(said) == len(tasks)
    assert all(line == "taken" for line in said[:len(originals)])
    both = [(ours, taken(task), json.dumps(task)[:400]) for task, ours in zip(tasks, said)]
    assert sum(ours == "taken" for ours, _, _ in both) > len(tasks) // 8
    assert sum(ours != "taken" for ours, _, _ in both) > len(tasks) // 4
    different = [item for item in both if (item[0] == "taken") != (item[1] == "taken")]
    assert not different, (len(different), different[:8])
