#!/usr/bin/env python3
"""Makes tests/postprocess/data/golden.json: what others make of the same tensors.

Needs torch and torchvision (made with 2.15.0 and 0.29.2); torchvision's SSD, its nms and
interpolate() are called as they are, MediaPipe's decoding and weighted suppression, YOLO's codings
and COCO's run lengths are written here from their published definitions, in NumPy.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torchvision
from torchvision.models.detection.anchor_utils import AnchorGenerator, DefaultBoxGenerator
from torchvision.models.detection.fcos import FCOS
from torchvision.models.detection.retinanet import RetinaNet
from torchvision.models.detection.ssd import SSD

OUTPUT = Path(__file__).parent / "data/golden.json"
Picture = dict[str, float]
Arrays = dict[str, np.ndarray]
Detections = list[dict[str, Any]]


def picture(width: int, height: int, input_width: int, input_height: int, fit: str) -> Picture:
    """Where the picture lies in the input: the whole input, or the middle of it."""
    scale_x, scale_y = input_width / width, input_height / height
    if fit == "letterbox":
        scale_x = scale_y = min(scale_x, scale_y)
    if fit == "crop":
        scale_x = scale_y = max(scale_x, scale_y)
    return {"width": width, "height": height, "input_width": input_width,
            "input_height": input_height, "scale_x": scale_x, "scale_y": scale_y,
            "offset_x": (input_width - width * scale_x) / 2,
            "offset_y": (input_height - height * scale_y) / 2}


def back(boxes: np.ndarray, where: Picture) -> np.ndarray:
    """Corners or points x, y, x, y … from the input to the picture."""
    boxes = np.asarray(boxes, np.float64).copy()
    boxes[..., 0::2] = (boxes[..., 0::2] - where["offset_x"]) / where["scale_x"]
    boxes[..., 1::2] = (boxes[..., 1::2] - where["offset_y"]) / where["scale_y"]
    return boxes


def sigmoid(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-values.astype(np.float64)))


def detection(box: np.ndarray, class_index: int, score: float,
              points: np.ndarray | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"box": [round(float(side), 4) for side in box],
                             "class": int(class_index), "score": round(float(score), 6)}
    if points is not None:
        found["keypoints"] = [round(float(value), 4) for value in points]
    return found


def case(name: str, task: dict[str, Any], outputs: Arrays, where: Picture,
         expected: Any) -> dict[str, Any]:
    return {"name": name, "task": task, "picture": where, "expected": expected,
            "outputs": {key: {"shape": list(array.shape), "data": array.ravel().tolist()}
                        for key, array in outputs.items()}}


def rounded(random: np.random.Generator, shape: tuple[int, ...], deviation: float = 1.0,
            mean: float = 0.0) -> np.ndarray:
    """Few digits: they are exact in the file, and there are ties."""
    return np.round(random.normal(mean, deviation, shape), 2)


def torchvision_ssd(random: np.random.Generator) -> dict[str, Any]:
    maps = [[6, 8], [3, 4], [1, 1]]
    ratios = [[2.0], [2.0, 3.0], [2.0]]
    generator = DefaultBoxGenerator(ratios, min_ratio=0.2, max_ratio=0.95)
    sides = (96, 128)
    features = [torch.zeros(1, 3, *side) for side in maps]
    images = torchvision.models.detection.image_list.ImageList(
        torch.zeros(1, 3, *sides), [sides])
    anchors = generator(images, features)
    count, classes = len(anchors[0]), 4
    regression = rounded(random, (1, count, 4), 1.5)
    logits = rounded(random, (1, count, classes), 2.0)
    model = SSD(torch.nn.Identity(), generator, sides, classes, head=torch.nn.Identity(),
                score_thresh=0.3, nms_thresh=0.45, detections_per_img=40, topk_candidates=25)
    result = model.postprocess_detections(
        {"bbox_regression": torch.tensor(regression, dtype=torch.float32),
         "cls_logits": torch.tensor(logits, dtype=torch.float32)}, anchors, [sides])[0]
    where = picture(640, 480, 128, 96, "squash")
    boxes = back(result["boxes"].numpy(), where)
    expected = [detection(*found) for found in zip(boxes, result["labels"], result["scores"],
                                                   strict=True)]
    task = {"kind": "detection", "form": "ssd", "boxes": "boxes", "scores": "scores",
            "x_scale": 10, "y_scale": 10, "w_scale": 5, "h_scale": 5, "box_format": "cxcywh",
            "exponential": True, "size_limit": float(np.log(1000 / 16)), "activation": "softmax",
            "background": 0, "classes_per_box": "every", "score_threshold": 0.3,
            "candidates": 25, "nms": {"iou": 0.45, "per_class": True}, "limit": 40,
            "clip": "input",
            "anchors": {"generator": "torchvision", "feature_maps": maps,
                        "aspect_ratios": ratios, "min_ratio": 0.2, "max_ratio": 0.95}}
    return case("torchvision ssd", task, {"boxes": regression, "scores": logits}, where, expected)


def torchvision_retinanet(random: np.random.Generator) -> dict[str, Any]:
    """Its maps do not divide the input; the sizes and ratios of its maps differ."""
    maps, sides = [[7, 9], [4, 5]], (100, 136)
    sizes, ratios = ((17, 21), (35, 44)), ((0.5, 1.0, 2.0), (0.4, 1.3, 2.0))
    generator = AnchorGenerator(sizes, ratios)
    images = torchvision.models.detection.image_list.ImageList(torch.zeros(1, 3, *sides), [sides])
    anchors = generator(images, [torch.zeros(1, 3, *side) for side in maps])
    levels = [rows * columns * 6 for rows, columns in maps]
    classes = 3
    regression = rounded(random, (1, sum(levels), 4), 0.5)
    logits = rounded(random, (1, sum(levels), classes), 1.5, -2.0)
    backbone = torch.nn.Identity()
    backbone.out_channels = 4
    model = RetinaNet(backbone, classes, anchor_generator=generator, score_thresh=0.3,
                      nms_thresh=0.5, detections_per_img=30)
    result = model.postprocess_detections(
        {key: list(torch.tensor(array, dtype=torch.float32).split(levels, 1))
         for key, array in (("bbox_regression", regression), ("cls_logits", logits))},
        [list(anchors[0].split(levels))], [sides])[0]
    where = picture(272, 200, 136, 100, "squash")
    expected = [detection(*found) for found in zip(back(result["boxes"].numpy(), where),
                                                   result["labels"], result["scores"],
                                                   strict=True)]
    task = {"kind": "detection", "form": "ssd", "boxes": "boxes", "scores": "scores",
            "x_scale": 1, "y_scale": 1, "w_scale": 1, "h_scale": 1, "box_format": "cxcywh",
            "exponential": True, "size_limit": float(np.log(1000 / 16)), "activation": "sigmoid",
            "classes_per_box": "every", "score_threshold": 0.3,
            "nms": {"iou": 0.5, "per_class": True}, "limit": 30, "clip": "input",
            "anchors": {"generator": "pyramid", "feature_maps": maps, "sizes": sizes,
                        "aspect_ratios": ratios}}
    return case("torchvision retinanet", task, {"boxes": regression, "scores": logits}, where,
                expected)


def torchvision_fcos(random: np.random.Generator) -> dict[str, Any]:
    maps, sides, strides = [[8, 12], [4, 6]], (64, 96), (8, 16)
    generator = AnchorGenerator(tuple((stride,) for stride in strides), ((1.0,),) * 2)
    images = torchvision.models.detection.image_list.ImageList(torch.zeros(1, 3, *sides), [sides])
    anchors = generator(images, [torch.zeros(1, 3, *side) for side in maps])
    levels, classes = [rows * columns for rows, columns in maps], 3
    shape = (1, sum(levels))
    arrays = {"bbox_regression": np.abs(rounded(random, (*shape, 4), 2.0)),
              "cls_logits": rounded(random, (*shape, classes), 1.5, -0.5),
              "bbox_ctrness": rounded(random, (*shape, 1), 1.0)}
    backbone = torch.nn.Identity()
    backbone.out_channels = 32
    model = FCOS(backbone, classes, anchor_generator=generator, score_thresh=0.4, nms_thresh=0.6,
                 detections_per_img=30)
    result = model.postprocess_detections(
        {key: list(torch.tensor(array, dtype=torch.float32).split(levels, 1))
         for key, array in arrays.items()}, [list(anchors[0].split(levels))], [sides])[0]
    where = picture(300, 200, 96, 64, "letterbox")
    expected = [detection(*found) for found in zip(back(result["boxes"].numpy(), where),
                                                   result["labels"], result["scores"],
                                                   strict=True)]
    # FCOS looks at every class of a box.
    task = {"kind": "detection", "form": "distances", "boxes": "bbox_regression",
            "scores": "cls_logits", "centerness": "bbox_ctrness", "strides": strides,
            "point_offset": 0, "distances": "cells", "activation": "sigmoid",
            "classes_per_box": "every", "score_threshold": 0.4,
            "nms": {"iou": 0.6, "per_class": True}, "limit": 30, "clip": "input"}
    return case("torchvision fcos", task, arrays, where, expected)


def nanodet(random: np.random.Generator) -> dict[str, Any]:
    """One output of classes and then distributions; points as NanoDet-Plus's centre priors."""
    strides, (width, height), classes, bins = (8, 16), (52, 40), 3, 5
    cells = np.concatenate([np.stack(np.meshgrid(
        np.arange(-(-width // s)) * s, np.arange(-(-height // s)) * s), -1).reshape(-1, 2)
        for s in strides])
    step = np.repeat(strides, [-(-width // s) * -(-height // s) for s in strides])
    rows = np.concatenate([random.uniform(0, 1, (len(cells), classes)).round(2),
                           rounded(random, (len(cells), 4 * bins), 1.5)], 1)
    shares = torch.softmax(torch.tensor(rows[:, classes:].reshape(-1, 4, bins)), -1).numpy()
    sides = shares @ np.arange(bins) * step[:, None]
    boxes = np.concatenate([cells - sides[:, :2], cells + sides[:, 2:]], 1)
    best, top = rows[:, :classes].argmax(1), rows[:, :classes].max(1)
    good = top >= 0.5
    where = picture(104, 80, width, height, "squash")
    expected = suppressed(boxes[good], best[good], top[good], 0.6, where)
    task = {"kind": "detection", "form": "distances", "boxes": 0, "scores": 0, "bins": bins,
            "classes": classes, "box_offset": classes, "strides": strides, "point_offset": 0,
            "distances": "cells", "activation": "none", "score_threshold": 0.5,
            "nms": {"iou": 0.6, "per_class": True}}
    return case("nanodet", task, {"output": rows[None]}, where, expected)


def rt_detr(random: np.random.Generator) -> dict[str, Any]:
    """RTDetrImageProcessor.post_process_object_detection: the best pairs of query and class."""
    logits, boxes = rounded(random, (12, 4), 2.0), random.uniform(0.1, 0.5, (12, 4)).round(3)
    where = picture(300, 200, 64, 64, "squash")
    scores = torch.sigmoid(torch.tensor(logits)).flatten()
    top, index = torch.topk(scores, len(logits), dim=-1)
    ends = corners(boxes) * np.array([300, 200, 300, 200])
    expected = [detection(ends[int(i) // 4], int(i) % 4, float(score))
                for score, i in zip(top, index) if score >= 0.5]
    task = {"kind": "detection", "form": "boxes", "boxes": "pred_boxes", "scores": "logits",
            "units": "normalized", "box_format": "cxcywh", "activation": "sigmoid",
            "classes_per_box": "every", "score_threshold": 0.5, "limit": len(logits)}
    return case("rt-detr", task, {"logits": logits[None], "pred_boxes": boxes[None]}, where,
                expected)


def heatmaps(random: np.random.Generator, layout: str) -> dict[str, Any]:
    """get_max_preds() and get_final_preds() of HRNet's lib/core/inference.py."""
    count, height, width = 6, 8, 6
    maps = random.uniform(0.05, 1, (count, height, width)).round(3)
    maps[0, 0, 3] = maps[1, 4, 1] = maps[2, 6, 2] = maps[3, 3, 4] = 2.0
    where = picture(90, 60, 24, 32, "letterbox")
    expected = []
    for heat in maps:
        at = int(heat.reshape(-1).argmax())
        x, y = float(at % width), float(at // width)
        px, py = int(x), int(y)
        if 1 < px < width - 1 and 1 < py < height - 1:
            x += np.sign(heat[py, px + 1] - heat[py, px - 1]) * 0.25
            y += np.sign(heat[py + 1, px] - heat[py - 1, px]) * 0.25
        point = back(np.array([x * 24 / width, y * 32 / height]), where)
        expected.append([*point.round(4).tolist(), float(heat.max())])
    task = {"kind": "landmarks", "form": "heatmaps", "output": 0, "layout": layout,
            "refine": "quarter"}
    output = maps[None] if layout == "NCHW" else maps.transpose(1, 2, 0)[None]
    return case(f"heat maps {layout}", task, {"output": output}, where, expected)


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    if sides.min() <= 0:
        return 0.0
    common = sides.prod()
    return float(common / ((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - common))


def weighted(boxes: np.ndarray, points: np.ndarray, scores: np.ndarray,
             threshold: float) -> Detections:
    """NonMaxSuppressionCalculator with WEIGHTED."""
    left = list(np.argsort(-scores, kind="stable"))
    found = []
    while left:
        best = left[0]
        group = [i for i in left if overlap(boxes[i], boxes[best]) > threshold]
        if not group:
            break
        weights = scores[group][:, None]
        found.append(detection((boxes[group] * weights).sum(0) / weights.sum(), 0, scores[best],
                               (points[group] * weights).sum(0) / weights.sum()))
        left = [i for i in left if i not in group]
    return found


def mediapipe_anchors() -> np.ndarray:
    """SsdAnchorsCalculator: strides 8, 16, 16 of a 32x48 input, with sizes."""
    anchors = []
    scales = [0.2 + 0.5 * i / 2 for i in range(3)] + [1.0]
    for stride, layers in ((8, [0]), (16, [1, 2])):
        rows, columns = -(-48 // stride), -(-32 // stride)
        sizes = []
        for layer in layers:
            sizes += [(scales[layer] * np.sqrt(r), scales[layer] / np.sqrt(r)) for r in (1.0, 2.0)]
            between = np.sqrt(scales[layer] * scales[layer + 1])
            sizes.append((between, between))
        anchors += [((x + 0.5) / columns, (y + 0.5) / rows, w, h)
                    for y in range(rows) for x in range(columns) for w, h in sizes]
    return np.array(anchors)


def mediapipe_ssd(random: np.random.Generator) -> dict[str, Any]:
    anchors = mediapipe_anchors()
    raw = rounded(random, (1, len(anchors), 8), 3.0)
    raw[..., 2:4] = np.abs(raw[..., 2:4]) + 8
    raw[0, ::17, 2] = -4  # boxes that MediaPipe leaves out
    logits = rounded(random, (1, len(anchors), 1), 2.0)
    scores = sigmoid(np.clip(logits.ravel(), -3, 3))
    scale = np.array([32, 48])
    centres = (raw[0, :, 0:2] / 32 * anchors[:, 2:] + anchors[:, :2]) * scale
    sides = raw[0, :, 2:4] / 16 * anchors[:, 2:] * scale
    points = np.concatenate([(raw[0, :, k:k + 2] / 32 * anchors[:, 2:] + anchors[:, :2]) * scale
                             for k in (4, 6)], axis=1)
    good = (scores >= 0.6) & (sides.min(1) >= 0)
    where = picture(100, 80, 32, 48, "letterbox")
    found = weighted(np.concatenate([centres - sides / 2, centres + sides / 2], 1)[good],
                     points[good], scores[good], 0.3)
    for item in found:
        item["box"] = back(np.array(item["box"]), where).round(4).tolist()
        item["keypoints"] = back(np.array(item["keypoints"]), where).round(4).tolist()
    task = {"kind": "detection", "form": "ssd", "boxes": 0, "scores": 1, "x_scale": 32,
            "y_scale": 32, "w_scale": 16, "h_scale": 16, "box_format": "cxcywh",
            "exponential": False, "activation": "sigmoid", "score_clip": 3,
            "score_threshold": 0.6, "keypoints": {"count": 2},
            "nms": {"iou": 0.3, "mode": "weighted", "per_class": False},
            "anchors": {"generator": "mediapipe", "input_width": 32, "input_height": 48,
                        "min_scale": 0.2, "max_scale": 0.7, "strides": [8, 16, 16],
                        "aspect_ratios": [1.0, 2.0]}}
    return case("mediapipe ssd", task, {"boxes": raw, "scores": logits}, where, found)


def suppressed(boxes: np.ndarray, classes: np.ndarray, scores: np.ndarray, iou: float,
               where: Picture) -> Detections:
    kept = torchvision.ops.batched_nms(torch.tensor(boxes), torch.tensor(scores),
                                       torch.tensor(classes), iou).numpy()
    return [detection(back(boxes[i], where), classes[i], scores[i]) for i in kept]


def corners(rows: np.ndarray) -> np.ndarray:
    return np.concatenate([rows[:, :2] - rows[:, 2:4] / 2, rows[:, :2] + rows[:, 2:4] / 2], 1)


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


def detr(random: np.random.Generator) -> dict[str, Any]:
    """DETR's PostProcess: the best class but the last of a softmax, boxes by their shares."""
    logits, boxes = rounded(random, (20, 5), 2.0), random.uniform(0.1, 0.5, (20, 4)).round(3)
    shares = torch.softmax(torch.tensor(logits), -1).numpy()
    best, top = shares[:, :-1].argmax(1), shares[:, :-1].max(1)
    where = picture(300, 200, 64, 48, "squash")
    good = top >= 0.2
    assert (shares.argmax(1)[good] == 4).any()
    expected = [detection(back(corners(boxes)[i] * np.array([64, 48, 64, 48]), where), best[i],
                          top[i]) for i in np.flatnonzero(good)]
    task = {"kind": "detection", "form": "boxes", "boxes": "b", "scores": "s",
            "units": "normalized", "box_format": "cxcywh", "activation": "softmax", "background": 4,
            "score_threshold": 0.2}
    return case("detr", task, {"b": boxes[None], "s": logits[None]}, where, expected)


def ready_boxes() -> dict[str, Any]:
    boxes = np.array([[[0.1, 0.2, 0.5, 0.6], [0.0, 0.0, 0.25, 0.5], [9, 9, 9, 9]]])
    where = picture(400, 200, 100, 100, "letterbox")
    expected = [detection(back(np.array([20., 10, 60, 50]), where), 2, 0.875),
                detection(back(np.array([0., 0, 50, 25]), where), 0, 0.75)]
    task = {"kind": "detection", "form": "boxes", "boxes": "b", "classes": "c", "scores": "s",
            "count": "n", "box_format": "yxyx", "units": "normalized", "score_threshold": 0.5}
    return case("TFLite_Detection_PostProcess", task,
                {"b": boxes, "c": np.array([[2., 0, 7]]), "s": np.array([[0.875, 0.75, 0.99]]),
                 "n": np.array([2.])}, where, expected)


def run_lengths(mask: np.ndarray) -> str:
    """COCO's rleEncode and rleToString (maskApi.c)."""
    flat = mask.T.ravel()
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flat.astype(int)])))
    counts = np.diff(np.concatenate([[0], edges, [flat.size]])).tolist()
    text = ""
    for i, count in enumerate(counts):
        value = count - counts[i - 2] if i > 2 else count
        more = True
        while more:
            bits = value & 0x1F
            value >>= 5
            more = value != -1 if bits & 0x10 else value != 0
            text += chr((bits | 0x20 if more else bits) + 48)
    return text


def segmentation(random: np.random.Generator, fit: str, channels_last: bool) -> dict[str, Any]:
    width, height = 45, 31
    where = picture(width, height, 32, 24, fit)
    scores = rounded(random, (1, 4, 12, 16))
    # Where each pixel of the picture lies on the map, by the definition of align_corners=False.
    x = ((np.arange(width) + 0.5) * where["scale_x"] + where["offset_x"]) * 16 / 32
    y = ((np.arange(height) + 0.5) * where["scale_y"] + where["offset_y"]) * 12 / 24
    grid = np.stack(np.broadcast_arrays((x / 16 * 2 - 1)[None], (y / 12 * 2 - 1)[:, None]), -1)
    sampled = torch.nn.functional.grid_sample(
        torch.tensor(scores), torch.tensor(grid[None]), mode="bilinear", padding_mode="border",
        align_corners=False)[0].numpy()
    classes = sampled.argmax(0)
    if fit == "squash":
        resized = torch.nn.functional.interpolate(torch.tensor(scores), (height, width),
                                                  mode="bilinear", align_corners=False)[0].numpy()
        assert (resized.argmax(0) == classes).all()
    seen = ((x >= 0) & (x <= 16))[None] & ((y >= 0) & (y <= 12))[:, None]
    expected = {str(c): run_lengths((classes == c) & seen) for c in range(4)}
    task = {"kind": "segmentation", "form": "scores", "output": "s",
            "layout": "NHWC" if channels_last else "NCHW"}
    output = scores.transpose(0, 2, 3, 1) if channels_last else scores
    return case(f"segmentation {fit}", task, {"s": output}, where, expected)


def main() -> None:
    random = np.random.default_rng(18)
    cases = [torchvision_ssd(random), mediapipe_ssd(random), yoeo_rows(random), yolo_v8(random),
             yolo_heads(random, "v3", "NCHW"), yolo_heads(random, "v5", "rows"),
             yolo_heads(random, "v5", "NHWC"), ready_boxes(),
             segmentation(random, "squash", False), segmentation(random, "letterbox", True),
             segmentation(random, "crop", False), yolox(random), instance_masks(random, "yolo-v8"),
             instance_masks(random, "yolo-rows"), instance_masks(random, "box-rows"),
             detr(random), torchvision_retinanet(random), torchvision_fcos(random), nanodet(random),
             rt_detr(random), heatmaps(random, "NCHW"), heatmaps(random, "NHWC")]
    for item in cases:
        assert item["expected"], item["name"]
        print(item["name"], len(item["expected"]))
    OUTPUT.write_text(json.dumps({"cases": cases}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
