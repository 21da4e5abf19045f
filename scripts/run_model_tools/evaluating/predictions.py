"""What run_model says of a picture, as it is kept: the part that the data set's kind judges."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from run_model_tools.errors import MISMATCH, ToolError
from run_model_tools.evaluating.example import (
    CLASSIFICATION,
    DETECTION,
    KEYPOINTS,
    SEGMENTATION,
    ClassTruth,
    DataSet,
    MaskTruth,
    Thing,
    ThingsTruth,
)
from run_model_tools.evaluating.metrics import classification, segmentation
from run_model_tools.evaluating.metrics.similarity import PERSON_SIGMAS, box_overlaps
from run_model_tools.evaluating.outcome import Judged, Unfit, results_of, the_result
from run_model_tools.evaluating.pixel_predictions import ImageRules, MapRules
from run_model_tools.evaluating.run_lengths import mask_of

#: A picture of things counts as right where all of them are found this well by detections that are
#: as sure as this, and none of these has found nothing.
SURE, WELL = 0.5, 0.5


def judge(data: DataSet, mapping: CategoryMapping, rules: MapRules | ImageRules | None,
          ) -> Callable[[dict[str, Any], Any], Judged]:
    """A function of run_model's report and the picture's truth; raises Unfit. rules: of maps and
    images."""
    if rules is not None:
        return rules.judge
    if data.kind == CLASSIFICATION:
        return _judge_class
    if data.kind in (DETECTION, KEYPOINTS):
        return lambda report, truth: _judge_things(report, truth, mapping,
                                                   data.kind == KEYPOINTS)
    return _judge_mask


@dataclass
class CategoryMapping:
    """From the network's classes to the data set's categories.

    how: `name` (they are called alike), `order` (class i is the i-th category by its number) or
    `id` (class i is category i).  unknown counts the detections whose class is no category.
    """

    categories: dict[int, str]
    how: str

    def __post_init__(self) -> None:
        self._by_name = {name: number for number, name in self.categories.items()}
        self._in_order = sorted(self.categories)

    def category(self, index: int, label: str | None) -> int | None:
        if self.how == "id":
            return index if index in self.categories else None
        if self.how == "order":
            return self._in_order[index] if index < len(self._in_order) else None
        if label is None:
            raise ToolError(MISMATCH, (
                "the network's classes have no labels, and the data set's categories are found by "
                "name: add labels to the task, or --classes order or --classes id."))
        return self._by_name.get(label)


def _judge_class(report: dict[str, Any], truth: ClassTruth) -> Judged:
    found = results_of(report, "classification")
    top = found[0].get("top") if found else report.get("top")
    if not isinstance(top, list) or not top:
        raise ToolError(MISMATCH, "the network does not say classes: its metadata names no task of "
                                  "the kind classification.")
    best = [(int(item["index"]), float(item["probability"])) for item in top]
    rank = classification.rank([index for index, _ in best], truth.index)
    score = next((p for index, p in best if index == truth.index), 0.0)
    return Judged({"top": best, "truth": truth.index}, score, rank == 0)


def _judge_things(report: dict[str, Any], truth: ThingsTruth, mapping: CategoryMapping,
                  keypoints: bool) -> Judged:
    found = results_of(report, "detection")
    if not found and not results_of(report, "landmarks"):
        raise ToolError(MISMATCH, "the network finds no things: its metadata names no task of the "
                                  "kind detection.")
    kept, unknown = [], 0
    for detection in (d for one in found for d in one["detections"]):
        category = mapping.category(int(detection["class"]), detection.get("label"))
        if category is None:
            unknown += 1
            continue
        box = [float(v) for v in detection["box"]]
        score = float(detection["score"])
        if not all(math.isfinite(v) for v in (*box, score)):
            raise Unfit("a detection has a number that is not finite")
        one: list[Any] = [category, score, *box]
        if keypoints:
            one.append([float(v) for point in detection.get("keypoints", ()) for v in point[:2]])
        kept.append(one)
    if keypoints:
        kept = _with_points(kept, truth)
    correct, score = _all_found(kept, truth.things)
    return Judged({"found": kept, "unknown": unknown}, score, correct)


def _with_points(kept: list[list[Any]], truth: ThingsTruth) -> list[list[Any]]:
    wanted = next((len(t.keypoints) for t in truth.things if t.keypoints), len(PERSON_SIGMAS))
    for one in kept:
        if len(one[6]) != 2 * wanted:
            raise ToolError(MISMATCH, f"the network gives {len(one[6]) // 2} keypoints for a "
                                      f"person, and the data set has {wanted}.")
    return kept


def _all_found(found: list[list[Any]], things: Sequence[Thing]) -> tuple[bool, float]:
    """(whether the sure ones are just the things that count, twice the shared ones by the sum of
    both)."""
    true = [thing for thing in things if not thing.crowd]
    crowd = [thing for thing in things if thing.crowd]
    sure = sorted((one for one in found if one[1] >= SURE), key=lambda one: -one[1])
    boxes = np.array([thing.box for thing in true], float).reshape(-1, 4)
    free = np.ones(len(true), bool)
    shared = wrong = 0
    for one in sure:
        box = np.array(one[2:6], float)[None]
        same = np.array([thing.category == one[0] for thing in true], bool) & free
        overlaps = box_overlaps(box, boxes, np.zeros(len(true), bool))[0] * same
        if len(true) and overlaps.max(initial=0) >= WELL:
            free[overlaps.argmax()] = False
            shared += 1
            continue
        of_crowd = [thing.box for thing in crowd if thing.category == one[0]]
        near = box_overlaps(box, np.array(of_crowd, float).reshape(-1, 4),
                            np.ones(len(of_crowd), bool))
        wrong += not near.max(initial=0) >= WELL
    total = 2 * shared + wrong + int(free.sum())
    return shared == len(true) and wrong == 0, 2 * shared / total if total else 1.0


def _judge_mask(report: dict[str, Any], truth: MaskTruth) -> Judged:
    try:
        predicted, classes = areas_of(the_result(report, SEGMENTATION))
    except (KeyError, TypeError, ValueError) as error:
        raise Unfit(f"run_model's mask cannot be read: {error}") from None
    mask = read_mask(truth)
    if mask.shape != predicted.shape:
        raise Unfit(f"the mask {truth.path} has {mask.shape[1]} x {mask.shape[0]} pixels and the "
                    f"picture {predicted.shape[1]} x {predicted.shape[0]}")
    # What the network has not seen, because the picture was cropped, is not judged.
    mask = np.where(predicted == segmentation.VOID, segmentation.VOID, mask)
    classes = max(classes, int(mask[mask != segmentation.VOID].max(initial=0)) + 1)
    matrix = segmentation.confusion(mask, np.where(predicted == segmentation.VOID, 0, predicted),
                                    classes)
    figures = segmentation.summarise(matrix)
    score = figures["miou"] if figures["miou"] is not None else 1.0
    return Judged({"confusion": matrix.tolist()}, score, score >= WELL)


def areas_of(result: dict[str, Any]) -> tuple[np.ndarray, int]:
    """(uint8 [height, width] of areas, 255 where there is none; how many the network knows)."""
    areas = np.full((int(result["height"]), int(result["width"])), segmentation.VOID, np.uint8)
    classes = 0
    for one in result["classes"]:
        index = int(one["class"])
        if not 0 <= index < segmentation.VOID:
            raise ValueError(f"it has the class {index}")
        areas[mask_of(one["rle"])] = index
        classes = max(classes, index + 1)
    return areas, classes


def read_mask(truth: MaskTruth) -> np.ndarray:
    """The numbers that the PNG holds; of a palette its indices. Raises Unfit."""
    try:
        with Image.open(truth.path) as picture:
            if picture.mode not in ("L", "P", "1"):
                raise Unfit(f"the mask {truth.path} has colours ({picture.mode}), where one number "
                            "for each pixel is expected")
            return np.asarray(picture.convert("L") if picture.mode == "1" else picture)
    except (OSError, ValueError, SyntaxError) as error:
        raise Unfit(f"the mask {truth.path} cannot be read: {error}") from None
