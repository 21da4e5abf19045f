#!/usr/bin/env python3
"""Makes tests/postprocess/data/golden.json: what others make of the same tensors.

Needs torch, torchvision and transformers (made with 2.15.0, 0.29.2 and 5.23.0); torchvision's SSD,
its nms, torch's interpolate() and transformers' post-processing of depth are called as they are,
MediaPipe's decoding and weighted suppression, YOLO's codings, CenterNet's, Ultralytics' oriented
boxes and COCO's run lengths are written in golden_cases/ from their published definitions, in
NumPy.  New cases are last, so that those before them stay the same.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from golden_cases import oriented
from golden_cases.anchors import (
    mediapipe_ssd,
    nanodet,
    torchvision_fcos,
    torchvision_retinanet,
    torchvision_ssd,
)
from golden_cases.images import depth, depth_crop, image
from golden_cases.maps import centers, heatmaps, segmentation
from golden_cases.ready import detr, mask_rcnn, ready_boxes, rt_detr
from golden_cases.yolo import instance_masks, yoeo_rows, yolo_heads, yolo_v8, yolox

OUTPUT = Path(__file__).parent / "data/golden.json"


def main() -> None:
    random = np.random.default_rng(18)
    cases = [torchvision_ssd(random), mediapipe_ssd(random), yoeo_rows(random), yolo_v8(random),
             yolo_heads(random, "v3", "NCHW"), yolo_heads(random, "v5", "rows"),
             yolo_heads(random, "v5", "NHWC"), ready_boxes(),
             segmentation(random, "squash", False), segmentation(random, "letterbox", True),
             segmentation(random, "crop", False), yolox(random), instance_masks(random, "yolo-v8"),
             instance_masks(random, "yolo-rows"), instance_masks(random, "box-rows"),
             detr(random), torchvision_retinanet(random), torchvision_fcos(random), nanodet(random),
             rt_detr(random), heatmaps(random, "NCHW"), heatmaps(random, "NHWC"),
             oriented.ultralytics(random), oriented.by_area(random, "boxes"),
             oriented.by_area(random, "box-rows"),
             centers(random, "NCHW", "sigmoid", True), centers(random, "NHWC", "none", False),
             depth(random, "bicubic"), depth(random, "bilinear"), depth_crop(random),
             image(random, "NCHW", "RGB", "output"), image(random, "NHWC", "BGR", "picture"),
             image(random, "NHWC", "GRAY", "output"),
             mask_rcnn(np.random.default_rng(19))]
    for item in cases:
        assert item["expected"], item["name"]
        print(item["name"], len(item["expected"]))
    OUTPUT.write_text(json.dumps({"cases": cases}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
