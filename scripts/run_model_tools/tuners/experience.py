"""What other tasks of the same template have taught: how fast a configuration is likely to be.

A Gaussian process over configurations and workloads together: what was measured of a task says the
more about another one, the more alike their shapes are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from run_model_tools.tuners.description import Description, workload_columns
from run_model_tools.tuners.gaussian import Kernel, Process
from run_model_tools.tuners.space import Space

# The logarithm of a speed divided by its task's best: what is slower than this is as good as
# failed, and what is expected of a configuration that nothing is known of.
FLOOR, TYPICAL = -2.5, -1.2

# Columns of a configuration are in powers of two: beyond this many, one tells little of another.
CONFIGURATION_LENGTH, WORKLOAD_LENGTH = 2.0, 6.0

# Points of one process: what is cubic in them takes less than a second.
_POINTS, _OF_ONE_TASK = 1200, 320


@dataclass(frozen=True)
class Past:
    """What is known of one task: speeds by index, 0 for what failed."""

    arguments: Any
    space: Space
    speeds: dict[int, float]


def scores(speeds: Iterable[float], best: float) -> np.ndarray:
    """Logarithms of speeds divided by the best, not below FLOOR."""
    values = np.array(list(speeds), dtype=float)
    return np.log(np.maximum(values / best, np.exp(FLOOR)))


class Experience:
    """Of one template; empty, it expects the same of everything.

    foreign: whether some of it is of other machines.
    """

    def __init__(self, pasts: Iterable[Past], seed: int = 0, foreign: bool = False) -> None:
        self.foreign = foreign
        self._pasts = [past for past in pasts if max(past.speeds.values(), default=0.0) > 0]
        self._workloads = [workload_columns(past.arguments) for past in self._pasts]
        self._random = np.random.default_rng(seed)
        self._of_task: tuple[tuple[Any, ...], Description, Process] | None = None

    def expected(self, arguments: Any, space: Space, indices: np.ndarray) -> np.ndarray | None:
        """Means of the scores of another task's configurations; None where nothing of the kind was
        measured."""
        here = workload_columns(arguments)
        near = sorted((float(np.abs(there - here).sum()), place)
                      for place, there in enumerate(self._workloads) if there.shape == here.shape)
        if not near:
            return None
        # A search asks again and again for a space that it does not look through at once.
        task = (*here.tolist(), space)
        if self._of_task is None or self._of_task[0] != task:
            self._of_task = (task, *self._taught(space, [self._pasts[i] for _, i in near]))
        _, description, process = self._of_task
        return process.means(_joined(description, space, arguments, indices),
                             np.zeros((len(indices), 1))) + TYPICAL

    def _taught(self, space: Space, chosen: list[Past]) -> tuple[Description, Process]:
        """What the nearest tasks say of a space."""
        description = Description([space, *(past.space for past in chosen)])
        rows: list[np.ndarray] = []
        wanted: list[np.ndarray] = []
        for past in chosen:
            left = _POINTS - sum(map(len, wanted))
            if left <= 0:
                break
            taken = self._sample(past, min(left, _OF_ONE_TASK))
            rows.append(_joined(description, past.space, past.arguments, taken))
            wanted.append(scores((past.speeds[i] for i in taken), max(past.speeds.values())))
        x, y = np.concatenate(rows), np.concatenate(wanted)
        lengths = np.full(x.shape[1], CONFIGURATION_LENGTH)
        lengths[-len(workload_columns(chosen[0].arguments)):] = WORKLOAD_LENGTH
        return description, Process(Kernel(lengths, 0.6, 0.02), x, np.zeros((len(x), 1)),
                                    y - TYPICAL, np.zeros(1))

    def _sample(self, past: Past, count: int) -> list[int]:
        """The fastest, which matter most, and others by chance."""
        order = sorted(past.speeds, key=lambda i: -past.speeds[i])
        if len(order) <= count:
            return order
        best = order[:count // 2]
        rest = self._random.choice(order[count // 2:], size=count - len(best), replace=False)
        return best + [int(i) for i in rest]


def _joined(description: Description, space: Space, arguments: Any,
            indices: Iterable[int] | np.ndarray) -> np.ndarray:
    x = description.configurations(space, np.asarray(list(indices)))
    return np.concatenate([x, np.repeat(workload_columns(arguments)[None], len(x), 0)], axis=1)
