"""From a picture to the landmarks of a face and of an eye in it: run_model's chain of networks, and
one of LiteRT with NumPy, on the astronaut.

What stands here of regions is from MediaPipe's graphs: face_detection_front_detection_to_roi and
iris_landmark_landmarks_to_roi.
"""

from __future__ import annotations

import json
import math
import subprocess
from typing import Any

import numpy as np
import pytest

from run_model_tools.environment import DATA_ROOT, host_program
from run_model_tools.pictures.preprocess import (
    EDGE,
    Region,
    fitted_region,
    load_picture,
    preprocess,
    warp,
)
from run_model_tools.tasks.presets import read_presets
from run_model_tools.tflite.model import read_tflite
from run_model_tools.zoo.placement import placement_of
from run_model_tools.zoo.reference_results import Reference

pytestmark = pytest.mark.slow

PICTURE = DATA_ROOT / "images" / "astronaut.png"
NETWORKS = ("face_detection", "face_landmark", "iris_landmark")
NOSE, EYE = 1, (33, 133)  # of the face mesh; the corners of an eye
PROGRAM = host_program("run_model")


@pytest.fixture(scope="module")
def made() -> None:
    done = subprocess.run([DATA_ROOT / "scripts" / "make_zoo", "--models", ",".join(NETWORKS),
                           "--targets", "native", "--quiet"], capture_output=True, text=True,
                          check=False)
    if done.returncode == 3:
        pytest.skip(f"the networks are out of reach: {done.stderr.strip()[-200:]}")
    assert done.returncode == 0, done.stderr


def run_model(name: str, *flags: str) -> dict[str, Any]:
    done = subprocess.run([PROGRAM, name, DATA_ROOT / "artifacts", PICTURE, "--json", *flags],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def outputs_of(name: str, tensor: np.ndarray) -> dict[str, np.ndarray]:
    model = read_tflite(DATA_ROOT / "build" / "zoo" / f"{name}.tflite")
    reason = model.why_not_run()
    if reason:
        pytest.skip(reason)
    return dict(zip(model.outputs, model.run({model.inputs[0].name: tensor})))


def find_face(pixels: np.ndarray) -> dict[str, Any]:
    preset = read_presets()["face_detection"]
    assert preset.preprocessing is not None
    prepared = preprocess(pixels, preset.preprocessing, (1, 128, 128, 3), "float32", "NHWC")
    outputs = outputs_of("face_detection", prepared.tensor)
    place = placement_of(preset.preprocessing, prepared.original_size, (128, 128))
    face, = Reference(list(outputs), list(outputs.values()), place).results(
        preset.tasks)[0]["detections"]
    return face


def turned_square(low: np.ndarray, high: np.ndarray, start: np.ndarray, end: np.ndarray,
                  scale: float) -> Region:
    """About the box from low to high, turned so that the way from start to end lies flat."""
    side = float((high - low).max()) * scale
    x, y = (low + high) / 2 - side / 2
    angle = math.degrees(-math.atan2(-(end[1] - start[1]), end[0] - start[0]))
    return Region(float(x), float(y), side, side, angle)


def seen_in(pixels: np.ndarray, region: Region, side: int, preset: str,
            ) -> tuple[np.ndarray, Region]:
    spec = read_presets()[preset].preprocessing
    assert spec is not None
    seen = fitted_region(region, spec, (side, side))
    small = warp(pixels, seen, (side, side), EDGE if spec.pad is None else spec.pad)
    values = small.astype(np.float32) / np.float32(spec.divide_by)
    return ((values - np.float32(spec.mean)) / np.float32(spec.std))[None].astype(np.float32), seen


def on_picture(points: np.ndarray, seen: Region, side: int) -> np.ndarray:
    turn = math.radians(seen.angle)
    away = (points[:, :2] / side - 0.5) * [seen.width, seen.height]
    cos, sin = math.cos(turn), math.sin(turn)
    return away @ np.array([[cos, sin], [-sin, cos]]) + [seen.x + seen.width / 2,
                                                         seen.y + seen.height / 2]


def far(a: Any, b: Any) -> float:
    return float(np.abs(np.asarray(a)[:, :2] - np.asarray(b)[:, :2]).max())


def test_the_astronauts_face_and_eye_are_found(made):
    pixels = load_picture(PICTURE)
    face = find_face(pixels)
    ours, = run_model("face_detection")["results"][0]["detections"]
    assert far([ours["box"][:2], ours["box"][2:]], [face["box"][:2], face["box"][2:]]) < 0.05
    assert far(ours["keypoints"], face["keypoints"]) < 0.05

    box, marks = np.array(face["box"]), np.array(face["keypoints"])
    region = turned_square(box[:2], box[2:], marks[0], marks[1], 1.5)
    tensor, seen = seen_in(pixels, region, 192, "face_landmark")
    outputs = outputs_of("face_landmark", tensor)
    mesh = on_picture(outputs["conv2d_21"].reshape(-1, 3).astype(np.float64), seen, 192)
    report = run_model("face_landmark", "--detector", "face_detection")
    of_report, = report["regions"]
    for key in ("x", "y", "width", "height", "angle"):
        assert of_report[key] == pytest.approx(getattr(region, key), abs=0.05), key
    landmarks = report["results"][0]
    assert landmarks["present"] and landmarks["score"] > 0.99
    assert far(landmarks["points"], mesh) < 0.3
    # The detector and the landmarks mean the same face.
    assert far([landmarks["points"][NOSE]], [marks[2]]) < 8
    assert far([np.mean([landmarks["points"][i][:2] for i in EYE], 0)], [marks[0]]) < 8

    corners = np.array([landmarks["points"][i][:2] for i in EYE])
    eye = turned_square(corners.min(0), corners.max(0), corners[0], corners[1], 2.3)
    tensor, seen = seen_in(pixels, eye, 64, "iris_landmark")
    iris = on_picture(outputs_of("iris_landmark", tensor)["output_iris"].reshape(-1, 3), seen, 64)
    place = ",".join(map(str, (eye.x, eye.y, eye.width, eye.height, eye.angle)))
    found = run_model("iris_landmark", "--region", place)["results"][1]["points"]
    # This network's resizer is another one than the warp: the region becomes a picture first.
    assert far(found, iris) < 1.0
    assert corners[:, 0].min() < found[0][0] < corners[:, 0].max()
    assert abs(found[0][1] - corners[:, 1].mean()) < 6


def test_where_no_face_is_found_there_are_no_landmarks(made):
    done = subprocess.run([PROGRAM, "face_landmark", DATA_ROOT / "artifacts",
                           DATA_ROOT / "images" / "motorcycle.png", "--json", "--detector",
                           "face_detection"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["regions"] == report["results"] == []
