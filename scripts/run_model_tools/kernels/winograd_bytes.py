"""How many bytes Winograd's weights may take: `compile_model --optimize-for`.

F(2, 3) stores 16 numbers for the nine of a 3x3 kernel and F(4, 3) 36, all of which stay in memory
and are read for every picture.  What they save does not depend on the weights' number, but on how
many outputs each of them serves: much for a large picture, little for one of 7x7.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from run_model_tools.kernels.convolution import Convolution

SPEED, BALANCE, SIZE = "speed", "balance", "size"

GOALS = {SPEED: 0.0, BALANCE: 10.0, SIZE: math.inf}
"""Multiplications that a byte more has to save.  A core does about ten in the time in which a byte
comes from memory; fewer still gain time where caches and prefetching hide that."""

_NUMBER = 4  # bytes
_DIRECT = 9  # numbers of a kernel, and multiplications of an output

# The goal that holds, the last of them.
_goals = [SPEED]


@contextmanager
def goal(name: str) -> Iterator[None]:
    """Meanwhile the goal, of GOALS, decides."""
    _goals.append(name)
    try:
        yield
    finally:
        _goals.pop()


def largest_tile(conv: Convolution) -> int:
    """The largest tile whose bytes are worth it, 0 where no tile's are."""
    least = GOALS[_goals[-1]]
    found, numbers = 0, _DIRECT
    multiplications = _DIRECT * math.prod(conv.output_size)
    for tile in (2, 4, 6):
        positions = (tile + 2) ** 2
        needed = positions * math.prod(-(-size // tile) for size in conv.output_size)
        if not least or multiplications - needed >= least * _NUMBER * (positions - numbers):
            found, numbers, multiplications = tile, positions, needed
    return found
