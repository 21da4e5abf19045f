"""litert_worker.py MODEL.tflite TASK.json THREADS LEVEL: faces found and drawn with LiteRT, NumPy
and Pillow, as one writes it by hand for speed. Asked with lines "PICTURE<tab>OUT.png"; answers
{"boxes": [[x0, y0, x1, y1], ...], "scores": [...]}.

LEVEL is Pillow's compress_level for the PNG file, -1 its default.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from PIL import Image, ImageDraw, ImageFont


class Faces:
    def __init__(self, model: str, task: dict[str, Any], threads: int) -> None:
        self._interpreter = Interpreter(model_path=model, num_threads=threads)
        self._interpreter.allocate_tensors()
        self._input = self._interpreter.get_input_details()[0]
        outputs = {one["name"]: one["index"] for one in self._interpreter.get_output_details()}
        self._boxes, self._scores = outputs[task["boxes"]], outputs[task["scores"]]
        self._side = int(self._input["shape"][1])
        self._anchors = _anchors(task["anchors"])
        self._task = task
        self._font = ImageFont.load_default()

    def look(self, picture: str, drawn: str, level: int) -> dict[str, Any]:
        image = Image.open(picture).convert("RGB")
        width, height = image.size
        longer = max(width, height)
        left, top = (longer - width) / 2, (longer - height) / 2
        scale = longer / self._side
        # A bilinear sample for each pixel of the input, black beyond the picture: MediaPipe's.
        small = image.transform((self._side, self._side), Image.Transform.AFFINE,
                                (scale, 0, -left, 0, scale, -top), Image.Resampling.BILINEAR)
        tensor = np.asarray(small, np.float32) / 127.5 - 1.0
        self._interpreter.set_tensor(self._input["index"], tensor[None])
        self._interpreter.invoke()
        boxes, scores = self._decode(self._interpreter.get_tensor(self._boxes)[0],
                                     self._interpreter.get_tensor(self._scores)[0, :, 0])
        boxes = boxes.reshape(-1, 2) * longer - (left, top)
        found = boxes.reshape(len(scores), -1, 2)
        canvas = ImageDraw.Draw(image)
        for points, score in zip(found, scores):
            canvas.rectangle([*points[0], *points[1]], outline=(255, 56, 56), width=3)
            canvas.text((points[0][0] + 2, points[0][1] - 12), f"face {score:.2f}",
                        fill=(255, 255, 255), font=self._font)
            for x, y in points[2:]:
                canvas.ellipse([x - 2, y - 2, x + 2, y + 2], fill=(255, 56, 56))
        image.save(drawn, compress_level=level) if level >= 0 else image.save(drawn)
        return {"boxes": found[:, :2].reshape(-1, 4).tolist(), "scores": scores.tolist()}

    def _decode(self, raw: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Corners and keypoints of the faces, as shares of the input, by MediaPipe's rules."""
        clip = self._task["score_clip"]
        scores = 1 / (1 + np.exp(-np.clip(scores, -clip, clip)))
        enough = np.flatnonzero(scores >= self._task["score_threshold"])
        enough = enough[np.argsort(-scores[enough], kind="stable")]
        scores, raw, anchors = scores[enough], raw[enough] / self._side, self._anchors[enough]
        centre, half = raw[:, :2] + anchors, raw[:, 2:4] / 2
        points = raw[:, 4:].reshape(len(raw), -1, 2) + anchors[:, None]
        table = np.concatenate([centre - half, centre + half, points.reshape(len(raw), -1)], 1)
        kept, best = [], []
        while len(table):
            share = _overlap(table[0], table)
            near = share > self._task["nms"]["iou"]
            near[0] = True
            kept.append((table[near] * scores[near, None]).sum(0) / scores[near].sum())
            best.append(scores[0])
            table, scores = table[~near], scores[~near]
        return np.array(kept).reshape(len(best), -1), np.array(best)


def _overlap(one: np.ndarray, table: np.ndarray) -> np.ndarray:
    low, high = np.maximum(one[:2], table[:, :2]), np.minimum(one[2:4], table[:, 2:4])
    both = np.clip(high - low, 0, None).prod(1)
    areas = (table[:, 2:4] - table[:, :2]).prod(1)
    return both / (areas + (one[2:4] - one[:2]).prod() - both)


def _anchors(options: dict[str, Any]) -> np.ndarray:
    """Centres; of equal strides one map has all the anchors, two for each."""
    centres, strides = [], options["strides"]
    for stride in dict.fromkeys(strides):
        cells = options["input_width"] // stride
        y, x = np.mgrid[:cells, :cells]
        cell = (np.stack([x, y], -1).reshape(-1, 2) + 0.5) / cells
        centres.append(np.repeat(cell, 2 * strides.count(stride), 0))
    return np.concatenate(centres).astype(np.float32)


def main() -> None:
    model, task, threads, level = sys.argv[1:]
    faces = Faces(model, json.loads(Path(task).read_text(encoding="utf-8")), int(threads))
    for line in sys.stdin:
        picture, drawn = line.rstrip("\n").split("\t")
        print(json.dumps(faces.look(picture, drawn, int(level))), flush=True)


if __name__ == "__main__":
    main()
