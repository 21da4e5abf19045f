"""Average precision by COCO's rules, of boxes, masks and keypoints.

For each of ten overlaps (0.50 to 0.95) detections take things, the surest first, each the most
alike one that is free; the precision, made falling, is read at 101 recalls and averaged. Crowds and
things outside of the asked-for sizes count neither way. (cocodataset.org, "Detection evaluation".)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from run_model_tools.evaluating.metrics.similarity import (
    box_overlaps,
    keypoint_similarities,
)

OVERLAPS = np.linspace(0.5, 0.95, 10)
RECALLS = np.linspace(0.0, 1.0, 101)
#: Squares of the sides, in pixels, where small things end and large ones begin.
SIZES = {"all": (0.0, 1e10), "small": (0.0, 32.0 ** 2), "medium": (32.0 ** 2, 96.0 ** 2),
         "large": (96.0 ** 2, 1e10)}


@dataclass(frozen=True)
class Things:
    """A picture's things of one category."""

    boxes: np.ndarray
    areas: np.ndarray
    crowd: np.ndarray
    ignored: np.ndarray
    """Crowds, and people without a single annotated point."""
    keypoints: np.ndarray | None = None


@dataclass(frozen=True)
class Detections:
    """A picture's detections of one category, in any order."""

    boxes: np.ndarray
    areas: np.ndarray
    scores: np.ndarray
    keypoints: np.ndarray | None = None
    overlaps: np.ndarray | None = None
    """[detections, things of the category], where it is not boxes that overlap."""


@dataclass(frozen=True)
class _Matched:
    """The detections of one picture, category and size, the surest first."""

    scores: np.ndarray
    matched: np.ndarray
    """[overlaps, detections]: has taken a thing."""
    ignored: np.ndarray
    """[overlaps, detections]: counts neither way."""
    things: int
    """How many there are to be found."""


def _similarities(found: Detections, true: Things, sigmas: np.ndarray | None) -> np.ndarray:
    if found.overlaps is not None:
        return found.overlaps
    if sigmas is None:
        return box_overlaps(found.boxes, true.boxes, true.crowd)
    assert found.keypoints is not None and true.keypoints is not None
    return keypoint_similarities(found.keypoints, true.keypoints, true.boxes, true.areas, sigmas)


def _match(found: Detections, true: Things, similar: np.ndarray, size: tuple[float, float],
           limit: int) -> _Matched:
    """Things that count are offered before those that do not; of equally similar ones the later is
    taken."""
    ignored_things = true.ignored | (true.areas < size[0]) | (true.areas > size[1])
    things = np.argsort(ignored_things, kind="stable")
    order = np.argsort(-found.scores, kind="stable")[:limit]
    shape = (len(OVERLAPS), len(order))
    matched, ignored = np.zeros(shape, bool), np.zeros(shape, bool)
    taken = np.zeros((len(OVERLAPS), len(true.areas)), bool)
    for place, detection in enumerate(order):
        best = np.minimum(OVERLAPS, 1 - 1e-10)
        choice = np.full(len(OVERLAPS), -1)
        for thing in things:
            free = ~taken[:, thing] | true.crowd[thing]
            if ignored_things[thing]:
                # What has found something that counts keeps it.
                free &= ~((choice >= 0) & ~ignored_things[choice])
            better = free & (similar[detection, thing] >= best)
            best = np.where(better, similar[detection, thing], best)
            choice = np.where(better, thing, choice)
        has = choice >= 0
        matched[:, place] = has
        ignored[has, place] = ignored_things[choice[has]]
        taken[np.flatnonzero(has), choice[has]] = True
    outside = (found.areas[order] < size[0]) | (found.areas[order] > size[1])
    ignored |= ~matched & outside[None, :]
    return _Matched(found.scores[order], matched, ignored, int((~ignored_things).sum()))


