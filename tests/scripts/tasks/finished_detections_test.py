"""Detectors that take a picture without a batch and end in boxes, labels and scores."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from run_model_tools.environment import host_program
from run_model_tools.pictures.preprocess import load_picture, preprocess
from run_model_tools.tasks.presets import find
from run_model_tools.zoo.placement import placement_of
from run_model_tools.zoo.reference_results import Reference
from small_networks import run_onnxruntime, save_network

PROGRAM = host_program("run_model")
pytestmark = pytest.mark.skipif(not PROGRAM.exists(),
                                reason=f"{PROGRAM} is not built, nor RUN_MODEL_PROGRAM set")
SHAPE = (3, 16, 24)


def save_detector(path: Path) -> Path:
    """A box and a mask for each pixel that is nearly white, which hardly any of noise is."""
    y, x = (axis.ravel() for axis in np.mgrid[:SHAPE[1], :SHAPE[2]])
    grid = np.stack([x, y, x + 1, y + 1], 1).astype(np.float32)
    return save_network(path, f"""(float{list(SHAPE)} x) => (
            float[n, 4] boxes, int64[n] labels, float[n] scores, float[n, 1, 16, 24] masks) {{
        least = ReduceMin<axes=[0], keepdims=0>(x)
        flat = Reshape(least, all)
        kept = Greater(flat, white)
        boxes = Compress<axis=0>(grid, kept)
        labels = Compress<axis=0>(numbers, kept)
        scores = Compress<axis=0>(flat, kept)
        masks = Compress<axis=0>(maps, kept)
    }}""", {"all": np.array([-1]), "white": np.float32(0.93), "grid": grid,
            "maps": np.eye(len(grid), dtype=np.float32).reshape(-1, 1, *SHAPE[1:]),
            "numbers": 1 + np.arange(len(grid)) % 90})


def test_what_they_find_is_reported_in_the_picture(command, tmp_path):
    model, pictures = save_detector(tmp_path / "net.onnx"), tmp_path / "pictures"
    pictures.mkdir()
    pixels = np.zeros((20, 60, 3), np.uint8)
    Image.fromarray(pixels).save(pictures / "dark.png")
    pixels[4:12, 10:40] = 250
    Image.fromarray(pixels).save(pictures / "white.png")

    report = command("compile_model", model, "--out", tmp_path, "--task", "torchvision_mask_rcnn",
                     "--verify-with", pictures, "--json").stdout
    metadata = json.loads(report)["metadata"]
    assert metadata["inputs"][0]["layout"] == "CHW"
    assert metadata["verification"]["done"] and metadata["verification"]["pictures_tried"] == 2
    # Which the noise alone would not have shown.
    assert "empty for all" in command("compile_model", model, "--out", tmp_path, "--task",
                                      "torchvision_mask_rcnn").stdout

    preset, counts = find("torchvision_mask_rcnn"), []
    for path in sorted(pictures.iterdir()):
        done = subprocess.run([PROGRAM, "net", tmp_path, path, "--json"], capture_output=True,
                              text=True, check=False)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)["results"][0]["detections"]
        tensor = preprocess(load_picture(path), preset.preprocessing, SHAPE, "float32",
                            "CHW").tensor
        place = placement_of(preset.preprocessing, (60, 20), SHAPE[:0:-1])
        expected, = Reference(["boxes", "labels", "scores", "masks"],
                              run_onnxruntime(model, {"x": tensor}), place).results(preset.tasks)
        for one, other in zip(found, expected["detections"], strict=True):
            assert one["box"] == pytest.approx(other["box"], abs=2e-3)
            assert [one[key] for key in ("class", "label", "mask")] == [
                other[key] for key in ("class", "label", "mask")]
            assert one["mask"]["pixels"]
            assert one["score"] == pytest.approx(other["score"], abs=1e-6)
        counts.append(len(found))
    assert counts[0] == 0 and counts[1] > 10
