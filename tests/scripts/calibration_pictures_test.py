"""Pictures that a network of 8 bits is judged on are not those that it is calibrated with."""

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
        Image.fromarray(np.full((20, 30, 3), 10 * index + 5, np.uint8)).save(
            folder / f"{index:02}.png")
    return input_tensors(folder, SPEC, "x", (1, 3, 8, 8), "NCHW")


def brightness(tensors: np.ndarray) -> set[int]:
    return {round(float(one.mean())) for one in tensors}


def test_one_in_four_is_kept_for_judging(tmp_path):
    made = views(tmp_path, 9)
    assert made.disjoint
    assert brightness(made.judged["x"]) == {35, 75}
    assert brightness(made.seen["x"]) == {5, 15, 25, 45, 55, 65, 85}
    assert made.judged["x"].shape == (80, 1, 3, 8, 8)
    # Each whole, mirrored, and three crops.
    assert len(made.seen["x"]) == 7 * 5


def test_very_few_serve_for_both(tmp_path):
    made = views(tmp_path, 3)
    assert not made.disjoint
    assert brightness(made.judged["x"]) == brightness(made.seen["x"]) == {5, 15, 25}
    assert len(made.judged["x"]) >= 70
