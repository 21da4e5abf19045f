"""Things with masks, and boxes with an angle, as data sets have them, and detections of them, of a
seed: polygons that leave the picture, masks of two parts, crowds as run lengths, difficult things,
corners that make no rectangle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

HEIGHT, WIDTH = 120, 160
CATEGORIES = [{"id": 3, "name": "ball"}, {"id": 7, "name": "robot"}, {"id": 11, "name": "nothing"}]
_SPREADS = (0.02, 0.08, 0.2)


def _things(random: np.random.Generator, pictures: int,
            ) -> Iterator[tuple[int, int, np.ndarray, np.ndarray, list[tuple[float, np.ndarray]]]]:
    """(picture, category, middle, sides, [(score, change of middle and sides)]) of each thing; what
    detections have made up has a category below 0."""
    for picture in range(1, pictures + 1):
        for _ in range(int(random.integers(1, 7))):
            made_up = random.random() < 0.2
            count = 1 if made_up else int(random.choice([0, 1, 2], p=[0.2, 0.6, 0.2]))
            found = []
            for _ in range(count):
                spread = float(random.choice(_SPREADS))
                # Two digits, so that some scores are equal.
                found.append((round(float(np.clip(random.beta(3, 2) - spread, 0.01, 1)), 2),
                              random.normal(0, spread, 5)))
            category = int(random.choice([3, 7]))
            yield (picture, -category if made_up else category,
                   random.uniform(0, 1, 2) * (WIDTH, HEIGHT),
                   np.exp(random.uniform(np.log(6), np.log(110), 2)), found)


def _images(pictures: int) -> list[dict[str, Any]]:
    return [{"id": number, "file_name": f"{number:02d}.png", "width": WIDTH, "height": HEIGHT}
            for number in range(1, pictures + 1)]


def _polygon(unit: np.ndarray, middle: np.ndarray, sides: np.ndarray) -> list[float]:
    return [round(float(v), 2) for v in (middle + unit * sides).ravel()]


def make_masks(seed: int = 21, pictures: int = 14) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """(COCO's annotations, detections with `polygons`)."""
    random = np.random.default_rng(seed)
    annotations: list[dict[str, Any]] = []
    detections = []
    for picture, category, middle, sides, found in _things(random, pictures):
        corners = int(random.integers(3, 9))
        angle = np.sort(random.uniform(0, 2 * np.pi, corners))
        unit = np.stack([np.cos(angle), np.sin(angle)], 1) * random.uniform(0.2, 0.6, (corners, 1))
        parts = [unit, unit * 0.4 + 0.5] if random.random() < 0.2 else [unit]
        crowd = random.random() < 0.15
        if category > 0:
            polygons = [_polygon(part, middle, sides) for part in parts]
            low = np.clip(middle - sides / 2, 0, (WIDTH - 2, HEIGHT - 2)).astype(int)
            high = np.clip(middle + sides / 2, low + 1, (WIDTH, HEIGHT)).astype(int)
            area = (high - low).prod() if crowd else sides.prod() * 0.6
            annotations.append({
                "id": len(annotations) + 1, "image_id": picture, "category_id": category,
                "bbox": [*map(float, low), *map(float, high - low)], "iscrowd": int(crowd),
                "area": round(float(area), 2),
                "segmentation": _rectangle(low, high) if crowd else polygons})
        for score, change in found:
            moved, scaled = middle + change[:2] * sides, sides * np.exp(change[2:4])
            detections.append({"image_id": picture, "category_id": abs(category), "score": score,
                               "polygons": [_polygon(part, moved, scaled) for part in parts]})
    return {"info": {}, "images": _images(pictures), "annotations": annotations,
            "categories": CATEGORIES}, detections


def _rectangle(low: np.ndarray, high: np.ndarray) -> dict[str, Any]:
    mask = np.zeros((HEIGHT, WIDTH), bool)
    mask[low[1]:high[1], low[0]:high[0]] = True
    flat = mask.T.ravel()
    changes = np.flatnonzero(np.diff(flat)) + 1
    lengths = np.diff(np.concatenate([[0], changes, [flat.size]])).tolist()
    return {"size": [HEIGHT, WIDTH], "counts": ([0] if flat[0] else []) + lengths}


def make_turned(seed: int = 22, pictures: int = 20) -> tuple[list[dict], list[dict]]:
    """(things with `corners` and `difficult`, detections with `corners`)."""
    random = np.random.default_rng(seed)
    things, detections = [], []
    square = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) / 2

    def corners(middle: np.ndarray, sides: np.ndarray, angle: float) -> np.ndarray:
        c, s = np.cos(angle), np.sin(angle)
        return middle + square * sides @ np.array([[c, s], [-s, c]])

    for picture, category, middle, sides, found in _things(random, pictures):
        angle = random.uniform(-np.pi, np.pi)
        if category > 0:
            # As people mark them: no quite right angles, the first corner anywhere, either way.
            marked = corners(middle, sides, angle) + random.normal(0, 0.03, (4, 2)) * sides.min()
            marked = np.roll(marked, int(random.integers(4)), 0)[::random.choice([1, -1])]
            things.append({"image_id": picture, "category_id": category,
                           "difficult": int(random.random() < 0.2),
                           "corners": np.round(marked, 2).tolist()})
        for score, change in found:
            quadrangle = corners(middle + change[:2] * sides, sides * np.exp(change[2:4]),
                                 angle + change[4])
            detections.append({"image_id": picture, "category_id": abs(category), "score": score,
                               "corners": np.round(quadrangle, 3).tolist()})
    return things, detections


def make_scores(seed: int = 23) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Scores, and whether they are of the second class; many equal ones, and rare classes."""
    random = np.random.default_rng(seed)
    cases = {}
    for name, count, share, digits in (("many", 400, 0.5, 6), ("equal", 200, 0.3, 1),
                                       ("rare", 300, 0.02, 3), ("few", 5, 0.5, 2)):
        positive = random.random(count) < share
        positive[:2] = [True, False]
        cases[name] = (np.round(np.clip(random.normal(0.4 + 0.2 * positive, 0.2), 0, 1), digits),
                       positive)
    return cases
