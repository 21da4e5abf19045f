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
    INSTANCES,
    KEYPOINTS,
    OF_THINGS,
    SEGMENTATION,
    TURNED,
    ClassTruth,
    DataSet,
    MaskTruth,
    Thing,
    ThingsTruth,
)
from run_model_tools.evaluating.metrics import classification, segmentation
from run_model_tools.evaluating.metrics.similarity import (
    PERSON_SIGMAS,
    box_overlaps,
    polygon_areas,
    polygon_overlaps,
)
from run_model_tools.evaluating.outcome import Judged, Unfit, results_of, the_result
from run_model_tools.evaluating.outline import mask_overlaps
from run_model_tools.evaluating.pixel_predictions import ImageRules, MapRules
from run_model_tools.evaluating.run_lengths import lengths_of, mask_of

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
    if data.kind in OF_THINGS:
        return lambda report, truth: judge_things(report, truth, mapping, data.kind)
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


def judge_things(report: dict[str, Any], truth: ThingsTruth, mapping: CategoryMapping,
                 kind: str) -> Judged:
    """Of each detection it keeps category, score, x0, y0, x1, y1; its keypoints; of a mask, or of a
    box with an angle, its area and how much it overlaps each of the category's things. Raises
    Unfit, and ToolError (6) where the network does not give what is judged."""
    size = report.get("width"), report.get("height")
    if truth.size is not None and None not in size and size != truth.size:
        raise Unfit(f"the picture has {size[0]} x {size[1]} pixels, and {truth.size[0]} x "
                    f"{truth.size[1]} by the data set")
    found = results_of(report, "detection")
    if not found and not results_of(report, "landmarks"):
        raise ToolError(MISMATCH, "the network finds no things: its metadata names no task of the "
                                  "kind detection.")
    known, kept, unknown = [], [], 0
    for detection in (d for one in found for d in one["detections"]):
        category = mapping.category(int(detection["class"]), detection.get("label"))
        if category is None:
            unknown += 1
            continue
        box = [float(v) for v in detection["box"]]
        score = float(detection["score"])
        if not all(math.isfinite(v) for v in (*box, score)):
            raise Unfit("a detection has a number that is not finite")
        known.append(detection)
        kept.append([category, score, *box])
    overlaps = _overlaps(kind, known, kept, truth.things)
    correct, score = _all_found(kept, truth.things, overlaps)
    return Judged({"found": kept, "unknown": unknown}, score, correct)


def _overlaps(kind: str, known: list[dict[str, Any]], kept: list[list[Any]],
              things: Sequence[Thing]) -> np.ndarray:
    """[detections, things]; adds to what is kept of each detection. Raises as judge_things()."""
    crowd = np.array([thing.crowd for thing in things], bool)
    if kind not in (INSTANCES, TURNED):
        if kind == KEYPOINTS:
            _add_points(known, kept, things)
        boxes = np.array([one[2:6] for one in kept], float).reshape(-1, 4)
        return box_overlaps(boxes, np.array([t.box for t in things], float).reshape(-1, 4), crowd)
    categories = np.array([thing.category for thing in things])
    same = np.array([one[0] for one in kept])[:, None] == categories[None, :]
    if kind == INSTANCES:
        masks = [_lengths(detection, things) for detection in known]
        areas = [float(lengths[1::2].sum()) for lengths in masks]
        overlaps = mask_overlaps(masks, [thing.outline for thing in things], crowd, same)
    else:
        corners = np.array([_corners(one) for one in known]).reshape(-1, 4, 2)
        areas = polygon_areas(corners).tolist()
        overlaps = polygon_overlaps(corners, np.array([t.corners for t in things], float).reshape(
            -1, 4, 2)) * same
    for one, area, row in zip(kept, areas, overlaps):
        one += [area, row[categories == one[0]].tolist()]
    return overlaps


def _add_points(known: list[dict[str, Any]], kept: list[list[Any]],
                things: Sequence[Thing]) -> None:
    wanted = next((len(t.keypoints) for t in things if t.keypoints), len(PERSON_SIGMAS))
    for detection, one in zip(known, kept):
        points = [float(v) for point in detection.get("keypoints", ()) for v in point[:2]]
        if len(points) != 2 * wanted:
            raise ToolError(MISMATCH, f"the network gives {len(points) // 2} keypoints for a "
                                      f"person, and the data set has {wanted}.")
        one.append(points)


def _lengths(detection: dict[str, Any], things: Sequence[Thing]) -> np.ndarray:
    if "mask" not in detection:
        raise ToolError(MISMATCH, "the network gives no masks of things: its task has no 'masks'.")
    try:
        height, width, lengths = lengths_of(detection["mask"]["rle"])
    except (KeyError, TypeError, ValueError) as error:
        raise Unfit(f"run_model's mask cannot be read: {error}") from None
    of_picture = next((thing.outline for thing in things if thing.outline is not None), None)
    if of_picture is not None and (of_picture.height, of_picture.width) != (height, width):
        raise Unfit(f"the picture has {width} x {height} pixels, and {of_picture.width} x "
                    f"{of_picture.height} by the data set")
    return lengths


def _corners(detection: dict[str, Any]) -> np.ndarray:
    if "corners" not in detection:
        raise ToolError(MISMATCH, "the network's boxes have no angle: its task has no 'angle'.")
    return np.array(detection["corners"], float)


def _all_found(found: list[list[Any]], things: Sequence[Thing],
               overlaps: np.ndarray) -> tuple[bool, float]:
    """(whether the sure ones are just the things that count, twice the shared ones by the sum of
    both)."""
    uncounted = np.array([thing.crowd or thing.optional for thing in things], bool)
    categories = np.array([thing.category for thing in things])
    free = ~uncounted
    shared = wrong = 0
    for place in sorted(range(len(found)), key=lambda place: -found[place][1]):
        if found[place][1] < SURE:
            break
        near = overlaps[place] * (categories == found[place][0])
        if (near * free).max(initial=0) >= WELL:
            free[(near * free).argmax()] = False
            shared += 1
        else:
            wrong += not (near * uncounted).max(initial=0) >= WELL
    total = 2 * shared + wrong + int(free.sum())
    return not free.any() and wrong == 0, 2 * shared / total if total else 1.0


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
