"""Operators of TensorRT's plugins, as functions of operators that ONNX has since opset 11.

The rules run these (rules/plugins.py), and ONNX Runtime in a model to compare with.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper, parser

DOMAINS = ("", "TRT", "trt")
"""In which files have them: as graphs are written by hand, and as exporters of detectors do it."""
DETECTION = "EfficientNMS_TRT"
DEFAULTS: dict[str, Any] = {
    "score_threshold": 0.25, "iou_threshold": 0.5, "max_output_boxes": 100, "background_class": -1,
    "score_activation": 0, "class_agnostic": 0, "box_coding": 0}
_OURS = "run_model.plugins"


def detections(attributes: Mapping[str, Any], opset: int, name: str = DETECTION
               ) -> onnx.FunctionProto:
    """The best of (boxes, scores), for each picture: (how many, boxes, scores, classes).

    A box that a better one of its class overlaps is left out.  TensorRT's own looks at no more than
    the best 4096 of all scores.
    """
    found = {**DEFAULTS, **attributes}
    score, overlap = (float(np.nextafter(np.float32(found[key]), np.float32(-np.inf)))
                      for key in ("score_threshold", "iou_threshold"))
    centers, agnostic = bool(found["box_coding"]), bool(found["class_agnostic"])
    text = [
        f"most = Constant<value=int64[1] {{{found['max_output_boxes']}}}>()",
        # Both are to be reached, and ONNX has them exceeded.
        f"overlap = Constant<value=float[1] {{{overlap:.9g}}}>()",
        f"least = Constant<value=float[1] {{{score:.9g}}}>()",
        "zero = Constant<value=float {0.0}>()", "lowest = Constant<value=float {-3e38}>()",
        "first = Constant<value=int64 {0}>()", "second = Constant<value=int64 {1}>()",
        "unit = Constant<value=int64[1] {1}>()", "four = Constant<value=int64[1] {4}>()",
        "rest = Constant<value=int64[1] {-1}>()",
        "extents = Shape(scores)", "of_axis = Constant<value=int64[2] {0, 1}>()",
        "by_box = Gather(extents, of_axis)", "box_shape = Concat<axis=0>(by_box, four)",
        "places = Reshape(boxes, box_shape)", "batch = Gather(extents, first)",
        "count = Gather(extents, second)"]
    given = "scores"
    if found["score_activation"]:
        text.append(f"opened = Sigmoid({given})")
        given = "opened"
    if found["background_class"] >= 0:
        text += ["third = Constant<value=int64 {2}>()", "classes_there = Gather(extents, third)",
                 "numbers = Range(first, classes_there, second)",
                 f"nothing = Constant<value=int64 {{{found['background_class']}}}>()",
                 "is_nothing = Equal(numbers, nothing)",
                 f"things = Where(is_nothing, lowest, {given})"]
        given = "things"
    if agnostic:
        # Of one box, which overlaps itself, only the best class can be left.
        text.append(f"best, class_of = TopK<axis=2>({given}, unit)")
        given = "best"
    text += [
        f"of_class = Transpose<perm=[0, 2, 1]>({given})",
        f"chosen = NonMaxSuppression<center_point_box={int(centers)}>"
        "(places, of_class, most, overlap, least)",
        "good = GatherND(of_class, chosen)", "all_extents = Shape(of_class)",
        "none = ConstantOfShape<value=float[1] {-3e38}>(all_extents)",
        "kept = ScatterND(none, chosen, good)",
        "batches = Reshape(batch, unit)", "flat_shape = Concat<axis=0>(batches, rest)",
        "flat = Reshape(kept, flat_shape)", "flat_extents = Shape(flat)",
        "width = Gather(flat_extents, second)", "widths = Reshape(width, unit)",
        "are_enough = Less(most, widths)", "there_are = Where(are_enough, most, widths)",
        "values, at = TopK<axis=1>(flat, there_are)",
        "half = Constant<value=float {-1e38}>()", "is_there = Greater(values, half)",
        "some = Where(is_there, values, zero)",
        "box = Mod(at, count)", "class_at = Div(at, count)",
        "pictures = Range(first, batch, second)", "column = Constant<value=int64[2] {-1, 1}>()",
        "picture = Reshape(pictures, column)", "before = Mul(picture, count)",
        "row = Add(box, before)", "row_shape = Constant<value=int64[2] {-1, 4}>()",
        "rows = Reshape(places, row_shape)", "taken = Gather(rows, row)"]
    if agnostic:
        text += ["class_flat = Reshape(class_of, rest)", "class_found = Gather(class_flat, row)"]
    else:
        text.append("class_found = Identity(class_at)")
    if centers:
        text += ["xy = Constant<value=int64[2] {0, 1}>()", "wh = Constant<value=int64[2] {2, 3}>()",
                 "center = Gather<axis=2>(taken, xy)", "size = Gather<axis=2>(taken, wh)",
                 "by = Constant<value=float {0.5}>()", "reach = Mul(size, by)",
                 "low = Sub(center, reach)", "high = Add(center, reach)",
                 "corners = Concat<axis=2>(low, high)"]
    else:
        text.append("corners = Identity(taken)")
    text += [
        "deep = Constant<value=int64[3] {0, 0, 1}>()", "of_box = Reshape(is_there, deep)",
        "boxes_found = Where(of_box, corners, zero)", "zero_class = Constant<value=int64 {0}>()",
        "classes_found = Where(is_there, class_found, zero_class)",
        "flags = Cast<to=1>(is_there)", "wide = Concat<axis=0>(there_are, unit)",
        "ones = ConstantOfShape<value=float[1] {1.0}>(wide)", "sum = MatMul(flags, ones)",
        "found = Cast<to=6>(sum)",
        # As many as are asked for, where there are fewer boxes.
        "lacking = Sub(most, there_are)", "no = Constant<value=int64[1] {0}>()",
        "pads = Concat<axis=0>(no, no, no, lacking)",
        "box_pads = Concat<axis=0>(no, no, no, no, lacking, no)",
        "out_boxes = Pad(boxes_found, box_pads)", "out_scores = Pad(some, pads)",
        "classes_32 = Cast<to=1>(classes_found)", "classes_wide = Pad(classes_32, pads)",
        "out_classes = Cast<to=6>(classes_wide)"]
    return parser.parse_function(
        f'<opset_import: ["": {opset}], domain: "{_OURS}"> {name} (boxes, scores) => '
        "(found, out_boxes, out_scores, out_classes) { " + " ".join(text) + " }")


def with_functions(model: onnx.ModelProto) -> bool:
    """Gives a model such functions for its nodes of plugins; says whether it has any."""
    opset = next(i.version for i in model.opset_import if i.domain in ("", "ai.onnx"))
    made = 0
    for node in model.graph.node:
        if node.op_type != DETECTION or node.domain not in DOMAINS or len(node.input) != 2:
            continue
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute
                      if a.name in DEFAULTS}
        node.domain, node.op_type = _OURS, f"{DETECTION}_{made}"
        model.functions.append(detections(attributes, opset, node.op_type))
        del node.attribute[:]
        made += 1
    if made:
        model.opset_import.append(helper.make_opsetid(_OURS, 1))
        model.ir_version = max(model.ir_version, 8)
    return bool(made)
