"""Register tiles of products and convolutions whose extents are open."""

from __future__ import annotations

from run_model_tools.kernels.isa import Isa

_BY_LANES = {16: (8, 3), 8: (4, 3)}
_BY_REGISTERS_OF_FOUR = {32: (8, 3), 16: (4, 2)}


def tile_of_products(isa: Isa) -> tuple[int, int]:
    """Rows of the left matrix and vectors of columns; with four lanes, each row has a register
    (c/tile.h)."""
    return (8, 2) if isa.lanes == 4 and isa.registers == 32 else _tile(isa)


def tile_of_convolution(isa: Isa, channels: int) -> tuple[int, int]:
    """Rows of a group's output channels and vectors of pixels."""
    rows, vectors = _tile(isa)
    return (rows, vectors) if channels >= rows else (channels, min(8, rows * vectors // channels))


def _tile(isa: Isa) -> tuple[int, int]:
    return _BY_REGISTERS_OF_FOUR[isa.registers] if isa.lanes == 4 else _BY_LANES[isa.lanes]
