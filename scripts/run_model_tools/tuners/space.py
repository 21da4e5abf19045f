"""A space of configurations: a choice for each of several knobs.

A configuration is an index, as AutoTVM counts them (the first knob runs fastest), or its genes: the
number of the choice of each knob.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Knob:
    """One thing to choose. A choice is a list: the parts of a split (-1: whatever is left), an
    order of loops, words, or one value."""

    name: str
    choices: list[list[Any]]


class Space:
    """All combinations of the knobs' choices, less those that `valid(index)` refuses, or only those
    that are `listed`."""

    def __init__(self, knobs: tuple[Knob, ...], valid: Callable[[int], bool] | None = None,
                 listed: Iterable[int] | None = None) -> None:
        self.knobs = knobs
        self.sizes = np.array([len(knob.choices) for knob in knobs], dtype=np.int64)
        self._strides = np.concatenate([[1], np.cumprod(self.sizes)[:-1]]).astype(np.int64)
        self.range = int(np.prod([int(size) for size in self.sizes]))
        self._valid = valid
        self._listed = None if listed is None else frozenset(listed)

    def __len__(self) -> int:
        """How many configurations there are at most: `valid` is not asked."""
        return self.range if self._listed is None else len(self._listed)

    def all(self) -> list[int]:
        """Every configuration, for spaces of which that is not too many."""
        if self._listed is not None:
            return sorted(self._listed)
        return [i for i in range(self.range) if self.is_valid(i)]

    def is_valid(self, index: int) -> bool:
        if self._listed is not None:
            return index in self._listed
        return 0 <= index < self.range and (self._valid is None or bool(self._valid(index)))

    def genes(self, indices: np.ndarray | int) -> np.ndarray:
        """[..., knobs] of indices of any shape."""
        return (np.asarray(indices, dtype=np.int64)[..., None] // self._strides) % self.sizes

    def index(self, genes: np.ndarray) -> int:
        return int(np.dot(genes, self._strides))

    def indices(self, genes: np.ndarray) -> np.ndarray:
        """Of genes [..., knobs]."""
        return np.asarray(genes, dtype=np.int64) @ self._strides

    def sample(self, count: int, random: np.random.Generator,
               without: set[int] | frozenset[int] = frozenset()) -> list[int]:
        """Up to `count` different valid indices that are not in `without`, as many as are found.

        A small space is looked through; of a large one, points are drawn until there are enough or
        too many in a row were refused.
        """
        if self._listed is not None or self.range <= max(4096, 4 * (count + len(without))):
            left = [i for i in self.all() if i not in without]
            random.shuffle(left)
            return left[:count]
        found: dict[int, None] = {}
        refused = 0
        while len(found) < count and refused < 10_000:
            index = int(random.integers(self.range))
            if index in without or index in found or not self.is_valid(index):
                refused += 1
            else:
                found[index] = None
                refused = 0
        return list(found)
