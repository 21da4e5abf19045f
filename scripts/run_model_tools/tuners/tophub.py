"""TopHub's logs: the best configuration of each layer that AutoTVM found on boards and GPUs, and
the spaces that they are of, without TVM."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from run_model_tools.errors import MALFORMED_FILE, MISSING_FILE, ToolError
from run_model_tools.tuners.experience import Past
from run_model_tools.tuners.experience_files import dtypes_of
from run_model_tools.tuners.space import Knob, Space
from run_model_tools.tuning.records import autotvm_trial, target_words


@dataclass(frozen=True)
class Best:
    """One record. `machine`: what was measured on; `entity`: the choice of each knob."""

    machine: str
    architecture: str
    template: str
    dtype: str
    arguments: Any
    entity: dict[str, list[Any]]
    splits: frozenset[str]
    """The knobs that cut an extent into parts."""
    seconds: float

    @property
    def operator(self) -> tuple[str, str]:
        """What records have to have in common to be compared."""
        return self.template, self.dtype

    @property
    def workload(self) -> str:
        return json.dumps(self.arguments)


def read_folder(folder: Path) -> list[Best]:
    """Of all its logs.  Raises ToolError where there is no log (3), or no record in one (4)."""
    logs = sorted(folder.glob("*.log"))
    if not logs:
        raise ToolError(MISSING_FILE, f"{folder} has no log of TopHub, as arm_cpu_v0.08.log: get "
                                      "them from github.com/tlc-pack/tophub.")
    found = []
    for path in logs:
        there = list(_read(path))
        if not there:
            raise ToolError(MALFORMED_FILE, f"{path} has no record of AutoTVM.")
        found += there
    return found


def _read(path: Path) -> Iterator[Best]:
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        trial = autotvm_trial(line)
        if trial is None or not trial[4] > 0:
            continue
        target, template, arguments, knobs, seconds = trial
        dtype = next(iter(dtypes_of(arguments)), None)
        if dtype is not None:
            yield Best(machine_of(target), architecture_of(target), template, dtype, arguments,
                       {name: choice for name, _, choice in knobs},
                       frozenset(name for name, kind, _ in knobs if kind == "sp"), seconds)


def machine_of(target: str) -> str:
    """"rk3399 (opencl)": the board that a target names, or else its CPU, and what compiles it."""
    named = re.search(r"-model=(\S+)", target) or re.search(r"-mcpu=(\S+)", target)
    return f"{named[1] if named else 'any'} ({target.split()[0]})"


def architecture_of(target: str) -> str:
    return str(target_words(target)["machine"])


def space_like(records: Sequence[Best], best: Best) -> Space | None:
    """The space that a record is of: all ways to cut the extents that it cuts, and of any other
    knob the choices that any of `records`, the operator's, has.

    That is nearly AutoTVM's own, which also leaves a few cuts out.  None where the record does not
    say what an extent is.
    """
    knobs = []
    for name, choice in best.entity.items():
        if name in best.splits:
            if any(part <= 0 for part in choice):
                return None
            knobs.append(Knob(name, cuts(prod(choice), len(choice))))
        else:
            seen = [other.entity[name] for other in records if name in other.entity]
            knobs.append(Knob(name, [list(c) for c in dict.fromkeys(map(tuple, seen))]))
    return Space(tuple(knobs))


def cuts(extent: int, parts: int) -> list[list[int]]:
    """All ways to write an extent as a product of so many whole numbers, in their order."""
    divisors = [d for d in range(1, extent + 1) if extent % d == 0]
    return [[extent // prod(rest), *rest] for rest in product(divisors, repeat=parts - 1)
            if extent % prod(rest) == 0]


def index_of(space: Space, best: Best) -> int:
    return space.index(np.array([knob.choices.index(best.entity[knob.name])
                                 for knob in space.knobs]))


def pasts(records: Iterable[Best]) -> list[Past]:
    """What records have taught: of each workload, the configurations that were best somewhere.

    A time counts beside those of the same machine only, so each machine's is a task of its own.
    """
    found = []
    for best in records:
        space = Space(tuple(Knob(name, [choice]) for name, choice in best.entity.items()))
        found.append(Past(best.arguments, space, {0: 1 / best.seconds}))
    return found
