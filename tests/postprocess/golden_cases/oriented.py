"""Boxes with an angle: Ultralytics' suppression, and exact areas, from their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np

from golden_cases.common import Picture, back, case, picture


def turned_corners(box: np.ndarray) -> np.ndarray:
    """[4, 2] of centre x, y, width, height and an angle in radians, by a matrix."""
    x, y, width, height, angle = box
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    upright = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * np.array([width, height]) / 2
    return upright @ turn.T + np.array([x, y])


def probiou(a: np.ndarray, b: np.ndarray, eps: float = 1e-7) -> float:
    """batch_probiou() of ultralytics/utils/metrics.py, with matrices for its a, b and c."""
    def covariance(box: np.ndarray) -> np.ndarray:
        turn = np.array([[np.cos(box[4]), -np.sin(box[4])], [np.sin(box[4]), np.cos(box[4])]])
        return turn @ np.diag(box[2:4] ** 2 / 12) @ turn.T

    one, two = covariance(a), covariance(b)
    both, way = one + two, a[:2] - b[:2]
    determinant = np.linalg.det(both)
    adjugate = np.array([[both[1, 1], -both[0, 1]], [-both[1, 0], both[0, 0]]])
    means = way @ adjugate @ way / (determinant + eps) / 4
    own = max(np.linalg.det(one), 0) * max(np.linalg.det(two), 0)
    distance = means + np.log(determinant / (4 * np.sqrt(own) + eps) + eps) / 2
    return float(1 - np.sqrt(1 - np.exp(-np.clip(distance, eps, 100)) + eps))


def polygon_iou(a: np.ndarray, b: np.ndarray) -> float:
    """Of convex polygons: the corners of one in the other and where sides cross, around their mean,
    as Detectron2's box_iou_rotated has it."""
    def inside(points: np.ndarray, polygon: np.ndarray) -> np.ndarray:
        sides = np.roll(polygon, -1, 0) - polygon
        ways = points[:, None] - polygon[None]
        return (sides[:, 0] * ways[..., 1] - sides[:, 1] * ways[..., 0] >= 0).all(1)

    def area(points: np.ndarray) -> float:
        x, y = points.T
        return abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1))) / 2

    points = [*a[inside(a, b)], *b[inside(b, a)]]
    for p, q in zip(a, np.roll(a, -1, 0)):
        for r, s in zip(b, np.roll(b, -1, 0)):
            matrix = np.stack([q - p, r - s], 1)
            if abs(np.linalg.det(matrix)) > 1e-12:
                t, u = np.linalg.solve(matrix, r - p)
                if 0 <= t <= 1 and 0 <= u <= 1:
                    points.append(p + t * (q - p))
    if len(points) < 3:
        return 0.0
    around = np.array(points)
    ways = around - around.mean(0)
    common = area(around[np.argsort(np.arctan2(ways[:, 1], ways[:, 0]))])
    return common / (area(a) + area(b) - common)


def detections(boxes: np.ndarray, classes: np.ndarray, scores: np.ndarray, kept: list[int],
               where: Picture) -> list[dict[str, Any]]:
    found = []
    for i in kept:
        corners = back(turned_corners(boxes[i]), where)
        found.append({"box": [*corners.min(0).round(4), *corners.max(0).round(4)],
                      "class": int(classes[i]), "score": round(float(scores[i]), 6),
                      "corners": corners.round(4).ravel().tolist()})
    return found


def random_boxes(random: np.random.Generator, count: int) -> np.ndarray:
    """Angles as Ultralytics' heads give them, -pi/4 to 3 pi/4."""
    return np.concatenate([random.uniform(10, 54, (count, 2)), random.uniform(4, 30, (count, 2)),
                           random.uniform(-0.25, 0.75, (count, 1)) * np.pi], 1).round(3)


def ultralytics(random: np.random.Generator) -> dict[str, Any]:
    """nms_rotated(): a box goes for any better one of its class, also for one that goes itself."""
    boxes, scores = random_boxes(random, 60), random.uniform(0, 1, (60, 2)).round(2)
    best, top = scores.argmax(1), scores.max(1)
    order = [int(i) for i in np.argsort(-top, kind="stable") if top[i] >= 0.4]
    threshold, kept, greedy = 0.35, [], []
    for place, i in enumerate(order):
        hidden_by = [j for j in order[:place]
                     if best[j] == best[i] and probiou(boxes[j], boxes[i]) > threshold]
        if not hidden_by:
            kept.append(i)
        if not set(hidden_by) & set(greedy):
            greedy.append(i)
    assert kept != greedy and len(kept) > 4
    where = picture(160, 100, 64, 64, "letterbox")
    task = {"kind": "detection", "form": "yolo-v8", "output": 0, "units": "pixels",
            "angle": {"unit": "radians", "direction": "clockwise"}, "score_threshold": 0.4,
            "nms": {"iou": threshold, "mode": "fast", "overlap": "probabilistic",
                    "per_class": True}}
    output = np.concatenate([boxes[:, :4], scores, boxes[:, 4:]], 1).T[None]
    return case("ultralytics obb", task, {"output": output}, where,
                detections(boxes, best, top, kept, where))


def by_area(random: np.random.Generator, form: str) -> dict[str, Any]:
    """Greedy suppression by areas, in degrees counter-clockwise as Detectron2 has them; the picture
    is squashed."""
    boxes, scores = random_boxes(random, 40), random.uniform(0.3, 1, 40).round(2)
    classes = random.integers(0, 3, 40)
    degrees = (-np.degrees(boxes[:, 4:])).round(2)
    boxes[:, 4:] = -np.radians(degrees)
    kept: list[int] = []
    for i in np.argsort(-scores, kind="stable"):
        if scores[i] >= 0.35 and all(
                polygon_iou(turned_corners(boxes[j]), turned_corners(boxes[i])) <= 0.2
                for j in kept):
            kept.append(int(i))
    where = picture(200, 90, 64, 64, "squash")
    task = {"kind": "detection", "form": form, "box_format": "cxcywh", "units": "pixels",
            "angle": {"unit": "degrees", "direction": "counter-clockwise"},
            "score_threshold": 0.35,
            "nms": {"iou": 0.2, "overlap": "area", "per_class": False}}
    found = detections(boxes, classes, scores, kept, where)
    if form == "boxes":
        task |= {"boxes": "b", "scores": "s", "classes": "c"}
        outputs = {"b": np.concatenate([boxes[:, :4], degrees], 1)[None], "s": scores[None],
                   "c": classes[None].astype(float)}
    else:
        task["output"] = "o"
        outputs = {"o": np.concatenate([boxes[:, :4], scores[:, None], classes[:, None],
                                        degrees], 1)[None]}
    return case(f"oriented {form}", task, outputs, where, found)
