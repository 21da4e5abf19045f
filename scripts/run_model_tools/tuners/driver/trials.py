"""AutoTVM's log of trials, with those that failed: how good the best was when."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from run_model_tools.tuning.records import workload_key


@dataclass(frozen=True)
class Trial:
    seconds: float | None
    """None where it failed."""
    ended: float
    """In seconds since 1970, when its batch was measured."""


def read_trials(path: Path) -> dict[str, list[Trial]]:
    """{task: its trials in their order}; lines that are cut off are passed over."""
    found: dict[str, list[Trial]] = {}
    if not path.exists():
        return found
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            value = json.loads(line)
            template, arguments = value["input"][1:3]
            costs, error, _, ended = value["result"]
            seconds = None if error else min(float(cost) for cost in costs)
            found.setdefault(workload_key(template, arguments), []).append(
                Trial(seconds, float(ended)))
        except (ValueError, KeyError, TypeError, IndexError):
            continue
    return found


def name_of(key: str) -> str:
    """A task in few words: conv2d_NCHWc 1x64x56x56 64x64x3x3."""
    template, arguments = json.loads(key)
    shapes = ["x".join(map(str, item[1])) for item in arguments
              if isinstance(item, list) and item[:1] == ["TENSOR"]]
    return " ".join([template.partition(".")[0], *shapes])
