"""--dataset: from its text to a data set whose files are there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from run_model_tools.errors import MALFORMED_FILE, MISSING_FILE, USAGE, ToolError
from run_model_tools.evaluating.datasets import coco, csv_list, dota, imagenet, masks, pairs
from run_model_tools.evaluating.example import (
    DETECTION,
    IMAGE,
    INSTANCES,
    KEYPOINTS,
    MAP,
    DataSet,
    FileTruth,
)

FORMS = ("imagenet:FOLDER, coco:ANNOTATIONS.json:FOLDER, coco-keypoints:ANNOTATIONS.json:FOLDER, "
         "coco-masks:ANNOTATIONS.json:FOLDER, dota:FOLDER:LABELS, "
         "voc-masks:FOLDER[:LIST], maps:FOLDER:TRUTHS, images:FOLDER:TRUTHS or csv:FILE")
#: What of COCO's annotations is judged.
_OF_COCO = {"coco": DETECTION, "coco-keypoints": KEYPOINTS, "coco-masks": INSTANCES}


def read_dataset(text: str, labels: Sequence[str]) -> DataSet:
    """labels: the network's, where they are known. Raises ToolError (2, 3, 4)."""
    kind, _, rest = text.partition(":")
    if not rest:
        raise _not_a_form(text)
    if kind == "imagenet":
        return imagenet.read(Path(rest))
    if kind in (*_OF_COCO, "dota", "maps", "images"):
        first, separator, second = rest.rpartition(":")
        if not separator or not first or not second:
            raise _not_a_form(text)
        if kind in ("maps", "images"):
            return pairs.read(MAP if kind == "maps" else IMAGE, Path(first), Path(second))
        if kind == "dota":
            return dota.read(Path(first), Path(second))
        return coco.read(Path(first), Path(second), _OF_COCO[kind])
    if kind == "voc-masks":
        path, _, list_name = rest.rpartition(":") if not Path(rest).is_dir() else (rest, "", "")
        return masks.read(Path(path or rest), list_name if path and list_name else None)
    if kind == "csv":
        return csv_list.read(Path(rest), labels)
    raise _not_a_form(text)


def _not_a_form(text: str) -> ToolError:
    return ToolError(USAGE, f"--dataset {text} is not of the form {FORMS}.")


def with_files(data: DataSet, leave_out: bool) -> tuple[DataSet, int]:
    """The examples whose files are there, and how many others were left out.

    Raises ToolError: 3 for missing files unless they are to be left out, 4 for a picture that is
    listed under two names.
    """
    def is_there(path: Path) -> bool:
        return path.is_file()

    missing = [e for e in data.examples if not is_there(e.path)
               or (isinstance(e.truth, FileTruth) and not is_there(e.truth.path))]
    if missing and (not leave_out or len(missing) == len(data.examples)):
        first = missing[0]
        path = first.truth.path if is_there(first.path) and isinstance(
            first.truth, FileTruth) else first.path
        raise ToolError(MISSING_FILE, (
            f"{len(missing)} of the {len(data.examples)} pictures of the data set are not there, "
            f"the first is {path}: complete it, or add --allow-missing to leave them out."))
    left = {e.key for e in missing}
    examples = [e for e in data.examples if e.key not in left]
    _refuse_twins(examples)
    return replace(data, examples=examples), len(missing)


def _refuse_twins(examples: Sequence) -> None:
    seen: dict[str, str] = {}
    for example in examples:
        real = os.path.realpath(example.path)
        if real in seen:
            raise ToolError(MALFORMED_FILE, f"the data set has the file {real} twice, as "
                                            f"'{seen[real]}' and as '{example.key}': it would "
                                            "count twice.")
        seen[real] = example.key
