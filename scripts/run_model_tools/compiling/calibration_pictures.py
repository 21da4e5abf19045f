"""The pictures that a network of 8 bits is calibrated with and judged on, as its input tensors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from run_model_tools.errors import MISMATCH, MISSING_FILE, USAGE, ToolError
from run_model_tools.files import sha256_of
from run_model_tools.pictures.preprocess import load_picture, preprocess
from run_model_tools.pictures.preprocessing import Preprocessing

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")
# Beyond some hundred, more pictures hardly change the ranges and only take time and memory.
MOST = 256
# One in so many is kept for judging, where there are as many.
_EVERY = _FEW = 4
_JUDGED_VIEWS = 80
# Of each picture that ranges are taken from, unless there are many.
_CROPS, _MANY = 3, 64


def find_pictures(folder: Path) -> list[Path]:
    """The folder's pictures, by name.  Raises ToolError (3) where there are none."""
    if not folder.is_dir():
        raise ToolError(MISSING_FILE, f"the folder of pictures {folder} is not there.")
    found = sorted(p for p in folder.iterdir() if p.suffix.lower() in SUFFIXES and p.is_file())
    if not found:
        raise ToolError(MISSING_FILE, f"{folder} has no pictures ({', '.join(SUFFIXES)}).")
    return found


def digest(folder: Path) -> list[str]:
    """What stands for the pictures in a build key."""
    return [sha256_of(path) for path in find_pictures(folder)[:MOST]]


@dataclass(frozen=True)
class CalibrationViews:
    """{input: (views, *shape)}, float32, each preprocessed just as the network wants it."""

    seen: dict[str, np.ndarray]
    """What ranges are taken from."""
    judged: dict[str, np.ndarray]
    """What the network of 8 bits is compared on."""
    disjoint: bool
    """Whether these are of other pictures; of very few, they are other views of the same."""


def input_tensors(folder: Path, spec: Preprocessing | None, name: str, shape: tuple[int, ...],
                  layout: str) -> CalibrationViews:
    """Views of the folder's pictures, of which every fourth one is kept for judging.

    Raises ToolError: (2) where the model has no preprocessing, (6) where its input takes no
    picture.
    """
    if spec is None:
        raise ToolError(USAGE, "--precision int8 needs the model's preprocessing, to make inputs "
                               "of the calibration pictures: state it with the flags or "
                               "MODEL.model.json.")
    paths = find_pictures(folder)[:MOST]
    disjoint = len(paths) >= _FEW
    judged = paths[_EVERY - 1::_EVERY] if disjoint else paths
    random = np.random.default_rng(0)

    def tensors(path: Path, crops: int) -> list[np.ndarray]:
        picture = load_picture(path)
        views = [picture, np.ascontiguousarray(picture[:, ::-1]),
                 *crops_of(picture, crops, random)]
        return [preprocess(view, spec, shape, "float32", layout).tensor for view in views]

    # Crops are the same things in other sizes, of which few pictures show little.
    seen = [view for path in paths if path not in judged or not disjoint
            for view in tensors(path, _CROPS if len(paths) <= _MANY else 0)]
    each = max(0, -(-_JUDGED_VIEWS // len(judged)) - 2)
    others = [view for path in judged for view in tensors(path, each)[0 if disjoint else 2:]]
    # An emulator has time for the first ones only, which are to be of all pictures.
    random.shuffle(others)
    return CalibrationViews({name: np.stack(seen)}, {name: np.stack(others)}, disjoint)


def crops_of(picture: np.ndarray, count: int, random: np.random.Generator) -> list[np.ndarray]:
    """Of 70 to 95 % of the picture's sides, every second one mirrored."""
    height, width = picture.shape[:2]
    views = []
    for index in range(count):
        share = random.uniform(0.7, 0.95)
        tall, wide = int(height * share), int(width * share)
        top = int(random.integers(0, height - tall + 1))
        left = int(random.integers(0, width - wide + 1))
        crop = picture[top:top + tall, left:left + wide]
        views.append(np.ascontiguousarray(crop[:, ::-1] if index % 2 else crop))
    return views


def only_input(shapes: dict[str, tuple[int, ...]]) -> str:
    """The name of the input that takes the pictures.  Raises ToolError (6)."""
    if len(shapes) != 1:
        raise ToolError(MISMATCH,
                        f"--precision int8 is for models with one input, and this one has "
                        f"{len(shapes)}: {', '.join(shapes)}.")
    return next(iter(shapes))
