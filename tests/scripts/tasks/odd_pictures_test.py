"""Pictures of every form with networks that find things: what run_model says and draws is in the
pixels of the picture as Pillow shows it.

The outputs are given, so that no network has a part in it; where they lie on the picture is from
Pillow's size of it and the NumPy reference.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT
from PIL import Image, ImageOps

from run_model_tools.environment import host_program
from run_model_tools.evaluating.predictions import areas_of
from run_model_tools.pictures.preprocess import load_picture
from run_model_tools.pictures.preprocessing import Preprocessing
from run_model_tools.zoo.placement import placement_of
from run_model_tools.zoo.reference_results import Reference

PROGRAM = host_program("run_model")
SIDE = 224
NAME = "prob"  # SqueezeNet's output, in whose place these are
RANDOM = np.random.default_rng(7)
BOX = [0.25, 0.3, 0.8, 0.7, 0.9, 0]
OUTPUTS: dict[str, np.ndarray] = {
    "detection": np.array([BOX, [0.0, 0.0, 1.0, 1.0, 0.5, 1]]),
    "landmarks": RANDOM.uniform(0, SIDE, (5, 3)),
    "segmentation": RANDOM.normal(size=(1, 3, 14, 14)),
    "map": RANDOM.uniform(1, 9, (1, 20, 16)),
    "image": RANDOM.uniform(0, 1, (1, 3, 12, 12))}
TASKS: dict[str, dict[str, Any]] = {
    "detection": {"kind": "detection", "form": "box-rows", "box_format": "xyxy",
                  "units": "normalized", "score_threshold": 0.25},
    "landmarks": {"kind": "landmarks", "columns": ["x", "y", "z"], "units": "pixels"},
    "segmentation": {"kind": "segmentation", "form": "scores", "layout": "NCHW"},
    "map": {"kind": "map", "quantity": "depth", "resample": "bicubic"},
    "image": {"kind": "image", "layout": "NCHW", "color_order": "RGB", "range": [0, 1],
              "size": "picture"}}


def noise(width: int, height: int, channels: int = 3, kind: type = np.uint8) -> np.ndarray:
    shape = (height, width, channels) if channels > 1 else (height, width)
    return np.random.default_rng(width).integers(0, np.iinfo(kind).max, shape, kind,
                                                 endpoint=True)


def with_orientation(number: int) -> tuple[Image.Image, dict[str, Any]]:
    picture = Image.fromarray(noise(60, 40))
    exif = picture.getexif()
    exif[0x0112] = number
    return picture, {"exif": exif}


def palette(alpha: bool) -> tuple[Image.Image, dict[str, Any]]:
    picture = Image.fromarray(noise(50, 70)).quantize(32, dither=Image.Dither.NONE)
    return picture, {"transparency": 3} if alpha else {}


PICTURES: dict[str, Any] = {
    **{f"orientation{n}.png": lambda n=n: with_orientation(n) for n in range(1, 9)},
    "orientation6.jpg": lambda: with_orientation(6),
    "palette.png": lambda: palette(False), "palette_alpha.png": lambda: palette(True),
    "rgba.png": lambda: (Image.fromarray(noise(44, 66, 4)), {}),
    "grey.png": lambda: (Image.fromarray(noise(90, 35, 1)), {}),
    "grey_alpha.png": lambda: (Image.fromarray(noise(30, 41, 4)).convert("LA"), {}),
    "bits.png": lambda: (Image.fromarray(noise(37, 29, 1) > 127), {}),
    "grey16.png": lambda: (Image.fromarray(noise(48, 32, 1, np.uint16)), {}),
    "row.png": lambda: (Image.fromarray(noise(300, 1)), {}),
    "column.png": lambda: (Image.fromarray(noise(1, 250)), {}),
    "pixel.png": lambda: (Image.fromarray(noise(1, 1)), {}),
    "wide.png": lambda: (Image.fromarray(noise(3000, 20)), {}),
    "large.png": lambda: (Image.fromarray(noise(1600, 1200, 1)), {})}


def pixels_of(path: Path) -> np.ndarray:
    """uint8 [height, width, 3], by Pillow; of 16 bits the upper eight."""
    with Image.open(path) as picture:
        upright = ImageOps.exif_transpose(picture)
        if upright.mode.startswith("I"):
            grey = (np.asarray(upright).astype(int) >> 8).astype(np.uint8)
            return np.repeat(grey[..., None], 3, -1)
        return np.asarray(upright.convert("RGB"))


class World:
    """A picture, and what is asked of it."""

    def __init__(self, folder: Path, name: str, fit: str) -> None:
        self.folder, self.path, self.fit = folder, folder / name, fit
        picture, how = PICTURES[name]()
        picture.save(self.path, **how)
        self.pixels = pixels_of(self.path)

    def run(self, kind: str, *flags: object) -> dict[str, Any]:
        given = self.folder / "given.npz"
        np.savez(given, **{NAME: OUTPUTS[kind].astype(np.float32)})
        task = self.folder / "task.json"
        task.write_text(json.dumps({**TASKS[kind], "output": 0}))
        crop = ["--resize", "256", "--crop", str(SIDE)] if self.fit == "crop" else []
        done = subprocess.run(
            [PROGRAM, "squeezenet1_1", ROOT / "artifacts", self.path, "--json", "--fit", self.fit,
             *crop, "--task", task, "--given-outputs", given, *map(str, flags)],
            capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["results"][0]

    def expected(self, kind: str) -> dict[str, Any]:
        rest = {"resize": 256, "crop": SIDE} if self.fit == "crop" else {}
        rest |= {"pad": 0} if self.fit == "letterbox" else {}
        spec = Preprocessing("pil-bilinear", self.fit, "BGR", 1.0, (0.0,) * 3, (1.0,) * 3, **rest)
        placement = placement_of(spec, self.pixels.shape[1::-1], (SIDE, SIDE))
        outputs = [OUTPUTS[kind].astype(np.float32)]
        return Reference([NAME], outputs, placement).results([{**TASKS[kind], "output": 0}])[0]


@pytest.fixture(params=[(name, ("squash", "letterbox", "crop")[k % 3])
                        for k, name in enumerate(PICTURES)], ids=lambda one: "-".join(one))
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(tmp_path, *request.param)


def test_results_lie_in_the_pictures_own_pixels(world: World) -> None:
    found, expected = world.run("detection"), world.expected("detection")
    for one, other in zip(found["detections"], expected["detections"], strict=True):
        assert one["box"] == pytest.approx(other["box"], abs=2e-3)
    found, expected = world.run("landmarks"), world.expected("landmarks")
    assert np.allclose(found["points"], expected["points"], atol=2e-3, rtol=1e-6)
    if world.path.stem == "large":
        return  # has pixels enough elsewhere
    areas, _ = areas_of(world.run("segmentation"))
    masks, _ = areas_of(world.expected("segmentation"))
    assert areas.shape == world.pixels.shape[:2]
    assert (areas != masks).mean() <= 0.001
    world.run("map", "--save-map", world.folder / "map.npy")
    numbers = np.load(world.folder / "map.npy")
    assert np.allclose(numbers, world.expected("map")["array"], atol=1e-4, equal_nan=True)


def test_drawings_are_of_the_picture_as_it_is_shown(world: World) -> None:
    """Below the lower box line the picture is as Pillow has it, and the line has another colour."""
    drawn = world.folder / "drawn.png"
    found = world.run("detection", "--score-threshold", "0.6", "--draw", drawn)
    picture = pixels_of(drawn)
    assert picture.shape == world.pixels.shape
    x0, _, x1, y1 = found["detections"][0]["box"]
    below = max(0, int(y1) + 8)
    np.testing.assert_array_equal(picture[below:], world.pixels[below:])
    height, width = picture.shape[:2]
    if 0 < y1 < height and min(height, width) > 20:
        middle = int(np.clip((x0 + x1) / 2, 0, width - 1))
        rows = slice(int(y1) - 2, int(y1) + 2)
        assert (picture[rows, middle] != world.pixels[rows, middle]).any()
    if world.path.stem == "large":
        return
    world.run("image", "--draw", drawn)
    made = world.expected("image")["array"]
    shown = np.where(made[..., 3:] > 0, made[..., :3], world.pixels)
    assert np.abs(pixels_of(drawn).astype(int) - shown).max() <= 1


def test_the_tools_decode_as_the_program_does(world: World) -> None:
    """evaluate_model with a board decodes here."""
    np.testing.assert_array_equal(load_picture(world.path), world.pixels)
