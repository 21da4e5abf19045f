"""The pictures that a network of 8 bits is calibrated with and judged on, and those that another
one is tried on, as input tensors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from run_model_tools.errors import MISMATCH, MISSING_FILE, USAGE, ToolError
from run_model_tools.files import sha256_of, visible
from run_model_tools.pictures.preprocess import load_picture, preprocess
from run_model_tools.pictures.preprocessing import Preprocessing
from run_model_tools.source_model import ModelInput

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")
# Beyond some hundred, more pictures hardly change the ranges and only take time and memory.
MOST = 256
# Of each picture, more where there are few, and none where there are many.
_CROPS, _LEAST_VIEWS, _MANY = 3, 60, 64
# Of a folder to try a network on: each costs a run of the reference and one of the artifact.
MOST_TRIED = 8


def find_pictures(folder: Path) -> list[Path]:
    """The folder's pictures, by name.  Raises ToolError (3) where there are none."""
    if not folder.is_dir():
        raise ToolError(MISSING_FILE, f"the folder of pictures {folder} is not there.")
    found = [p for p in visible(folder) if p.suffix.lower() in SUFFIXES and p.is_file()]
    if not found:
        raise ToolError(MISSING_FILE, f"{folder} has no pictures ({', '.join(SUFFIXES)}).")
    return found


def digest(folder: Path) -> list[str]:
    """What stands for the pictures in a build key."""
    return [sha256_of(path) for path in find_pictures(folder)[:MOST]]


@dataclass(frozen=True)
class CalibrationViews:
    """Views of pictures, each preprocessed just as the network wants it."""

    inputs: dict[str, np.ndarray]
    """{input: (views, *shape)}, float32.  Views of one picture follow each other."""
    pictures: np.ndarray
    """(views,): the number of each one's picture."""

    def shuffled(self) -> dict[str, np.ndarray]:
        """The inputs, of which the first few are of many pictures."""
        order = np.random.default_rng(0).permutation(len(self.pictures))
        return {name: views[order] for name, views in self.inputs.items()}


def input_tensors(folder: Path, spec: Preprocessing | None, name: str, shape: tuple[int, ...],
                  layout: str) -> CalibrationViews:
    """Each of the folder's pictures whole, mirrored, and in crops.

    Raises ToolError: (2) where the model has no preprocessing, (6) where its input takes no
    picture.
    """
    spec = stated(spec, "--precision int8")
    paths = find_pictures(folder)[:MOST]
    # Crops are the same things in other sizes, of which few pictures show little.
    crops = 0 if len(paths) > _MANY else max(_CROPS, -(-_LEAST_VIEWS // len(paths)) - 2)
    random = np.random.default_rng(0)
    views = []
    for path in paths:
        picture = load_picture(path)
        views += [preprocess(view, spec, shape, "float32", layout).tensor
                  for view in (picture, np.ascontiguousarray(picture[:, ::-1]),
                               *crops_of(picture, crops, random))]
    return CalibrationViews({name: np.stack(views)}, np.repeat(np.arange(len(paths)), crops + 2))


def tried_pictures(folder: Path, spec: Preprocessing | None, item: ModelInput,
                   shape: tuple[int, ...], layout: str) -> list[dict[str, np.ndarray]]:
    """A network's inputs for the folder's first pictures; raises ToolError as input_tensors()."""
    spec = stated(spec, "--verify-with")
    return [{item.name: preprocess(load_picture(path), spec, shape, str(item.dtype), layout).tensor}
            for path in find_pictures(folder)[:MOST_TRIED]]


def stated(spec: Preprocessing | None, flag: str) -> Preprocessing:
    """Raises ToolError (2) where there is none."""
    if spec is None:
        raise ToolError(USAGE, f"{flag} needs the model's preprocessing, to make inputs of the "
                               "pictures: state it with the flags or MODEL.model.json.")
    return spec


def crops_of(picture: np.ndarray, count: int, random: np.random.Generator) -> list[np.ndarray]:
    """Random parts of the picture, of 70 to 95 % of its sides, every second one mirrored."""
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


def only_input(shapes: dict[str, tuple[int, ...]], flag: str) -> str:
    """The name of the input that takes the pictures.  Raises ToolError (6)."""
    if len(shapes) != 1:
        raise ToolError(MISMATCH,
                        f"{flag} is for models with one input, and this one has "
                        f"{len(shapes)}: {', '.join(shapes)}.")
    return next(iter(shapes))
