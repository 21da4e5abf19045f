"""What a list of tasks may say: the rules of run_model's own reader, before compiling."""

from __future__ import annotations

from typing import Any

from run_model_tools.tasks.detection import ACTIVATIONS, UNITS, check_detection, output_field
from run_model_tools.tasks.fields import Field

KINDS = ("classification", "detection", "segmentation", "landmarks", "embedding", "map", "image")
POINT_COLUMNS = ("x", "y", "z", "score", "visibility", "presence", "other")
_MOST_TASKS = 16
_MOST_LABELS = 100_000
_MOST_LABEL_BYTES = 1024
_MOST_POINTS = 100_000
_MOST_KEYPOINTS = 1000


def check_tasks(value: Any, source: str) -> list[dict[str, Any]]:
    """The tasks of a task, a list of them, or an object with "tasks"; raises ToolError (4)."""
    root = Field(value, source)
    if isinstance(value, dict) and "tasks" in value:
        root = root.member("tasks")
    tasks = root.items() if isinstance(root.value, list) else [root]
    if not 1 <= len(tasks) <= _MOST_TASKS:
        root.fail(f"has {len(tasks)} tasks, where 1 to {_MOST_TASKS} are expected")
    for task in tasks:
        _CHECKS[task.member("kind").one_of(*KINDS)](task)
        task.check(_check_labels, "labels")
        task.check(_check_region, "region")
    return [task.value for task in tasks]


def _check_labels(labels: Field) -> None:
    if not 1 <= len(labels.items()) <= _MOST_LABELS:
        labels.fail(f"has {len(labels.items())} labels, where 1 to {_MOST_LABELS} are expected")
    for label in labels.items():
        if not _is_printable(label.text()):
            label.fail("is no label: it has control characters or more than 1024 bytes")


def _is_printable(text: str) -> bool:
    return len(text.encode()) <= _MOST_LABEL_BYTES and not any(
        ord(c) < 0x20 or ord(c) == 0x7F for c in text)


def _check_region(region: Field) -> None:
    region.refuse_others(("from", "turn", "shift", "square", "scale"))
    source, turn, scale = region.find("from"), region.find("turn"), region.find("scale")
    if turn:
        turn.refuse_others(("start", "end", "target"))
        start = turn.member("start").whole(0, _MOST_KEYPOINTS)
        if turn.member("end").whole(0, _MOST_KEYPOINTS) == start:
            turn.member("end").fail("is the same keypoint as start")
        turn.member("target").number()
    origin = source.one_of("box", "keypoints", "alignment", "oriented") if source else "box"
    if origin == "alignment" and not turn:
        region.fail('has no "turn", whose keypoints are those of "from" alignment')
    if origin == "oriented" and turn:
        turn.fail('cannot be there beside "from" oriented, which has an angle')
    region.check(lambda field: field.exactly(2, Field.number), "shift")
    region.check(lambda field: field.one_of("none", "long", "short"), "square")
    if scale and isinstance(scale.value, list):
        scale.exactly(2, Field.positive)
    elif scale:
        scale.positive()


def _only_with(task: Field, keys: tuple[str, ...], what: str) -> None:
    for key in keys:
        if key in task.object():
            task.member(key).fail(f"has a meaning with {what} only")


def _check_classification(task: Field) -> None:
    task.refuse_others(("kind", "output", "labels", "activation", "binary", "region"))
    output_field(task.member("output"))
    activation, binary = task.find("activation"), task.find("binary")
    name = activation.one_of(*ACTIVATIONS) if activation else "softmax"
    if binary and binary.boolean() and name == "softmax":
        task.fail("is binary, for which \"activation\" has to be sigmoid or none")


