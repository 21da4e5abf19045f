"""How alike a detection and a thing are, 0 to 1: boxes, also with an angle, by overlap, keypoints
by distance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from run_model_tools.zoo.reference_overlap import overlap_of_areas

#: COCO's constants for the 17 points of a person, from nose to ankles: how far apart two people who
#: annotate the same point put it, relative to the person's size.
PERSON_SIGMAS = np.array([.26, .25, .25, .35, .35, .79, .79, .72, .72, .62, .62, 1.07, 1.07, .87,
                          .87, .89, .89]) / 10


def box_overlaps(found: np.ndarray, true: np.ndarray, crowd: np.ndarray) -> np.ndarray:
    """[found, true] of boxes x0, y0, x1, y1: intersection over union; with a crowd, over the
    detection's own area."""
    if not len(found) or not len(true):
        return np.zeros((len(found), len(true)))
    low = np.maximum(found[:, None, :2], true[None, :, :2])
    high = np.minimum(found[:, None, 2:], true[None, :, 2:])
    common = np.clip(high - low, 0, None).prod(-1)
    own = (found[:, 2:] - found[:, :2]).prod(-1)[:, None]
    other = (true[:, 2:] - true[:, :2]).prod(-1)[None, :]
    whole = np.where(crowd[None, :], own, own + other - common)
    return np.divide(common, whole, out=np.zeros_like(common), where=whole > 0)


def polygon_areas(polygons: np.ndarray) -> np.ndarray:
    """[n] of [n, corners, 2]; above 0 where they go clockwise, y being downwards."""
    after = np.roll(polygons, -1, 1)
    return np.asarray((polygons[..., 0] * after[..., 1]
                       - polygons[..., 1] * after[..., 0]).sum(1) / 2)


def polygon_overlaps(found: np.ndarray, true: np.ndarray) -> np.ndarray:
    """[found, true]: intersection over union. found: [n, 4, 2], convex and clockwise; true:
    [m, 4, 2], whose sides do not cross."""
    result = np.zeros((len(found), len(true)))
    if result.size:
        upright = [np.concatenate([one.min(1), one.max(1)], 1) for one in (found, true)]
        low = np.maximum(upright[0][:, None, :2], upright[1][None, :, :2])
        high = np.minimum(upright[0][:, None, 2:], upright[1][None, :, 2:])
        for i, j in np.argwhere((low < high).all(-1)):
            result[i, j] = overlap_of_areas(true[j], found[i])
    return result


def keypoint_similarities(found: np.ndarray, true: np.ndarray, boxes: np.ndarray,
                          areas: np.ndarray, sigmas: Sequence[float] | np.ndarray) -> np.ndarray:
    """[found, true]: COCO's object keypoint similarity.

    found: [n, k, 2]; true: [m, k, 3] with visibilities, of which 0 is not annotated.  Where nothing
    is annotated, points are measured by how far they lie outside of the box enlarged to twice its
    size.
    """
    result = np.zeros((len(found), len(true)))
    variances = (2 * np.asarray(sigmas)) ** 2
    for j, points in enumerate(true):
        annotated = points[:, 2] > 0
        if annotated.any():
            offset = found[:, :, :2] - points[None, :, :2]
        else:
            x0, y0, x1, y1 = boxes[j]
            width, height = x1 - x0, y1 - y0
            low, high = np.array([x0 - width, y0 - height]), np.array([x1 + width, y1 + height])
            offset = (np.maximum(0, low - found[:, :, :2])
                      + np.maximum(0, found[:, :, :2] - high))
        distance = (offset ** 2).sum(-1) / variances / (areas[j] + np.spacing(1)) / 2
        if annotated.any():
            distance = distance[:, annotated]
        result[:, j] = np.exp(-distance).mean(-1) if distance.size else 0.0
    return result
