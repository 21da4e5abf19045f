"""Trained networks of TensorFlow Lite, out of MediaPipe's package (Apache License 2.0)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from run_model_tools.setup import pypi
from run_model_tools.setup.pypi import read_member
from run_model_tools.zoo import models as zoo
from run_model_tools.zoo.manifest import read_manifest
from run_model_tools.zoo.sources import Cache, Fetcher

pytestmark = pytest.mark.slow

MODELS = {model.name: model for model in read_manifest() if model.file_format == "tflite"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("mediapipe")
    fetcher = Fetcher(Cache.of_user(None))
    for model in MODELS.values():
        outcome = zoo.make(model, fetcher, folder)
        if not outcome.is_there:
            pytest.skip(outcome.reason)
    return folder


@pytest.mark.parametrize("name", MODELS)
def test_gives_what_litert_gives(folder, tmp_path, command, name):
    result = command("compile_model", folder / f"{name}.tflite", "--out", tmp_path, "--json")
    report = json.loads(result.stdout)
    assert report["metadata"]["tasks"] == MODELS[name].tasks
    checked = report["verification"]
    if not checked["done"]:
        pytest.skip(checked["reason"])
    # Of a mask that is 0 nearly everywhere, the difference is of a share of very little.
    assert checked["relative_difference"] < 1e-2


def test_what_needs_other_operators_is_refused_by_name(folder, tmp_path, command):
    source, = MODELS["face_landmark"].sources
    path = tmp_path / "face_landmark_with_attention.tflite"
    path.write_bytes(read_member(
        pypi.fetch(source.package),
        "mediapipe/modules/face_landmark/face_landmark_with_attention.tflite",
        "e06a804e0144f9929eda782122916b35d60c697c3c9344013ca2bbe76a6ce2b4"))
    result = command("compile_model", path, "--out", tmp_path, code=4)
    assert "Landmarks2TransformMatrix" in result.stderr
