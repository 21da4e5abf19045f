"""How layers that slide a window over each block by itself are cut up (depthwise, pooling)."""

from __future__ import annotations

_TASKS = ((2_500_000, 8), (500_000, 4), (200_000, 2), (0, 1))
"""(from how many operations on, tasks): less than about 3 µs is not worth a thread's while."""


def group_widths(width: int, in_width: int, taps: int, stride: int, dilation: int, padding: int,
                 most: int) -> list[int]:
    """How many columns a row may be computed at once, so that no group but a row's first and last
    reaches beyond the picture; those that leave the fewest columns to do twice come first.

    `width` and `in_width`: of the output and the input; `padding`: left; `most`: that the registers
    can hold.  Empty if there is none, as for a window wider than the picture is.
    """
    left = sum(x * stride < padding for x in range(width))
    right = sum(x * stride - padding + (taps - 1) * dilation >= in_width for x in range(width))

    def possible(columns: int) -> bool:
        if columns == width:
            return True
        if max(left, right) > columns:
            return False
        # The last of the groups between begins at width - 2 * columns, if there are any.
        return width <= 2 * columns or width - 2 * columns >= left

    return sorted(filter(possible, range(1, min(most, width) + 1)),
                  key=lambda columns: -(-width // columns) * (columns + 1))


def rows_of_parts(parts: int, heights: tuple[int, int], taps: int, stride: int, padding: int
                  ) -> list[int]:
    """Rows of the input that each of equal parts of the output's rows reads.

    `heights`: of the input and the output; `taps`, `stride`, `padding` (at the top): downwards.
    """
    there, height = heights
    rows = []
    for part in range(parts):
        begin, end = part * height // parts, (part + 1) * height // parts
        top = max(0, begin * stride - padding)
        rows.append(min(there, (end - 1) * stride - padding + taps) - top)
    return rows


def cuts(blocks: int, height: int, operations: int) -> list[tuple[int, int]]:
    """(strips of a block's rows, tasks) for a layer of so many output blocks and rows: those that
    give 4 threads equal work come first, of these the ones with about 4 strips.

    Tasks are equal parts of the strips in the order (strip, block), see part_start in tile.h.
    """
    wanted = next(tasks for least, tasks in _TASKS if operations >= least)

    def slowest(strips: int, tasks: int) -> float:
        """The largest share of a thread; 1 if all are equal."""
        rows = [(s + 1) * height // strips - s * height // strips
                for s in range(strips) for _ in range(blocks)]
        threads = min(4, tasks)
        ends = [i * len(rows) // threads for i in range(threads + 1)]
        return max(sum(rows[a:b]) for a, b in zip(ends, ends[1:])) * threads / sum(rows)

    possible = [(strips, min(wanted, strips * blocks))
                for strips in (4, 2, 1, 8) if strips <= height]
    return sorted(possible, key=lambda cut: round(slowest(*cut), 1))
