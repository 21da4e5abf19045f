"""In how many parts pixels and output channels are cut, so that threads get equal work."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from functools import cache

from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.tiles import Even, even, tile_cost

Units = list[tuple[int, ...]]
"""What pixels are shared out by: the pixels of each register tile of each unit."""

_Cuts = tuple[tuple[int, tuple], ...]
"""(number of parts, what is cut in them) ..."""

_TASK = 500_000
"""Multiply-adds that a core does in about 5 us, below which a task is not worth its start."""
_WEIGHTS = 1.5
"""Of a task, to read a vector of weights from a far cache, in multiplications of vectors."""
_INPUTS = 0.15
"""To read an input, likewise: of a vector of inputs, one number a channel."""
_NEAR_BYTES = 256 << 10
"""What a task of bytes or of AMX's tiles may go through again and again: half of a usual L2 cache.
"""


def rounded(total: int, most: int, parts: int) -> Even:
    """Tiles of at most `most`, as many in each part as in any other if there are enough things."""
    tiles = even(total, most).tiles
    return Even(total, min(total, -(-tiles // parts) * parts))


def best_parts(isa: Isa, multiply_adds: int, units: dict[int, Units], vectors: dict[int, list[int]]
               ) -> list[tuple[int, int]]:
    """(parts of the pixels, parts of the output channels), the best for 1, 2 and 4 threads first.

    `units` and `vectors`: by the number of parts, what the pixels and the channels are cut in.  A
    loop over tasks is cut into as many ranges as there are threads, with all pixels of one part of
    the channels after the other.
    """
    return list(_best_parts(isa, multiply_adds, tuple((n, tuple(u)) for n, u in units.items()),
                            tuple((n, tuple(v)) for n, v in vectors.items())))


@cache
def _best_parts(isa: Isa, multiply_adds: int, units: _Cuts, vectors: _Cuts
                ) -> list[tuple[int, int]]:
    """Layers of one shape ask more than once each, and a network has many of them."""
    # Whatever is alike is counted, since a large picture has thousands of tiles.
    units_of = {(n, p): Counter(_part(all_, p, n)) for n, all_ in units for p in range(n)}
    vectors_of = {(n, c): Counter(_part(all_, c, n)) for n, all_ in vectors for c in range(n)}

    @cache
    def cost(unit: tuple[int, ...], count: int) -> float:
        return sum(tile_cost(isa, pixels, count) for pixels in unit)

    def slowest(pixel_parts: int, channel_parts: int, threads: int) -> float:
        """The time of the one with the most to do, of that many threads, times their number."""
        tasks = [(vectors_of[channel_parts, c], units_of[pixel_parts, p])
                 for c in range(channel_parts) for p in range(pixel_parts)]
        share = -(-len(tasks) // threads)
        times = []
        for first in range(0, len(tasks), share):
            mine = tasks[first:first + share]
            time = sum(cost(unit, count) * times_unit * times_count for counts, tiles in mine
                       for unit, times_unit in tiles.items()
                       for count, times_count in counts.items())
            time += sum(_WEIGHTS * sum(count * n for count, n in counts.items())
                        + _INPUTS * sum(sum(unit) * n for unit, n in tiles.items())
                        for counts, tiles in mine)
            times.append(time)
        return max(times) * threads

    most = max(1, multiply_adds // _TASK)
    found = [(p, c) for p, _ in units for c, _ in vectors if p * c <= min(most, 16)]
    scores = {parts: slowest(*parts, 1) + 2 * slowest(*parts, 2) + slowest(*parts, 4)
              for parts in found}
    # Of equals, more and smaller tasks: an interrupted thread keeps the others waiting for less.
    return sorted(found, key=lambda parts: (round(scores[parts] / min(scores.values()), 2),
                                            -parts[0] * parts[1]))


def _part(things: tuple, part: int, parts: int) -> tuple:
    return things[part * len(things) // parts:(part + 1) * len(things) // parts]


def tasks_of(tiles: int, chunks: int, work: float, chunk_bytes: float, tile_bytes: float,
             least: int) -> tuple[int, int]:
    """(tiles, chunks) of a task: the split that leaves two and four threads least to wait.

    Every task goes through its chunks' weights once and through its tiles' inputs once per chunk,
    which should stay near.  `work` is the multiply-adds of a tile and a chunk, `least` what each of
    more than four tasks has.
    """
    best, best_cost = (tiles, chunks), math.inf
    for tile_parts, chunk_parts in itertools.product(_counts(tiles), _counts(chunks)):
        by_tile, by_chunk = -(-tiles // tile_parts), -(-chunks // chunk_parts)
        tasks = -(-tiles // by_tile) * -(-chunks // by_chunk)
        size = by_tile * by_chunk * work
        if tasks > 1 and size < least and tasks > 4:
            continue
        share = sum(_longest(tiles, by_tile, chunks, by_chunk, threads) * threads
                    for threads in (2, 4)) / (2 * tiles * chunks)
        again = max(0.0, by_tile * tile_bytes + chunk_bytes - _NEAR_BYTES) / _NEAR_BYTES
        cost = share + 0.02 * min(again, 5) * (by_chunk > 1) + 0.002 * tasks * (
            chunk_bytes * by_chunk) / _NEAR_BYTES
        if cost < best_cost - 1e-9:
            best, best_cost = (by_tile, by_chunk), cost
    return best


def _counts(n: int) -> list[int]:
    return sorted({c for c in (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24, 28, 32, 48, 64, 96, 128, n)
                   if c <= n})


def _longest(tiles: int, by_tile: int, chunks: int, by_chunk: int, threads: int) -> int:
    """Tiles times chunks of the thread that has most: tasks go to threads in equal runs."""
    tasks = -(-tiles // by_tile) * -(-chunks // by_chunk)
    return min(-(-tasks // threads) * by_tile * by_chunk, tiles * chunks)
