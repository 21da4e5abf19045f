"""A CSV file with a header, whose columns say what it is a list of:

picture,class                   classes, by number or by the network's label
picture,class,x0,y0,x1,y1       things, one a row; a row with a picture alone has none
picture,class,x0,y0, ... x3,y3  things by the four corners of boxes with an angle
picture,mask                    masks, as PNG files
picture,map                     numbers for each pixel, as .npy or PNG files
picture,image                   what the network should make of the picture

Files are looked for from the CSV file's own folder.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Sequence
from pathlib import Path

from run_model_tools.errors import MALFORMED_FILE, MISSING_FILE, ToolError
from run_model_tools.evaluating.datasets.dota import turned_thing
from run_model_tools.evaluating.example import (
    CLASSIFICATION,
    DETECTION,
    IMAGE,
    MAP,
    SEGMENTATION,
    TURNED,
    ClassTruth,
    DataSet,
    Example,
    ImageTruth,
    MapTruth,
    MaskTruth,
    Thing,
    ThingsTruth,
    Truth,
)

_CORNERS = [f"{axis}{corner}" for corner in range(4) for axis in "xy"]
_FORMS = {
    frozenset({"picture", "class"}): CLASSIFICATION,
    frozenset({"picture", "class", "x0", "y0", "x1", "y1"}): DETECTION,
    frozenset({"picture", "class", *_CORNERS}): TURNED,
    frozenset({"picture", "mask"}): SEGMENTATION,
    frozenset({"picture", "map"}): MAP,
    frozenset({"picture", "image"}): IMAGE,
}
#: Of kinds whose truth is a file: its column, and what it is.
_FILES: dict[str, tuple[str, Callable[[Path], Truth]]] = {
    SEGMENTATION: ("mask", MaskTruth), MAP: ("map", MapTruth), IMAGE: ("image", ImageTruth)}


def read(path: Path, labels: Sequence[str]) -> DataSet:
    """labels: of the network, for classes that are named. Raises ToolError (3, 4)."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, strict=True)
            rows = list(reader)
            columns = frozenset(name.strip() for name in reader.fieldnames or ())
    except OSError as error:
        raise ToolError(MISSING_FILE, f"{path} cannot be read: {error.strerror}.") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise ToolError(MALFORMED_FILE, f"{path} is no CSV file: {error}.") from None
    if columns not in _FORMS:
        raise ToolError(MALFORMED_FILE, (
            f"{path} has the columns {', '.join(sorted(columns)) or '(none)'} in its first line, "
            "where picture,class or picture,class,x0,y0,x1,y1 (to x3,y3 for turned boxes) or "
            "picture,mask or picture,map or picture,image are expected."))
    kind = _FORMS[columns]
    table = []
    for number, row in enumerate(rows, 2):
        if None in row or None in row.values() or not (row.get("picture") or "").strip():
            raise ToolError(MALFORMED_FILE, f"{path}, line {number}: it does not have the columns "
                                            "of the first line.")
        table.append((number, {key.strip(): value.strip() for key, value in row.items()}))
    if not table:
        raise ToolError(MALFORMED_FILE, f"{path} lists no picture.")
    if kind in (DETECTION, TURNED):
        return _things(path, table, kind)
    first: dict[str, int] = {}
    examples = []
    for number, row in table:
        picture = row["picture"]
        if picture in first:
            raise ToolError(MALFORMED_FILE, f"{path} has '{picture}' in lines {first[picture]} and "
                                            f"{number}.")
        first[picture] = number
        if kind in _FILES:
            column, make = _FILES[kind]
            truth = make(path.parent / row[column])
        else:
            truth = ClassTruth(_class(path, number, row["class"], labels))
        examples.append(Example(picture, path.parent / picture, truth))
    return DataSet(kind, f"csv, {path.name}", examples)


def _class(path: Path, line: int, text: str, labels: Sequence[str]) -> int:
    if text.isdecimal():
        return int(text)
    if text in labels:
        if labels.count(text) > 1:
            raise ToolError(MALFORMED_FILE, f"{path}, line {line}: several classes of the network "
                                            f"are called '{text}': give the class's number.")
        return list(labels).index(text)
    raise ToolError(MALFORMED_FILE, f"{path}, line {line}: '{text}' is neither a class's number "
                                    "nor one of the network's labels (--labels FILE).")


def _things(path: Path, table: list[tuple[int, dict[str, str]]], kind: str) -> DataSet:
    names = sorted({row["class"] for _, row in table if row["class"]})
    numbers = {name: index for index, name in enumerate(names)}
    things: dict[str, list[Thing]] = {}
    for line, row in table:
        found = things.setdefault(row["picture"], [])
        values = [row[name] for name in (_CORNERS if kind == TURNED else _CORNERS[:4])]
        if not row["class"] and not any(values):
            continue
        if kind == TURNED and row["class"]:
            found.append(turned_thing(values, numbers[row["class"]], f"{path}, line {line}", False))
            continue
        try:
            x0, y0, x1, y1 = (float(value) for value in values)
        except ValueError:
            x0 = y0 = x1 = y1 = math.nan
        if not row["class"] or not (x0 <= x1 and y0 <= y1) or math.inf in (x1, y1, -x0, -y0):
            raise ToolError(MALFORMED_FILE, f"{path}, line {line}: '{','.join(row.values())}' is "
                                            "not a class and a box x0 <= x1, y0 <= y1.")
        found.append(Thing(numbers[row["class"]], (x0, y0, x1, y1), (x1 - x0) * (y1 - y0)))
    examples = [Example(name, path.parent / name, ThingsTruth(tuple(of_one)))
                for name, of_one in things.items()]
    return DataSet(kind, f"csv, {path.name}", examples, {n: name for name, n in
                                                             numbers.items()})
