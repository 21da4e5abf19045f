"""Outputs -> results of every kind in NumPy's float64: what postprocess/ must give.

Written from postprocess/README.md and the published formulas it names, and from nothing else of
this project. Coordinates are pixels of the picture, its corners at whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from run_model_tools.errors import USAGE, ToolError
from run_model_tools.tasks.anchors import anchors_of
from run_model_tools.zoo.placement import Placement
from run_model_tools.zoo.reference_centers import boxes_of_centers
from run_model_tools.zoo.reference_overlap import Overlaps, angles_of, overlaps_of, turned
from run_model_tools.zoo.reference_pixels import (
    OUTSIDE,
    areas_of_mask,
    classes_of,
    mask_of_thing,
    numbers_of,
    picture_of,
)


class Reference:
    """The outputs of one picture, by their names."""

    def __init__(self, names: list[str], outputs: list[np.ndarray], placement: Placement) -> None:
        self._names, self._outputs, self._placement = names, outputs, placement

    def results(self, tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """As run_model --json says them under "results"; of maps and images the member "array" has
        what reference_pixels.py says."""
        known: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "detection": self._detection, "segmentation": self._segmentation,
            "landmarks": self._landmarks, "classification": self._classification,
            "embedding": self._embedding, "map": self._map, "image": self._image}
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
        corners, scores, points = forms[task["form"]](task)
        if task.get("clip") == "input":
            corners = np.clip(corners, 0, np.array(self._placement.input)[None])
        chosen = _candidates(task, scores)
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
            masks = task.get("masks") or {}
            mask = {"mask": self._mask_of_thing(task, place, box)} if masks else {}
            if masks.get("drop_empty") and not mask["mask"]["pixels"]:
                continue
            detections.append({
                "box": _rounded(found.reshape(-1)), "class": label,
                **_label(task, label), "score": round(float(score), 6),
                **({} if quadrangle is None else {"corners": _rounded(quadrangle)}),
                **mask,
                **({"keypoints": _rounded(self._placement.to_picture(own_points))}
                   if "keypoints" in task else {})})
        return {"kind": "detection", "detections": detections}

    def _mask_of_thing(self, task: dict[str, Any], place: int, box: np.ndarray) -> dict[str, Any]:
        """box: on the input."""
        if task["form"] == "boxes":
            maps = self._whole(task["masks"]["output"])
            height, width = maps.shape[-2:]
            everywhere = np.array([[-np.inf, -np.inf], [np.inf, np.inf]])
            return areas_of_mask(mask_of_thing(
                maps.reshape(-1, height, width)[place] - task["masks"].get("threshold", 0.5),
                everywhere, self._placement))
        numbers = self._output(task["output"])
        if task["form"] == "yolo-v8":
            numbers = numbers.T
        count = task["masks"]["count"]
        factors = numbers.reshape(-1, numbers.shape[-1])[place, -count:]
        prototypes = self._whole(task["masks"]["output"])
        prototypes = prototypes.reshape(prototypes.shape[-3:])
        if task["masks"]["layout"] == "NHWC":
            prototypes = prototypes.transpose(2, 0, 1)
        return areas_of_mask(mask_of_thing(np.tensordot(factors, prototypes, 1), box,
                                           self._placement))

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
        classes = (rows.shape[1] - keypoints["count"] * values - _angle_numbers(task)
                   - _mask_numbers(task))
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
                            + _angle_numbers(task) + _mask_numbers(task))
        labels = np.where(rows[:, 4] >= task["score_threshold"], rows[:, 5], 0).astype(int)
        scores = np.full((len(rows), labels.max(initial=0) + 1), -1.0)
        scores[np.arange(len(rows)), labels] = _activated(task, rows[:, 4:5])[:, 0]
        points = rows[:, 6:].reshape(len(rows), keypoints["count"], -1)[..., :2] if (
            keypoints["count"]) else np.zeros((len(rows), 0, 2))
        return (self._units(_corners(rows[:, :4], task["box_format"]), task["units"]), scores,
                self._units(points, task["units"]))

    def _boxes(self, task: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        boxes = self._output(task["boxes"]).reshape(-1, 4 + _angle_numbers(task))[:, :4]
        scores = self._output(task["scores"]).reshape(len(boxes), -1 if len(boxes) else 1)
        scores = _activated(task, scores)
        if task.get("classes") is not None:
            labels = self._output(task["classes"]).reshape(-1).astype(int)
            most = labels.max(initial=task.get("background") or 0)
            spread = np.full((len(boxes), most + 1), -1.0)
            spread[np.arange(len(boxes)), labels] = scores[:, 0]
            scores = spread
        if task.get("count") is not None:
            scores[int(self._output(task["count"])):] = -1
        corners = self._units(_corners(boxes, task["box_format"]), task["units"])
        points = np.zeros((len(boxes), 0, 2))
        if (keypoints := task.get("keypoints")) is not None:
            points = self._whole(keypoints["output"]).reshape(
                len(boxes), keypoints["count"], keypoints.get("values", 2))[..., :2]
        return corners, scores, self._units(points, task["units"])

    # The other kinds.

    def _planes(self, task: dict[str, Any]) -> np.ndarray:
        """[C, H, W]."""
        values = self._whole(task["output"])
        values = values.reshape(values.shape[-3:])
        return values.transpose(2, 0, 1) if task["layout"] == "NHWC" else values

    def _one_map(self, task: dict[str, Any]) -> np.ndarray:
        """[H, W], whose sides may be 1 where four dimensions tell them."""
        values = self._whole(task["output"])
        if values.ndim == 4:
            return values.reshape(values.shape[2:] if values.shape[1] == 1 else values.shape[1:3])
        return np.squeeze(values)

    def _segmentation(self, task: dict[str, Any]) -> dict[str, Any]:
        maps = self._planes(task) if task["form"] == "scores" else self._one_map(task)[None]
        if task["form"] == "mask":
            maps = _activated(task, maps)
        classes = classes_of(task, maps, self._placement)
        height, width = classes.shape
        found = []
        for label in np.unique(classes[classes != OUTSIDE]):
            mask = classes == label
            found.append({"class": int(label), **_label(task, int(label)),
                          **areas_of_mask(mask)})
        return {"kind": "segmentation", "width": width, "height": height, "classes": found}

    def _map(self, task: dict[str, Any]) -> dict[str, Any]:
        numbers = numbers_of(task, self._one_map(task), self._placement)
        return {"kind": "map", "width": numbers.shape[1], "height": numbers.shape[0],
                "array": numbers}

    def _image(self, task: dict[str, Any]) -> dict[str, Any]:
        pixels = picture_of(task, self._planes(task), self._placement)
        return {"kind": "image", "width": pixels.shape[1], "height": pixels.shape[0],
                "array": pixels}

    def _embedding(self, task: dict[str, Any]) -> dict[str, Any]:
        return {"kind": "embedding", "values": self._output(task["output"]).reshape(-1).tolist()}

    def _landmarks(self, task: dict[str, Any]) -> dict[str, Any]:
        score = 1.0
        if task.get("confidence") is not None:
            raw = self._output(task["confidence"]).reshape(1)
            score = float(_sigmoid(raw)[0] if task.get("confidence_activation") == "sigmoid"
                          else raw[0])
        points, scores = (self._heatmaps(task) if task.get("form") == "heatmaps"
                          else self._points(task))
        result: dict[str, Any] = {
            "kind": "landmarks", "score": round(score, 6),
            "present": bool(score >= task.get("threshold", 0.5)), "points": _rounded(points)}
        rounded = {name: [round(float(v), 6) for v in values] for name, values in scores.items()}
        return {**result, "point_scores": rounded} if rounded else result

    def _heatmaps(self, task: dict[str, Any]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """HRNet's get_final_preds(): a pixel is its left top corner on the input."""
        maps = self._planes(task)
        count, height, width = maps.shape
        flat = maps.reshape(count, -1)
        y, x = np.divmod(flat.argmax(1), width)
        points = np.stack([x, y], 1).astype(np.float64)
        if task["refine"] == "quarter":
            for k, (px, py) in enumerate(zip(x, y)):
                if 1 < px < width - 1 and 1 < py < height - 1:
                    points[k] += 0.25 * np.sign([
                        maps[k, py, px + 1] - maps[k, py, px - 1],
                        maps[k, py + 1, px] - maps[k, py - 1, px]])
        points *= np.array(self._placement.input) / np.array([width, height])
        return self._placement.to_picture(points), {"score": flat.max(1)}

    def _points(self, task: dict[str, Any]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        columns = task["columns"]
        table = self._output(task["output"]).reshape(-1, len(columns))
        table = table[:task.get("points") or len(table)]
        place = self._units(table[:, [columns.index("x"), columns.index("y")]], task["units"])
        points = self._placement.to_picture(place)
        if "z" in columns:
            depth = table[:, columns.index("z")]
            if task["units"] == "normalized":
                depth = depth * self._placement.input[0]
            points = np.column_stack([points, depth / self._placement.scale[0]])
        scores = {}
        for name in ("score", "visibility", "presence"):
            if name in columns:
                column = table[:, columns.index(name)]
                sigmoid = task.get("point_activation") == "sigmoid"
                scores[name] = _sigmoid(column) if sigmoid else column
        return points, scores

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


def _candidates(task: dict[str, Any], scores: np.ndarray) -> list[tuple[int, int, float]]:
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


def _mask_numbers(task: dict[str, Any]) -> int:
    """Of a row: the factors of the prototypes, at its end."""
    return task["masks"]["count"] if task.get("masks") is not None else 0


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


def _rounded(values: np.ndarray) -> Any:
    return np.round(values, 3).tolist()
