"""Descriptions by name (artifacts/tasks.json), and --task of compile_model."""

from __future__ import annotations

import argparse
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from run_model_tools.environment import DATA_ROOT
from run_model_tools.errors import MALFORMED_FILE, USAGE, ToolError
from run_model_tools.files import read_json, read_lines
from run_model_tools.pictures.preprocessing import Preprocessing, from_json
from run_model_tools.tasks.description import check_tasks

FILE = DATA_ROOT / "artifacts" / "tasks.json"
SCHEMA_VERSION = 1
KINDS_WITH_CLASSES = ("classification", "detection", "segmentation")


@dataclass(frozen=True)
class Preset:
    """What the outputs of a known kind of network mean, and how its pictures are prepared."""

    name: str
    title: str
    preprocessing: Preprocessing | None
    tasks: list[dict[str, Any]]


@functools.cache
def read_presets() -> dict[str, Preset]:
    """By their names; raises ToolError (3, 4)."""
    root = read_json(FILE, SCHEMA_VERSION)
    try:
        return {entry["name"]: _preset(entry, root["labels"]) for entry in root["presets"]}
    except (KeyError, TypeError) as error:
        raise ToolError(MALFORMED_FILE, f"{FILE} is not a list of presets: {error!r}.") from None


def _preset(entry: dict[str, Any], lists: dict[str, list[str]]) -> Preset:
    """lists: labels by the names that tasks call them by."""
    what = f"{FILE}, {entry['name']}"
    given = entry.get("preprocessing")
    tasks = [{**task, "labels": lists[task["labels"]]} if isinstance(task.get("labels"), str)
             else task for task in entry["tasks"]]
    return Preset(entry["name"], entry["title"], from_json(given, what) if given else None,
                  check_tasks(tasks, what))


def find(name: str) -> Preset:
    """Raises ToolError (2) for an unknown name."""
    known = read_presets()
    if name not in known:
        raise ToolError(USAGE, f"there is no task '{name}'; there are {', '.join(known)}.")
    return known[name]


def add_flags(parser: argparse.ArgumentParser) -> None:
    """--task."""
    parser.add_argument(
        "--task", metavar="WHAT", action="append", default=[],
        help="what the outputs mean, written into metadata.json: a name of artifacts/tasks.json, "
             "which also says how pictures are prepared unless --preprocessing does, a JSON file "
             "(postprocess/README.md), or none; may be repeated. Without it, it is taken from "
             "MODEL.model.json beside MODEL, from MODEL itself (Ultralytics) or Hugging Face's "
             "config.json beside it, if they have it")


def with_labels(tasks: list[dict[str, Any]] | None, path: Path) -> list[dict[str, Any]]:
    """The tasks with the lines of a file as the names of classes. Raises ToolError (2, 3, 4)."""
    with_classes = [task for task in tasks or [] if task["kind"] in KINDS_WITH_CLASSES]
    if len(with_classes) != 1:
        raise ToolError(USAGE, f"--labels names the classes of one task, and {len(with_classes)} "
                               "have classes here: say by --task what the outputs mean; where "
                               "several have classes, its JSON file has the labels of each.")
    labels = read_lines(path)
    return check_tasks([{**task, "labels": labels} if task is with_classes[0] else task
                        for task in tasks or []], str(path))


def from_flags(args: argparse.Namespace, model: Path,
               ) -> tuple[list[dict[str, Any]] | None, Preprocessing | None]:
    """(tasks, the preprocessing that comes with them), as --task or the file beside the model
    says; raises ToolError (2, 3, 4)."""
    sidecar = model.with_suffix(".model.json")
    if not args.task:
        root = read_json(sidecar) if sidecar.exists() else None
        if not isinstance(root, dict) or root.get("tasks") is None:
            return None, None
        return check_tasks(root, str(sidecar)), None
    if "none" in args.task:
        if len(args.task) > 1:
            raise ToolError(USAGE, "--task none goes with no other --task: leave one out.")
        return None, None
    tasks: list[dict[str, Any]] = []
    found: list[Preprocessing] = []
    for text in args.task:
        more, preprocessing = _read_one(text)
        tasks += more
        if preprocessing is not None and preprocessing not in found:
            found.append(preprocessing)
    if len(found) > 1 and args.preprocessing is None:
        raise ToolError(USAGE, f"{', '.join(args.task)} prepare pictures differently: say by "
                               "--preprocessing which is meant.")
    return check_tasks(tasks, " and ".join(args.task)), found[0] if found else None


def _read_one(text: str) -> tuple[list[dict[str, Any]], Preprocessing | None]:
    if text in read_presets():
        preset = find(text)
        return preset.tasks, preset.preprocessing
    path = Path(text)
    if not path.exists():
        raise ToolError(USAGE, f"--task {text} is neither a file nor one of "
                               f"{', '.join(read_presets())}, none.")
    root = read_json(path)
    described = root.get("preprocessing") if isinstance(root, dict) and "tasks" in root else None
    return check_tasks(root, text), from_json(described, text) if described else None
