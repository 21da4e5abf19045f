"""Detections by a plugin of TensorRT's, by definition, and as ONNX Runtime is given it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from repaired_models import noise, one, refusal, repaired, run

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


def moved(x, places):
    """Numbers of [channels, rows, columns] between pixels, and 0 beyond them."""
    _, rows, columns = x.shape
    result = np.zeros((len(x), len(places)))
    for i, (row, column) in enumerate(places):
        for r in (int(np.floor(row)), int(np.floor(row)) + 1):
            for c in (int(np.floor(column)), int(np.floor(column)) + 1):
                if 0 <= r < rows and 0 <= c < columns:
                    result[:, i] += x[:, r, c] * (1 - abs(row - r)) * (1 - abs(column - c))
    return result


@pytest.mark.parametrize("op, biased", [
    ("MMCVModulatedDeformConv2d", True), ("MMCVModulatedDeformConv2d", False),
    ("MMCVDeformConv2d", False)])
def test_convolutions_whose_places_move(op, biased, tmp_path):
    x, offset, mask = noise(1, 4, 5, 6), noise(1, 18, 3, 3), np.abs(noise(1, 9, 3, 3)) % 1
    weight, bias = noise(2, 4, 3, 3), noise(2)
    want = np.zeros((1, 2, 3, 3))
    for row, column in np.ndindex(3, 3):
        at = [(2 * row - 1 + k // 3 + offset[0, 2 * k, row, column],
               2 * column - 1 + k % 3 + offset[0, 2 * k + 1, row, column]) for k in range(9)]
        taken = moved(x[0], at) * (mask[0, :, row, column] if "Modulated" in op else 1)
        want[0, :, row, column] = np.einsum("ck,ock->o", taken, weight.reshape(2, 4, 9))
    given = [x, offset, mask, weight] if "Modulated" in op else [x, offset, weight]
    if biased:
        given, want = [*given, bias], want + bias[:, None, None]
    model, inputs = one(op, given, domain="mmcv", opset=11, stride=[2, 2], padding=[1, 1],
                        dilation=[1, 1], groups=1, deform_groups=1)
    compare(model, inputs, want, tmp_path)


def compare(model, inputs, want, tmp_path):
    onnx.save(model, str(tmp_path / "net.onnx"))
    for (made,) in (run(repaired(model, inputs), inputs),
                    reference_outputs(tmp_path / "net.onnx", inputs)[0]):
        np.testing.assert_allclose(made, want, rtol=1e-4, atol=1e-4)


def test_pictures_at_places(tmp_path):
    x, grid = noise(1, 3, 5, 7), noise(1, 4, 2, 2) / 2
    model, inputs = one("grid_sampler", [x, grid], domain="mmdeploy", opset=11,
                        interpolation_mode=0, padding_mode=0, align_corners=1)
    at = [((y + 1) * 2, (x_ + 1) * 3) for x_, y in grid.reshape(-1, 2)]
    compare(model, inputs, moved(x[0], at).reshape(1, 3, 4, 2), tmp_path)


def test_regions(tmp_path):
    x, rois = noise(2, 3, 8, 8), np.float32([[1, 4, 6, 20, 28], [0, 4, 4, 12, 28]])
    model, inputs = one("MMCVRoiAlign", [x, rois], domain="mmcv", opset=11, output_height=2,
                        output_width=3, sampling_ratio=2, spatial_scale=0.25, aligned=1)
    want = np.zeros((2, 3, 2, 3))
    for i, (number, *corners) in enumerate(rois):
        left, top, right, bottom = np.array(corners) * 0.25 - 0.5
        for row, column in np.ndindex(2, 3):
            at = [(top + (bottom - top) / 2 * (row + (a + 0.5) / 2),
                   left + (right - left) / 3 * (column + (b + 0.5) / 2))
                  for a, b in np.ndindex(2, 2)]
            want[i, :, row, column] = moved(x[int(number)], at).mean(1)
    compare(model, inputs, want, tmp_path)
