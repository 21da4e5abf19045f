"""A class, a number or a colour for each pixel, in NumPy's float64, for reference_results.py.

What the network did not see, because the picture was cropped, is OUTSIDE of classes, NaN of
numbers, and has a fourth channel of 0 in pictures.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from run_model_tools.zoo.placement import Placement

OUTSIDE = 255
_CUBIC = -0.75
"""The a of Keys's cubic convolution that torch's interpolate() and OpenCV have."""


class Pixels:
    """The pixels of the picture on maps of [height, width] that cover the whole input."""

    def __init__(self, placement: Placement, shape: tuple[int, ...]) -> None:
        height, width = shape
        size = placement.input
        x, y = ((np.arange(n) + 0.5) * placement.scale[i] + placement.start[i]
                for i, n in enumerate(placement.picture))
        self.unseen = ((y < 0) | (y > size[1]))[:, None] | ((x < 0) | (x > size[0]))[None, :]
        # Of the middles of pixels, where the first pixel of the map is the place 0.5.
        self._y, self._x = y * height / size[1], x * width / size[0]
        self._shape = height, width

    def nearest(self, maps: np.ndarray) -> np.ndarray:
        """[..., height, width] -> [..., those of the picture]."""
        height, width = self._shape
        y = np.clip(np.floor(self._y), 0, height - 1).astype(int)
        x = np.clip(np.floor(self._x), 0, width - 1).astype(int)
        return maps[..., y[:, None], x[None, :]]

    def bilinear(self, maps: np.ndarray) -> np.ndarray:
        """[..., height, width] -> [..., those of the picture]; beyond the border, its value."""
        return self._weighted(maps, lambda t: np.stack([1 - t, t], -1), 0, True)

    def bicubic(self, maps: np.ndarray) -> np.ndarray:
        """[..., height, width] -> [..., those of the picture] by cubic convolution; beyond the
        border, its pixels are repeated."""
        def weights(t: np.ndarray) -> np.ndarray:
            distance = np.stack([1 + t, t, 1 - t, 2 - t], -1)
            near = (_CUBIC + 2) * distance ** 3 - (_CUBIC + 3) * distance ** 2 + 1
            far = _CUBIC * (distance ** 3 - 5 * distance ** 2 + 8 * distance - 4)
            return np.where(distance <= 1, near, far)
        return self._weighted(maps, weights, 1, False)

    def _weighted(self, maps: np.ndarray, weights: Any, before: int,
                  clip: bool) -> np.ndarray:
        def along(places: np.ndarray, count: int, values: np.ndarray, axis: int) -> np.ndarray:
            place = places - 0.5
            if clip:
                place = np.clip(place, 0, count - 1)
            first = np.floor(place)
            shares = weights(place - first)
            at = first[:, None].astype(int) - before + np.arange(shares.shape[1])
            taken = np.take(values, np.clip(at, 0, count - 1), axis)
            shape = (shares.shape if axis == -1 else (*shares.shape, 1))
            return (taken * shares.reshape(shape)).sum(-1 if axis == -1 else -2)
        rows = along(self._y, self._shape[0], maps, -2)
        return along(self._x, self._shape[1], rows, -1)


def classes_of(task: dict[str, Any], maps: np.ndarray, placement: Placement) -> np.ndarray:
    """int [height, width] of the picture. maps: [C, H, W], a mask's after its activation."""
    def decided(maps: np.ndarray) -> np.ndarray:
        if task["form"] == "mask":
            return (maps[0] >= task.get("threshold", 0.5)).astype(int)
        return maps[0].astype(int) if task["form"] == "indices" else maps.argmax(axis=0)

    pixels = Pixels(placement, maps.shape[1:])
    if task["form"] == "indices" or task.get("resample") == "nearest":
        classes = pixels.nearest(decided(maps))
    else:
        classes = decided(pixels.bilinear(maps))
    return np.where(pixels.unseen, OUTSIDE, classes)


