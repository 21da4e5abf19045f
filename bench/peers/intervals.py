"""How sure a median is."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb


def median_interval(values: Sequence[float],
                    confidence: float = 0.95) -> tuple[float, float] | None:
    """The interval that holds the median of what `values` are a sample of; None if too few.

    Of order statistics, so that nothing is assumed of the distribution: the r-th smallest and the
    r-th largest value hold the median between them unless fewer than r values lie on one side of
    it, and how many do is binomial with a half (David and Nagaraja, Order Statistics, 7.1).
    """
    count = len(values)
    outside = 0.0
    rank = 0
    while rank < count // 2:
        outside += 2 * comb(count, rank) / 2 ** count
        if outside > 1 - confidence:
            break
        rank += 1
    if rank == 0:
        return None
    ordered = sorted(values)
    return ordered[rank - 1], ordered[count - rank]
