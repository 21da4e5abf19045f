#!/usr/bin/env python3
"""Makes golden.json: what pycocotools says of boxes and people that a seed decides.

  build/venv/bin/pip install --no-deps --target FOLDER pycocotools==2.0.8
  PYTHONPATH=FOLDER build/venv/bin/python tests/scripts/coco/make_golden.py

The cases themselves are made again by the test (cases.py), so that only figures are kept.
"""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

from cases import CASES, make_case
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval


def judge(annotations: dict, detections: list[dict], kind: str) -> list[float]:
    if kind == "keypoints":
        # As COCO's format of results has it: with a box, pycocotools would take its area.
        detections = [{k: v for k, v in one.items() if k != "bbox"} for one in detections]
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = annotations
        truth.createIndex()
        judged = COCOeval(truth, truth.loadRes(detections), kind)
        judged.evaluate()
        judged.accumulate()
        judged.summarize()
    return [float(value) for value in judged.stats]


if __name__ == "__main__":
    golden = {name: judge(*make_case(seed, kind), kind) for name, (seed, kind) in CASES.items()}
    Path(__file__).with_name("golden.json").write_text(json.dumps(golden, indent=2) + "\n")