def numbers_of(task: dict[str, Any], numbers: np.ndarray, placement: Placement) -> np.ndarray:
    """float32 [height, width] of the picture. numbers: [H, W]."""
    pixels = Pixels(placement, numbers.shape)
    resampled = getattr(pixels, task.get("resample", "bilinear"))(numbers) * task.get("scale", 1)
    if task["quantity"] == "depth":
        resampled = np.maximum(resampled, 0)
    return np.where(pixels.unseen, np.nan, resampled).astype(np.float32)


def picture_of(task: dict[str, Any], planes: np.ndarray, placement: Placement) -> np.ndarray:
    """uint8 [height, width, 3] of the network's own pixels, without padding; or of the picture's
    with a fourth channel, 255 where it was seen. planes: [C, H, W]."""
    ranges = task["range"]
    if not isinstance(ranges[0], list):
        ranges = [ranges] * len(planes)
    black, white = np.array(ranges, np.float64).T[..., None, None]
    levels = 255 * (planes - black) / (white - black)
    if task["color_order"] == "BGR":
        levels = levels[::-1]
    levels = np.broadcast_to(levels, (3, *planes.shape[1:]))
    seen = None
    if task.get("size", "output") == "picture":
        pixels = Pixels(placement, planes.shape[1:])
        levels, seen = pixels.bilinear(levels), ~pixels.unseen
    else:
        share = np.array(planes.shape[:0:-1]) / np.array(placement.input)
        last = placement.start + np.array(placement.picture) * placement.scale
        first = np.maximum(placement.start, 0) * share
        last = np.minimum(last, placement.input) * share
        x0, y0 = np.floor(first + 0.5).astype(int)
        x1, y1 = np.maximum(np.floor(last + 0.5).astype(int), (x0 + 1, y0 + 1))
        levels = levels[:, y0:y1, x0:x1]
    colors = np.clip(np.floor(levels + 0.5), 0, 255).astype(np.uint8).transpose(1, 2, 0)
    if seen is None:
        return colors
    return np.dstack([np.where(seen[..., None], colors, 0), np.where(seen, 255, 0)]).astype(
        np.uint8)


def mask_of_thing(sums: np.ndarray, box: np.ndarray, placement: Placement) -> np.ndarray:
    """bool [height, width] of the picture: where the sums of prototypes [H, W] are above 0, within
    the box [2, 2] on the input."""
    pixels = Pixels(placement, sums.shape)
    x, y = ((np.arange(n) + 0.5) * placement.scale[i] + placement.start[i]
            for i, n in enumerate(placement.picture))
    (left, top), (right, bottom) = box
    inside = ((y >= top) & (y < bottom))[:, None] & ((x >= left) & (x < right))[None, :]
    return np.asarray((pixels.bilinear(sums) > 0) & inside & ~pixels.unseen)


def areas_of_mask(mask: np.ndarray) -> dict[str, Any]:
    """As reports have it."""
    return {"pixels": int(mask.sum()),
            "rle": {"size": list(mask.shape), "counts": coco_counts(mask)}}


def coco_counts(mask: np.ndarray) -> str:
    """COCO's compressed run lengths: columns first, beginning with zeros, differences to the run
    before the last in groups of five bits."""
    flat = mask.astype(np.int8).ravel(order="F")
    edges = np.flatnonzero(np.diff(flat)) + 1
    runs = np.diff([0, *edges, flat.size]).tolist()
    if flat.size and flat[0]:
        runs = [0, *runs]
    text = []
    for i, run in enumerate(runs):
        value = run - runs[i - 2] if i > 2 else run
        while True:
            bits = value & 0x1F
            value >>= 5
            more = value != (-1 if bits & 0x10 else 0)
            text.append(chr((bits | 0x20 if more else bits) + 48))
            if not more:
                break
    return "".join(text)
