"""How far answers are from those of the float32 network: whether they name the same class, and by
how much numbers differ."""

from __future__ import annotations

import math

import numpy as np

AGREEMENT = 0.98
"""The share of views in which the best class has to be the same, unless another is asked for."""
LEAST = 0.97
"""What will do of it if nothing is asked for, where more would cost too much time."""
ERROR = 0.1
"""The root mean square of what outputs differ by, relative to that of the float32 network's: an
output that has nothing to do with it is off by 1 and more."""
_ROUNDINGS = 16 * float(np.finfo(np.float32).eps)
"""Of the largest score: what roundings of float32 make of a tie."""


def are_scores(one: np.ndarray) -> bool:
    """Whether an output is one score for each class."""
    return one.ndim > 0 and one.size == one.shape[-1] > 1


def disagreements(want: np.ndarray, have: np.ndarray) -> int:
    """In how many of the views (first axis) another class is the best, and not one that is as good
    but for the roundings of float32."""
    want, have = want.reshape(len(want), -1), have.reshape(len(have), -1)
    rows = np.arange(len(want))
    lost = want.max(1) - want[rows, have.argmax(1)]
    return int((lost > _ROUNDINGS * np.abs(want).max(1)).sum())


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


def scores_of(rows: np.ndarray) -> np.ndarray:
    """float64: of probabilities, along the last axis, the logarithms, to which errors add up and of
    which the largest is the same; other scores as they are."""
    rows = rows.astype(np.float64)
    are_probabilities = (rows.min(-1, keepdims=True) >= 0) & (
        np.abs(rows.sum(-1, keepdims=True) - 1) < 1e-3)
    return np.where(are_probabilities, np.log(np.maximum(rows, 1e-12)), rows)


def margins(want: np.ndarray) -> np.ndarray:
    """By how much the best score of each view (first axis) is ahead of the second best: infinite
    where that is within the roundings of float32, which then has no answer of its own to keep."""
    best = -np.partition(-want, 1, axis=1)[:, :2]
    ahead = best[:, 0] - best[:, 1]
    return np.where(ahead <= _ROUNDINGS * np.abs(want).max(1), np.inf, ahead)


def gains(want: np.ndarray, changes: np.ndarray) -> np.ndarray:
    """How much the second best score of each view catches up with the best one."""
    order = np.argsort(-want, axis=1)[:, :2]
    changed = np.take_along_axis(changes, order, 1)
    return changed[:, 1] - changed[:, 0]


def expected_agreement(ahead: np.ndarray, gained: np.ndarray) -> float:
    """The share of views whose best class has to be expected to stay the best, by margins() and
    gains() of some views, not necessarily the same ones.

    A class changes where the second best score gains more on the best one than what it is behind:

        1/(n m) * sum over i < n, j < m of [gained_j < ahead_i]

    which is P(gain < margin) for a margin and a gain drawn from what was seen of each (the
    Mann-Whitney statistic).  So it changes smoothly with the errors, where a count of views depends
    on the few of them that are near ties.
    """
    return float(np.searchsorted(np.sort(gained), ahead, side="left").mean() / len(gained))


def root_mean_square(numbers: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(numbers, dtype=np.float64))))
