"""Reference results that are boxes, masks and landmarks: the committed ones, and how they are
made."""

from __future__ import annotations

import json

import numpy as np
import pytest
from conftest import ROOT

from run_model_tools.errors import ToolError
from run_model_tools.pictures.preprocessing import Preprocessing
from run_model_tools.zoo import golden
from run_model_tools.zoo import models as zoo
from run_model_tools.zoo.manifest import choose, read_manifest
from run_model_tools.zoo.placement import Placement, placement_of
from run_model_tools.zoo.reference_pixels import coco_counts
from run_model_tools.zoo.reference_results import Reference
from run_model_tools.zoo.sources import Cache, Fetcher

SQUASH = Preprocessing("cv2-linear", "squash", "RGB", 1.0, (0.0,) * 3, (1.0,) * 3)


def results(model: str, picture: str) -> list[dict]:
    case = json.loads((ROOT / "artifacts" / "golden" / model / f"{picture}.json").read_text())
    return case["results"]


@pytest.mark.parametrize("model", ["face_detection", "face_detection_full_range"])
def test_the_astronauts_face_is_found(model):
    """Her eyes, nose and mouth, as one sees them in the picture of 300 x 300."""
    found, = results(model, "astronaut")[0]["detections"]
    assert found["label"] == "face" and found["score"] > 0.85
    right_eye, left_eye, nose, mouth, right_ear, left_ear = np.array(found["keypoints"])
    for point, seen in ((right_eye, (119, 59)), (left_eye, (146, 63)), (nose, (130, 74)),
                        (mouth, (130, 86))):
        assert np.abs(point - seen).max() < 6, (point, seen)
    assert right_ear[0] < right_eye[0] < nose[0] < left_eye[0] < left_ear[0]
    assert results(model, "hopper")[0]["detections"][0]["score"] > 0.85


def test_cats_and_motorcycles_have_no_faces():
    for picture in ("chelsea", "motorcycle"):
        assert results("face_detection", picture)[0]["detections"] == []


def test_people_are_told_from_what_is_behind_them():
    for picture, low, high in (("astronaut", 0.5, 0.6), ("hopper", 0.53, 0.63)):
        mask, = results("selfie_segmentation", picture)
        person = next(c for c in mask["classes"] if c.get("label") == "person")
        assert low < person["pixels"] / (mask["width"] * mask["height"]) < high


def placement(spec=SQUASH, picture=(20, 10), size=(10, 10)):
    return placement_of(spec, picture, size)


def test_ready_boxes_by_hand():
    """Of four boxes one is below the threshold, and one is covered by a better one."""
    boxes = np.array([[1, 1, 5, 5], [1, 1, 5, 4.8], [6, 6, 9, 9], [0, 0, 1, 1]], np.float32)
    scores = np.array([[0, 0.9], [0, 0.8], [0.7, 0], [0.1, 0]], np.float32)
    task = {"kind": "detection", "form": "boxes", "boxes": "b", "scores": 1, "box_format": "xyxy",
            "units": "pixels", "score_threshold": 0.5, "nms": {"iou": 0.5, "per_class": False},
            "labels": ["cup", "ball"]}
    found, = Reference(["b", "s"], [boxes, scores], placement()).results([task])
    assert found["detections"] == [
        {"box": [2, 1, 10, 5], "class": 1, "label": "ball", "score": 0.9},
        {"box": [12, 6, 18, 9], "class": 0, "label": "cup", "score": 0.7}]


def test_finished_detections_may_be_none():
    task = {"kind": "detection", "form": "boxes", "boxes": 0, "classes": 1, "scores": 2,
            "box_format": "xyxy", "units": "pixels", "background": 0, "score_threshold": 0}
    for rows in (0, 1):
        outputs = [np.ones((rows, 4)), np.full(rows, 7, np.int64), np.full(rows, 0.5, np.float32)]
        found, = Reference(["b", "l", "s"], outputs, placement()).results([task])
        assert [one["class"] for one in found["detections"]] == [7] * rows


def test_weighted_suppression_by_hand():
    rows = np.array([[5, 5, 4, 4, 1.0, 0.75], [5, 5, 4, 3, 1.0, 0.25]], np.float32)
    task = {"kind": "detection", "form": "yolo-rows", "output": 0, "units": "pixels",
            "score_threshold": 0.2, "nms": {"iou": 0.5, "mode": "weighted", "per_class": True}}
    found, = Reference(["y"], [rows], placement(picture=(10, 10))).results([task])
    assert found["detections"] == [
        {"box": [3, 3.125, 7, 6.875], "class": 0, "score": 0.75}]


def test_landmarks_go_back_through_a_letterbox():
    """20x10 becomes 10x5, two rows below the top of 10x10."""
    spec = Preprocessing("cv2-linear", "letterbox", "RGB", 1.0, (0.0,) * 3, (1.0,) * 3, pad=0)
    task = {"kind": "landmarks", "output": 0, "columns": ["x", "y", "z", "visibility"],
            "units": "pixels", "point_activation": "sigmoid", "points": 1, "confidence": 1,
            "confidence_activation": "none"}
    outputs = [np.array([[5, 5, 1, 0, 9, 9, 9, 9]], np.float32), np.array([[0.25]], np.float32)]
    found, = Reference(["p", "c"], outputs, placement(spec)).results([task])
    assert found == {"kind": "landmarks", "score": 0.25, "present": False,
                     "points": [[10, 6, 2]], "point_scores": {"visibility": [0.5]}}


