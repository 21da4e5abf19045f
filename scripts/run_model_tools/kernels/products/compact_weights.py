"""Weights that need fewer bits than float32 has: what an exporter has quantised to 4 or 8 bits or
rounded to 16 reaches the planner as float32, and is stored in so many bits again (c/compact.h),
with no other loss than float32's own rounding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from run_model_tools.kernels.isa import Isa

_FEWEST = 64 << 10
"""Bytes of float32 from which weights are looked at: fewer stay near anyway."""
CHUNK = 32
"""Rows of weights that are made float32 at a time."""
_BLOCKS = (256, 128, 64, 32, 16)
"""How many rows may share a step, besides all of them."""
_SAMPLED = 4
"""Columns that rule most weights out, before all of them are looked at."""
_SMALLEST_HALF = 2.0 ** -14
"""Below it 32-bit Arm takes float16's numbers for 0 while it makes float32 of them
(c/compact.h)."""
_AT_ONCE = 1 << 21
"""Weights that are looked at together, of which there are several copies meanwhile."""
_ROUNDING = 5e-7
"""Of a number in steps: what float32 rounds where it multiplies number and step, where the step
comes from such a product, and where another factor was multiplied into it."""


@dataclass(frozen=True, eq=False)
class CompactWeights:
    """weight[k, n] = (numbers[k, n] - zeros[k // block, n]) * steps[k // block, n]; of 16 bits
    `numbers` are those of bfloat16 or, with `is_half`, float16 themselves."""

    bits: int
    """4, 8 or 16."""
    numbers: np.ndarray
    """uint8 or uint16 (depth, columns)."""
    steps: np.ndarray | None = None
    """float32 (blocks, columns)."""
    zeros: np.ndarray | None = None
    """uint8 (blocks, columns)."""
    block: int = CHUNK
    """A multiple of 16."""
    is_half: bool = False

    @property
    def kind(self) -> str:
        """What a table of layers calls it."""
        if self.bits == 16:
            return "float16" if self.is_half else "bfloat16"
        return f"{self.bits} bits, {self.block} a step"

    @property
    def variant(self) -> str:
        """The same in a C function's name."""
        return f"w{self.bits}" + "h" * self.is_half

    def defines(self) -> dict[str, object]:
        """The macros of c/compact.h."""
        found: dict[str, object] = {"WEIGHT_BITS": self.bits, "WEIGHT_BLOCK": self.block,
                                    "CHUNK": CHUNK if self.block % CHUNK == 0 else 16}
        return found | ({"WEIGHT_HALF": 1} if self.is_half else {})

    def packed(self, tiles: list[range], lanes: int) -> np.ndarray:
        """uint8: of each tile of vectors of columns, block after block, its steps [vector][lane],
        zeros likewise and numbers [row][vector][lane]; of 4 bits, eight rows in words of 32."""
        numbers = _padded(self.numbers, self.block, lanes)
        blocks = len(numbers) // self.block
        numbers = numbers.reshape(blocks, self.block, -1)
        if self.bits == 4:
            words = numbers.reshape(blocks, self.block // 8, 8, -1)
            numbers = np.zeros(words.shape[:2] + words.shape[3:], np.uint32)
            for row in range(8):
                numbers |= words[:, :, row].astype(np.uint32) << np.uint32(4 * row)
        parts = [numbers]
        if self.steps is not None and self.zeros is not None:
            parts = [_padded(self.steps, 1, lanes), _padded(self.zeros, 1, lanes), numbers]
        found = []
        for tile in tiles:
            columns = slice(tile.start * lanes, tile.stop * lanes)
            found.append(np.concatenate(
                [np.ascontiguousarray(part[..., columns]).reshape(blocks, -1).view(np.uint8)
                 for part in parts], axis=1).ravel())
        return np.concatenate(found)


def _padded(rows: np.ndarray, multiple: int, lanes: int) -> np.ndarray:
    return np.pad(rows, [(0, -rows.shape[0] % multiple), (0, -rows.shape[1] % lanes)])


def compact(weights: np.ndarray, isa: Isa) -> CompactWeights | None:
    """Of float32 (depth, columns); None where these need all their bits."""
    if isa.half or weights.dtype != np.float32 or weights.nbytes < _FEWEST:
        return None
    return _on_grid(weights) or _of_sixteen_bits(weights, isa)


def _on_grid(weights: np.ndarray) -> CompactWeights | None:
    """Whole numbers of the fewest bits, in the largest blocks."""
    if not _may_lie_on_grid(_some(weights)[:_BLOCKS[-1]]):
        return None
    whole = -(-len(weights) // CHUNK) * CHUNK
    blocks = [whole, *(block for block in _BLOCKS if block < len(weights))]
    kinds = [(bits, block) for bits in (4, 8) for block in blocks]
    kinds = [kind for kind in kinds if _numbers_of(_some(weights), *kind) is not None]
    width = max(1, _AT_ONCE // len(weights))
    for bits, block in kinds:
        parts = []
        for first in range(0, weights.shape[1], width):
            found = _numbers_of(weights[:, first:first + width], bits, block)
            if found is None:
                break
            parts.append(found)
        else:
            numbers, steps, zeros = (np.concatenate(part, 1) for part in zip(*parts))
            return CompactWeights(bits, numbers, steps, zeros, block)
    return None


def _may_lie_on_grid(block: np.ndarray) -> bool:
    """Whether the columns of the smallest block are multiples of steps: any weights that are have
    such columns."""
    largest = np.abs(block).max(0)
    parts = np.arange(1, 256, dtype=np.float32)[:, None, None]
    near = block / np.where(largest == 0, np.float32(1), largest) * parts
    counted = np.rint(near)
    return bool((np.abs(near - counted) <= _ROUNDING * np.abs(counted)).all(1).any(0).all())


def _of_sixteen_bits(weights: np.ndarray, isa: Isa) -> CompactWeights | None:
    found: CompactWeights | None = None
    for part in (_some(weights)[:_BLOCKS[-1]], weights):
        bits = np.ascontiguousarray(part).view(np.uint32)
        with np.errstate(over="ignore"):
            half = part.astype(np.float16)
        if not (bits & 0xffff).any():
            found = CompactWeights(16, (bits >> 16).astype(np.uint16))
        elif np.isfinite(half).all() and (half.astype(np.float32) == part).all() and not (
                isa.name == "neon32" and ((part != 0) & (np.abs(part) < _SMALLEST_HALF)).any()):
            found = CompactWeights(16, half.view(np.uint16), is_half=True)
        else:
            return None
    return found


def _some(weights: np.ndarray) -> np.ndarray:
    """A few columns."""
    return weights[:, ::max(1, weights.shape[1] // _SAMPLED)]


def _numbers_of(weights: np.ndarray, bits: int, block: int
                ) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """(numbers, steps, zeros) as CompactWeights has them."""
    depth, columns = weights.shape
    rows = np.pad(weights, [(0, -depth % block), (0, 0)])
    rows = rows.reshape(-1, block, columns).transpose(0, 2, 1).reshape(-1, block)
    largest = np.abs(rows).max(1)
    if not np.isfinite(largest).all():
        return None
    steps = np.where(largest == 0, np.float32(1), np.float32(0))
    numbers = np.zeros(rows.shape, np.int16)
    most = (1 << bits) - 1
    # What quantisers make of the largest weight comes first.
    for parts in sorted(range(1, most + 1), key=lambda n: abs(n - 7.6 * (1 << bits - 4))):
        left = np.flatnonzero(steps == 0)
        if not len(left):
            break
        step = largest[left] / np.float32(parts)
        near = rows[left] / step[:, None]
        counted = np.rint(near)
        fits = (np.abs(near - counted) <= _ROUNDING * np.abs(counted)).all(1)
        fits &= counted.max(1) - counted.min(1) <= most
        fits &= (step > np.finfo(np.float32).tiny)
        steps[left[fits]] = step[fits]
        numbers[left[fits]] = counted[fits]
    if not (steps > 0).all():
        return None
    middle = 1 << bits - 1
    low, high = numbers.min(1), numbers.max(1)
    zeros = np.where((low >= -middle) & (high < middle), middle, np.maximum(-low, 0))
    blocks = len(rows) // columns
    whole = (numbers + zeros[:, None]).astype(np.uint8)
    whole = whole.reshape(blocks, columns, block).transpose(0, 2, 1).reshape(-1, columns)[:depth]
    return (np.ascontiguousarray(whole), steps.reshape(blocks, columns),
            zeros.astype(np.uint8).reshape(blocks, columns))
