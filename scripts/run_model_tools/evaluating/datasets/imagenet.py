"""ImageNet's validation pictures, in the layouts that people have them in.

- a folder for each class: of all 1000, called n01440764 and so on, or by the classes' numbers;
  fewer of the former need LOC_synset_mapping.txt or synset_words.txt (a line for each of the 1000,
  beginning with its name) beside them, since their order tells nothing then
- all pictures in one folder with val.txt ("FILE CLASS" in each line, classes from 0), or with
  LOC_val_solution.csv and LOC_synset_mapping.txt of Kaggle
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

from run_model_tools.errors import MALFORMED_FILE, MISSING_FILE, ToolError
from run_model_tools.evaluating.example import CLASSIFICATION, ClassTruth, DataSet, Example
from run_model_tools.files import visible

CLASSES = 1000
SUFFIXES = (".jpeg", ".jpg", ".png", ".bmp", ".ppm", ".webp")
_SYNSET = re.compile(r"n\d{8}")
_MAPPINGS = ("LOC_synset_mapping.txt", "synset_words.txt", "synsets.txt")


def read(folder: Path) -> DataSet:
    """Raises ToolError (3, 4)."""
    if not folder.is_dir():
        raise ToolError(MISSING_FILE, f"{folder} is no folder: give the one with ImageNet's "
                                      "pictures.")
    listing, solution = folder / "val.txt", folder / "LOC_val_solution.csv"
    if listing.is_file():
        examples = _listed(folder, listing)
    elif solution.is_file():
        examples = _solved(folder, solution)
    else:
        examples = _in_folders(folder)
    return DataSet(CLASSIFICATION, f"imagenet, {folder.name}", examples)


def _in_folders(folder: Path) -> list[Example]:
    names = [entry.name for entry in visible(folder) if entry.is_dir()]
    if not names:
        raise ToolError(MALFORMED_FILE, (
            f"{folder} has neither folders of classes nor val.txt nor LOC_val_solution.csv, so "
            "nothing says what is in its pictures."))
    index = _numbers_of(folder, names)
    examples = []
    for name in names:
        pictures = [p for p in visible(folder / name) if p.suffix.lower() in SUFFIXES]
        examples += [Example(f"{name}/{p.name}", p, ClassTruth(index[name])) for p in pictures]
    if not examples:
        raise ToolError(MALFORMED_FILE, f"the folders of {folder} hold no pictures "
                                        f"({', '.join(SUFFIXES)}).")
    return examples


def _numbers_of(folder: Path, names: list[str]) -> dict[str, int]:
    if all(re.fullmatch(r"\d{1,4}", name) for name in names):
        numbers = {name: int(name) for name in names}
        if len(set(numbers.values())) < len(names):
            raise ToolError(MALFORMED_FILE, f"two folders of {folder} have the same number.")
        return numbers
    strange = next((name for name in names if not _SYNSET.fullmatch(name)), None)
    if strange is not None:
        raise ToolError(MALFORMED_FILE, (
            f"{folder / strange} is called neither by a class's number nor as ImageNet's classes "
            "are, n01440764 for one: use --dataset csv:FILE for other names."))
    mapping = _mapping(folder)
    if mapping:
        return {name: _known(mapping, name, folder) for name in names}
    if len(names) != CLASSES:
        raise ToolError(MALFORMED_FILE, (
            f"{folder} has folders of {len(names)} classes, and the order of fewer than {CLASSES} "
            f"does not tell their numbers: put {_MAPPINGS[0]} there (a line for each of the "
            f"{CLASSES} classes, beginning with its name)."))
    return {name: index for index, name in enumerate(names)}


def _mapping(folder: Path) -> dict[str, int]:
    """The numbers of the classes' names; empty where there is no such file."""
    for name in _MAPPINGS:
        for path in (folder / name, folder.parent / name):
            if path.is_file():
                words = [line.split(None, 1)[0] for line in _text(path).splitlines()
                         if line.strip()]
                if len(words) != CLASSES or len(set(words)) != CLASSES:
                    raise ToolError(MALFORMED_FILE, (
                        f"{path} names {len(set(words))} classes in {len(words)} lines, where "
                        f"{CLASSES} are expected."))
                return {word: index for index, word in enumerate(words)}
    return {}


def _known(mapping: dict[str, int], name: str, where: Path) -> int:
    if name not in mapping:
        raise ToolError(MALFORMED_FILE, f"{where}: the class '{name}' is not in its list of "
                                        f"{CLASSES} classes.")
    return mapping[name]


def _listed(folder: Path, listing: Path) -> list[Example]:
    examples = []
    for number, line in enumerate(_text(listing).splitlines(), 1):
        words = line.rsplit(None, 1)
        if not words:
            continue
        if len(words) != 2 or not words[1].isdecimal() or int(words[1]) >= CLASSES:
            raise ToolError(MALFORMED_FILE, f"{listing}, line {number}: '{line[:80]}' is not a "
                                            f"file and a class from 0 to {CLASSES - 1}.")
        examples.append(Example(words[0], folder / words[0], ClassTruth(int(words[1]))))
    if not examples:
        raise ToolError(MALFORMED_FILE, f"{listing} names no picture.")
    return examples


def _solved(folder: Path, solution: Path) -> list[Example]:
    mapping = _mapping(folder)
    if not mapping:
        raise ToolError(MISSING_FILE, f"{solution} needs {_MAPPINGS[0]} beside it, and it is not "
                                      "there.")
    examples = []
    for row in list(csv.reader(_text(solution).splitlines()))[1:]:
        if len(row) != 2 or not row[1].split():
            raise ToolError(MALFORMED_FILE, f"{solution}: '{','.join(row)[:80]}' is not a picture "
                                            "and its boxes.")
        name = f"{row[0]}.JPEG"
        examples.append(Example(name, folder / name,
                                ClassTruth(_known(mapping, row[1].split()[0], solution))))
    return examples


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ToolError(MISSING_FILE, f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ToolError(MALFORMED_FILE, f"{path} is not UTF-8.") from None
