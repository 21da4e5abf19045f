"""When products of bytes or of bfloat16 are made by tiles of Intel's AMX
(kernels/c/amx_products.h), and how they are shared out."""

from __future__ import annotations

import math
from dataclasses import dataclass

from run_model_tools.kernels.isa import Isa

ROWS, VECTORS = 32, 2
"""Of the left matrix and of columns that are multiplied together: two tiles by two."""

# Cycles of a Sapphire Rapids: for a vector of products without tiles, of bytes four at a time; for
# two tiles by two of them by 64 bytes, for making the 64 bytes of a row, for what is done with a
# vector of products, and for a task.
_VECTOR = {1: 0.7 / 4, 2: 0.6}
_STEP, _ROW, _RESULT, _TASK = 100, 12, 4, 4000


@dataclass(frozen=True)
class Steps:
    """In what steps a run of bytes is multiplied (c/amx_products.h)."""

    run_bytes: int
    exact: bool = False
    """Whether nothing beyond the run may be multiplied, a weight of 0 or not."""

    @property
    def count(self) -> int:
        count = -(-self.run_bytes // 64)
        while self.exact and self.run_bytes % (4 * count):
            count += 1
        return count

    @property
    def each(self) -> int:
        """Bytes of a step, in whole words."""
        return -(-self.run_bytes // self.count // 4) * 4

    @property
    def bytes(self) -> int:
        """Of all steps."""
        return self.count * self.each

    def defines(self, rows: int, runs: list[int]) -> dict[str, object]:
        """The C code's macros, with the rows of a tile and the runs' offsets."""
        return {"AMX_ROWS": rows, "RUNS": len(runs), "RUN_OFFSET": runs,
                "RUN_STEPS": self.count, "STEP_BYTES": self.each}


@dataclass(frozen=True)
class Sizes:
    """Of a product; `number_bytes`: 1 of bytes, 2 of bfloat16."""

    rows: int
    depth: int
    columns: int
    number_bytes: int = 1

    @property
    def steps(self) -> Steps:
        """Of each row."""
        return Steps(self.depth * self.number_bytes)

    @property
    def words(self) -> int:
        """Words of four bytes of a row, in whole steps."""
        return self.steps.bytes // 4

    def cycles(self, rows: int, columns: int) -> float:
        """Of a part with so many rows and columns."""
        tiles = -(-rows // ROWS) * -(-columns // (16 * VECTORS))
        return (tiles * self.steps.count * _STEP + rows * self.steps.count * _ROW
                + rows * -(-columns // 16) * _RESULT + _TASK)

    def cycles_without_tiles(self) -> float:
        """Of all."""
        vectors = self.rows * -(-self.columns // 16)
        return vectors * (self.depth * _VECTOR[self.number_bytes] + _RESULT) + _TASK

    def defines(self, largest: int) -> dict[str, object]:
        """The C code's macros where the largest row tile has so many rows: one or two of AMX's."""
        return self.steps.defines(largest if largest <= 16 else -(-largest // 2), [0])


def parts(sizes: Sizes, isa: Isa) -> list[tuple[int, int]]:
    """In how many parts rows and columns are cut, the best for 1, 2 and 4 threads; none where tiles
    are not faster."""
    alone = sizes.cycles(sizes.rows, sizes.columns)
    if not isa.amx or alone > 0.9 * sizes.cycles_without_tiles():
        return []
    most = max(1, math.ceil(alone / _TASK))
    found = {}
    for rows in (1, 2, 4, 8, 16):
        for columns in (1, 2, 4, 8, 16):
            if (rows * columns > min(most, 16) or rows > -(-sizes.rows // 16)
                    or columns > -(-sizes.columns // 16)):
                continue
            part = sizes.cycles(-(-sizes.rows // rows), -(-sizes.columns // columns))
            found[rows, columns] = sum(weight * threads * -(-rows * columns // threads) * part
                                       for threads, weight in ((1, 1), (2, 2), (4, 1)))
    return [min(found, key=lambda cut: (found[cut], cut))]
