#!/usr/bin/env python3
"""Makes golden.json: what pycocotools says of boxes, people and masks that a seed decides, and of
boxes with an angle whose overlaps are Shapely's; what scikit-learn says of scores.

  python3 -m venv FOLDER
  FOLDER/bin/pip install pycocotools==2.0.8 shapely==2.2.0 scikit-learn==1.9.1
  FOLDER/bin/python tests/scripts/evaluating/coco/make_golden.py

The cases themselves are made again by the tests (cases.py, shapes.py), so that only figures are
kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from cases import CASES, make_case
from pycocotools import mask as masks
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from shapely.geometry import Polygon
from shapes import CATEGORIES, HEIGHT, WIDTH, make_masks, make_scores, make_turned
from sklearn.metrics import average_precision_score, roc_auc_score


class OfTurned(COCOeval):
    """Of annotations and detections with `corners`; what is difficult is ignored."""

    def _prepare(self) -> None:
        super()._prepare()
        for ones in self._gts.values():
            for one in ones:
                one["ignore"] = one["difficult"]

    def computeIoU(self, image: int, category: int) -> Any:
        true, found = self._gts[image, category], self._dts[image, category]
        found = sorted(found, key=lambda one: -one["score"])[:self.params.maxDets[-1]]
        if not true or not found:
            return []
        return np.array([[_overlap(Polygon(a["corners"]), Polygon(b["corners"])) for b in true]
                         for a in found])


def _overlap(a: Polygon, b: Polygon) -> float:
    return a.intersection(b).area / a.union(b).area


def judge(annotations: dict, detections: list[dict], kind: str, how: type = COCOeval,
          ) -> list[float]:
    if kind == "keypoints":
        # As COCO's format of results has it: with a box, pycocotools would take its area.
        detections = [{k: v for k, v in one.items() if k != "bbox"} for one in detections]
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = annotations
        truth.createIndex()
        found = truth.loadRes(detections)
        for one in found.dataset["annotations"]:
            if "corners" in one:
                one["area"] = Polygon(one["corners"]).area
        judged = how(truth, found, kind)
        judged.evaluate()
        judged.accumulate()
        judged.summarize()
    return [float(value) for value in judged.stats]


def of_masks() -> dict[str, Any]:
    annotations, detections = make_masks()
    digest, found = hashlib.sha256(), []
    for one in detections:
        code = masks.merge(masks.frPyObjects(one["polygons"], HEIGHT, WIDTH))
        digest.update(code["counts"] + b"\n")
        found.append({**{k: v for k, v in one.items() if k != "polygons"}, "segmentation": code})
    return {"figures": judge(annotations, found, "segm"), "run_lengths": digest.hexdigest()}


def of_turned() -> list[float]:
    things, detections = make_turned()
    numbers = sorted({one["image_id"] for one in [*things, *detections]})
    annotations = {"info": {}, "categories": CATEGORIES, "images": [{"id": n} for n in numbers],
                   "annotations": [{**one, "id": n, "iscrowd": 0, "bbox": [0, 0, 1, 1],
                                    "area": Polygon(one["corners"]).area}
                                   for n, one in enumerate(things, 1)]}
    return judge(annotations, [{**one, "bbox": [0, 0, 1, 1]} for one in detections], "bbox",
                 OfTurned)


if __name__ == "__main__":
    golden: dict[str, Any] = {name: judge(*make_case(seed, kind), kind)
                              for name, (seed, kind) in CASES.items()}
    golden["masks"], golden["turned"] = of_masks(), of_turned()
    golden["scores"] = {name: [float(roc_auc_score(positive, scores)),
                               float(average_precision_score(positive, scores))]
                        for name, (scores, positive) in make_scores().items()}
    Path(__file__).with_name("golden.json").write_text(json.dumps(golden, indent=2) + "\n")