def _curve(pictures: Sequence[_Matched]) -> tuple[np.ndarray, np.ndarray] | None:
    """([overlaps]: precision averaged over the recalls, [overlaps]: recall), or None where there is
    nothing to be found."""
    things = sum(picture.things for picture in pictures)
    if things == 0:
        return None
    scores = np.concatenate([picture.scores for picture in pictures])
    order = np.argsort(-scores, kind="stable")
    matched = np.concatenate([picture.matched for picture in pictures], axis=1)[:, order]
    ignored = np.concatenate([picture.ignored for picture in pictures], axis=1)[:, order]
    right = np.cumsum(matched & ~ignored, axis=1).astype(np.float64)
    wrong = np.cumsum(~matched & ~ignored, axis=1).astype(np.float64)
    precisions, recalls = np.zeros(len(OVERLAPS)), np.zeros(len(OVERLAPS))
    for index in range(len(OVERLAPS)):
        recall = right[index] / things
        precision = right[index] / (right[index] + wrong[index] + np.spacing(1))
        falling = np.maximum.accumulate(precision[::-1])[::-1]
        places = np.searchsorted(recall, RECALLS, side="left")
        within = places < len(falling)
        precisions[index] = falling[places[within]].sum() / len(RECALLS)
        recalls[index] = recall[-1] if len(recall) else 0.0
    return precisions, recalls


def summarise(categories: dict[int, str], true: dict[tuple[str, int], Things],
              found: dict[tuple[str, int], Detections],
              sigmas: np.ndarray | None = None) -> dict[str, Any]:
    """COCO's table, and the average precision of each category.

    true, found: by (picture, category); every picture that was judged is named in either or has
    nothing.  sigmas: of keypoints, where these are judged and not boxes.
    """
    sizes = ["all", "medium", "large"] if sigmas is not None else list(SIZES)
    limits = (20,) if sigmas is not None else (1, 10, 100)
    curves: dict[tuple[int, str, int], tuple[np.ndarray, np.ndarray] | None] = {}
    none_found = Detections(np.zeros((0, 4)), np.zeros(0), np.zeros(0), np.zeros((0, 0, 2)))
    none_true = Things(np.zeros((0, 4)), np.zeros(0), np.zeros(0, bool), np.zeros(0, bool),
                      np.zeros((0, 0, 3)))
    keys: dict[int, list[tuple[str, int]]] = {}
    for key in sorted(set(true) | set(found)):
        keys.setdefault(key[1], []).append(key)
    for category in categories:
        pairs = [(found.get(key, none_found), true.get(key, none_true))
                 for key in keys.get(category, ())]
        similar = [_similarities(f, t, sigmas) if len(f.scores) and len(t.areas)
                   else np.zeros((len(f.scores), len(t.areas))) for f, t in pairs]
        for size in sizes:
            for limit in limits if size == "all" else limits[-1:]:
                matched = [_match(f, t, s, SIZES[size], limit)
                           for (f, t), s in zip(pairs, similar)]
                curves[category, size, limit] = _curve(matched)

    def mean(size: str, limit: int, part: int, at: float | None = None) -> float | None:
        rows = [curve[part] for category in categories
                if (curve := curves[category, size, limit]) is not None]
        if not rows:
            return None
        values = np.array(rows)
        if at is not None:
            values = values[:, np.isclose(OVERLAPS, at)]
        return float(values.mean())

    most = limits[-1]
    result: dict[str, Any] = {"ap": mean("all", most, 0), "ap50": mean("all", most, 0, 0.5),
                              "ap75": mean("all", most, 0, 0.75)}
    result |= {f"ap_{size}": mean(size, most, 0) for size in sizes[1:]}
    if sigmas is None:
        result |= {f"ar_{limit}": mean("all", limit, 1) for limit in limits}
    else:
        result |= {"ar": mean("all", most, 1), "ar50": mean("all", most, 1, 0.5),
                   "ar75": mean("all", most, 1, 0.75)}
    result |= {f"ar_{size}": mean(size, most, 1) for size in sizes[1:]}
    result["categories"] = [
        {"id": category, "name": name, "things": _count(category, true),
         "ap": None if (curve := curves[category, "all", most]) is None
         else float(curve[0].mean()),
         "ap50": None if curve is None else float(curve[0][0])}
        for category, name in categories.items()]
    return result


def _count(category: int, true: dict[tuple[str, int], Things]) -> int:
    return sum(int((~one.ignored).sum()) for key, one in true.items() if key[1] == category)
