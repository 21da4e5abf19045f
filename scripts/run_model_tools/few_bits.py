"""Numbers that need fewer bits than float32 has: what an exporter has quantised to 4 or 8 bits or
rounded to 16 lies in float32 while a network is worked on, and is found by the numbers alone, with
no other loss than float32's own rounding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

CHUNK = 32
"""Blocks of all rows have a multiple of so many."""
_BLOCKS = (256, 128, 64, 32, 16)
"""How many rows may share a step, besides all of them."""
_SAMPLED = 4
"""Columns that rule most weights out, before all of them are looked at."""
_AT_ONCE = 1 << 21
"""Weights that are looked at together, of which there are several copies meanwhile."""
_LOOKED_AT_FIRST = 8
"""Weights of a block that rule most steps out."""
_ROUNDING = 5e-7
"""Of a number in steps: what float32 rounds where it multiplies number and step, where the step
comes from such a product, and where another factor was multiplied into it."""

FLOAT4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
FLOAT4 = np.concatenate([FLOAT4, -FLOAT4])
"""What 4 bits mean as ONNX's FLOAT4E2M1 (OCP Microscaling Formats, 1.0), of MXFP4 and NVFP4."""
BNB_FLOAT4 = np.array([0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4], np.float32)
BNB_FLOAT4 = np.concatenate([BNB_FLOAT4, -BNB_FLOAT4])
"""The same as bitsandbytes' FP4."""
NORMAL_FLOAT4 = np.array([
    -1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
    -0.18477343022823334, -0.09105003625154495, 0, 0.07958029955625534, 0.16093020141124725,
    0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
    0.7229568362236023, 1], np.float32)
"""And as its NF4: quantiles of a normal distribution (Dettmers et al., "QLoRA", 2023)."""

_BYTE = np.arange(256)
_EXPONENT, _FRACTION = _BYTE >> 3 & 15, (_BYTE & 7) / 8
FLOAT8 = np.where(_EXPONENT, 2.0 ** (_EXPONENT - 7) * (1 + _FRACTION), 2.0 ** -6 * _FRACTION)
FLOAT8 = np.where(_BYTE & 127 == 127, 0, np.where(_BYTE < 128, FLOAT8, -FLOAT8)).astype(np.float32)
"""What 8 bits mean as ONNX's FLOAT8E4M3FN (OCP 8-bit Floating Point, 1.0), but for both NaN, which
no weight is."""


@dataclass(frozen=True, eq=False)
class FewBits:
    """weight[k, n] = (numbers[k, n] - zeros[k // block, n]) * steps[k // block, n], or with
    `levels` levels[numbers[k, n]] * steps[k // block, n]; of 16 bits `numbers` are those of
    bfloat16 or, with `is_half`, float16 themselves."""

    bits: int
    """4, 8 or 16."""
    numbers: np.ndarray
    """uint8 or uint16 (depth, columns)."""
    steps: np.ndarray | None = None
    """float32 (blocks, columns)."""
    zeros: np.ndarray | None = None
    """uint8 (blocks, columns)."""
    levels: np.ndarray | None = None
    """float32 (16,), of 4 bits, or FLOAT8."""
    block: int = CHUNK
    """A multiple of 16."""
    is_half: bool = False


def few_bits(weights: np.ndarray) -> FewBits | None:
    """Of float32 (depth, columns); None where these need all their bits."""
    may_lie_on_grid = _may_lie_on_grid(_some(weights)[:_BLOCKS[-1]])
    found = _on_grid(weights, 4) if may_lie_on_grid else None
    found = found or _on_levels(weights, 4)
    if found is None and may_lie_on_grid:
        found = _on_grid(weights, 8)
    return found or _on_levels(weights, 8) or _of_sixteen_bits(weights)


def _on_grid(weights: np.ndarray, bits: int) -> FewBits | None:
    """Whole numbers, in the largest blocks."""
    for block in _blocks(weights):
        parts = _of_all_columns(weights, partial(_numbers_of, bits=bits, block=block))
        if parts is not None:
            numbers, steps, zeros = parts
            return FewBits(bits, numbers, steps, zeros, block=block)
    return None


def _on_levels(weights: np.ndarray, bits: int) -> FewBits | None:
    """Numbers of tables that are known, or of the sixteen that all weights are."""
    tables = [NORMAL_FLOAT4, FLOAT4, BNB_FLOAT4] if bits == 4 else [FLOAT8]
    own = np.unique(_some(weights))
    if bits == 4 and len(own) <= 16 and 0 in own:
        tables.append(np.resize(own, 16))
    for levels in tables:
        if _places_of(_some(weights)[:_BLOCKS[-1]], levels, _BLOCKS[-1]) is None:
            continue
        for block in _blocks(weights):
            parts = _of_all_columns(weights, partial(_places_of, levels=levels, block=block))
            if parts is not None:
                numbers, steps = parts
                return FewBits(bits, numbers, steps, levels=levels, block=block)
    return None


