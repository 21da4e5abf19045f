"""Numbers that need fewer bits than float32 has: what an exporter has quantised to 4 or 8 bits or
rounded to 16 lies in float32 while a network is worked on, and is found by the numbers alone, with
no other loss than float32's own rounding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

CHUNK = 32
"""Blocks of all rows have a multiple of so many."""
_BLOCKS = (256, 128, 64, 32, 16)
"""How many rows may share a step, besides all of them."""
_SAMPLED = 4
"""Columns that rule most weights out, before all of them are looked at."""
_AT_ONCE = 1 << 21
"""Weights that are looked at together, of which there are several copies meanwhile."""
_ROUNDING = 5e-7
"""Of a number in steps: what float32 rounds where it multiplies number and step, where the step
comes from such a product, and where another factor was multiplied into it."""


@dataclass(frozen=True, eq=False)
class FewBits:
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


def few_bits(weights: np.ndarray) -> FewBits | None:
    """Of float32 (depth, columns); None where these need all their bits."""
    return _on_grid(weights) or _of_sixteen_bits(weights)


def _on_grid(weights: np.ndarray) -> FewBits | None:
    """Whole numbers of the fewest bits, in the largest blocks."""
    if not _may_lie_on_grid(_some(weights)[:_BLOCKS[-1]]):
        return None
    whole = -(-len(weights) // CHUNK) * CHUNK
    blocks = [whole, *(block for block in _BLOCKS if block < len(weights))]
    kinds = [(bits, block) for bits in (4, 8) for block in blocks]
    kinds = [kind for kind in kinds if _numbers_of(_some(weights), *kind) is not None]
    for bits, block in kinds:
        parts = []
        for columns in _columns_at_once(weights):
            found = _numbers_of(columns, bits, block)
            if found is None:
                break
            parts.append(found)
        else:
            numbers, steps, zeros = (np.concatenate(part, 1) for part in zip(*parts))
            return FewBits(bits, numbers, steps, zeros, block)
    return None


def _may_lie_on_grid(block: np.ndarray) -> bool:
    """Whether the columns of the smallest block are multiples of steps: any weights that are have
    such columns."""
    largest = np.abs(block).max(0)
    parts = np.arange(1, 256, dtype=np.float32)[:, None, None]
    near = block / np.where(largest == 0, np.float32(1), largest) * parts
    counted = np.rint(near)
    return bool((np.abs(near - counted) <= _ROUNDING * np.abs(counted)).all(1).any(0).all())


def _of_sixteen_bits(weights: np.ndarray) -> FewBits | None:
    for is_half in (False, True):
        if _sixteen(_some(weights)[:_BLOCKS[-1]], is_half) is None:
            continue
        parts = []
        for columns in _columns_at_once(weights):
            found = _sixteen(columns, is_half)
            if found is None:
                break
            parts.append(found)
        else:
            return FewBits(16, np.concatenate(parts, 1), is_half=is_half)
    return None


def _sixteen(weights: np.ndarray, is_half: bool) -> np.ndarray | None:
    """The bits of the same numbers in float16 or bfloat16; None where these are no such numbers."""
    if is_half:
        with np.errstate(over="ignore"):
            half = weights.astype(np.float16)
        is_same = np.isfinite(half).all() and (half.astype(np.float32) == weights).all()
        return half.view(np.uint16) if is_same else None
    bits = np.ascontiguousarray(weights).view(np.uint32)
    return None if (bits & 0xffff).any() else (bits >> 16).astype(np.uint16)


def _columns_at_once(weights: np.ndarray) -> Iterator[np.ndarray]:
    width = max(1, _AT_ONCE // len(weights))
    for first in range(0, weights.shape[1], width):
        yield weights[:, first:first + width]


def _some(weights: np.ndarray) -> np.ndarray:
    """A few columns."""
    return weights[:, ::max(1, weights.shape[1] // _SAMPLED)]


def _numbers_of(weights: np.ndarray, bits: int, block: int
                ) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """(numbers, steps, zeros) as FewBits has them."""
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
