"""What the kernels need to know of an instruction set."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Isa:
    """A vector instruction set, as the kernels use it."""

    name: str
    lanes: int
    """float32 numbers in a vector, which is also how many channels an activation's block has."""
    registers: int
    tile: tuple[int, int]
    """(pixels, vectors of output channels) of the largest register tile."""
    flags: tuple[str, ...]
    """What Clang needs to be told."""
    dot: str | None = None
    """Instructions that multiply int8 by four: "vnni", "dotprod" or None."""

    def defines(self) -> dict[str, object]:
        """The macros that every layer's C code has."""
        return {"LANES": self.lanes}


AVX512 = Isa("avx512", 16, 32, (14, 2), ("-mprefer-vector-width=512",))
AVX512_VNNI = Isa("avx512", 16, 32, (14, 2), ("-mprefer-vector-width=512",), dot="vnni")
AVX2 = Isa("avx2", 8, 16, (6, 2), ())
NEON64 = Isa("neon64", 4, 32, (8, 3), ())
NEON64_DOT = Isa("neon64", 4, 32, (8, 3), (), dot="dotprod")
NEON32 = Isa("neon32", 4, 16, (6, 2), ())
# RISC-V's vectors have no length that C could name; four scalars at a time keep registers busy.
GENERIC = Isa("generic", 4, 32, (4, 1), ())
