"""When products of bytes are made by tiles of Intel's AMX (kernels/c/amx_bytes.h), and how they are
shared out."""

from __future__ import annotations

import math
from dataclasses import dataclass

from run_model_tools.kernels.isa import Isa

ROWS, VECTORS = 32, 2
"""Of the left matrix and of columns that are multiplied together: two tiles by two."""

# Cycles of a Sapphire Rapids: for a vector of four products each without tiles, for two tiles by
# two of them by 64 bytes, for making 64 numbers of a row bytes, for what is done with a vector of
# products, and for a task.
_VECTOR, _STEP, _ROW, _RESULT, _TASK = 0.7, 100, 12, 4, 4000


@dataclass(frozen=True)
class Sizes:
    """Of a product with weights."""

    rows: int
    depth: int
    columns: int

    @property
    def steps(self) -> int:
        """In how many steps the bytes of a row are multiplied."""
        return -(-self.depth // 64)

    @property
    def step_bytes(self) -> int:
        """Bytes of a step."""
        return -(-self.depth // self.steps // 4) * 4

    @property
    def words(self) -> int:
        """Words of four bytes of a row, in whole steps."""
        return self.steps * self.step_bytes // 4

    def cycles(self, rows: int, columns: int) -> float:
        """Of a part with so many rows and columns."""
        tiles = -(-rows // ROWS) * -(-columns // (16 * VECTORS))
        return (tiles * self.steps * _STEP + rows * self.steps * _ROW
                + rows * -(-columns // 16) * _RESULT + _TASK)

    def cycles_without_tiles(self) -> float:
        """Of all."""
        vectors = self.rows * -(-self.columns // 16)
        return vectors * (-(-self.depth // 4) * _VECTOR + _RESULT) + _TASK

    def defines(self, largest: int) -> dict[str, object]:
        """The C code's macros where the largest row tile has so many rows: one or two of AMX's."""
        return {"AMX_ROWS": largest if largest <= 16 else -(-largest // 2), "RUNS": 1,
                "RUN_OFFSET": [0], "RUN_STEPS": self.steps, "STEP_BYTES": self.step_bytes}


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
