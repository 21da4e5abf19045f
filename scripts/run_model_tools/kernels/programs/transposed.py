"""Inputs of a program whose numbers lie apart along a row, and beside those of the next rows.

Several rows are transposed at a time (c/transposed_rows.h), so that the program finds each in a
row; what only moves numbers stores them in its result right away.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from run_model_tools.kernels.programs.code import Operand

Factors = list[tuple[int, tuple[int, ...]]]

_NEAR = 16 * 1024
"""Numbers that stay in the nearest caches while they are transposed and read again."""
_MOST = 4 * _NEAR
_TILES = (64, 32, 16)
"""Rows at a time: 16 are a cache line, and more let a page be read on."""


@dataclass(frozen=True)
class Transposed:
    """Which inputs are transposed, and how many rows at a time."""

    inputs: tuple[int, ...]
    side: int
    """How many rows lie beside each other."""
    inner: int
    """How many rows of the result they are apart."""
    tile: int
    stride: int
    """From a row that was transposed to the next, in numbers."""

    @property
    def scratch(self) -> int:
        """Numbers of scratch memory."""
        return len(self.inputs) * self.tile * self.stride

    def tiles(self, rows: int) -> int:
        """How many there are of so many rows in all."""
        return rows // self.side * -(-self.side // self.tile)

    def place(self, index: int) -> str:
        """C for where the first row of an input is put; index is its place in `inputs`."""
        return f"transposed + {index * self.tile * self.stride}"

    def operand(self, index: int, width: int) -> Operand:
        """An input as the program finds it."""
        return Operand(self.place(index), "0L", ((width, 1),))

    def defines(self, operands: list[Operand], kept: int, copies: int | None) -> dict[str, object]:
        """Macros for f32-rows.c.in; `copies`: the columns of a program that only moves numbers."""
        calls = []
        for index, which in enumerate(self.inputs):
            one = operands[which]
            *outer, (count, stride) = one.columns
            groups, group_stride = outer[0] if outer else (1, 0)
            to_stride = self.stride if copies is None else copies * self.inner
            calls.append(f"transposed_rows({one.base} + {one.row}, {self.place(index)}, "
                         f"{to_stride}, count, "
                         f"{groups}, {group_stride}, {count}, {stride});")
        return {"SIDE": self.side, "INNER": self.inner, "TILE": self.tile, "KEPT": kept,
                "TRANSPOSED_STRIDE": self.stride, "TRANSPOSE": " ".join(calls),
                **({} if copies is None else {"COPY": 1})}


def cut_columns(rows: Factors, columns: Factors) -> tuple[Factors, Factors] | None:
    """Of a program without reductions: rows that are short enough for several to stay near; None
    where they are, or cannot be cut."""
    count, strides = columns[-1]
    if len(columns) > 1 or count <= _NEAR // _TILES[-1]:
        return None
    for pieces in range(-(-count * _TILES[-1] // _NEAR), min(count, 1024)):
        if count % pieces == 0 and count // pieces % _TILES[-1] == 0:
            inner = count // pieces
            return [*rows, (pieces, tuple(s * inner for s in strides))], [(inner, strides)]
    return None


def of(rows: Factors, operands: list[Operand], width: int, lanes: int,
       is_copy: bool) -> Transposed | None:
    """Of operands over such rows; None where none lies so."""
    found: list[Transposed] = []
    for place, (side, strides) in enumerate(rows):
        inputs = tuple(i for i, one in enumerate(operands) if one.kind == "numbers"
                       and len(one.columns) <= 2 and strides[i] == 1)
        if not inputs or side < lanes or width < lanes // 2:
            continue
        # Rows as far apart as a way of the cache is long would all lie in the same sets.
        stride = -(-width // lanes) * lanes + lanes
        most = _NEAR if is_copy else _NEAR // len(inputs)
        tile = next((t for t in _TILES if t * stride <= most), _TILES[-1])
        if is_copy or tile * stride * len(inputs) <= _MOST:
            inner = math.prod(count for count, _ in rows[place + 1:])
            found.append(Transposed(inputs, side, inner, tile, stride))
    return max(found, key=lambda one: len(one.inputs), default=None)
