"""How far answers are from those of the float32 network: whether they name the same class, and by
how much numbers differ."""

from __future__ import annotations

import math

import numpy as np

AGREEMENT = 0.98
"""The share of views in which the best class has to be the same, unless another is asked for."""
ERROR = 0.1
"""The root mean square of what outputs differ by, relative to that of the float32 network's: an
output that has nothing to do with it is off by 1 and more."""


def are_scores(one: np.ndarray) -> bool:
    """Whether an output is one score for each class."""
    return one.size == one.shape[-1] > 1


def disagreements(want: np.ndarray, have: np.ndarray) -> int:
    """In how many of the views (first axis) another class is the best."""
    best = want.reshape(len(want), -1).argmax(1)
    return int((best != have.reshape(len(have), -1).argmax(1)).sum())


def most_disagreements(asked: float, views: int) -> int:
    """How many are no wonder where the share that is the same is as asked: more would be found of
    fewer than one in twenty such networks."""
    other, below, number = 1 - asked, 0.0, 0
    while number < views:
        below += math.comb(views, number) * other ** number * asked ** (views - number)
        if below >= 0.95:
            break
        number += 1
    return number


def scores_of(output: np.ndarray) -> np.ndarray:
    """float64: of probabilities the logarithms, to which errors add up and of which the largest is
    the same; other scores as they are."""
    flat = output.astype(np.float64).reshape(-1)
    if flat.min() >= 0 and abs(flat.sum() - 1) < 1e-3:
        return np.log(np.maximum(flat, 1e-12))
    return flat


def expected_agreement(want: np.ndarray, changes: np.ndarray) -> float:
    """The share of the same best classes if any view's change could happen to any view: many more
    cases than there are views, so that a near tie counts as what it is."""
    best = want.argmax(1)
    return float(np.mean([(want + change).argmax(1) == best for change in changes]))


def relative_error(want: np.ndarray, have: np.ndarray) -> float:
    """Root mean squares, of all views together."""
    return root_mean_square(have - want) / (root_mean_square(want) + 1e-30)


def root_mean_square(numbers: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(numbers, dtype=np.float64))))
