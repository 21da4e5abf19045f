"""Top-1 and top-5, and how well a score tells one of two classes from the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def rank(top: Sequence[int], truth: int) -> int | None:
    """0 where the best class is the true one, and so on; None where it is not among them."""
    return list(top).index(truth) if truth in top else None


def summarise(ranks: Sequence[int | None]) -> dict[str, Any]:
    """Shares of all pictures, 0 to 1."""
    total = len(ranks)
    within = [sum(1 for r in ranks if r is not None and r < limit) for limit in (1, 5)]
    return {"pictures": total, "top1": within[0] / total if total else None,
            "top5": within[1] / total if total else None}


def summarise_two(scores: np.ndarray, positive: np.ndarray) -> dict[str, Any]:
    """By scikit-learn's definitions, auroc: how likely one of the class has the higher score than
    one of the other, equal ones counting half; average_precision: the precision at each score that
    there is, weighted by what the recall gains there. None where only one class is there.

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