def _check_segmentation(task: Field) -> None:
    task.refuse_others(("kind", "output", "form", "layout", "activation", "threshold", "labels",
                        "resample", "region"))
    output_field(task.member("output"))
    form = task.member("form").one_of("scores", "indices", "mask")
    if form == "scores":
        task.member("layout").one_of("NCHW", "NHWC")
    else:
        _only_with(task, ("layout",), "the form scores")
    if form == "mask":
        task.member("activation").one_of("none", "sigmoid")
        task.check(Field.share, "threshold")
    else:
        _only_with(task, ("activation", "threshold"), "the form mask")
    resample = task.find("resample")
    if resample and resample.one_of("bilinear", "nearest") == "bilinear" and form == "indices":
        resample.fail("is 'bilinear', and numbers of classes cannot be interpolated")


def _check_landmarks(task: Field) -> None:
    task.refuse_others(("kind", "output", "columns", "points", "units", "point_activation",
                        "confidence", "confidence_activation", "threshold", "labels",
                        "connections", "region", "form", "layout", "refine"))
    output_field(task.member("output"))
    form = task.find("form")
    if form and form.one_of("points", "heatmaps") == "heatmaps":
        _only_with(task, ("columns", "points", "units"), "the form points")
        task.member("layout").one_of("NCHW", "NHWC")
        task.member("refine").one_of("none", "quarter")
    else:
        _only_with(task, ("layout", "refine"), "the form heatmaps")
        _check_points(task)
    task.check(lambda field: field.one_of("none", "sigmoid"), "point_activation")
    task.check(output_field, "confidence")
    if task.find("confidence"):
        task.member("confidence_activation").one_of("none", "sigmoid")
        task.check(Field.share, "threshold")
    else:
        _only_with(task, ("confidence_activation", "threshold"), "a confidence")
    task.check(lambda pairs: pairs.list_of(
        lambda pair: pair.exactly(2, lambda point: point.whole(0, _MOST_POINTS))), "connections")


def _check_points(task: Field) -> None:
    columns = task.member("columns")
    names = columns.list_of(lambda column: column.one_of(*POINT_COLUMNS))
    for name in ("x", "y"):
        if names.count(name) != 1:
            columns.fail(f"does not have '{name}' once")
    for name in names:
        if name != "other" and names.count(name) > 1:
            columns.fail(f"has '{name}' more than once")
    task.check(lambda field: field.whole(0, _MOST_POINTS), "points")
    task.member("units").one_of(*UNITS)


def _check_embedding(task: Field) -> None:
    task.refuse_others(("kind", "output", "region"))
    output_field(task.member("output"))


def _check_map(task: Field) -> None:
    task.refuse_others(("kind", "output", "quantity", "unit", "scale", "resample", "region"))
    output_field(task.member("output"))
    task.member("quantity").one_of("depth", "inverse-depth", "other")
    unit = task.find("unit")
    if unit and (not unit.text() or not _is_printable(unit.text())):
        unit.fail("is no unit: it is empty, has control characters or more than 1024 bytes")
    task.check(Field.positive, "scale")
    task.check(lambda field: field.one_of("nearest", "bilinear", "bicubic"), "resample")


def _check_image(task: Field) -> None:
    task.refuse_others(("kind", "output", "layout", "color_order", "range", "size", "region"))
    output_field(task.member("output"))
    task.member("layout").one_of("NCHW", "NHWC")
    order = task.member("color_order").one_of("RGB", "BGR", "GRAY")
    ends = task.member("range")
    if not ends.items() or not isinstance(ends.items()[0].value, list):
        _check_range(ends)
    elif order == "GRAY":
        ends.fail("has lists, and a grey picture has one range")
    else:
        ends.exactly(3, _check_range)
    task.check(lambda field: field.one_of("output", "picture"), "size")


def _check_range(ends: Field) -> None:
    ends.exactly(2, Field.number)
    black, white = ends.value
    if not (abs(white - black) >= 1e-6 and abs(black) <= 1e6 and abs(white) <= 1e6):
        ends.fail("is no range: its ends are to be at least 0.000001 apart, and within ±1000000")


_CHECKS = {"classification": _check_classification, "detection": check_detection,
           "segmentation": _check_segmentation, "landmarks": _check_landmarks,
           "embedding": _check_embedding, "map": _check_map, "image": _check_image}
