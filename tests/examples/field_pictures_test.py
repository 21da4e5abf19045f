"""examples/robot_vision: the pictures, and the committed weights judged on some that no training
has seen. What is measured is the exported network in ONNX Runtime, with NumPy after it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from conftest import ROOT
from PIL import Image

from robot_vision_tools import weights_file
from robot_vision_tools.camera import Camera
from robot_vision_tools.field_picture import CLASSES, FIELD, LINE, OTHER, draw_picture
from robot_vision_tools.reference import Reference
from run_model_tools.errors import ToolError
from run_model_tools.evaluating.metrics import average_precision, segmentation
from run_model_tools.evaluating.metrics.average_precision import Detections, Things

ROBOT_VISION = ROOT / "examples" / "robot_vision"
PICTURES = 40


def run(command: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ROBOT_VISION / command, *map(str, arguments)], capture_output=True,
                          text=True, check=False)


def test_a_seed_decides_a_picture() -> None:
    first, again, other = draw_picture(5, 320, 240), draw_picture(5, 320, 240), draw_picture(6, 320,
                                                                                             240)
    np.testing.assert_array_equal(first.pixels, again.pixels)
    np.testing.assert_array_equal(first.mask, again.mask)
    np.testing.assert_array_equal(first.boxes, again.boxes)
    assert not np.array_equal(first.pixels, other.pixels)


def test_pictures_hold_what_they_say() -> None:
    """Over some pictures every class and area occurs, boxes are within the picture and have a size,
    and things are no part of the field."""
    classes, areas = np.zeros(3, int), np.zeros(3, int)
    for seed in range(30):
        picture = draw_picture(seed, 320, 240)
        assert picture.pixels.shape == (240, 320, 3) and picture.pixels.dtype == np.uint8
        assert picture.pixels.std() > 5
        areas += np.bincount(picture.mask.ravel(), minlength=3)
        classes += np.bincount(picture.classes, minlength=3)
        assert len(picture.boxes) == len(picture.classes) == len(picture.unclear)
        assert (picture.boxes[:, :2] >= 0).all() and (picture.boxes[:, 2] <= 320).all()
        assert (picture.boxes[:, 3] <= 240).all()
        assert (picture.boxes[:, 2:] - picture.boxes[:, :2] >= 2).all()
        for box, kind, unclear in zip(picture.boxes, picture.classes, picture.unclear):
            if CLASSES[kind] == "ball" and not unclear:
                x, y = ((box[:2] + box[2:]) / 2).astype(int)
                # A ball may lie half behind something, which is not of the field either.
                assert picture.mask[min(y, 239), min(x, 319)] == OTHER
    assert (classes > 10).all()
    assert areas[LINE] > 0.003 * areas.sum() and areas[FIELD] > 0.2 * areas.sum()


def test_the_camera_sees_the_ground_where_it_projects_it() -> None:
    """Two directions of the same geometry, which know nothing of each other."""
    camera = Camera(320, 240, 250.0, 0.6, 0.3, 0.05, 0.8, 1.0, -0.5)
    x, y, distance = camera.ground()
    rows, columns = np.nonzero(distance < 20)
    for row, column in list(zip(rows, columns))[::997]:
        u, v, depth = camera.project(x[row, column], y[row, column], 0.0)
        assert (u, v) == pytest.approx((column + 0.5, row + 0.5), abs=0.02) and depth > 0


def test_the_test_set_is_on_disk_as_coco_and_voc_have_it(tmp_path: Path) -> None:
    done = run("draw_pictures", "--count", 3, "--first-seed", 70, "--width", 320, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    root = json.loads((tmp_path / "annotations.json").read_text())
    assert [image["id"] for image in root["images"]] == [70, 71, 72]
    assert [category["name"] for category in root["categories"]] == list(CLASSES)
    for image in root["images"]:
        drawn = draw_picture(image["id"], 320, 240)
        np.testing.assert_array_equal(
            np.asarray(Image.open(tmp_path / "JPEGImages" / image["file_name"])), drawn.pixels)
        np.testing.assert_array_equal(
            np.asarray(Image.open(tmp_path / "SegmentationClass" / image["file_name"])), drawn.mask)
        boxes = np.array([a["bbox"] for a in root["annotations"]
                          if a["image_id"] == image["id"]]).reshape(-1, 4)
        boxes[:, 2:] += boxes[:, :2]
        np.testing.assert_allclose(boxes, drawn.boxes, atol=0.011)


def test_export_writes_the_network_and_its_description(tmp_path: Path) -> None:
    done = run("export", "--out", tmp_path / "net.onnx")
    assert done.returncode == 0, done.stderr
    session = onnxruntime.InferenceSession(str(tmp_path / "net.onnx"))
    assert [(o.name, o.type, o.shape) for o in session.get_outputs()] == [
        ("yolo_detections", "tensor(float)", [1, 2535, 8]),
        ("segmentation", "tensor(uint8)", [1, 416, 416])]
    described = json.loads((tmp_path / "net.model.json").read_text())
    assert [task["kind"] for task in described["tasks"]] == ["detection", "segmentation"]
    assert weights_file.PATH.stat().st_size <= 3e6


@pytest.mark.parametrize("contents, code", [(None, 3), (b"no archive", 4), ("part", 4)])
def test_other_weights_are_refused(tmp_path: Path, contents: bytes | str | None,
                                   code: int) -> None:
    path = tmp_path / "w.npz"
    if contents == "part":
        path.write_bytes(weights_file.to_bytes({"encoder.stem1.conv.weight": np.zeros(3)}))
    elif isinstance(contents, bytes):
        path.write_bytes(contents)
    with pytest.raises(ToolError, match="w.npz") as caught:
        weights_file.network(path)
    assert caught.value.code == code


def test_the_trained_network_finds_things_in_pictures_it_has_never_seen() -> None:
    """What README.md states is of 200 pictures; these are others still."""
    reference = Reference(weights_file.network())
    true: dict[tuple[str, int], Things] = {}
    found: dict[tuple[str, int], Detections] = {}
    matrix = np.zeros((3, 3), np.int64)
    for seed in range(5000, 5000 + PICTURES):
        picture = draw_picture(seed)
        seen = reference.see(picture.pixels, 0.01)
        matrix += segmentation.confusion(picture.mask, seen.areas, 3)
        for kind in range(3):
            of_kind = picture.classes == kind
            boxes = picture.boxes[of_kind].astype(float)
            unclear = picture.unclear[of_kind]
            true[str(seed), kind] = Things(boxes, (boxes[:, 2:] - boxes[:, :2]).prod(1), unclear,
                                           unclear)
            mine = seen.boxes[seen.classes == kind]
            found[str(seed), kind] = Detections(mine, (mine[:, 2:] - mine[:, :2]).prod(1),
                                                seen.scores[seen.classes == kind])
    result = average_precision.summarise(dict(enumerate(CLASSES)), true, found)
    assert result["ap50"] >= 0.8
    assert segmentation.summarise(matrix)["miou"] >= 0.8