def _blocks(weights: np.ndarray) -> list[int]:
    whole = -(-len(weights) // CHUNK) * CHUNK
    return [whole, *(block for block in _BLOCKS if block < len(weights))]


_Parts = tuple[np.ndarray, ...]


def _of_all_columns(weights: np.ndarray, find: Callable[[np.ndarray], _Parts | None]
                    ) -> _Parts | None:
    """What `find` finds in each of the columns, side by side; None where it finds none in some."""
    if find(_some(weights)) is None:
        return None
    parts = []
    for columns in _columns_at_once(weights):
        found = find(columns)
        if found is None:
            return None
        parts.append(found)
    return tuple(np.concatenate(part, 1) for part in zip(*parts))


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
        parts = _of_all_columns(weights, partial(_sixteen, is_half=is_half))
        if parts is not None:
            return FewBits(16, parts[0], is_half=is_half)
    return None


def _sixteen(weights: np.ndarray, is_half: bool) -> tuple[np.ndarray] | None:
    """The bits of the same numbers in float16 or bfloat16; None where these are no such numbers."""
    if is_half:
        with np.errstate(over="ignore"):
            half = weights.astype(np.float16)
        is_same = np.isfinite(half).all() and (half.astype(np.float32) == weights).all()
        return (half.view(np.uint16),) if is_same else None
    bits = np.ascontiguousarray(weights).view(np.uint32)
    return None if (bits & 0xffff).any() else ((bits >> 16).astype(np.uint16),)


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
    rows = _rows_of_blocks(weights, block)
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
        left, step = _likely(rows, left, largest[left] / np.float32(parts), np.rint)
        near = rows[left] / step[:, None]
        counted = np.rint(near)
        fits = _are_near(near, counted) & (step > np.finfo(np.float32).tiny)
        fits &= counted.max(1) - counted.min(1) <= most
        steps[left[fits]] = step[fits]
        numbers[left[fits]] = counted[fits]
    if not (steps > 0).all():
        return None
    middle = 1 << bits - 1
    low, high = numbers.min(1), numbers.max(1)
    zeros = np.where((low >= -middle) & (high < middle), middle, np.maximum(-low, 0))
    whole = (numbers + zeros[:, None]).astype(np.uint8)
    columns = weights.shape[1]
    return (_columns_of_blocks(whole, weights.shape), steps.reshape(-1, columns),
            zeros.astype(np.uint8).reshape(-1, columns))


def _places_of(weights: np.ndarray, levels: np.ndarray, block: int
               ) -> tuple[np.ndarray, np.ndarray] | None:
    """(numbers, steps) as FewBits has them."""
    rows = _rows_of_blocks(weights, block)
    largest = np.abs(rows).max(1)
    if not np.isfinite(largest).all():
        return None
    steps = np.where(largest == 0, np.float32(1), np.float32(0))
    places = np.argsort(levels, kind="stable").astype(np.uint8)
    rising = levels[places]
    between = (rising[1:] + rising[:-1]) / 2
    numbers = np.full(rows.shape, np.flatnonzero(levels == 0)[0], np.uint8)
    for size in np.unique(np.abs(levels))[:0:-1]:
        left = np.flatnonzero(steps == 0)
        if not len(left):
            break
        left, step = _likely(rows, left, largest[left] / size,
                             lambda near: rising[np.searchsorted(between, near)])
        near = rows[left] / step[:, None]
        found = np.searchsorted(between, near)
        fits = _are_near(near, rising[found]) & (step > np.finfo(np.float32).tiny)
        steps[left[fits]] = step[fits]
        numbers[left[fits]] = places[found[fits]]
    if not (steps > 0).all():
        return None
    return _columns_of_blocks(numbers, weights.shape), steps.reshape(-1, weights.shape[1])


def _likely(rows: np.ndarray, which: np.ndarray, steps: np.ndarray,
            nearest: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """(which, steps) of the rows whose first numbers fit: of most all need not be looked at."""
    near = rows[which, :_LOOKED_AT_FIRST] / steps[:, None]
    fits = _are_near(near, nearest(near))
    return which[fits], steps[fits]


def _are_near(near: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Whether rows are numbers, as far as rounding leaves them that."""
    return (np.abs(near - numbers) <= _ROUNDING * np.abs(numbers)).all(1)


def _rows_of_blocks(weights: np.ndarray, block: int) -> np.ndarray:
    """(blocks * columns, block): a row for each block of each column."""
    depth, columns = weights.shape
    rows = np.pad(weights, [(0, -depth % block), (0, 0)])
    return rows.reshape(-1, block, columns).transpose(0, 2, 1).reshape(-1, block)


def _columns_of_blocks(rows: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    depth, columns = shape
    blocks = rows.reshape(-1, columns, rows.shape[1]).transpose(0, 2, 1)
    return np.ascontiguousarray(blocks.reshape(-1, columns)[:depth])
