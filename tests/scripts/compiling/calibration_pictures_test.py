"""Views of pictures for calibration, and which picture each one is of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from run_model_tools.compiling.calibration_pictures import input_tensors
from run_model_tools.pictures.preprocessing import Preprocessing

SPEC = Preprocessing("pil-bilinear", "squash", "RGB", 1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


def views(folder: Path, count: int):
    """Of pictures of one brightness each."""
    for index in range(count):
        Image.fromarray(np.full((20, 30, 3), (10 * index + 5) % 256, np.uint8)).save(
            folder / f"{index:02}.png")
    return input_tensors(folder, SPEC, "x", (1, 3, 8, 8), "NCHW")


def brightness(tensors: np.ndarray) -> set[int]:
    return {round(float(one.mean())) for one in tensors}


def test_each_picture_is_seen_whole_mirrored_and_in_crops(tmp_path):
    made = views(tmp_path, 20)
    assert made.inputs["x"].shape == (20 * 5, 1, 3, 8, 8)
    assert [10 * picture + 5 for picture in made.pictures] == [
        round(float(one.mean())) for one in made.inputs["x"]]
    first = brightness(made.shuffled()["x"][:20])
    assert len(first) > 8 and brightness(made.shuffled()["x"]) == brightness(made.inputs["x"])


def test_few_pictures_are_seen_in_more_crops_and_many_in_none(tmp_path):
    assert views(tmp_path, 3).pictures.tolist() == [0] * 20 + [1] * 20 + [2] * 20
    assert views(tmp_path, 70).pictures.tolist() == [i // 2 for i in range(140)]
