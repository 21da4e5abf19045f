"""Weights of products in the bits that their numbers need (few_bits.py), laid out for compact.h."""

from __future__ import annotations

import zlib

import numpy as np

from run_model_tools.few_bits import CHUNK, FLOAT8, FewBits, few_bits
from run_model_tools.kernels.isa import Isa

_FEWEST = 64 << 10
"""Bytes of float32 from which weights are looked at: fewer stay near anyway."""


class CompactWeights(FewBits):
    """How a layer has them; CHUNK rows, or 16, are made float32 at a time."""

    @property
    def kind(self) -> str:
        """What a table of layers calls it."""
        if self.bits == 16:
            return "float16" if self.is_half else "bfloat16"
        what = "float8" if self.levels is FLOAT8 else f"{self.bits} bits"
        levels = " of levels" if self.levels is not None and self.bits == 4 else ""
        return f"{what}{levels}, {self.block} a step"

    @property
    def variant(self) -> str:
        """The same in a C function's name."""
        levels = "" if self.levels is None else f"l{zlib.crc32(self.levels.tobytes()):08x}"
        return f"w{self.bits}" + "h" * self.is_half + levels

    def defines(self) -> dict[str, object]:
        """The macros of c/compact.h."""
        found: dict[str, object] = {"WEIGHT_BITS": self.bits, "WEIGHT_BLOCK": self.block,
                                    "CHUNK": CHUNK if self.block % CHUNK == 0 else 16}
        if self.levels is not None and self.bits == 8:
            found["WEIGHT_FLOAT8"] = 1
        elif self.levels is not None:
            found["WEIGHT_LEVELS"] = [f"{float(level).hex()}f" for level in self.levels]
        return found | ({"WEIGHT_HALF": 1} if self.is_half else {})

    def packed(self, tiles: list[range], lanes: int) -> np.ndarray:
        """uint8: of each tile of vectors of columns, block after block, its steps [vector][lane],
        zeros likewise, unless there are levels, and numbers [row][vector][lane]; of 4 bits, eight
        rows in words of 32."""
        numbers = _padded(self.numbers, self.block, lanes)
        blocks = len(numbers) // self.block
        numbers = numbers.reshape(blocks, self.block, -1)
        if self.bits == 4:
            words = numbers.reshape(blocks, self.block // 8, 8, -1)
            numbers = np.zeros(words.shape[:2] + words.shape[3:], np.uint32)
            for row in range(8):
                numbers |= words[:, :, row].astype(np.uint32) << np.uint32(4 * row)
        parts = [_padded(part, 1, lanes) for part in (self.steps, self.zeros) if part is not None]
        parts.append(numbers)
        found = []
        for tile in tiles:
            columns = slice(tile.start * lanes, tile.stop * lanes)
            found.append(np.concatenate(
                [np.ascontiguousarray(part[..., columns]).reshape(blocks, -1).view(np.uint8)
                 for part in parts], axis=1).ravel())
        return np.concatenate(found)


def _padded(rows: np.ndarray, multiple: int, lanes: int) -> np.ndarray:
    return np.pad(rows, [(0, -rows.shape[0] % multiple), (0, -rows.shape[1] % lanes)])


def _has_denormals(found: FewBits) -> bool:
    """Whether numbers are denormal ones of their type, which 32-bit Arm takes for 0 while it makes
    float32 of them (c/compact.h)."""
    if not (found.is_half or found.levels is FLOAT8):
        return False
    exponent, fraction = (0x7c00, 0x3ff) if found.is_half else (0x78, 7)
    return bool(((found.numbers & exponent == 0) & (found.numbers & fraction != 0)).any())


def compact(weights: np.ndarray, isa: Isa) -> CompactWeights | None:
    """Of float32 (depth, columns); None where these need all their bits."""
    if isa.half or weights.dtype != np.float32 or weights.nbytes < _FEWEST:
        return None
    found = few_bits(weights)
    if found is None or isa.name == "neon32" and _has_denormals(found):
        return None
    return CompactWeights(**vars(found))
