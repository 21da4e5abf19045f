"""COCO's annotations: boxes and masks of things, and the points of people."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from run_model_tools.errors import MALFORMED_FILE, ToolError
from run_model_tools.evaluating.example import (
    INSTANCES,
    KEYPOINTS,
    DataSet,
    Example,
    Thing,
    ThingsTruth,
)
from run_model_tools.evaluating.outline import Outline
from run_model_tools.evaluating.run_lengths import lengths_of
from run_model_tools.files import read_json

#: No picture has a side of more pixels, nor a polygon corners further away.
_FAR = 100000.0


def read(annotations: Path, folder: Path, kind: str) -> DataSet:
    """The pictures in the order of their numbers. kind: DETECTION, KEYPOINTS or INSTANCES. Raises
    ToolError (3, 4)."""
    keypoints = kind == KEYPOINTS
    root = _load(annotations)
    categories = {}
    for item in _list(root, "categories", annotations):
        number = _whole(item, "id", annotations, "a category")
        if number in categories:
            raise _wrong(annotations, f"two categories have the id {number}")
        categories[number] = _text(item, "name", annotations, f"category {number}")
    if not categories:
        raise _wrong(annotations, "there is no category")
    if keypoints:
        with_points = {item["id"] for item in root["categories"] if item.get("keypoints")}
        categories = {n: name for n, name in categories.items() if n in with_points}
        if not categories:
            raise _wrong(annotations, "no category has keypoints: it is no file of person "
                                      "keypoints")
    names: dict[int, str] = {}
    sizes: dict[int, tuple[int, int]] = {}
    for item in _list(root, "images", annotations):
        number = _whole(item, "id", annotations, "an image")
        name = _text(item, "file_name", annotations, f"image {number}")
        if number in names:
            raise _wrong(annotations, f"two images have the id {number}: '{names[number]}' and "
                                      f"'{name}'")
        names[number] = name
        # Only masks cannot do without.
        if kind == INSTANCES or "width" in item or "height" in item:
            sizes[number] = _size(item, annotations, f"image {number}")
    by_name: dict[str, int] = {}
    for number, name in names.items():
        if name in by_name:
            raise _wrong(annotations, f"the images {by_name[name]} and {number} are the same file "
                                      f"'{name}'")
        by_name[name] = number
    things: dict[int, list[Thing]] = {number: [] for number in names}
    seen: set[int] = set()
    for item in _list(root, "annotations", annotations):
        thing, picture, number = _thing(item, annotations, keypoints)
        if number in seen:
            raise _wrong(annotations, f"two annotations have the id {number}")
        seen.add(number)
        if picture not in things:
            raise _wrong(annotations, f"annotation {number} is of image {picture}, which is not "
                                      "in 'images'")
        if thing.category in categories:
            if kind == INSTANCES:
                outline = _outline(item, sizes[picture], annotations, f"annotation {number}")
                thing = replace(thing, outline=outline)
            things[picture].append(thing)
        elif not keypoints:
            raise _wrong(annotations, f"annotation {number} is of category {thing.category}, "
                                      "which is not in 'categories'")
    examples = [Example(names[number], folder / names[number],
                        ThingsTruth(tuple(things[number]), _width_first(sizes.get(number))))
                for number in sorted(names)]
    return DataSet(kind, f"coco, {annotations.name}", examples,
                   categories)


def _load(path: Path) -> dict[str, Any]:
    root = read_json(path)
    if not isinstance(root, dict):
        raise _wrong(path, "it holds no JSON object")
    return root


def _wrong(path: Path, what: str) -> ToolError:
    return ToolError(MALFORMED_FILE, f"{path} is not a file of COCO annotations that can be used: "
                                     f"{what}.")


def _list(root: dict[str, Any], name: str, path: Path) -> list[dict[str, Any]]:
    value = root.get(name)
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise _wrong(path, f"'{name}' is not a list of objects")
    return value


def _whole(item: dict[str, Any], name: str, path: Path, where: str) -> int:
    value = item.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(path, f"{where} has the {name} {value!r}, where a whole number is expected")
    return value


def _text(item: dict[str, Any], name: str, path: Path, where: str) -> str:
    value = item.get(name)
    if not isinstance(value, str) or not value:
        raise _wrong(path, f"{where} has the {name} {value!r}, where a text is expected")
    return value


def _numbers(item: dict[str, Any], name: str, count: Callable[[int], bool], path: Path,
             where: str) -> list[float]:
    value = item.get(name)
    if (not isinstance(value, list) or not count(len(value)) or not all(
            isinstance(x, (int, float)) and not isinstance(x, bool) and math.isfinite(x)
            for x in value)):
        raise _wrong(path, f"{where} has the {name} {str(value)[:80]}")
    return [float(x) for x in value]


def _thing(item: dict[str, Any], path: Path, keypoints: bool) -> tuple[Thing, int, int]:
    """(the thing, the image's number, its own)."""
    number = _whole(item, "id", path, "an annotation")
    where = f"annotation {number}"
    x, y, width, height = _numbers(item, "bbox", lambda n: n == 4, path, where)
    if width < 0 or height < 0:
        raise _wrong(path, f"{where} has a box of {width:g} x {height:g} pixels")
    area = item.get("area", width * height)
    if isinstance(area, bool) or not isinstance(area, (int, float)) or not area >= 0:
        raise _wrong(path, f"{where} has the area {area!r}")
    crowd = item.get("iscrowd", 0)
    if crowd not in (0, 1):
        raise _wrong(path, f"{where} has the iscrowd {crowd!r}, where 0 or 1 is expected")
    points: list[float] = []
    if keypoints and "keypoints" in item:
        points = _numbers(item, "keypoints", lambda n: n % 3 == 0, path, where)
    triples = tuple((points[k], points[k + 1], int(points[k + 2]))
                    for k in range(0, len(points), 3))
    return (Thing(_whole(item, "category_id", path, where), (x, y, x + width, y + height),
                  float(area), bool(crowd), triples),
            _whole(item, "image_id", path, where), number)


def _size(item: dict[str, Any], path: Path, where: str) -> tuple[int, int]:
    """Height and width."""
    height, width = (_whole(item, name, path, where) for name in ("height", "width"))
    if not (0 < height <= _FAR and 0 < width <= _FAR):
        raise _wrong(path, f"{where} is of {width} x {height} pixels")
    return height, width


def _width_first(size: tuple[int, int] | None) -> tuple[int, int] | None:
    return None if size is None else (size[1], size[0])


def _outline(item: dict[str, Any], size: tuple[int, int], path: Path, where: str) -> Outline:
    value = item.get("segmentation")
    if isinstance(value, dict):
        try:
            height, width, lengths = lengths_of(value)
        except ValueError as error:
            raise _wrong(path, f"{where} has a segmentation that is none: {error}") from None
        if (height, width) != size:
            raise _wrong(path, f"{where} has a mask of {width} x {height} pixels, and its image "
                               f"is of {size[1]} x {size[0]}")
        return Outline(*size, lengths=tuple(lengths.tolist()))
    if not isinstance(value, list) or not value:
        raise _wrong(path, f"{where} has the segmentation {str(value)[:80]}, where polygons or run "
                           "lengths are expected")
    polygons = tuple(tuple(_numbers({"polygon": one}, "polygon", lambda n: n >= 6 and n % 2 == 0,
                                    path, where)) for one in value)
    if any(abs(v) > _FAR for polygon in polygons for v in polygon):
        raise _wrong(path, f"{where} has a corner that is more than {_FAR:g} pixels away")
    return Outline(*size, polygons=polygons)
