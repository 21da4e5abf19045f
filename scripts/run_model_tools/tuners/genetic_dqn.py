"""GA-DQN: a genetic algorithm in which two deep Q-networks choose.

A generation is bred from the one before and its elite, parents being drawn by their speed.  One
network looks at both parents and chooses the two points between which the child has the second
parent's genes; the other looks at the child and chooses the gene that is drawn anew, or none.
Both are rewarded with what the child gains over its better parent.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import numpy as np

from run_model_tools.errors import MALFORMED_FILE, ToolError
from run_model_tools.files import write_atomically
from run_model_tools.tuners.dqn import Dqn, DqnSettings
from run_model_tools.tuners.search import Search
from run_model_tools.tuners.space import Space

STATE_SCHEMA_VERSION = 1

# How often a child that was there before is mutated once more until chance decides.
_ATTEMPTS = 12


@dataclass(frozen=True)
class GeneticSettings:
    population: int = 24
    elite: int = 3
    dqn: DqnSettings = field(default_factory=DqnSettings)


@dataclass
class _Child:
    """One of the next generation, with the two decisions that made it; none in the first."""

    index: int
    parents: tuple[int, int] | None = None
    cut: int = 0
    mutation: int = 0
    before: np.ndarray | None = None
    """Its genes when the mutation was decided on."""


class GeneticDqn(Search):
    def __init__(self, space: Space, seed: int | None = None,
                 settings: GeneticSettings = GeneticSettings(),
                 start: Iterable[int] = ()) -> None:
        super().__init__(space, seed, start)
        self._settings = settings
        knobs = len(space.knobs)
        #: The second parent's genes are those from the first point to the second.
        self.cuts = [(a, b) for a, b in combinations(range(knobs + 1), 2) if b - a < knobs]
        # With one knob there is nothing to cross.
        self.cuts = self.cuts or [(0, 0)]
        self.crossover = Dqn(2 * knobs, len(self.cuts), self.random, settings.dqn)
        self.mutation = Dqn(knobs, knobs + 1, self.random, settings.dqn)
        self.generation: list[int] = []
        self.elite: list[int] = []
        self._queue: list[_Child] = []
        self._asked: dict[int, _Child] = {}
        self._measured: list[int] = []

    def _choose(self, count: int) -> list[int]:
        chosen: list[int] = []
        while len(chosen) < count:
            # The rest of a generation that an earlier session has measured is passed over.
            self._queue = [child for child in self._queue if child.index not in self.proposed]
            if not self._queue:
                self._queue = self._breed(chosen)
                if not self._queue:
                    break
            child = self._queue.pop(0)
            self._asked[child.index] = child
            chosen.append(child.index)
        return chosen

    def _learnt(self, results: list[tuple[int, float]]) -> None:
        for index, speed in results:
            child = self._asked.pop(index, None)
            self._measured.append(index)
            if child is not None and child.parents is not None:
                self._reward(child, speed)
        if not self._queue and not self._asked:
            self._next_generation()

    def _reward(self, child: _Child, speed: float) -> None:
        assert child.parents is not None and child.before is not None
        parents = max(self.speeds[parent] for parent in child.parents)
        best = max(self.best_speed, 1e-30)
        reward = float(np.clip((speed - parents) / best, -1, 1))
        made = self._seen(child.index)
        self.crossover.remember(self._pair(child.parents), child.cut, reward,
                                np.concatenate([made, made]))
        self.mutation.remember(self._scaled(child.before), child.mutation, reward, made)
        self.crossover.learn()
        self.mutation.learn()

    def _next_generation(self) -> None:
        """The measured ones become parents, with the best of all so far beside them."""
        if self._measured:
            self.generation = self._measured[-self._settings.population:]
            self._measured = []
        alive = {*self.generation, *self.elite}
        self.elite = sorted(alive, key=lambda i: (-self.speeds[i], i))[:self._settings.elite]

    def _breed(self, taken: list[int]) -> list[_Child]:
        # Whatever has been measured takes part, also where the caller did not wait for all.
        self._next_generation()
        parents = list(dict.fromkeys(self.generation + self.elite))
        size = self._settings.population
        used = self.proposed | set(taken)
        if len(parents) < 2 or self.best_speed <= 0:
            return [_Child(index) for index in self.space.sample(size, self.random, used)]
        weights = np.array([self.speeds[parent] for parent in parents]) + 1e-8 * self.best_speed
        weights /= weights.sum()
        children: list[_Child] = []
        for _ in range(size):
            first, second = (parents[i] for i in self.random.choice(
                len(parents), size=2, replace=False, p=weights))
            child = self._child((first, second), used)
            if child is not None:
                used.add(child.index)
                children.append(child)
        return children

    def _child(self, parents: tuple[int, int], used: set[int]) -> _Child | None:
        cut = self.crossover.act(self._pair(parents))
        start, end = self.cuts[cut]
        genes = self.space.genes(parents[0]).copy()
        genes[start:end] = self.space.genes(parents[1])[start:end]
        mutation = self.mutation.act(self._scaled(genes))
        for _ in range(_ATTEMPTS):
            before = genes.copy()
            if mutation:
                genes[mutation - 1] = self.random.integers(self.space.sizes[mutation - 1])
            index = self.space.index(genes)
            if index not in used and self.space.is_valid(index):
                return _Child(index, parents, cut, mutation, before)
            if not self.space.is_valid(index):
                genes = before
            mutation = 1 + int(self.random.integers(len(self.space.knobs)))
        return None

    def _scaled(self, genes: np.ndarray) -> np.ndarray:
        return (genes / np.maximum(1, self.space.sizes - 1)).astype(np.float32)

    def _seen(self, index: int) -> np.ndarray:
        return self._scaled(self.space.genes(index))

    def _pair(self, parents: tuple[int, int]) -> np.ndarray:
        return np.concatenate([self._seen(parent) for parent in parents])

    def save(self, path: Path) -> None:
        """The networks, their memories, the generation and the state of chance."""
        arrays = {f"{name}/{key}": value
                  for name, dqn in (("crossover", self.crossover), ("mutation", self.mutation))
                  for key, value in dqn.state().items()}
        about = {"schema_version": STATE_SCHEMA_VERSION, "sizes": self.space.sizes.tolist(),
                 "generation": self.generation, "elite": self.elite,
                 "random": self.random.bit_generator.state,
                 "speeds": [[i, self.speeds[i]] for i in self.generation + self.elite]}
        buffer = io.BytesIO()
        np.savez_compressed(buffer, about=np.array(json.dumps(about)), **arrays)
        write_atomically(path, buffer.getvalue())

    def load(self, path: Path) -> None:
        """Goes on from save(); raises ToolError (4) where the file is not of such a search."""
        try:
            with np.load(path, allow_pickle=False) as file:
                about = json.loads(str(file["about"]))
                if about["schema_version"] != STATE_SCHEMA_VERSION:
                    raise ValueError(f"its schema_version is {about['schema_version']}")
                if about["sizes"] != self.space.sizes.tolist():
                    raise ValueError(f"it is of a space of {about['sizes']} choices, and this one "
                                     f"has {self.space.sizes.tolist()}")
                for name, dqn in (("crossover", self.crossover), ("mutation", self.mutation)):
                    dqn.load({key.partition("/")[2]: file[key] for key in file.files
                              if key.startswith(f"{name}/")})
            self.random.bit_generator.state = about["random"]
            self.learn((int(index), float(speed)) for index, speed in about["speeds"])
            self._measured = []
            self.generation, self.elite = about["generation"], about["elite"]
        except (OSError, ValueError, KeyError, TypeError, EOFError,
                zipfile.BadZipFile) as error:
            raise ToolError(MALFORMED_FILE, f"{path} is not what a GA-DQN search of this space has "
                                            f"learnt: {error}; remove it to start anew.") from None
