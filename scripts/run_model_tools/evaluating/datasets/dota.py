"""DOTA's labels of boxes with an angle: a text file for each picture, a line for each thing,

    x0 y0 x1 y1 x2 y2 x3 y3 CLASS [DIFFICULT]

its corners in their order around it, in pixels. Lines that begin with `imagesource:` and `gsd:`
say where the picture comes from. What is difficult (not 0) need not be found. (Xia et al., "DOTA",
2018.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from run_model_tools.errors import MALFORMED_FILE, MISSING_FILE, ToolError
from run_model_tools.evaluating.datasets.pairs import paired
from run_model_tools.evaluating.example import TURNED, DataSet, Example, Thing, ThingsTruth
from run_model_tools.evaluating.metrics.similarity import polygon_areas

_OF_THE_PICTURE = ("imagesource:", "gsd:")


def read(pictures: Path, labels: Path) -> DataSet:
    """Raises ToolError (3, 4)."""
    files = paired(pictures, labels, (".txt",))
    lines = {picture: _lines(path) for picture, path in files}
    names = sorted({words[8] for of_one in lines.values() for _, words in of_one})
    if not names:
        raise ToolError(MALFORMED_FILE, f"the files of {labels} name no thing.")
    numbers = {name: number for number, name in enumerate(names)}
    examples = [Example(picture.name, picture, ThingsTruth(tuple(
        turned_thing(words[:8], numbers[words[8]], f"{path}, line {line}", words[9:] not in (
            [], ["0"])) for line, words in lines[picture]))) for picture, path in files]
    return DataSet(TURNED, f"dota, {pictures.name}", examples,
                   {number: name for name, number in numbers.items()})


def _lines(path: Path) -> list[tuple[int, list[str]]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ToolError(MISSING_FILE, f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ToolError(MALFORMED_FILE, f"{path} is not UTF-8.") from None
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or line.startswith(_OF_THE_PICTURE):
            continue
        if len(words) not in (9, 10) or not (len(words) == 9 or words[9].isdecimal()):
            raise ToolError(MALFORMED_FILE, (
                f"{path}, line {number}: '{line[:80]}' is not eight numbers, a class and perhaps "
                "whether it is difficult (0 or 1)."))
        found.append((number, words))
    return found


def turned_thing(words: Sequence[str], category: int, where: str, optional: bool) -> Thing:
    """words: x0, y0 ... y3. Raises ToolError (4), whose sentence begins with `where`."""
    try:
        corners = np.array([float(word) for word in words]).reshape(4, 2)
    except ValueError:
        corners = np.full((4, 2), math.nan)
    if not np.isfinite(corners).all() or np.abs(corners).max() > 1e9:
        raise ToolError(MALFORMED_FILE, f"{where}: '{' '.join(words)[:80]}' is not four corners, "
                                        "x and y of each.")
    if _cross(*corners[[0, 1, 2, 3]]) or _cross(*corners[[1, 2, 3, 0]]):
        raise ToolError(MALFORMED_FILE, (
            f"{where}: two sides of '{' '.join(words)[:80]}' cross: the corners have to be in "
            "their order around the thing."))
    x0, y0, x1, y1 = (float(v) for v in (*corners.min(0), *corners.max(0)))
    area = abs(float(polygon_areas(corners[None])[0]))
    return Thing(category, (x0, y0, x1, y1), area, optional=optional,
                 corners=tuple((float(x), float(y)) for x, y in corners))


def _cross(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> bool:
    """Whether the way from a to b and that from c to d have a point inside of both."""
    def side(p: np.ndarray, q: np.ndarray, r: np.ndarray) -> float:
        return float((q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0]))

    return side(a, b, c) * side(a, b, d) < 0 and side(c, d, a) * side(c, d, b) < 0
