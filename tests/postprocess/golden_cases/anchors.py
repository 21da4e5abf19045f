"""Boxes as differences from anchors or from points: torchvision's, MediaPipe's, NanoDet's."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torchvision
from torchvision.models.detection.anchor_utils import AnchorGenerator, DefaultBoxGenerator
from torchvision.models.detection.fcos import FCOS
from torchvision.models.detection.retinanet import RetinaNet
from torchvision.models.detection.ssd import SSD

from golden_cases.common import (
    Detections,
    back,
    case,
    detection,
    picture,
    rounded,
    sigmoid,
    suppressed,
)


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
