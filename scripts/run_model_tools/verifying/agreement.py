"""How far answers are from those of the float32 network: whether they name the same class, and by
how much numbers differ."""

from __future__ import annotations

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
    """How many are allowed.  One always is: of few views it may be a near tie."""
    return max(1 if asked < 1 else 0, int((1 - asked) * views + 1e-9))


def relative_error(want: np.ndarray, have: np.ndarray) -> float:
    """Root mean squares, of all views together."""
    scale = float(np.sqrt(np.mean(np.square(want, dtype=np.float64)))) + 1e-30
    return float(np.sqrt(np.mean(np.square(have - want, dtype=np.float64)))) / scale
