"""What searches have in common: they propose configurations and learn how fast these are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

import numpy as np

from run_model_tools.tuners.space import Space


class Search(ABC):
    """Proposes each configuration of a space at most once.

    A speed is any number of which more is better, 0 for a configuration that failed.  The same
    seed, space and speeds give the same proposals.  start: proposed before all others.
    """

    def __init__(self, space: Space, seed: int | None = None, start: Iterable[int] = ()) -> None:
        self.space = space
        self._start = list(start)
        self.random = np.random.default_rng(seed)
        self.speeds: dict[int, float] = {}
        self.proposed: set[int] = set()
        self._exhausted = False

    @property
    def exhausted(self) -> bool:
        """Whether the whole space was proposed, as far as can be told."""
        return self._exhausted or len(self.proposed) >= len(self.space)

    @property
    def best_speed(self) -> float:
        return max(self.speeds.values(), default=0.0)

    def propose(self, count: int) -> list[int]:
        """Up to `count` configurations to measure next; fewer where the space has no more."""
        chosen = [i for i in self._start if i not in self.proposed][:count]
        self.proposed.update(chosen)
        if len(chosen) < count and not self.exhausted:
            chosen += self._choose(count - len(chosen))
            self.proposed.update(chosen)
        if len(chosen) < count:
            more = self.space.sample(count - len(chosen), self.random, self.proposed)
            self.proposed.update(more)
            self._exhausted = len(chosen) + len(more) < count
            chosen = chosen + more
        return chosen

    def learn(self, results: Iterable[tuple[int, float]]) -> None:
        """Takes what was measured of a task, now or in an earlier session: (index, speed)."""
        results = list(results)
        for index, speed in results:
            self.speeds[index] = speed
            self.proposed.add(index)
        self._learnt(results)

    @abstractmethod
    def _choose(self, count: int) -> list[int]:
        """Up to `count` different valid configurations that were not proposed yet."""

    def _learnt(self, results: list[tuple[int, float]]) -> None:
        """What a search makes of new results, which are in `speeds` already."""
        del results


class RandomSearch(Search):
    """Proposes what chance gives."""

    def _choose(self, count: int) -> list[int]:
        return self.space.sample(count, self.random, self.proposed)
