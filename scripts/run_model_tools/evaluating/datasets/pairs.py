"""Two folders: pictures, and for each what is true of its pixels, under the same name."""

from __future__ import annotations

from pathlib import Path

from run_model_tools.errors import MALFORMED_FILE, MISSING_FILE, ToolError
from run_model_tools.evaluating.datasets.imagenet import SUFFIXES
from run_model_tools.evaluating.example import MAP, DataSet, Example, ImageTruth, MapTruth
from run_model_tools.files import visible

MAP_SUFFIXES = (".npy", ".png")


def read(kind: str, pictures: Path, truths: Path) -> DataSet:
    """kind: MAP, whose truths are .npy and .png files, or IMAGE, whose truths are pictures. Raises
    ToolError (3, 4)."""
    of_map = kind == MAP
    make = MapTruth if of_map else ImageTruth
    examples = [Example(path.name, path, make(truth)) for path, truth in paired(
        pictures, truths, MAP_SUFFIXES if of_map else SUFFIXES)]
    return DataSet(kind, f"{kind}s, {pictures.name}", examples)


def paired(pictures: Path, truths: Path, suffixes: tuple[str, ...]) -> list[tuple[Path, Path]]:
    """Each picture, and the file that ends in one of the suffixes and is called as it is, by their
    names. Raises ToolError (3, 4)."""
    found = _by_stem(pictures, SUFFIXES)
    true = _by_stem(truths, suffixes)
    for left, there, other in ((found, true, truths), (true, found, pictures)):
        alone = sorted(set(left) - set(there))
        if alone:
            raise ToolError(MISSING_FILE, f"{other} has no file for {left[alone[0]]}: both folders "
                                          "have to have the same names.")
    return [(path, true[stem]) for stem, path in sorted(found.items())]


def _by_stem(folder: Path, suffixes: tuple[str, ...]) -> dict[str, Path]:
    if not folder.is_dir():
        raise ToolError(MISSING_FILE, f"{folder} is no folder: one with pictures, and one with "
                                      "what is true of them, are expected.")
    files: dict[str, Path] = {}
    for path in visible(folder):
        if path.suffix.lower() in suffixes:
            if path.stem in files:
                raise ToolError(MALFORMED_FILE, f"{path} and {files[path.stem].name} differ in "
                                                "their suffix only.")
            files[path.stem] = path
    if not files:
        raise ToolError(MALFORMED_FILE, f"{folder} holds no file that ends in "
                                        f"{', '.join(suffixes)}.")
    return files