def test_maps_are_interpolated_at_the_middle_of_pixels():
    """Two columns, 0 and 1: of ten pixels the middle lies between the fifth and the sixth."""
    maps = np.array([[[[0.0, 1.0]]]], np.float32)
    task = {"kind": "segmentation", "output": 0, "form": "mask", "activation": "none"}
    reference = Reference(["m"], [maps.repeat(2, 2)], placement(picture=(10, 4)))
    found, = reference.results([task])
    assert [c["pixels"] for c in found["classes"]] == [20, 20]
    assert found["classes"][1]["rle"] == {"size": [4, 10], "counts": "d0d0"}


def test_cocos_run_lengths():
    """As pycocotools writes them: of [[0,1],[1,1]] the runs 1, 3; long runs in groups."""
    assert coco_counts(np.array([[0, 1], [1, 1]])) == "13"
    assert coco_counts(np.ones((1, 2))) == "02"
    assert coco_counts(np.zeros((40, 5))) == "X6"


def test_differences_are_found():
    old = json.loads((ROOT / "artifacts/golden/face_detection/astronaut.json").read_text())
    new = json.loads(json.dumps(old))
    assert golden.compare_tasks(new, old) is None
    new["results"][0]["detections"][0]["box"][0] += 0.01
    assert golden.compare_tasks(new, old) is None
    new["results"][0]["detections"][0]["box"][0] += 1
    assert "detections[0].box[0]" in golden.compare_tasks(new, old)
    new["results"][0]["detections"] = []
    assert "detections" in golden.compare_tasks(new, old)


def test_the_face_detections_are_reproduced(command):
    """By LiteRT, from the package's file."""
    model, = choose(read_manifest(), ["face_detection"])
    try:
        outcome = zoo.make(model, Fetcher(Cache.of_user(None)))
    except ToolError as error:
        pytest.skip(str(error))
    if not outcome.is_there:
        pytest.skip(outcome.reason)
    result = command("make_golden", "--zoo", "face_detection", "--check", code=None)
    if "LiteRT is not at hand" in result.stderr:
        pytest.skip(result.stderr)
    assert result.returncode == 0, result.stderr
    assert "5 results" in result.stdout


CASES = json.loads((ROOT / "tests/postprocess/data/golden.json").read_text())["cases"]


def cases_of(*kinds: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", [
        case for case in CASES if case["task"]["kind"] in kinds], ids=lambda case: case["name"])


def result_of(case):
    where = case["picture"]
    placement = Placement(
        (where["width"], where["height"]), (where["input_width"], where["input_height"]),
        np.array([where["scale_x"], where["scale_y"]]),
        np.array([where["offset_x"], where["offset_y"]]))
    names = sorted(case["outputs"])
    outputs = [np.array(case["outputs"][name]["data"], np.float32).reshape(
        case["outputs"][name]["shape"]) for name in names]
    return Reference(names, outputs, placement).results([case["task"]])[0]


@cases_of("detection")
def test_the_reference_gives_what_others_give_of_the_same_tensors(case):
    found = result_of(case)["detections"]
    assert len(found) == len(case["expected"])
    for item in case["expected"]:
        assert any(one["class"] == item["class"] and abs(one["score"] - item["score"]) < 1e-5
                   and np.allclose(one["box"], item["box"], atol=0.01)
                   and np.allclose(np.ravel(one.get("corners", [])), item.get("corners", []),
                                   atol=0.01)
                   and one.get("mask", {}).get("rle", {}).get("counts") == item.get("mask")
                   for one in found), item


@cases_of("segmentation")
def test_the_reference_interpolates_scores_as_torch_does(case):
    found = {str(one["class"]): one["rle"]["counts"] for one in result_of(case)["classes"]}
    assert found == {label: runs if isinstance(runs, str) else runs["counts"]
                     for label, runs in case["expected"].items()}


@cases_of("landmarks")
def test_the_reference_finds_the_peaks_of_heat_maps_as_hrnet_does(case):
    found = result_of(case)
    expected = np.array(case["expected"])
    assert np.allclose(found["points"], expected[:, :2], atol=2e-3)
    assert np.allclose(found["point_scores"]["score"], expected[:, 2], atol=1e-5)


@cases_of("map")
def test_the_reference_resamples_depth_as_torch_and_transformers_do(case):
    expected = np.array(case["expected"]["values"], np.float32)
    assert np.allclose(result_of(case)["array"].ravel(), expected, atol=2e-5, equal_nan=True)


@cases_of("image")
def test_the_reference_makes_bytes_as_torchvision_does(case):
    """Where sums in float32 and float64 are on different sides of a half, bytes are 1 apart."""
    found = result_of(case)["array"]
    expected = np.array(case["expected"]["pixels"]).reshape(*found.shape[:2], 3)
    assert (case["expected"]["width"], case["expected"]["height"]) == found.shape[1::-1]
    apart = np.abs(found[..., :3].astype(int) - expected)
    assert apart.max() <= 1 and (apart > 0).mean() < 0.01
    assert found.shape[2] == (4 if case["task"]["size"] == "picture" else 3)
