"""A recording: the measured time of every configuration of one AutoTVM task.

It stands in for the hardware, so that searches can be compared again and again. A file is one JSON
object with a `schema_version`; `microseconds` has a number for each index of the space, in
AutoTVM's order (the first knob runs fastest), and null for a configuration that failed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from run_model_tools.environment import DATA_ROOT
from run_model_tools.errors import MALFORMED_FILE, ToolError
from run_model_tools.files import json_text, read_json, write_atomically
from run_model_tools.tuners.space import Knob, Space

FOLDER = DATA_ROOT / "kernels" / "recordings"
SCHEMA_VERSION = 1
_DIGITS = 5

_Made = TypeVar("_Made")


@dataclass(frozen=True)
class Recording:
    """One task measured whole. `origin` says on what and how: for people, and for reports."""

    name: str
    group: str
    template: str
    arguments: list[Any]
    target: str
    flops: float
    knobs: tuple[Knob, ...]
    seconds: np.ndarray
    """NaN for a configuration that failed."""
    origin: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def space(self) -> Space:
        return Space(self.knobs)

    @cached_property
    def best_seconds(self) -> float:
        return float(np.nanmin(self.seconds))

    @cached_property
    def speeds(self) -> np.ndarray:
        """Of the best, between 0 (failed) and 1, by index."""
        return np.nan_to_num(self.best_seconds / self.seconds, nan=0.0)

    def write(self, path: Path) -> None:
        head = json_text({
            "schema_version": SCHEMA_VERSION, "name": self.name, "group": self.group,
            "template": self.template, "arguments": self.arguments, "target": self.target,
            "flops": self.flops, **self.origin,
            "knobs": [{"name": k.name, "choices": k.choices} for k in self.knobs]})
        write_atomically(path, f"{head.rstrip()[:-2]},\n{times_text(self.seconds)}".encode())


def read(path: Path) -> Recording:
    """Raises ToolError where the file is not there (3) or is no recording (4)."""
    return read_as(path, "recording of a task", SCHEMA_VERSION, _recording)


def _recording(value: dict[str, Any]) -> Recording:
    knobs = tuple(Knob(item["name"], item["choices"]) for item in value["knobs"])
    seconds = seconds_of(value)
    size = int(np.prod([len(knob.choices) for knob in knobs]))
    if len(seconds) != size:
        raise ValueError(f"it has {len(seconds)} times for {size} configurations")
    if not (seconds > 0).any():
        raise ValueError("no configuration has a time above zero")
    known = ("schema_version", "name", "group", "template", "arguments", "target", "flops",
             "knobs", "microseconds")
    return Recording(value["name"], value["group"], value["template"], value["arguments"],
                     value["target"], float(value["flops"]), knobs, seconds,
                     {key: item for key, item in value.items() if key not in known})


def read_as(path: Path, kind: str, schema_version: int,
            make: Callable[[dict[str, Any]], _Made]) -> _Made:
    """What `make` makes of a file's JSON object; its ValueErrors say what is wrong with it.

    Raises ToolError where the file is not there (3) or is no `kind` (4).
    """
    value = read_json(path, schema_version)
    try:
        return make(value)
    except KeyError as error:
        raise ToolError(MALFORMED_FILE, f"{path} is no {kind}: it has no {error}.") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise ToolError(MALFORMED_FILE, f"{path} is no {kind}: {error}.") from None


def seconds_of(value: dict[str, Any]) -> np.ndarray:
    """The times of a file, NaN for null."""
    return np.array([np.nan if us is None else us * 1e-6 for us in value["microseconds"]])


def times_text(seconds: np.ndarray) -> str:
    """The last member of a file with these times, and its end."""
    micro = [None if np.isnan(s) else float(f"{1e6 * s:.{_DIGITS}g}") for s in seconds]
    return f'  "microseconds": {json.dumps(micro, separators=(",", ":"))}\n}}\n'
