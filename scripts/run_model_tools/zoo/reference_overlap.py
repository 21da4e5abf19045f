"""How much boxes overlap, also those with an angle: NumPy's side of postprocess/README.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Overlaps = Callable[[int, list[int]], np.ndarray]
"""Of one candidate's box with those of others, by their places."""


def angles_of(task: dict[str, Any], numbers: np.ndarray) -> np.ndarray:
    """The network's numbers as radians, clockwise."""
    angle = task["angle"]
    radians = np.radians(numbers) if angle["unit"] == "degrees" else numbers
    return -radians if angle["direction"] == "counter-clockwise" else radians


def turned(corners: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """[N, 2, 2] of left top and right bottom corners -> [N, 4, 2], turned about their middles."""
    middle, half = corners.mean(axis=1), (corners[:, 1] - corners[:, 0]) / 2
    upright = half[:, None] * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    c, s = np.cos(angles)[:, None], np.sin(angles)[:, None]
    return middle[:, None] + np.stack([upright[..., 0] * c - upright[..., 1] * s,
                                       upright[..., 0] * s + upright[..., 1] * c], -1)


def overlaps_of(nms: dict[str, Any], corners: np.ndarray, angles: np.ndarray | None) -> Overlaps:
    """By the measure that the suppression is by."""
    if angles is None:
        return lambda place, others: _upright(corners[place], corners[others])
    if nms["overlap"] == "area":
        polygons = turned(corners, angles)
        return lambda place, others: np.array([
            overlap_of_areas(polygons[place], polygons[other]) for other in others])
    middles, covariances = _normal(corners, angles)
    return lambda place, others: _probabilistic(middles[place], covariances[place],
                                                middles[others], covariances[others])


def _upright(box: np.ndarray, others: np.ndarray) -> np.ndarray:
    both = np.clip(np.minimum(box[1], others[:, 1]) - np.maximum(box[0], others[:, 0]), 0, None)
    shared = both.prod(axis=1)
    union = np.prod(box[1] - box[0]) + (others[:, 1] - others[:, 0]).prod(axis=1) - shared
    return np.where(union > 0, shared / np.where(union > 0, union, 1), 0)


def _area(polygon: np.ndarray) -> float:
    x, y = polygon.T
    return abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1))) / 2


def overlap_of_areas(a: np.ndarray, b: np.ndarray) -> float:
    """Intersection over union of two polygons, a cut along the sides of b, which is convex and
    clockwise (y downwards)."""
    common = [*a]
    for start, end in zip(b, np.roll(b, -1, 0)):
        way = end - start
        inside = [way[0] * (p[1] - start[1]) - way[1] * (p[0] - start[0]) for p in common]
        cut = []
        for i, (point, side) in enumerate(zip(common, inside)):
            after = (i + 1) % len(common)
            if side >= 0:
                cut.append(point)
            if side * inside[after] < 0:
                cut.append(point + (common[after] - point) * side / (side - inside[after]))
        common = cut
    shared = _area(np.array(common)) if len(common) > 2 else 0.0
    union = _area(a) + _area(b) - shared
    return shared / union if union > 0 else 0.0


def _normal(corners: np.ndarray, angles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The means and covariances of even distributions over boxes."""
    along, across = np.moveaxis((corners[:, 1] - corners[:, 0]) ** 2 / 12, 1, 0)
    c, s = np.cos(angles), np.sin(angles)
    xy = (along - across) * c * s
    return corners.mean(axis=1), np.stack(
        [np.stack([along * c ** 2 + across * s ** 2, xy], -1),
         np.stack([xy, along * s ** 2 + across * c ** 2], -1)], -2)


def _probabilistic(middle: np.ndarray, covariance: np.ndarray, middles: np.ndarray,
                   covariances: np.ndarray, small: float = 1e-7) -> np.ndarray:
    """Ultralytics' batch_probiou."""
    way, both = middle - middles, covariance + covariances
    determinant = both[:, 0, 0] * both[:, 1, 1] - both[:, 0, 1] ** 2
    means = (both[:, 0, 0] * way[:, 1] ** 2 + both[:, 1, 1] * way[:, 0] ** 2
             - 2 * both[:, 0, 1] * way[:, 0] * way[:, 1]) / (determinant + small) / 4

    def own(matrix: np.ndarray) -> np.ndarray:
        return np.clip(matrix[..., 0, 0] * matrix[..., 1, 1] - matrix[..., 0, 1] ** 2, 0, None)

    ratio = determinant / (4 * np.sqrt(own(covariance) * own(covariances)) + small)
    distance = np.clip(means + np.log(ratio + small) / 2, small, 100)
    return 1 - np.sqrt(1 - np.exp(-distance) + small)
