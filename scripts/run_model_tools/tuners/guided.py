"""The search that trials are scarce for: Bayesian optimisation, which goes on from what other tasks
have taught.

A Gaussian process says of each configuration how fast it is likely to be and how sure that is; the
one tried next is that which promises the largest gain over the best so far (expected improvement:
Jones et al. 1998, "Efficient Global Optimization of Expensive Black-Box Functions").  What
experience with other tasks expects is a column of its own, which counts as much as the task at hand
bears it out.  What fails counts as slowest, and where trials have failed, a gain counts as much
less as it is likely to fail too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from run_model_tools.tuners.description import Description
from run_model_tools.tuners.experience import FLOOR, TYPICAL, Experience, scores
from run_model_tools.tuners.gaussian import Kernel, Process, expected_improvement, fit
from run_model_tools.tuners.search import Search
from run_model_tools.tuners.space import Space

# Expectations that are remembered of a space that is too large to look through.
_MOST_EXPECTED = 50_000


@dataclass(frozen=True)
class GuidedSettings:
    first: int = 8
    """Trials by chance where there is no experience."""
    refit: int = 6
    """New trials before the kernel is fitted again."""
    remembered: int = 256
    """Trials that the process is made of: the fastest, and the latest."""
    candidates: int = 3000
    """Configurations that are weighed up where the space has more."""
    patience: int = 40
    """Trials at least before the search may be done, where there is experience. Without it the
    search is never done by itself: what it expects to gain is then too often too little
    (bench/tuners/stopping)."""
    hedge: int = 2
    """Where experience is of other machines, every so many trials one is chosen as if there were
    none: it may mislead."""
    least_gain: float = 0.001
    """The search is done when no configuration is expected to gain more than this share."""


class Guided(Search):
    def __init__(self, space: Space, seed: int | None = None,
                 experience: Experience | None = None, arguments: Any = (),
                 expectations: dict[int, float] | None = None,
                 settings: GuidedSettings = GuidedSettings(),
                 start: Iterable[int] = ()) -> None:
        super().__init__(space, seed, start)
        self._settings = settings
        self._description = Description([space])
        self._experience, self._arguments = experience, arguments
        self._whole = len(space) <= settings.candidates
        self.expectations: dict[int, float] = {} if expectations is None else expectations
        """What experience expects, by index, as far as it was asked."""
        self._kernel: Kernel | None = None
        self._fitted = 0
        # Whether experience, of this machine, says anything of this task.
        self._taught = False
        self.gain = np.inf
        """What the configuration proposed last was expected to gain, as a share of the speed."""
        if self._whole:
            self._pool = np.array(space.all(), dtype=int)
            self._expect(self._pool)

    @property
    def done(self) -> bool:
        """Whether more trials are not expected to gain anything worth the while."""
        return (self._taught and len(self.speeds) >= self._settings.patience
                and self.gain < self._settings.least_gain)

    def _expect(self, indices: np.ndarray) -> np.ndarray:
        """What experience expects of configurations; the same of all where there is none."""
        if not self._whole and len(self.expectations) > _MOST_EXPECTED:
            # Of a large space nearly all are asked for once; what was measured is asked again.
            self.expectations = {i: e for i, e in self.expectations.items() if i in self.speeds}
        unknown = np.array([i for i in indices.tolist() if i not in self.expectations], dtype=int)
        if len(unknown):
            found = self._experience.expected(self._arguments, self.space, unknown) \
                if self._experience else None
            if found is not None and self._experience and not self._experience.foreign:
                self._taught = True
            means = np.full(len(unknown), TYPICAL) if found is None else found
            self.expectations.update(zip(unknown.tolist(), means.tolist()))
        return np.array([self.expectations[i] for i in indices.tolist()])

    def _candidates(self) -> np.ndarray:
        if self._whole:
            return np.array([i for i in self._pool.tolist() if i not in self.proposed], dtype=int)
        near = self._neighbours(sorted(self.speeds, key=lambda i: -self.speeds[i])[:12])
        most = self._settings.candidates // 2
        if len(near) > most:
            near = set(self.random.choice(sorted(near), most, replace=False).tolist())
        far = self.space.sample(self._settings.candidates - len(near), self.random,
                                self.proposed | near)
        return np.array(sorted(near) + far, dtype=int)

    def _neighbours(self, indices: list[int]) -> set[int]:
        """What departs from these in one knob."""
        found = set()
        for index in indices:
            genes = self.space.genes(index)
            for knob, size in enumerate(self.space.sizes):
                for choice in range(int(size)):
                    other = genes.copy()
                    other[knob] = choice
                    found.add(self.space.index(other))
        return {i for i in found if i not in self.proposed and self.space.is_valid(i)}

    def _choose(self, count: int) -> list[int]:
        candidates = self._candidates()
        if not len(candidates):
            return []
        expected = self._expect(candidates)
        if np.ptp(expected) == 0 and (len(self.speeds) < self._settings.first
                                      or self.best_speed <= 0):
            return self.space.sample(count, self.random, self.proposed)
        x = self._description.configurations(self.space, candidates)
        known, y = self._known()
        works = self._chance_to_work(known, x)
        chosen: list[int] = []
        # Of several at once, each is chosen as if the ones before had been as fast as expected.
        believed: dict[bool, list[tuple[int, float]]] = {True: [], False: []}
        for _ in range(min(count, len(candidates))):
            asks = self._asks_experience(len(chosen))
            if not asks and len(self.speeds) < self._settings.first:
                left = np.setdiff1d(candidates, chosen)
                chosen.append(int(self.random.choice(left)))
                continue
            hint = expected if asks else np.full_like(expected, TYPICAL)
            means, deviations = self._predict(
                known + [i for i, _ in believed[asks]],
                np.append(y, [v for _, v in believed[asks]]), x, hint)
            improvement = expected_improvement(means, deviations, float(y.max(initial=TYPICAL)))
            improvement *= works
            improvement[[i in chosen for i in candidates.tolist()]] = -1
            best = int(np.argmax(improvement))
            if not chosen:
                self.gain = float(np.expm1(max(improvement[best], 0.0)))
            chosen.append(int(candidates[best]))
            believed[asks].append((chosen[-1], float(means[best])))
        return chosen

    def _asks_experience(self, more: int) -> bool:
        """Whether it counts for the trial that comes after `more` others."""
        if self._experience is None or not self._experience.foreign:
            return True
        return (len(self.proposed) + more + 1) % self._settings.hedge != 0

    def _chance_to_work(self, known: list[int], x: np.ndarray) -> np.ndarray:
        """How many of the trials nearby worked, for each of x; 1 where none is near."""
        failed = np.array([self.speeds[i] <= 0 for i in known], dtype=bool)
        if not failed.any():
            return np.ones(len(x))
        seen = self._description.configurations(self.space, np.array(known, dtype=int))
        square = ((x[:, None] - seen[None]) ** 2).sum(2)
        near = np.exp(-0.125 * square)
        return (0.1 + near[:, ~failed].sum(1)) / (0.1 + near.sum(1))

    def _known(self) -> tuple[list[int], np.ndarray]:
        """What the process is made of, and its scores."""
        known = list(self.speeds)
        if len(known) > self._settings.remembered:
            half = self._settings.remembered // 2
            fastest = sorted(known, key=lambda i: -self.speeds[i])[:half]
            known = list(dict.fromkeys(fastest + known[-half:]))
        if self.best_speed <= 0:
            return known, np.full(len(known), FLOOR)
        return known, scores((self.speeds[i] for i in known), self.best_speed)

    def _predict(self, known: list[int], y: np.ndarray, x: np.ndarray,
                 expected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        lengths = np.full(x.shape[1], 1.5)
        start = Kernel(lengths, 0.6, 0.003)
        spread = np.array([0.4, 0.3])
        seen = self._description.configurations(self.space, np.array(known, dtype=int))
        prior = self._expect(np.array(known, dtype=int)) if np.ptp(expected) else np.full(
            len(known), TYPICAL)
        basis = np.stack([np.ones(len(known)), prior], axis=1)
        if self._kernel is None or len(self.speeds) >= self._fitted + self._settings.refit:
            self._kernel = fit(start, seen, basis, y - prior, spread) if len(known) >= 6 else start
            self._fitted = len(self.speeds)
        process = Process(self._kernel, seen, basis, y - prior, spread)
        means, deviations = process.predict(x, np.stack([np.ones(len(x)), expected], axis=1))
        return means + expected, deviations
