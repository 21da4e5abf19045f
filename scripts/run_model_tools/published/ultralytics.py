"""What Ultralytics' exporter writes about the network into an ONNX file (metadata_props) or behind
a .tflite file (metadata.json in an archive), as tasks and preprocessing: its own presets of
artifacts/tasks.json, with the network's own classes."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from run_model_tools.errors import MALFORMED_FILE, ToolError
from run_model_tools.pictures.preprocessing import Preprocessing, from_json
from run_model_tools.tasks import presets
from run_model_tools.tasks.description import check_tasks

_PRESETS = {"detect": "yolov8", "segment": "yolov8_segmentation", "pose": "yolov8_pose",
            "obb": "yolov8_obb"}
_MOST_TEXT = 1 << 20


def is_ultralytics(properties: Mapping[str, str]) -> bool:
    """Whether these are such; YOLOv5's exporter wrote stride and names only."""
    return {"stride", "names"} <= set(properties)


def described(properties: Mapping[str, str], shapes: Sequence[tuple[int | None, ...] | None],
              what: str, tflite_layout: str | None = None,
              ) -> tuple[list[dict[str, Any]], Preprocessing]:
    """(tasks, preprocessing); raises ToolError (4) where it says something unknown.

    shapes: of the network's outputs, which tell whether boxes are suppressed in it.
    tflite_layout: of the input of a .tflite file. Such have boxes in shares of the sides (with
      NCHW, as they are exported since 8.4, only where they are not suppressed), prototypes of masks
      in the input's layout, and maybe before the boxes.
    """
    labels = _labels(properties, what)
    task = properties.get("task")
    if task == "classify":
        return _classification(properties, labels, what)
    if task is None:
        return _as_preset("yolov5", labels)
    if task not in _PRESETS:
        raise ToolError(MALFORMED_FILE, f"{what}: its task is {task!r}, and known are classify, "
                                        f"{', '.join(_PRESETS)}.")
    tasks, preprocessing = _as_preset(_PRESETS[task], labels)
    (found,) = tasks
    shape = shapes[0] or ()
    if properties.get("head") == "RTDETRDecoder":
        _as_rt_detr(found, len(labels), shape)
        return tasks, replace(preprocessing, fit="squash", pad=None)
    if task == "pose":
        found["keypoints"] = _keypoints(properties, what)
        check_tasks(found, what)
    if task == "segment" and tflite_layout is not None:
        found["masks"]["layout"] = tflite_layout
        if len(shape) == 4:
            shape = shapes[-1] or ()
            found["output"], found["masks"]["output"] = 1, 0
    suppressed = len(shape) == 3 and _is_suppressed(found, len(labels), shape)
    if suppressed:
        _as_rows(found)
    if tflite_layout == "NHWC" or tflite_layout is not None and not suppressed:
        found["units"] = "normalized"
    return tasks, preprocessing


def _labels(properties: Mapping[str, str], what: str) -> list[str]:
    """The names of the classes, which are written as a list, or by their numbers."""
    names = _value(properties, "names", what)
    if isinstance(names, list):
        names = dict(enumerate(names))
    if isinstance(names, dict):  # JSON has no other keys than texts.
        names = {int(key) if str(key).isdecimal() else key: name for key, name in names.items()}
    if not isinstance(names, dict) or set(names) != set(range(len(names))):
        raise ToolError(MALFORMED_FILE, f"{what}: its names are not those of the classes 0, 1 ….")
    return [str(names[number]) for number in range(len(names))]


def _value(properties: Mapping[str, str], name: str, what: str) -> Any:
    """A property that is a literal of Python."""
    text = properties.get(name, "")
    try:
        return ast.literal_eval(text) if len(text) <= _MOST_TEXT else None
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise ToolError(MALFORMED_FILE,
                        f"{what}: its {name} cannot be read: {text[:80]!r}.") from None


def _as_preset(name: str, labels: list[str]) -> tuple[list[dict[str, Any]], Preprocessing]:
    preset = presets.find(name)
    assert preset.preprocessing is not None
    return [{**copy.deepcopy(task), "labels": labels} for task in preset.tasks], (
        preset.preprocessing)


def _classification(properties: Mapping[str, str], labels: list[str], what: str,
                    ) -> tuple[list[dict[str, Any]], Preprocessing]:
    """Of classify_transforms() in ultralytics/data/augment.py: the short side becomes the input's,
    and its middle is taken."""
    size = _value(properties, "imgsz", what)
    side = size[0] if isinstance(size, list) and size else size
    return ([{"kind": "classification", "output": 0, "activation": "none", "labels": labels}],
            from_json({"resizer": "pil-bilinear", "fit": "crop", "resize": side, "crop": side,
                       "color_order": "RGB", "divide_by": 255.0, "mean": [0.0] * 3,
                       "std": [1.0] * 3}, what))


def _keypoints(properties: Mapping[str, str], what: str) -> dict[str, Any]:
    shape = _value(properties, "kpt_shape", what)
    if not isinstance(shape, (list, tuple)) or len(shape) != 2:
        raise ToolError(MALFORMED_FILE, f"{what}: its kpt_shape is {shape!r}, where a number "
                                        "of points and of values of each are expected.")
    return {"count": shape[0], "values": shape[1]}


def _as_rt_detr(task: dict[str, Any], classes: int, shape: tuple[int | None, ...]) -> None:
    """Rows of a box in shares of the sides, and either a score for each class or the best one and
    its class (since 8.4), of a squashed picture."""
    if shape[-1:] == (4 + classes,):
        task.update({"form": "yolo-rows", "objectness": False, "nms": None})
    else:
        _as_rows(task)
        task["box_format"] = "cxcywh"
    task["units"] = "normalized"


def _extra_values(task: dict[str, Any]) -> int:
    """Of a candidate, besides its box and its classes."""
    keypoints = task.get("keypoints", {})
    return (task.get("masks", {}).get("count", 0) + ("angle" in task)
            + keypoints.get("count", 0) * keypoints.get("values", 2))


def _is_suppressed(task: dict[str, Any], classes: int, shape: tuple[int | None, ...]) -> bool:
    """Whether the output has rows of a box, a score, a class and what else belongs to it, and not a
    column of a box and a score for each class."""
    rest = _extra_values(task)
    return shape[2] == 6 + rest and shape[1] != 4 + classes + rest


def _as_rows(task: dict[str, Any]) -> None:
    """From columns of candidates to rows of boxes, of which no more are left out."""
    task.update({"form": "box-rows", "box_format": "cxcywh" if "angle" in task else "xyxy"})
    task.pop("nms", None)
