"""The network in ONNX Runtime, and its results in NumPy: what run_model is held to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime

from robot_vision_tools import weights_file
from robot_vision_tools.lessons import SIZE
from run_model_tools.pictures import preprocessing
from run_model_tools.pictures.preprocess import preprocess

_NMS_OVERLAP = 0.5


@dataclass(frozen=True)
class Seen:
    """Of one picture: boxes x0, y0, x1, y1 in its pixels, the surest first; its areas."""

    boxes: np.ndarray
    classes: np.ndarray
    scores: np.ndarray
    areas: np.ndarray


class Reference:
    def __init__(self, onnx: Path | bytes) -> None:
        self._preprocessing = preprocessing.from_json(
            weights_file.description()["preprocessing"], weights_file.NAME)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            onnx if isinstance(onnx, bytes) else str(onnx), options,
            providers=["CPUExecutionProvider"])

    def see(self, pixels: np.ndarray, threshold: float) -> Seen:
        shape = (1, 3, SIZE, SIZE)
        tensor = preprocess(pixels, self._preprocessing, shape, "float32", "NCHW").tensor
        rows, areas = self._session.run(None, {self._session.get_inputs()[0].name: tensor})
        height, width = pixels.shape[:2]
        scale = min(SIZE / width, SIZE / height)
        inner = np.round(np.array([width, height]) * scale)
        offset = (SIZE - inner) // 2
        boxes, classes, scores = _suppressed(rows[0].astype(np.float64), threshold)
        boxes = (boxes - np.tile(offset, 2)) * np.tile(np.array([width, height]) / inner, 2)
        return Seen(boxes, classes, scores, _resampled(areas[0], offset, inner, width, height))


def _suppressed(rows: np.ndarray, threshold: float,
                ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every class of every row whose score is enough; of each class the surest, and those that do
    not overlap a surer one too much."""
    scores = rows[:, 4:5] * rows[:, 5:]
    places, classes = np.nonzero(scores >= threshold)
    sure = scores[places, classes]
    order = np.argsort(-sure, kind="stable")
    places, classes, sure = places[order], classes[order], sure[order]
    half = rows[places, 2:4] / 2
    boxes = np.concatenate([rows[places, :2] - half, rows[places, :2] + half], axis=1)
    kept: list[int] = []
    for index in range(len(boxes)):
        rivals = [k for k in kept if classes[k] == classes[index]]
        low = np.maximum(boxes[rivals, :2], boxes[index, :2])
        high = np.minimum(boxes[rivals, 2:], boxes[index, 2:])
        common = np.clip(high - low, 0, None).prod(1)
        areas = (boxes[:, 2:] - boxes[:, :2]).prod(1)
        if not (common / (areas[rivals] + areas[index] - common) > _NMS_OVERLAP).any():
            kept.append(index)
    return boxes[kept], classes[kept], sure[kept]


def _resampled(areas: np.ndarray, offset: np.ndarray, inner: np.ndarray, width: int,
               height: int) -> np.ndarray:
    """For each pixel of the picture the nearest of the network."""
    columns = offset[0] + (np.arange(width) + 0.5) * inner[0] / width
    rows = offset[1] + (np.arange(height) + 0.5) * inner[1] / height
    return areas[np.floor(rows).astype(int)[:, None], np.floor(columns).astype(int)[None, :]]
