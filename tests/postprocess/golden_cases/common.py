"""What the golden cases share: pictures, boxes in them, and COCO's run lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torchvision

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


def corners(rows: np.ndarray) -> np.ndarray:
    return np.concatenate([rows[:, :2] - rows[:, 2:4] / 2, rows[:, :2] + rows[:, 2:4] / 2], 1)


def suppressed(boxes: np.ndarray, classes: np.ndarray, scores: np.ndarray, iou: float,
               where: Picture) -> Detections:
    kept = torchvision.ops.batched_nms(torch.tensor(boxes), torch.tensor(scores),
                                       torch.tensor(classes), iou).numpy()
    return [detection(back(boxes[i], where), classes[i], scores[i]) for i in kept]


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
