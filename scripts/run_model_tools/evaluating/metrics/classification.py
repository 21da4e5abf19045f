"""Top-1 and top-5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def rank(top: Sequence[int], truth: int) -> int | None:
    """0 where the best class is the true one, and so on; None where it is not among them."""
    return list(top).index(truth) if truth in top else None


def summarise(ranks: Sequence[int | None]) -> dict[str, Any]:
    """Shares of all pictures, 0 to 1."""
    total = len(ranks)
    within = [sum(1 for r in ranks if r is not None and r < limit) for limit in (1, 5)]
    return {"pictures": total, "top1": within[0] / total if total else None,
            "top5": within[1] / total if total else None}
