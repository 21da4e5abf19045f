"""What a byte of transformed weights has to save: `compile_model --optimize-for`.

F(2, 3) makes 16 numbers of the nine of a 3x3 kernel and F(4, 3) 36.  Stored, they stay in memory
and in files; made of the kernels themselves by each task that multiplies by them, they cost time,
which counts the less the more outputs each of them serves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

SPEED, BALANCE, SIZE = "speed", "balance", "size"

GOALS = {SPEED: 0.1, BALANCE: 0.5, SIZE: math.inf}
"""The time that a byte more has to save, in multiplications of vectors."""

# The goal that holds, the last of them.
_goals = [SPEED]


@contextmanager
def goal(name: str) -> Iterator[None]:
    """While it is open, this goal, of GOALS, decides."""
    _goals.append(name)
    try:
        yield
    finally:
        _goals.pop()


def price() -> float:
    """Of a byte, as in GOALS."""
    return GOALS[_goals[-1]]
