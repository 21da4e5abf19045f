"""Detections by a plugin of TensorRT's, by definition, and as ONNX Runtime is given it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from repaired_models import noise, one, refusal

from run_model_tools.onnx_repair.reference import reference_outputs

BATCH, BOXES, CLASSES = 2, 40, 3


def corners_of(boxes, centers):
    if not centers:
        return boxes
    return np.concatenate([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2], 1)


def overlap(a, b):
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    inner = np.prod(np.maximum(sides, 0))
    return inner / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - inner)


def found(boxes, scores, most, least=0.3, at=0.5, agnostic=False, centers=False, without=-1):
    """(corners, scores, classes) of one picture, the best first."""
    corners, kept = corners_of(boxes, centers), []
    order = sorted(np.ndindex(scores.shape), key=lambda i: -scores[i])
    for box, of in order:
        if of == without or scores[box, of] < least or len(kept) == most:
            continue
        if all(overlap(corners[box], corners[other]) < at
               for other, others in kept if agnostic or others == of):
            kept.append((box, of))
    made = np.zeros((most, 4)), np.zeros(most), np.zeros(most, int)
    for i, (box, of) in enumerate(kept):
        made[0][i], made[1][i], made[2][i] = corners[box], scores[box, of], of
    return len(kept), *made


@pytest.mark.parametrize("opset, domain, most, attrs, options", [
    (11, "TRT", 9, {}, {}), (17, "", 200, {"box_coding": 1}, {"centers": True}),
    (12, "TRT", 30, {"class_agnostic": 1, "score_activation": 1}, {"agnostic": True}),
    (13, "TRT", 30, {"background_class": 1, "plugin_version": "1"}, {"without": 1})])
def test_the_best_boxes(opset, domain, most, attrs, options, tmp_path):
    random = np.random.default_rng(4)
    begin = random.uniform(0, 4, (BATCH, BOXES, 2))
    size = random.uniform(1, 3, (BATCH, BOXES, 2))
    boxes = np.concatenate([begin, size if options.get("centers") else begin + size],
                           2).astype(np.float32)
    scores = random.uniform(0, 1, (BATCH, BOXES, CLASSES)).astype(np.float32)
    seen = 1 / (1 + np.exp(-scores)) if attrs.get("score_activation") else scores
    model, inputs = one("EfficientNMS_TRT", [boxes, scores], domain=domain, opset=opset, outputs=4,
                        score_threshold=0.3, iou_threshold=0.5, max_output_boxes=most, **attrs)
    want = [np.stack(column) for column in zip(*(
        found(*picture, most, **options) for picture in zip(boxes, seen)))]
    assert want[0].min() > 5
    onnx.save(model, str(tmp_path / "net.onnx"))
    theirs, who = reference_outputs(tmp_path / "net.onnx", inputs)
    assert who == "onnxruntime"
    assert [x.dtype for x in theirs] == [np.int32, np.float32, np.float32, np.int32]
    np.testing.assert_array_equal(theirs[0][:, 0], want[0])
    np.testing.assert_allclose(theirs[1], want[1], atol=1e-5)
    np.testing.assert_allclose(theirs[2], want[2], atol=1e-6)
    np.testing.assert_array_equal(theirs[3], want[3])


def test_boxes_of_each_class_are_refused():
    boxes = noise(1, 5, 3, 4)
    model, inputs = one("EfficientNMS_TRT", [boxes, noise(1, 5, 3)], domain="TRT", outputs=4)
    assert "one box for all classes is known" in str(refusal(model, inputs))
