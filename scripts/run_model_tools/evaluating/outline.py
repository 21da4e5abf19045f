"""The mask of a thing as COCO's annotations have it, polygons or run lengths, and how much masks
overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: COCO's programs follow a polygon's sides on a grid that is finer than pixels by this.
_FINER = 5


@dataclass(frozen=True)
class Outline:
    """Polygons (x0, y0, x1, y1 ...), whose union it is, or run lengths of zeros and ones down the
    columns, of a picture of so many pixels."""

    height: int
    width: int
    polygons: tuple[tuple[float, ...], ...] = ()
    lengths: tuple[int, ...] = ()

    def mask(self) -> np.ndarray:
        """bool [width * height], column after column."""
        if self.lengths:
            return np.repeat(np.arange(len(self.lengths)) % 2 == 1, self.lengths)
        mask = np.zeros(self.width * self.height, bool)
        for polygon in self.polygons:
            mask |= _filled(np.reshape(polygon, (-1, 2)), self.height, self.width)
        return mask


def _cut(values: np.ndarray) -> np.ndarray:
    """Whole numbers with the fractions cut off, as C makes them."""
    return np.trunc(values).astype(np.int64)


def _filled(points: np.ndarray, height: int, width: int) -> np.ndarray:
    """pycocotools' rleFrPoly(), so that areas are the ones that its figures are of: of each column
    that the border crosses, the pixel that it changes from."""
    x, y = _cut(_FINER * points + 0.5).T
    across, down = [], []
    for x0, y0, x1, y1 in zip(x, y, np.roll(x, -1), np.roll(y, -1)):
        wide = abs(x1 - x0) >= abs(y1 - y0)
        steps = int(max(abs(x1 - x0), abs(y1 - y0)))
        turned = x0 > x1 if wide else y0 > y1
        if turned:
            x0, y0, x1, y1 = x1, y1, x0, y0
        t = np.arange(steps, -1, -1) if turned else np.arange(steps + 1)
        slope = ((y1 - y0) if wide else (x1 - x0)) / steps if steps else 0.0
        across.append(t + x0 if wide else _cut(x0 + slope * t + 0.5))
        down.append(_cut(y0 + slope * t + 0.5) if wide else t + y0)
    u, v = np.concatenate(across), np.concatenate(down)
    changes = np.flatnonzero(np.diff(u)) + 1
    left = np.where(u[changes] < u[changes - 1], u[changes], u[changes] - 1)
    column = (left + 0.5) / _FINER - 0.5
    row = (np.minimum(v[changes], v[changes - 1]) + 0.5) / _FINER - 0.5
    inside = (column == np.floor(column)) & (column >= 0) & (column <= width - 1)
    row = np.ceil(np.clip(row[inside], 0, height)).astype(np.int64)
    places = column[inside].astype(np.int64) * height + row
    return (np.bincount(places, minlength=height * width + 1)[:-1].cumsum() & 1).astype(bool)


def mask_overlaps(found: Sequence[np.ndarray], true: Sequence[Outline | None],
                  crowd: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """[found, true], 0 to 1: intersection over union; with a crowd, over the detection's own area.

    found: run lengths of masks of the same size.  wanted: bool [found, true]; of other pairs it
    is 0.
    """
    result = np.zeros(wanted.shape)
    borders = []
    for lengths in found:
        ends = np.cumsum(lengths)
        borders.append((ends[0::2][:len(ends) // 2], ends[1::2]))
    for j, outline in enumerate(true):
        if outline is None or not wanted[:, j].any():
            continue
        before = np.concatenate([[0], np.cumsum(outline.mask(), dtype=np.int64)])
        for i in np.flatnonzero(wanted[:, j]):
            starts, ends = borders[i]
            common = int(before[ends].sum() - before[starts].sum())
            own = int((ends - starts).sum())
            whole = own if crowd[j] else own + int(before[-1]) - common
            result[i, j] = common / whole if whole else 0.0
    return result
