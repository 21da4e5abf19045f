"""Trained networks of TensorFlow Lite, out of MediaPipe's package (Apache License 2.0)."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from run_model_tools.errors import ToolError
from run_model_tools.setup.pypi import Package, fetch

pytestmark = pytest.mark.slow

PACKAGE = Package(
    "mediapipe==0.10.14",
    "mediapipe-0.10.14-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    "a807328339e7356fda0bb14df12fedbf1d33bdf81649c5f8666b0026b1cc30b4",
    ("--platform", "manylinux2014_x86_64", "--python-version", "3.11", "--only-binary", ":all:"))
# Of some, an operator is MediaPipe's own, and LiteRT does not know it.
COMPARED = {
    "face_detection_full_range_sparse": True, "face_detection_short_range": True,
    "face_landmark": True, "hand_landmark_full": True, "hand_landmark_lite": True,
    "hand_recrop": True, "iris_landmark": True, "palm_detection_full": True,
    "palm_detection_lite": True, "pose_detection": True, "pose_landmark_full": True,
    "selfie_segmentation": False, "selfie_segmentation_landscape": False}


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("mediapipe")
    try:
        archive = fetch(PACKAGE)
    except ToolError as error:
        pytest.skip(str(error))
    found = {}
    with zipfile.ZipFile(archive) as wheel:
        for member in wheel.namelist():
            if member.endswith(".tflite"):
                path = folder / Path(member).name
                path.write_bytes(wheel.read(member))
                found[path.stem] = path
    return found


@pytest.mark.parametrize("name", COMPARED)
def test_gives_what_litert_gives(models, tmp_path, command, name):
    result = command("compile_model", models[name], "--out", tmp_path, "--json")
    assert result.returncode == 0, result.stderr
    checked = json.loads(result.stdout)["verification"]
    if not COMPARED[name]:
        assert not checked["done"] and "Convolution2DTransposeBias" in checked["reason"]
    elif not checked["done"]:
        pytest.skip(checked["reason"])
    else:
        assert checked["relative_difference"] < 2e-5


def test_what_needs_other_operators_is_refused_by_name(models, tmp_path, command):
    result = command("compile_model", models["face_landmark_with_attention"], "--out", tmp_path)
    assert result.returncode == 4 and "Landmarks2TransformMatrix" in result.stderr
