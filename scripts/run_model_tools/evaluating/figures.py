"""From a run's stored results to its figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from run_model_tools.evaluating.example import (
    CLASSIFICATION,
    IMAGE,
    KEYPOINTS,
    MAP,
    SEGMENTATION,
    DataSet,
    Example,
    ThingsTruth,
)
from run_model_tools.evaluating.metrics import (
    average_precision,
    classification,
    depth,
    likeness,
    segmentation,
)
from run_model_tools.evaluating.metrics.average_precision import Detections, Things
from run_model_tools.evaluating.metrics.similarity import PERSON_SIGMAS
from run_model_tools.evaluating.store import Result


def figures(data: DataSet, results: list[Result]) -> dict[str, Any]:
    """Of the pictures that have been judged."""
    judged = {r.key: r for r in results if r.error is None}
    if data.kind == CLASSIFICATION:
        predictions = [r.prediction for r in judged.values()]
        return {**classification.summarise([
            classification.rank([index for index, _ in one["top"]], one["truth"])
            for one in predictions]), **_of_two_classes(predictions)}
    if data.kind == SEGMENTATION:
        return _of_areas(list(judged.values()))
    if data.kind in (MAP, IMAGE):
        summarise = depth.summarise if data.kind == MAP else likeness.summarise
        return summarise([r.prediction for r in judged.values()])
    examples = [example for example in data.examples if example.key in judged]
    return {"pictures": len(examples), **_of_things(data, examples, judged)}


def _of_two_classes(predictions: list[dict[str, Any]]) -> dict[str, Any]:
    """How well the second of a network's two classes is told by its score; nothing for others."""
    if not predictions or any(sorted(index for index, _ in one["top"]) != [0, 1]
                              or one["truth"] not in (0, 1) for one in predictions):
        return {}
    scores = np.array([dict(map(tuple, one["top"]))[1] for one in predictions])
    return classification.summarise_two(
        scores, np.array([one["truth"] == 1 for one in predictions]))


def _of_areas(results: list[Result]) -> dict[str, Any]:
    matrices = [np.array(r.prediction["confusion"], np.int64) for r in results]
    size = max((len(matrix) for matrix in matrices), default=0)
    total = np.zeros((size, size), np.int64)
    for matrix in matrices:
        total[:len(matrix), :len(matrix)] += matrix
    return {"pictures": len(results), **segmentation.summarise(total)}


def _of_things(data: DataSet, examples: list[Example],
               judged: dict[str, Result]) -> dict[str, Any]:
    with_points = data.kind == KEYPOINTS
    true: dict[tuple[str, int], Things] = {}
    found: dict[tuple[str, int], Detections] = {}
    # Equal scores count in the order of the pictures' numbers, as in COCO's own program.
    names = {example.key: f"{index:09d}" for index, example in enumerate(examples)}
    points = 0
    for example in examples:
        assert isinstance(example.truth, ThingsTruth)
        by_category: dict[int, list[Any]] = {}
        for thing in example.truth.things:
            by_category.setdefault(thing.category, []).append(thing)
            points = max(points, len(thing.keypoints))
        for category, things in by_category.items():
            true[names[example.key], category] = _things(things, with_points)
        kept: dict[int, list[Any]] = {}
        for one in judged[example.key].prediction["found"]:
            kept.setdefault(one[0], []).append(one)
        for category, ones in kept.items():
            found[names[example.key], category] = _detections(ones, with_points)
    sigmas = None
    if with_points:
        # COCO has measured its constants for the 17 points of a person only.
        sigmas = (PERSON_SIGMAS if points in (0, len(PERSON_SIGMAS))
                  else np.full(points, PERSON_SIGMAS.mean()))
    result = average_precision.summarise(data.categories, true, found, sigmas)
    unknown = sum(r.prediction["unknown"] for r in judged.values())
    return {**result, "detections": sum(len(d.scores) for d in found.values()),
            "detections_of_other_classes": unknown}


def _things(things: list[Any], with_points: bool) -> Things:
    crowd = np.array([thing.crowd for thing in things], bool)
    ignored = crowd | np.array([thing.optional for thing in things], bool)
    keypoints = None
    if with_points:
        most = max(len(thing.keypoints) for thing in things)
        keypoints = np.zeros((len(things), most, 3))
        for k, thing in enumerate(things):
            if thing.keypoints:
                keypoints[k, :len(thing.keypoints)] = thing.keypoints
        ignored = ignored | ~(keypoints[:, :, 2] > 0).any(1)
    return Things(np.array([thing.box for thing in things], float),
                  np.array([thing.area for thing in things], float), crowd, ignored, keypoints)


def _detections(ones: list[Any], with_points: bool) -> Detections:
    boxes = np.array([one[2:6] for one in ones], float)
    scores = np.array([one[1] for one in ones], float)
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    if len(ones[0]) == 8:  # of masks, and of boxes with an angle
        return Detections(boxes, np.array([one[6] for one in ones], float), scores,
                          overlaps=np.array([one[7] for one in ones], float))
    if not with_points:
        return Detections(boxes, areas, scores)
    points = np.array([one[6] for one in ones], float).reshape(len(ones), -1, 2)
    # By COCO's rules a person is as large as the box around the points that were found.
    extent = points.max(1) - points.min(1)
    return Detections(boxes, extent.prod(1), scores, points)
