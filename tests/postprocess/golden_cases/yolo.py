"""What YOLO's detectors give."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from golden_cases.common import (
    back,
    case,
    corners,
    picture,
    rounded,
    run_lengths,
    sigmoid,
    suppressed,
)


def yoeo_rows(random: np.random.Generator) -> dict[str, Any]:
    rows = np.concatenate([random.uniform(10, 90, (60, 2)), random.uniform(10, 50, (60, 2)),
                           random.uniform(0, 1, (60, 4))], axis=1).round(2)
    scores = rows[:, 4:5] * rows[:, 5:]
    row, found_class = np.nonzero(scores >= 0.25)
    where = picture(200, 120, 100, 100, "letterbox")
    expected = suppressed(corners(rows)[row], found_class, scores[row, found_class], 0.4, where)
    task = {"kind": "detection", "form": "yolo-rows", "output": "rows", "units": "pixels",
            "classes_per_box": "every", "score_threshold": 0.25,
            "nms": {"iou": 0.4, "per_class": True}, "labels": ["ball", "goal", "robot"]}
    return case("yoeo rows", task, {"rows": rows[None]}, where, expected)


def yolo_v8(random: np.random.Generator) -> dict[str, Any]:
    rows = np.concatenate([random.uniform(0.1, 0.9, (50, 2)), random.uniform(0.1, 0.4, (50, 2)),
                           random.uniform(0, 1, (50, 3))], axis=1).round(2)
    best, scores = rows[:, 4:].argmax(1), rows[:, 4:].max(1)
    good = scores >= 0.5
    where = picture(300, 300, 64, 48, "crop")
    boxes = corners(rows) * np.array([64, 48, 64, 48])
    expected = suppressed(boxes[good], np.zeros_like(best[good]), scores[good], 0.3, where)
    order = np.argsort(-scores[good], kind="stable")
    by_box = {tuple(back(boxes[good][i], where).round(4)): int(best[good][i]) for i in order}
    for item in expected:
        item["class"] = by_box[tuple(item["box"])]
    task = {"kind": "detection", "form": "yolo-v8", "output": 0, "units": "normalized",
            "score_threshold": 0.5, "nms": {"iou": 0.3, "per_class": False}}
    return case("yolo v8", task, {"output": rows.T[None]}, where, expected)


def yolo_heads(random: np.random.Generator, coding: str, layout: str) -> dict[str, Any]:
    anchors = [[[10, 14], [23, 27]], [[40, 30]]]
    where = picture(128, 96, 64, 48, "squash")
    outputs, boxes, scores = {}, [], []
    for i, (rows, columns) in enumerate(((6, 8), (3, 4))):
        raw = rounded(random, (len(anchors[i]), rows, columns, 7), 1.5)
        y, x = np.mgrid[:rows, :columns]
        cell = np.array([64 / columns, 48 / rows])
        place = np.stack([x, y], -1)
        sides = np.array(anchors[i])[:, None, None]
        if coding == "v5":
            centre = (2 * sigmoid(raw[..., :2]) - 0.5 + place) * cell
            size = sides * (2 * sigmoid(raw[..., 2:4])) ** 2
        else:
            centre = (1.1 * sigmoid(raw[..., :2]) - 0.05 + place) * cell
            size = sides * np.exp(raw[..., 2:4])
        boxes.append(corners(np.concatenate([centre, size], -1).reshape(-1, 4)))
        scores.append((sigmoid(raw[..., 4:5]) * sigmoid(raw[..., 5:])).reshape(-1, 2))
        packed = {"NCHW": raw.transpose(0, 3, 1, 2).reshape(1, -1, rows, columns),
                  "NHWC": raw.transpose(1, 2, 0, 3).reshape(1, rows, columns, -1),
                  "rows": raw[None]}[layout]
        outputs[f"head{i}"] = packed
    box, score = np.concatenate(boxes), np.concatenate(scores)
    best, top = score.argmax(1), score.max(1)
    good = top >= 0.4
    expected = suppressed(box[good], best[good], top[good], 0.5, where)
    task = {"kind": "detection", "form": "yolo-heads", "outputs": list(outputs),
            "anchors": anchors, "coding": coding,
            "layout": "NHWC" if layout == "NHWC" else "NCHW", "score_threshold": 0.4,
            "nms": {"iou": 0.5, "per_class": True}}
    if coding == "v3":
        task["scale_xy"] = 1.1
    return case(f"yolo heads {coding} {layout}", task, outputs, where, expected)


def yolox(random: np.random.Generator) -> dict[str, Any]:
    """decode_outputs of YOLOX, with its grids by meshgrid."""
    strides, (width, height) = (8, 16), (64, 48)
    grids, steps = [], []
    for stride in strides:
        y, x = np.meshgrid(np.arange(height // stride), np.arange(width // stride), indexing="ij")
        grids.append(np.stack([x, y], 2).reshape(-1, 2))
        steps.append(np.full((grids[-1].shape[0], 1), stride))
    grid, step = np.concatenate(grids), np.concatenate(steps)
    rows = np.concatenate([rounded(random, (len(grid), 4), 0.7),
                           random.uniform(0, 1, (len(grid), 4)).round(2)], 1)
    decoded = np.concatenate([(rows[:, :2] + grid) * step, np.exp(rows[:, 2:4]) * step], 1)
    scores = rows[:, 4:5] * rows[:, 5:]
    best, top = scores.argmax(1), scores.max(1)
    good = top >= 0.3
    where = picture(100, 80, width, height, "squash")
    expected = suppressed(corners(decoded)[good], best[good], top[good], 0.45, where)
    task = {"kind": "detection", "form": "yolo-rows", "output": 0, "units": "pixels",
            "strides": list(strides), "score_threshold": 0.3,
            "nms": {"iou": 0.45, "per_class": True}}
    return case("yolox", task, {"output": rows[None]}, where, expected)


def instance_masks(random: np.random.Generator, form: str) -> dict[str, Any]:
    """The masks of YOLO's segmentation networks: prototypes times factors, interpolated by torch
    at the middles of the picture's pixels, within the boxes and above 0."""
    width, height, (input_width, input_height), count = 90, 60, (64, 48), 5
    where = picture(width, height, input_width, input_height, "letterbox")
    prototypes = rounded(random, (count, 12, 16))
    boxes = np.concatenate([random.uniform(8, 56, (12, 1)), random.uniform(8, 40, (12, 1)),
                            random.uniform(8, 40, (12, 2))], 1).round(2)
    scores = random.uniform(0, 1, (12, 2)).round(2)
    factors = rounded(random, (12, count))
    best, top = scores.argmax(1), scores.max(1)
    good = top >= 0.5
    expected = suppressed(corners(boxes)[good], best[good], top[good], 0.6, where)
    x = (np.arange(width) + 0.5) * where["scale_x"] + where["offset_x"]
    y = (np.arange(height) + 0.5) * where["scale_y"] + where["offset_y"]
    grid = np.stack(np.broadcast_arrays((x / input_width * 2 - 1)[None],
                                        (y / input_height * 2 - 1)[:, None]), -1)
    for item in expected:
        row = next(i for i in np.flatnonzero(good) if np.allclose(
            back(corners(boxes)[i], where), item["box"], atol=1e-3) and best[i] == item["class"])
        sums = torch.tensor(np.tensordot(factors[row], prototypes, 1))[None, None]
        at = torch.nn.functional.grid_sample(sums, torch.tensor(grid[None]), mode="bilinear",
                                             padding_mode="border", align_corners=False)[0, 0]
        left, top_side, right, bottom = corners(boxes)[row]
        inside = ((x >= left) & (x < right))[None] & ((y >= top_side) & (y < bottom))[:, None]
        seen = ((x >= 0) & (x <= input_width))[None] & ((y >= 0) & (y <= input_height))[:, None]
        item["mask"] = run_lengths((at.numpy() > 0) & inside & seen)
    task = {"kind": "detection", "form": form, "output": "o", "units": "pixels",
            "score_threshold": 0.5, "nms": {"iou": 0.6, "per_class": True},
            "masks": {"output": "p", "count": count, "layout": "NCHW"}}
    rows = np.concatenate([boxes, scores, factors], 1)
    outputs = {"o": rows.T[None], "p": prototypes[None]}
    if form == "yolo-rows":
        task["objectness"] = False
        task["masks"]["layout"] = "NHWC"
        outputs = {"o": rows[None], "p": prototypes.transpose(1, 2, 0)[None]}
    if form == "box-rows":
        task["box_format"] = "xyxy"
        rows = np.concatenate([corners(boxes), top[:, None], best[:, None], factors], 1)
        outputs["o"] = rows[None]
    return case(f"instance masks {form}", task, outputs, where, expected)
