"""Outputs -> boxes, masks and landmarks in NumPy's float64: what postprocess/ must give.

Written from postprocess/README.md and the published formulas it names, and from nothing else of
this project. Coordinates are pixels of the picture, its corners at whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from run_model_tools.errors import USAGE, ToolError
from run_model_tools.pictures.preprocess import (
    Region,
    aspect_padding,
    fitted_region,
    letterbox_size,
    letterbox_start,
    short_side_size,
)
from run_model_tools.pictures.preprocessing import Preprocessing
from run_model_tools.tasks.anchors import anchors_of
from run_model_tools.zoo.reference_centers import boxes_of_centers
from run_model_tools.zoo.reference_overlap import Overlaps, angles_of, overlaps_of, turned

OUTSIDE = 255
"""The class of pixels that the network did not see."""


@dataclass(frozen=True)
class Placement:
    """Where the picture lies in the network's input: input = picture * scale + start, (x, y)."""

    picture: tuple[int, int]
    """Width and height."""
    input: tuple[int, int]
    scale: np.ndarray
    start: np.ndarray

    def to_picture(self, points: np.ndarray) -> np.ndarray:
        """[..., 2] of the input -> of the picture."""
        return (points - self.start) / self.scale


def placement_of(spec: Preprocessing, picture: tuple[int, int],
                 size: tuple[int, int]) -> Placement:
    """Sizes are (width, height); as pictures/preprocess.py fits a picture into an input."""
    if spec.resizer == "cv2-warp":
        seen = fitted_region(Region(0, 0, *picture), spec, size)
        scale = np.array(size) / np.array([seen.width, seen.height])
        return Placement(picture, size, scale, -np.array([seen.x, seen.y]) * scale)
    if spec.fit == "squash":
        resized, start = size, (0, 0)
    elif spec.fit == "pad":
        left, top, right, bottom = aspect_padding(*picture, size)
        scale = np.array(size) / np.array([picture[0] + left + right, picture[1] + top + bottom])
        return Placement(picture, size, scale, np.array([left, top]) * scale)
    elif spec.fit == "letterbox":
        resized = letterbox_size(*picture, size, spec.rounding)
        start = letterbox_start(resized, size, spec.position)
    else:
        assert spec.resize is not None and spec.crop is not None
        resized = short_side_size(*picture, spec.resize)
        start = (-int(round((resized[0] - spec.crop) / 2)),
                 -int(round((resized[1] - spec.crop) / 2)))
    return Placement(picture, size, np.array(resized, np.float64) / np.array(picture),
                     np.array(start, np.float64))


