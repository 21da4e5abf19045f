"""PASCAL VOC's layout of a segmentation data set: JPEGImages, SegmentationClass, and lists."""

from __future__ import annotations

from pathlib import Path

from run_model_tools.errors import MALFORMED_FILE, MISSING_FILE, USAGE, ToolError
from run_model_tools.evaluating.datasets.imagenet import SUFFIXES
from run_model_tools.evaluating.example import SEGMENTATION, DataSet, Example, MaskTruth
from run_model_tools.files import visible

PICTURES, MASKS, LISTS = "JPEGImages", "SegmentationClass", "ImageSets/Segmentation"


def read(folder: Path, list_name: str | None) -> DataSet:
    """The pictures that have a mask, or those of a list (ImageSets/Segmentation/LIST.txt); without
    a name the list val, if there is one. Raises ToolError (2, 3, 4)."""
    for part in (PICTURES, MASKS):
        if not (folder / part).is_dir():
            raise ToolError(MISSING_FILE, f"{folder / part} is no folder: pictures are expected in "
                                          f"{PICTURES} and their masks (.png) in {MASKS}.")
    pictures: dict[str, Path] = {}
    for path in visible(folder / PICTURES):
        if path.suffix.lower() in SUFFIXES:
            if path.stem in pictures:
                raise ToolError(MALFORMED_FILE, f"{path} and {pictures[path.stem].name} would "
                                                "share a mask.")
            pictures[path.stem] = path
    stems = _stems(folder, list_name)
    repeated = next((stem for k, stem in enumerate(stems) if stem in stems[:k]), None) if len(
        set(stems)) < len(stems) else None
    if repeated is not None:
        raise ToolError(MALFORMED_FILE, f"the list names '{repeated}' twice.")
    examples = []
    for stem in stems:
        mask = folder / MASKS / f"{stem}.png"
        picture = pictures.get(stem, folder / PICTURES / f"{stem}.jpg")
        if not mask.is_file():
            raise ToolError(MISSING_FILE, f"{mask} is not there: every picture needs its mask.")
        examples.append(Example(picture.name, picture, MaskTruth(mask)))
    if not examples:
        raise ToolError(MALFORMED_FILE, f"{folder / MASKS} holds no mask (.png).")
    return DataSet(SEGMENTATION, f"voc-masks, {folder.name}", examples)


def _stems(folder: Path, list_name: str | None) -> list[str]:
    path = folder / LISTS / f"{list_name or 'val'}.txt"
    if path.is_file():
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines()
                if line.strip()]
    if list_name is not None:
        raise ToolError(USAGE, f"{path} is not there: name one of the lists in {path.parent}, or "
                               "none for all pictures that have a mask.")
    return sorted(mask.stem for mask in visible(folder / MASKS) if mask.suffix == ".png")
