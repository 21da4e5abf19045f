"""Whether a description of tasks is of this network: its outputs by name, number and shape.

Checked before minutes of compiling with what the model's file says of its outputs, and afterwards
with what the artifact has. An extent of None, or no shape at all, is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NoReturn, Optional

from run_model_tools.errors import MISMATCH, ToolError
from run_model_tools.tasks.anchors import anchors_of

Shape = Optional[tuple[Optional[int], ...]]


@dataclass(frozen=True)
class Output:
    """One of a network's outputs."""

    name: str
    shape: Shape
    dtype: str | None = None


def check_fit(tasks: list[dict[str, Any]], outputs: Sequence[Output], what: str) -> None:
    """Raises ToolError (6) where a task cannot be one of a network with these outputs.

    what: the model, for the message.
    """
    for i, task in enumerate(tasks):
        _Fit(task, outputs, f"{what}: task {i} ({task['kind']})").check()


class _Fit:
    def __init__(self, task: dict[str, Any], outputs: Sequence[Output], what: str) -> None:
        self._task, self._outputs, self._what = task, outputs, what

    def check(self) -> None:
        kind = self._task["kind"]
        form = self._task.get("form", "points" if kind == "landmarks" else "").replace("-", "_")
        getattr(self, f"_{kind}_{form}" if form else f"_{kind}")()

    def _refuse(self, problem: str) -> NoReturn:
        raise ToolError(MISMATCH, f"{self._what} does not fit the network: {problem}.")

    def _output(self, choice: str | int) -> Output:
        if isinstance(choice, int):
            if choice < len(self._outputs):
                return self._outputs[choice]
        else:
            for i, output in enumerate(self._outputs):
                if choice in (output.name, f"output_{i}"):
                    return output
        there = ", ".join(f"'{o.name}'" for o in self._outputs)
        return self._refuse(f"it has no output {choice!r}; its outputs are {there}")

    def _refuse_shape(self, output: Output, expected: str) -> NoReturn:
        shape = "x".join("?" if d is None else str(d) for d in output.shape or ())
        self._refuse(f"its output '{output.name}' is {shape}, where {expected} is expected")

    def _classification(self) -> None:
        output = self._output(self._task["output"])
        size = _size(output.shape)
        if self._task.get("binary") and size not in (None, 1):
            self._refuse_shape(output, "one number, which a binary one has,")
        self._check_labels(output, 2 if self._task.get("binary") else size)

    def _embedding(self) -> None:
        self._output(self._task["output"])

    def _keypoint_values(self) -> int:
        keypoints = self._task.get("keypoints") or {}
        return keypoints.get("count", 0) * keypoints.get("values", 2)

    def _mask_values(self) -> int:
        """The factors of masks in a row, whose prototypes have to be as many."""
        masks = self._task.get("masks")
        if not masks:
            return 0
        self._maps_of(masks["output"], masks["layout"], masks["count"],
                      f"{masks['count']} prototypes of masks")
        return int(masks["count"])

    def _angle_values(self) -> int:
        return int(self._task.get("angle") is not None)

    def _behind(self) -> int:
        """The numbers that follow a candidate's classes."""
        return self._keypoint_values() + self._mask_values() + self._angle_values()

    def _check_labels(self, output: Output, classes: int | None) -> None:
        labels = self._task.get("labels")
        if labels and classes is not None and classes != len(labels):
            self._refuse(f"its output '{output.name}' has {classes} classes, and there are "
                         f"{len(labels)} labels; --labels FILE names its own, one a line")

    def _detection_ssd(self) -> None:
        boxes, scores = self._output(self._task["boxes"]), self._output(self._task["scores"])
        count = len(anchors_of(self._task["anchors"]))
        offset = self._task.get("box_offset", 0)
        values = offset + 4
        if self._keypoint_values():
            start = self._task["keypoints"].get("offset", offset + 4)
            values = max(values, start + self._keypoint_values())
        rows = self._rows(boxes)
        if rows is not None and (rows[0] != count or rows[1] < values):
            self._refuse_shape(boxes, f"{count}x{values} or more (an anchor's box and keypoints)")
        size = _size(scores.shape)
        if size is not None and (size % count or size == 0):
            self._refuse_shape(scores, f"numbers for {count} anchors")
        self._check_labels(scores, None if size is None else size // count)

    def _detection_yolo_rows(self) -> None:
        output = self._output(self._task["output"])
        before = 4 + int(self._task.get("objectness", True))
        rows = self._rows(output)
        if rows is None:
            return
        classes = rows[1] - before - self._behind()
        if classes < 0 or (classes == 0 and before == 4):
            self._refuse_shape(output, f"rows of {before} numbers, then classes"
                               + (" and keypoints" if self._keypoint_values() else ""))
        self._check_labels(output, max(classes, 1))

    def _detection_yolo_v8(self) -> None:
        output = self._output(self._task["output"])
        rows = self._rows(output)
        if rows is None:
            return
        classes = rows[0] - 4 - self._behind()
        if classes < 1:
            self._refuse_shape(output, "4 rows of boxes and one for each class, a column for each "
                                       "candidate,")
        self._check_labels(output, classes)

    def _detection_yolo_heads(self) -> None:
        found = set()
        for choice, anchors in zip(self._task["outputs"], self._task["anchors"]):
            output = self._output(choice)
            if output.shape is None:
                continue
            if None in output.shape:
                continue
            values = self._head_values(output, len(anchors))
            found.add(values - 5 - self._keypoint_values())
            self._check_labels(output, max(values - 5 - self._keypoint_values(), 1))
        if len(found) > 1:
            self._refuse("its outputs have different numbers of classes: "
                         + ", ".join(map(str, sorted(found))))

    def _head_values(self, output: Output, anchors: int) -> int:
        """The numbers of an anchor in each cell: of A(5+C)xHxW, AxHxWx(5+C) or HxWxA(5+C)."""
        shape, last = [d or 0 for d in output.shape or ()], self._task["layout"] == "NHWC"
        values, rest = 0, 0
        if len(shape) == 5 and shape[:2] == [1, anchors] and not last:
            values = shape[4]
        elif len(shape) == 4 and shape[0] == 1:
            values, rest = divmod(shape[3 if last else 1], anchors)
        if values < 5 or rest:
            self._refuse_shape(output, f"a map of {anchors} times 5 or more channels "
                                       f"({self._task['layout']})")
        return values

    def _detection_boxes(self) -> None:
        boxes, scores = self._output(self._task["boxes"]), self._output(self._task["scores"])
        for key in ("classes", "count"):
            if self._task.get(key) is not None:
                self._output(self._task[key])
        # Of 8 bits they may stand for shares.
        if (scores.dtype or "").startswith(("int32", "int64")):
            self._refuse(f"its output '{scores.name}' is {scores.dtype}, where scores are expected;"
                         " boxes, classes and scores may come in another order")
        if self._task.get("masks") is not None:
            maps = self._output(self._task["masks"]["output"])
            if maps.shape is not None and len(maps.shape) != 3 and (
                    len(maps.shape) != 4 or maps.shape[1] not in (None, 1)):
                self._refuse_shape(maps, "a map for each box")
        if keypoints := self._task.get("keypoints"):
            self._check_of_each(keypoints["output"], self._keypoint_values(), "keypoints")
            if keypoints.get("scores") is not None:
                self._check_of_each(keypoints["scores"], keypoints["count"], "keypoints' scores")
        rows, size = self._rows(boxes), _size(scores.shape)
        if rows is None:
            return
        numbers = 4 + self._angle_values()
        if rows[1] != numbers:
            self._refuse_shape(boxes, f"rows of {numbers} numbers")
        if size is not None and (size % rows[0] or size == 0):
            self._refuse_shape(scores, f"numbers for {rows[0]} boxes")
        if self._task.get("classes") is None and size is not None:
            self._check_labels(scores, size // rows[0])

    def _check_of_each(self, choice: str | int, count: int, what: str) -> None:
        output = self._output(choice)
        found = None if not output.shape else _product(output.shape[1:])
        if found not in (None, count):
            self._refuse_shape(output, f"{count} numbers of {what} for each box")

    def _detection_box_rows(self) -> None:
        output = self._output(self._task["output"])
        rows = self._rows(output)
        if rows is not None and rows[1] < 6 + self._behind():
            self._refuse_shape(output, "rows of a box, a score and a class")

    def _detection_distances(self) -> None:
        boxes, scores = self._output(self._task["boxes"]), self._output(self._task["scores"])
        need = self._task.get("box_offset", 0) + 4 * max(1, self._task.get("bins", 0))
        first, classes = self._task.get("score_offset", 0), self._task.get("classes", 0)
        rows, score_rows = self._rows(boxes), self._rows(scores)
        if rows is not None and rows[1] < need:
            self._refuse_shape(boxes, f"rows of {need} or more numbers")
        if score_rows is not None:
            if score_rows[1] < first + max(1, classes):
                self._refuse_shape(scores, f"rows of {first + max(1, classes)} or more numbers")
            self._check_labels(scores, classes or score_rows[1] - first)
        if self._task.get("centerness") is not None:
            self._output(self._task["centerness"])

    def _detection_centers(self) -> None:
        heat = self._maps("heatmap", None, "a map of centres for each class")
        if heat is not None and heat[0] is not None:
            self._check_labels(self._output(self._task["heatmap"]), heat[0])
        for key in ("sizes", "offsets"):
            if self._task.get(key) is None:
                continue
            found = self._maps(key, 2, "two maps as large as the heat map's")
            if heat and found and any(a is not None and b is not None and a != b
                                      for a, b in zip(heat[1:], found[1:])):
                self._refuse_shape(self._output(self._task[key]),
                                   "two maps as large as the heat map's")

    def _maps(self, key: str, channels: int | None,
              expected: str) -> tuple[int | None, ...] | None:
        return self._maps_of(self._task[key], self._task["layout"], channels, expected)

    def _maps_of(self, choice: str | int, layout: str, channels: int | None,
                 expected: str) -> tuple[int | None, ...] | None:
        """(channels, height, width), where these are known; channels: how many there have to be."""
        output = self._output(choice)
        if output.shape is None:
            return None
        shape = output.shape if len(output.shape) == 4 else (1, *output.shape)
        if len(shape) != 4 or shape[0] not in (None, 1):
            self._refuse_shape(output, f"{expected} ({layout})")
        first = shape[3 if layout == "NHWC" else 1]
        if channels is not None and first not in (None, channels):
            self._refuse_shape(output, f"{expected} ({layout})")
        return (first, *(shape[1:3] if layout == "NHWC" else shape[2:4]))

    def _map(self) -> None:
        self._one_map("one number for each pixel")

    def _image(self) -> None:
        channels = 1 if self._task["color_order"] == "GRAY" else 3
        self._maps("output", channels, f"a picture of {channels} channels")

    def _segmentation_scores(self) -> None:
        output = self._output(self._task["output"])
        if output.shape is None:
            return
        if not _may_have(output.shape, 3):
            self._refuse_shape(output, f"a map for each of several classes ({self._task['layout']}"
                                       "; one map is the form mask)")
        if None not in output.shape:
            shape = [d for d in output.shape if d != 1]
            self._check_labels(output, shape[-1 if self._task["layout"] == "NHWC" else 0])

    def _segmentation_indices(self) -> None:
        self._one_map("the class of each pixel")

    def _segmentation_mask(self) -> None:
        self._one_map("one map")
        if len(self._task.get("labels") or []) > 2:
            self._refuse("a mask is one class or none, and there are "
                         f"{len(self._task['labels'])} labels")

    def _one_map(self, expected: str) -> None:
        output = self._output(self._task["output"])
        if output.shape is not None and not _may_have(output.shape, 2):
            self._refuse_shape(output, expected)

    def _rows(self, output: Output) -> tuple[int, int] | None:
        """(rows, numbers in each), where these are known; dimensions of 1 may stand anywhere."""
        if output.shape is None or None in output.shape:
            return None
        shape = [d or 0 for d in output.shape if d != 1]
        if len(shape) not in (1, 2):
            self._refuse_shape(output, "a table of two dimensions")
        return (shape[0], shape[1]) if len(shape) == 2 else (1, shape[0])

    def _landmarks_heatmaps(self) -> None:
        maps = self._maps("output", None, "a map for each point")
        self._check_points(None if maps is None else maps[0])

    def _landmarks_points(self) -> None:
        output, wanted = self._output(self._task["output"]), self._task.get("points") or 0
        size = _size(output.shape)
        columns = len(self._task["columns"])
        if size is not None and (size % columns or size < wanted * columns or size == 0):
            self._refuse_shape(output, f"{columns} numbers for each of "
                                       f"{f'{wanted} or more' if wanted else 'its'} points")
        self._check_points(wanted or (size // columns if size is not None else None))

    def _check_points(self, points: int | None) -> None:
        labels = self._task.get("labels")
        if labels and points is not None and len(labels) != points:
            self._refuse(f"it has {points} points, and there are {len(labels)} labels")
        for pair in self._task.get("connections") or []:
            if points is not None and max(pair) >= points:
                self._refuse(f"it has {points} points, and a connection is of point {max(pair)}")
        if self._task.get("confidence") is not None:
            confidence = self._output(self._task["confidence"])
            if _size(confidence.shape) not in (None, 1):
                self._refuse_shape(confidence, "one number")


def _may_have(shape: Sequence[int | None], count: int) -> bool:
    """Whether so many extents are not 1, of which any may be that is not known."""
    known = sum(d not in (None, 1) for d in shape)
    return known <= count <= known + sum(d is None for d in shape)


def _size(shape: Shape) -> int | None:
    """How many numbers there are, where every extent is known."""
    return None if shape is None else _product(shape)


def _product(extents: Sequence[int | None]) -> int | None:
    known = [d for d in extents if d is not None]
    return prod(known) if len(known) == len(extents) else None