class Reference:
    """The outputs of one picture, by their names."""

    def __init__(self, names: list[str], outputs: list[np.ndarray], placement: Placement) -> None:
        self._names, self._outputs, self._placement = names, outputs, placement

    def results(self, tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """As run_model --json says them under "results"."""
        known: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "detection": self._detection, "segmentation": self._segmentation,
            "landmarks": self._landmarks, "classification": self._classification}
        for task in tasks:
            if task["kind"] not in known:
                raise ToolError(USAGE, f"there is no reference for the kind '{task['kind']}'.")
        return [known[task["kind"]](task) for task in tasks]

    def _output(self, choice: str | int) -> np.ndarray:
        """float64, without dimensions of 1."""
        return np.squeeze(self._whole(choice))

    def _whole(self, choice: str | int) -> np.ndarray:
        """float64, with all dimensions."""
        index = choice if isinstance(choice, int) else self._names.index(choice)
        return self._outputs[index].astype(np.float64)

    def _units(self, points: np.ndarray, units: str) -> np.ndarray:
        """[..., 2] -> pixels of the input."""
        return points * (np.array(self._placement.input) if units == "normalized" else 1.0)

    # Detection.

    def _detection(self, task: dict[str, Any]) -> dict[str, Any]:
        forms = {"ssd": self._ssd, "yolo-rows": self._rows, "yolo-v8": self._columns,
                 "boxes": self._boxes, "box-rows": self._box_rows, "yolo-heads": self._heads,
                 "distances": self._distances, "centers": self._centers}
        if task["form"] not in forms:
            raise ToolError(USAGE, f"there is no reference for the form '{task['form']}'.")
        if task.get("masks") is not None:
            raise ToolError(USAGE, "there is no reference for masks of single things.")
        corners, scores, points = forms[task["form"]](task)
        if task.get("clip") == "input":
            corners = np.clip(corners, 0, np.array(self._placement.input)[None])
        chosen = _candidates(task, corners, scores)
        angles = self._angles(task)
        nms = task.get("nms")
        if nms:
            kept = _suppressed(nms, chosen, corners, points, overlaps_of(nms, corners, angles))
        else:
            kept = [(place, label, score, corners[place], points[place])
                    for place, label, score in chosen]
        kept.sort(key=lambda one: (-one[2], one[0], one[1]))
        detections = []
        for place, label, score, box, own_points in kept[:task.get("limit", 100)]:
            found = self._placement.to_picture(box)
            quadrangle = None
            if angles is not None:
                quadrangle = self._placement.to_picture(
                    turned(box[None], angles[place:place + 1])[0])
                found = np.stack([quadrangle.min(axis=0), quadrangle.max(axis=0)])
            if task.get("clip") == "picture":
                found = np.clip(found, 0, np.array(self._placement.picture)[None])
            detections.append({
                "box": _rounded(found.reshape(-1)), "class": label,
                **_label(task, label), "score": round(float(score), 6),
                **({} if quadrangle is None else {"corners": _rounded(quadrangle)}),
                **({"keypoints": _rounded(self._placement.to_picture(own_points))}
                   if "keypoints" in task else {})})
        return {"kind": "detection", "detections": detections}

    def _angles(self, task: dict[str, Any]) -> np.ndarray | None:
        """Of each candidate; the last of its numbers."""
        if task.get("angle") is None:
            return None
        numbers = self._output(task["boxes" if task["form"] == "boxes" else "output"])
        if task["form"] == "yolo-v8":
            numbers = numbers.T
        return angles_of(task, numbers.reshape(-1, numbers.shape[-1])[:, -1])

    def _ssd(self, task: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        anchors = anchors_of(task["anchors"], self._placement.input)
        raw = self._output(task["boxes"]).reshape(len(anchors), -1)
        order = [0, 1] if task["box_format"] == "cxcywh" else [1, 0]
        scale = np.array([task["x_scale"], task["y_scale"]])
        first = task.get("box_offset", 0)
        centre = raw[:, first:first + 2][:, order] / scale * anchors[:, 2:] + anchors[:, :2]
        sides = raw[:, first + 2:first + 4][:, order] / np.array([task["w_scale"],
                                                                  task["h_scale"]])
        if task["exponential"]:
            sides = np.exp(np.minimum(sides, task.get("size_limit", np.inf)))
        sides = sides * anchors[:, 2:]
        keypoints = task.get("keypoints", {"count": 0})
        start, values = keypoints.get("offset", first + 4), keypoints.get("values", 2)
        points = raw[:, start:start + keypoints["count"] * values]
        points = points.reshape(len(anchors), keypoints["count"], values)[..., :2][..., order]
        points = points / scale * anchors[:, None, 2:] + anchors[:, None, :2]
        corners = np.stack([centre - sides / 2, centre + sides / 2], axis=1)
        scores = _activated(task, self._output(task["scores"]).reshape(len(anchors), -1))
        if not task["exponential"]:
            scores[(sides < 0).any(axis=1)] = -1  # MediaPipe leaves such boxes out
        return (self._units(corners, "normalized"), scores, self._units(points, "normalized"))

    def _rows(self, task: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self._table(task, self._output(task["output"]), task.get("objectness", True))

    def _columns(self, task: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self._table(task, self._output(task["output"]).T, False)

    def _table(self, task: dict[str, Any], rows: np.ndarray,
               objectness: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        keypoints = task.get("keypoints", {"count": 0})
        values = keypoints.get("values", 2)
        classes = rows.shape[1] - keypoints["count"] * values - _angle_numbers(task)
        scores = _activated(task, rows[:, 4 + objectness:classes])
        if objectness:
            sure = _activated(task, rows[:, 4:5])
            scores = scores * sure if scores.shape[1] else sure
        points = rows[:, classes:classes + keypoints["count"] * values]
        points = points.reshape(len(rows), keypoints["count"], values)[..., :2]
        if task.get("strides"):
            rows = self._decoded(rows, task["strides"])
        return (self._units(_corners(rows[:, :4], "cxcywh"), task["units"]), scores,
                self._units(points, task["units"]))

    def _decoded(self, rows: np.ndarray, strides: list[int]) -> np.ndarray:
        """YOLOX's rows, of differences from cells, with boxes in pixels."""
        width, height = self._placement.input
        cells = np.array([(x, y, stride) for stride in strides for y in range(height // stride)
                          for x in range(width // stride)], np.float64)
        boxes = np.concatenate([rows[:, :2] + cells[:, :2], np.exp(rows[:, 2:4])], 1)
        return np.concatenate([boxes * cells[:, 2:], rows[:, 4:]], axis=1)

    def _heads(self, task: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        width, height = self._placement.input
        boxes, scores = [], []
        for choice, own in zip(task["outputs"], task["anchors"], strict=True):
            raw = self._whole(choice)[0]
            anchors = np.array(own)
            if task["layout"] == "NHWC":
                raw = raw.reshape(*raw.shape[:2], len(anchors), -1).transpose(2, 0, 1, 3)
            elif raw.ndim == 3:
                raw = raw.reshape(len(anchors), -1, *raw.shape[1:]).transpose(0, 2, 3, 1)
            rows, columns = raw.shape[1:3]
            y, x = np.mgrid[:rows, :columns]
            place, sides = np.stack([x, y], -1), anchors[:, None, None]
            if task["coding"] == "v5":
                centre = 2 * _sigmoid(raw[..., :2]) - 0.5
                size = sides * (2 * _sigmoid(raw[..., 2:4])) ** 2
            else:
                scale = task.get("scale_xy", 1.0)
                centre = scale * _sigmoid(raw[..., :2]) - (scale - 1) / 2
                size = sides * np.exp(raw[..., 2:4])
            centre = (centre + place) * np.array([width / columns, height / rows])
            boxes.append(np.concatenate([centre, size], -1).reshape(-1, 4))
            numbers = raw[..., 4:].reshape(-1, raw.shape[-1] - 4)
            scores.append(_activated(task, numbers[:, :1]) * _activated(task, numbers[:, 1:]))
        corners = _corners(np.concatenate(boxes), "cxcywh")
        return corners, np.concatenate(scores), np.zeros((len(corners), 0, 2))

    def _distances(self, task: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        width, height = self._placement.input
        cells = np.array([(x, y, stride) for stride in task["strides"]
                          for y in range(-(-height // stride)) for x in range(-(-width // stride))],
                         np.float64)
        bins, first = task.get("bins", 0), task.get("box_offset", 0)
        raw = self._output(task["boxes"]).reshape(len(cells), -1)
        sides = raw[:, first:first + 4 * max(1, bins)].reshape(len(cells), 4, -1)
        if bins:
            powers = np.exp(sides - sides.max(-1, keepdims=True))
            sides = (powers * np.arange(bins)).sum(-1) / powers.sum(-1)
        else:
            sides = sides[..., 0]
        if task["distances"] == "cells":
            sides = sides * cells[:, 2:]
        point = (cells[:, :2] + task["point_offset"]) * cells[:, 2:]
        corners = np.stack([point - sides[:, :2], point + sides[:, 2:]], 1)
        table = self._output(task["scores"]).reshape(len(cells), -1)
        table = table[:, task.get("score_offset", 0):]
        scores = _activated(task, table[:, :task.get("classes") or None])
        if task.get("centerness") is not None:
            centre = self._output(task["centerness"]).reshape(-1, 1)
            scores = np.sqrt(scores * _activated(task, centre))
        return corners, scores, np.zeros((len(cells), 0, 2))

    def _centers(self, task: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        corners, scores = boxes_of_centers(task, self._whole, lambda maps: _activated(task, maps),
                                           self._placement.input)
        return corners, scores, np.zeros((len(corners), 0, 2))

    def _box_rows(self, task: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        keypoints = task.get("keypoints", {"count": 0})
        rows = self._output(task["output"])
        rows = rows.reshape(-1, 6 + keypoints["count"] * keypoints.get("values", 2)
                            + _angle_numbers(task))
        labels = np.where(rows[:, 4] >= task["score_threshold"], rows[:, 5], 0).astype(int)
        scores = np.full((len(rows), labels.max(initial=0) + 1), -1.0)
        scores[np.arange(len(rows)), labels] = _activated(task, rows[:, 4:5])[:, 0]
        points = rows[:, 6:].reshape(len(rows), keypoints["count"], -1)[..., :2] if (
            keypoints["count"]) else np.zeros((len(rows), 0, 2))
        return (self._units(_corners(rows[:, :4], task["box_format"]), task["units"]), scores,
                self._units(points, task["units"]))

    def _boxes(self, task: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        boxes = self._output(task["boxes"]).reshape(-1, 4 + _angle_numbers(task))[:, :4]
        scores = _activated(task, self._output(task["scores"]).reshape(len(boxes), -1))
        if task.get("classes") is not None:
            labels = self._output(task["classes"]).reshape(-1).astype(int)
            spread = np.full((len(boxes), labels.max() + 1), -1.0)
            spread[np.arange(len(boxes)), labels] = scores[:, 0]
            scores = spread
        if task.get("count") is not None:
            scores[int(self._output(task["count"])):] = -1
        corners = self._units(_corners(boxes, task["box_format"]), task["units"])
        return corners, scores, np.zeros((len(boxes), 0, 2))

    # The other kinds.

    def _segmentation(self, task: dict[str, Any]) -> dict[str, Any]:
        maps = self._output(task["output"])
        if task["form"] != "scores":
            maps = maps[None]
        elif task["layout"] == "NHWC":
            maps = maps.transpose(2, 0, 1)
        if task["form"] == "mask":
            maps = _activated(task, maps)
        width, height = self._placement.picture
        size = np.array([maps.shape[2], maps.shape[1]]) / np.array(self._placement.input)
        x, y = ((np.arange(n) + 0.5) * self._placement.scale[i] + self._placement.start[i]
                for i, n in enumerate((width, height)))
        unseen = ((y < 0) | (y > self._placement.input[1]))[:, None] | (
            (x < 0) | (x > self._placement.input[0]))[None, :]
        nearest = task["form"] == "indices" or task.get("resample") == "nearest"
        if nearest:
            decided = _decided(task, maps)
            classes = decided[np.ix_(_nearest(y * size[1], maps.shape[1]),
                                     _nearest(x * size[0], maps.shape[2]))]
        else:
            classes = _decided(task, _bilinear(maps, y * size[1] - 0.5, x * size[0] - 0.5))
        classes = np.where(unseen, OUTSIDE, classes)
        found = []
        for label in np.unique(classes):
            if label == OUTSIDE:
                continue
            mask = classes == label
            found.append({"class": int(label), **_label(task, int(label)),
                          "pixels": int(mask.sum()),
                          "rle": {"size": [height, width], "counts": coco_counts(mask)}})
        return {"kind": "segmentation", "width": width, "height": height, "classes": found}

    def _landmarks(self, task: dict[str, Any]) -> dict[str, Any]:
        columns = task["columns"]
        table = self._output(task["output"]).reshape(-1, len(columns))
        table = table[:task.get("points") or len(table)]
        score = 1.0
        if task.get("confidence") is not None:
            raw = self._output(task["confidence"]).reshape(1)
            score = float(_sigmoid(raw)[0] if task["confidence_activation"] == "sigmoid"
                          else raw[0])
        place = self._units(table[:, [columns.index("x"), columns.index("y")]], task["units"])
        points = self._placement.to_picture(place)
        if "z" in columns:
            depth = table[:, columns.index("z")]
            if task["units"] == "normalized":
                depth = depth * self._placement.input[0]
            points = np.column_stack([points, depth / self._placement.scale[0]])
        result: dict[str, Any] = {
            "kind": "landmarks", "score": round(score, 6),
            "present": bool(score >= task.get("threshold", 0.5)), "points": _rounded(points)}
        scores = {}
        for name in ("score", "visibility", "presence"):
            if name in columns:
                column = table[:, columns.index(name)]
                if task.get("point_activation") == "sigmoid":
                    column = _sigmoid(column)
                scores[name] = [round(float(v), 6) for v in column]
        return {**result, "point_scores": scores} if scores else result

    def _classification(self, task: dict[str, Any]) -> dict[str, Any]:
        scores = self._output(task["output"]).reshape(-1)
        if task.get("activation") in ("sigmoid", "softmax"):
            scores = _activated(task, scores[None])[0]
        if task.get("binary"):
            scores = np.array([1 - scores[0], scores[0]])
        order = np.argsort(-scores, kind="stable")[:5]
        return {"kind": "classification", "top": [
            {"index": int(i), **_label(task, int(i)), "probability": round(float(scores[i]), 6)}
            for i in order]}


def _label(task: dict[str, Any], index: int) -> dict[str, str]:
    labels = task.get("labels")
    if not labels:
        return {}
    if task.get("form") == "mask" and len(labels) == 1:
        return {"label": labels[0]} if index == 1 else {}
    return {"label": labels[index]}


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(x, -700, 700)))


def _activated(task: dict[str, Any], scores: np.ndarray) -> np.ndarray:
    """Scores as probabilities, classes along the last axis."""
    clip = task.get("score_clip")
    if clip:
        scores = np.clip(scores, -clip, clip)
    standard = "sigmoid" if task.get("form") == "yolo-heads" else "none"
    activation = task.get("activation", standard)
    if activation == "sigmoid":
        return _sigmoid(scores)
    if activation == "softmax":
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return powers / powers.sum(axis=-1, keepdims=True)
    return scores.copy()


def _corners(boxes: np.ndarray, box_format: str) -> np.ndarray:
    """[N, 4] -> [N, 2, 2]: the left top and right bottom corner, (x, y) each."""
    first, second = boxes[:, :2], boxes[:, 2:]
    if box_format in ("yxyx", "cycxhw"):
        first, second = first[:, ::-1], second[:, ::-1]
    if box_format in ("cxcywh", "cycxhw"):
        return np.stack([first - second / 2, first + second / 2], axis=1)
    return np.stack([first, first + second if box_format == "xywh" else second], axis=1)


def _candidates(task: dict[str, Any], corners: np.ndarray,
                scores: np.ndarray) -> list[tuple[int, int, float]]:
    """(place, class, score) of those above the threshold, best first."""
    scores = scores.copy()
    if task.get("background") is not None:
        scores[:, task["background"]] = -1
    if task.get("classes_per_box", "best") == "best":
        best = scores.argmax(axis=1)
        only = np.full_like(scores, -1.0)
        only[np.arange(len(scores)), best] = scores[np.arange(len(scores)), best]
        scores = only
    places, labels = np.nonzero(scores >= task["score_threshold"])
    found = [(int(p), int(c), float(scores[p, c])) for p, c in zip(places, labels)]
    found.sort(key=lambda one: (-one[2], one[0], one[1]))
    most = task.get("candidates") or len(found)
    counts: dict[int, int] = {}
    kept = []
    for one in found:
        counts[one[1]] = counts.get(one[1], 0) + 1
        if counts[one[1]] <= most:
            kept.append(one)
    return kept


def _angle_numbers(task: dict[str, Any]) -> int:
    return int(task.get("angle") is not None)


def _suppressed(nms: dict[str, Any], candidates: list[tuple[int, int, float]],
                corners: np.ndarray, points: np.ndarray, overlaps: Overlaps,
                ) -> list[tuple[int, int, float, np.ndarray, np.ndarray]]:
    left = list(candidates)
    kept = []
    if nms.get("mode") == "fast":
        for i, (place, label, score) in enumerate(candidates):
            better = [one[0] for one in candidates[:i] if not nms["per_class"] or one[1] == label]
            if not better or not (overlaps(place, better) > nms["iou"]).any():
                kept.append((place, label, score, corners[place], points[place]))
        return kept
    while left:
        place, label, score = left[0]
        near = overlaps(place, [one[0] for one in left]) > nms["iou"]
        if nms["per_class"]:
            near &= np.array([one[1] == label for one in left])
        near[0] = True
        box, own = corners[place], points[place]
        if nms.get("mode", "hard") == "weighted":
            weights = np.array([one[2] for one, n in zip(left, near) if n])
            taken = [one[0] for one, n in zip(left, near) if n]
            box = np.tensordot(weights, corners[taken], 1) / weights.sum()
            own = np.tensordot(weights, points[taken], 1) / weights.sum()
        kept.append((place, label, score, box, own))
        left = [one for one, n in zip(left, near) if not n]
    return kept


def _nearest(at: np.ndarray, count: int) -> np.ndarray:
    return np.clip(np.floor(at), 0, count - 1).astype(int)


def _bilinear(maps: np.ndarray, y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """[C, H, W] at rows y and columns x; beyond the border, its value."""
    _, height, width = maps.shape
    y, x = np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)
    top, left = np.floor(y).astype(int), np.floor(x).astype(int)
    below, right = np.minimum(top + 1, height - 1), np.minimum(left + 1, width - 1)
    dy, dx = (y - top)[:, None], (x - left)[None, :]
    rows = maps[:, top] * (1 - dy) + maps[:, below] * dy
    return rows[:, :, left] * (1 - dx) + rows[:, :, right] * dx


def _decided(task: dict[str, Any], maps: np.ndarray) -> np.ndarray:
    """The class of each place."""
    if task["form"] == "mask":
        return (maps[0] >= task.get("threshold", 0.5)).astype(int)
    return maps[0].astype(int) if task["form"] == "indices" else maps.argmax(axis=0)


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


def _rounded(values: np.ndarray) -> Any:
    return np.round(values, 3).tolist()
