"""The pictures that a network of 8 bits is calibrated with, as its input tensors."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from run_model_tools.errors import MISMATCH, MISSING_FILE, USAGE, ToolError
from run_model_tools.files import sha256_of
from run_model_tools.pictures.preprocess import load_picture, preprocess
from run_model_tools.pictures.preprocessing import Preprocessing

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")
# Beyond some hundred, more pictures hardly change the ranges and only take time and memory.
MOST = 256


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


def input_tensors(folder: Path, spec: Preprocessing | None, name: str, shape: tuple[int, ...],
                  layout: str) -> dict[str, np.ndarray]:
    """{input: (pictures, *shape)}, float32: every picture of the folder and its mirror image.

    Each is preprocessed just as the network wants it.  Raises ToolError: (2) where the model has no
    preprocessing, (6) where its input takes no picture.
    """
    if spec is None:
        raise ToolError(USAGE, "--precision int8 needs the model's preprocessing, to make inputs "
                               "of the calibration pictures: state it with the flags or "
                               "MODEL.model.json.")
    tensors = []
    for path in find_pictures(folder)[:MOST]:
        picture = load_picture(path)
        for view in (picture, np.ascontiguousarray(picture[:, ::-1])):
            tensors.append(preprocess(view, spec, shape, "float32", layout).tensor)
    return {name: np.stack(tensors)}


def only_input(shapes: dict[str, tuple[int, ...]]) -> str:
    """The name of the input that takes the pictures.  Raises ToolError (6)."""
    if len(shapes) != 1:
        raise ToolError(MISMATCH,
                        f"--precision int8 is for models with one input, and this one has "
                        f"{len(shapes)}: {', '.join(shapes)}.")
    return next(iter(shapes))
