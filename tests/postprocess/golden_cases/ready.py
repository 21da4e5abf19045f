"""Boxes that need no suppression."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from golden_cases.common import back, case, corners, detection, picture, rounded, run_lengths


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


def mask_rcnn(random: np.random.Generator) -> dict[str, Any]:
    """torchvision's Mask R-CNN with points too: a mask as large as the input for each box, which is
    a thing's where it is above a half once torch has it as large as the picture."""
    width, height, (input_width, input_height), count = 90, 60, (60, 40), 4
    where = picture(width, height, input_width, input_height, "squash")
    boxes = np.sort(random.uniform(0, 40, (count, 2, 2)).round(2), 1).reshape(count, 4)
    scores, labels = np.array([0.9, 0.4, 0.8, 0.7]), np.array([1., 2, 2, 1])
    masks = np.zeros((count, 1, input_height, input_width))
    masks[0, 0, 5:20, 8:30] = random.uniform(0, 1, (15, 22)).round(2)
    masks[2, 0, 30:, 50:] = 0.75  # Beyond its box, up to the edges; and of the last no pixel.
    masks[3, 0, 3, 3] = 0.5
    points = np.concatenate([random.uniform(0, 40, (count, 3, 2)).round(2), np.ones((count, 3, 1))],
                            2)
    expected = []
    for i in (0, 2, 3):
        grown = torch.nn.functional.interpolate(
            torch.tensor(masks[i:i + 1]), (height, width), mode="bilinear")[0, 0].numpy()
        expected.append({**detection(back(boxes[i], where), labels[i], scores[i],
                                     back(points[i, :, :2], where).ravel()),
                         "mask": run_lengths(grown > 0.5)})
    task = {"kind": "detection", "form": "boxes", "boxes": "b", "classes": "c", "scores": "s",
            "box_format": "xyxy", "units": "pixels", "background": 0, "score_threshold": 0.5,
            "masks": {"output": "m"},
            "keypoints": {"output": "p", "count": 3, "values": 3, "scores": "q"}}
    return case("Mask R-CNN", task, {
        "b": boxes, "c": labels, "s": scores, "m": masks, "p": points,
        "q": rounded(random, (count, 3), 4.0)}, where, expected)
