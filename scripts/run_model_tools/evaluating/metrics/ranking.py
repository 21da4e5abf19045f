"""How well a score tells one of two classes from the other, by scikit-learn's definitions."""

from __future__ import annotations

from typing import Any

import numpy as np


def summarise(scores: np.ndarray, positive: np.ndarray) -> dict[str, Any]:
    """auroc: how likely one of the class has the higher score than one of the other, equal ones
    counting half; average_precision: the precision at each score that there is, weighted by what
    the recall gains there. None where only one class is there.

    scores: float [n].  positive: bool [n].
    """
    levels, place = np.unique(-scores, return_inverse=True)  # the surest first
    right = np.bincount(place[positive], minlength=len(levels)).astype(np.float64)
    wrong = np.bincount(place[~positive], minlength=len(levels)).astype(np.float64)
    if not right.sum() or not wrong.sum():
        return {"auroc": None, "average_precision": None}
    found = np.cumsum(right)
    auroc = (wrong * (found - right / 2)).sum() / (right.sum() * wrong.sum())
    precision = found / (found + np.cumsum(wrong))
    return {"auroc": float(auroc), "average_precision": float(
        (precision * right).sum() / right.sum())}
