"""A recording of a layer: the time of every kernel of this project's that can compute it.

A file is one JSON object: the layer, what is offered for it, and "microseconds" in the same order,
null for what leaves too little work to divide among threads.  bench/tuners/record_kernels writes
them, and kernels/recordings/ours has those that are committed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from run_model_tools.environment import DATA_ROOT
from run_model_tools.files import json_text, write_atomically
from run_model_tools.tuners.experience import Past
from run_model_tools.tuners.kernel_space import Option, space_of
from run_model_tools.tuners.recording import read_as, seconds_of, times_text
from run_model_tools.tuners.space import Space

FOLDER = DATA_ROOT / "kernels" / "recordings" / "ours"
SCHEMA_VERSION = 1
_KNOWN = ("schema_version", "name", "group", "layer", "instruction_set", "description", "flops",
          "options", "microseconds")


@dataclass(frozen=True)
class KernelRecording:
    """One layer measured whole. `origin` says on what and how: for people, and for reports."""

    name: str
    group: str
    layer: str
    instruction_set: str
    description: list[Any]
    flops: float
    options: list[Option]
    seconds: np.ndarray
    """NaN for what leaves too little work to divide."""
    origin: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def _space(self) -> tuple[Space, list[int]]:
        return space_of(self.options)

    @property
    def space(self) -> Space:
        return self._space[0]

    @property
    def indices(self) -> list[int]:
        """Of the options, in the space."""
        return self._space[1]

    @cached_property
    def speeds(self) -> dict[int, float]:
        """Of the best, between 0 (too little work) and 1, by the space's index."""
        of_best = np.nan_to_num(np.nanmin(self.seconds) / self.seconds, nan=0.0)
        return dict(zip(self.indices, of_best.tolist()))

    def past(self) -> Past:
        return Past(self.description, self.space, self.speeds)

    def write(self, path: Path) -> None:
        head = json_text({
            "schema_version": SCHEMA_VERSION, "name": self.name, "group": self.group,
            "layer": self.layer, "instruction_set": self.instruction_set,
            "description": self.description, "flops": self.flops, **self.origin})
        options = ",\n    ".join(json.dumps(option) for option in self.options)
        write_atomically(path, (
            f'{head.rstrip()[:-2]},\n  "options": [\n    {options}\n  ],\n'
            f"{times_text(self.seconds)}").encode())


def read(path: Path) -> KernelRecording:
    """Raises ToolError where the file is not there (3) or is no recording (4)."""
    return read_as(path, "recording of kernels", SCHEMA_VERSION, _recording)


def _recording(value: dict[str, Any]) -> KernelRecording:
    options = [(str(kernel), dict(parameters)) for kernel, parameters in value["options"]]
    seconds = seconds_of(value)
    if len(seconds) != len(options):
        raise ValueError(f"it has {len(seconds)} times for {len(options)} kernels")
    if not len(options) or not seconds[0] > 0:
        raise ValueError("its first kernel, the guess, has no time above zero")
    return KernelRecording(
        value["name"], value["group"], value["layer"], value["instruction_set"],
        value["description"], float(value["flops"]), options, seconds,
        {key: item for key, item in value.items() if key not in _KNOWN})
