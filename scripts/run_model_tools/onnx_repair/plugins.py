"""Operators of plugins of TensorRT and of OpenMMLab, as functions of ONNX's operators.

The rules run these (rules/plugins.py); in a model with them, so does what it is compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, parser

_TENSORRT, _MMLAB = ("", "TRT", "trt"), ("mmcv", "mmdeploy")
"""In which domains files have them: as graphs are written by hand, and as exporters do it."""
_OURS = "run_model.plugins"


@dataclass(frozen=True)
class Plugin:
    """An operator."""

    domains: tuple[str, ...]
    attributes: dict[str, Any]
    """With what they are where the node does not say."""
    inputs: tuple[int, ...]
    """How many there may be."""
    body: Callable[[Mapping[str, Any], int], tuple[str, str]]
    """Of attributes and the number of inputs, (names of inputs and outputs, nodes) in ONNX's text
    form."""
    opset: int | None = None
    """Whose operators the body has, if not those of any opset since 11."""


def function_of(op: str, attributes: Mapping[str, Any], inputs: int, opset: int, name: str
                ) -> onnx.FunctionProto:
    """What an operator computes."""
    plugin = PLUGINS[op]
    head, nodes = plugin.body({**plugin.attributes, **attributes}, inputs)
    imports = f'opset_import: ["": {plugin.opset or opset}], domain: "{_OURS}"'
    return parser.parse_function(f"<{imports}> {name} {head} {{ {nodes} }}")


def _detections(found: Mapping[str, Any], inputs: int) -> tuple[str, str]:
    """The best of (boxes, scores), for each picture: (how many, boxes, scores, classes).

    A box that a better one of its class overlaps is left out.  TensorRT's own looks at no more than
    the best 4096 of all scores.
    """
    nodes = [*_detection_constants(found), *_detection_scores(found), *_suppressed(found)]
    if found["class_agnostic"]:
        nodes += ["class_flat = Reshape(class_of, rest)", "class_found = Gather(class_flat, row)"]
    else:
        nodes.append("class_found = Identity(class_at)")
    nodes += [*_detection_corners(bool(found["box_coding"])), *_detection_outputs()]
    return "(boxes, scores) => (found, out_boxes, out_scores, out_classes)", " ".join(nodes)


def _detection_constants(found: Mapping[str, Any]) -> list[str]:
    score, overlap = (float(np.nextafter(np.float32(found[key]), np.float32(-np.inf)))
                      for key in ("score_threshold", "iou_threshold"))
    return [
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


def _detection_scores(found: Mapping[str, Any]) -> list[str]:
    """`of_class`: (picture, class, box), and `class_of` where only the best class counts."""
    given = "scores"
    nodes = []
    if found["score_activation"]:
        nodes.append(f"opened = Sigmoid({given})")
        given = "opened"
    if found["background_class"] >= 0:
        nodes += ["third = Constant<value=int64 {2}>()", "classes_there = Gather(extents, third)",
                  "numbers = Range(first, classes_there, second)",
                  f"nothing = Constant<value=int64 {{{found['background_class']}}}>()",
                  "is_nothing = Equal(numbers, nothing)",
                  f"things = Where(is_nothing, lowest, {given})"]
        given = "things"
    if found["class_agnostic"]:
        # Of one box, which overlaps itself, only the best class can be left.
        nodes.append(f"best, class_of = TopK<axis=2>({given}, unit)")
        given = "best"
    return [*nodes, f"of_class = Transpose<perm=[0, 2, 1]>({given})"]


def _suppressed(found: Mapping[str, Any]) -> list[str]:
    """The best boxes (`taken`), `some` of whose scores stand for a box, as `is_there` says."""
    return [
        f"chosen = NonMaxSuppression<center_point_box={int(bool(found['box_coding']))}>"
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


def _detection_corners(centers: bool) -> list[str]:
    if not centers:
        return ["corners = Identity(taken)"]
    return ["xy = Constant<value=int64[2] {0, 1}>()", "wh = Constant<value=int64[2] {2, 3}>()",
            "center = Gather<axis=2>(taken, xy)", "size = Gather<axis=2>(taken, wh)",
            "by = Constant<value=float {0.5}>()", "reach = Mul(size, by)",
            "low = Sub(center, reach)", "high = Add(center, reach)",
            "corners = Concat<axis=2>(low, high)"]


def _detection_outputs() -> list[str]:
    """As many rows as are asked for, zeros where there are fewer boxes."""
    return [
        "deep = Constant<value=int64[3] {0, 0, 1}>()", "of_box = Reshape(is_there, deep)",
        "boxes_found = Where(of_box, corners, zero)", "zero_class = Constant<value=int64 {0}>()",
        "classes_found = Where(is_there, class_found, zero_class)",
        "flags = Cast<to=1>(is_there)", "wide = Concat<axis=0>(there_are, unit)",
        "ones = ConstantOfShape<value=float[1] {1.0}>(wide)", "sum = MatMul(flags, ones)",
        "found = Cast<to=6>(sum)",
        "lacking = Sub(most, there_are)", "no = Constant<value=int64[1] {0}>()",
        "pads = Concat<axis=0>(no, no, no, lacking)",
        "box_pads = Concat<axis=0>(no, no, no, no, lacking, no)",
        "out_boxes = Pad(boxes_found, box_pads)", "out_scores = Pad(some, pads)",
        "classes_32 = Cast<to=1>(classes_found)", "classes_wide = Pad(classes_32, pads)",
        "out_classes = Cast<to=6>(classes_wide)"]


def _deformed(found: Mapping[str, Any], inputs: int) -> tuple[str, str]:
    """(x, offsets, mask, weights, bias) of a convolution whose places move."""
    names = ["x", "offset", "mask", "weight", "bias"][:inputs]
    nothing = ("extents = Shape(weight) first = Constant<value=int64[1] {0}>() "
               "count = Gather(extents, first) bias = ConstantOfShape(count) ")
    return f"({', '.join(names)}) => (y)", ("" if inputs == 5 else nothing) + (
        f"y = DeformConv<{_moves(found)}>(x, weight, offset, bias, mask)")


def _deformed_alone(found: Mapping[str, Any], inputs: int) -> tuple[str, str]:
    return "(x, offset, weight) => (y)", f"y = DeformConv<{_moves(found)}>(x, weight, offset)"


def _moves(found: Mapping[str, Any]) -> str:
    lists = {"strides": "stride", "dilations": "dilation", "pads": "padding"}
    said = [f"{name}={(list(found[key]) * 4)[:4 if name == 'pads' else 2]}"
            for name, key in lists.items()]
    return ", ".join([*said, f"group={found['groups']}", f"offset_group={found['deform_groups']}"])


def _sampled(found: Mapping[str, Any], inputs: int) -> tuple[str, str]:
    mode = ("linear", "nearest", "cubic")[found["interpolation_mode"]]
    pads = ("zeros", "border", "reflection")[found["padding_mode"]]
    return "(x, grid) => (y)", (
        f'y = GridSample<mode="{mode}", padding_mode="{pads}", '
        f"align_corners={int(found['align_corners'])}>(x, grid)")


def _regions(found: Mapping[str, Any], inputs: int) -> tuple[str, str]:
    """Of (x, [number of the picture, corners])."""
    shift = "half_pixel" if found["aligned"] else "output_half_pixel"
    return "(x, rois) => (y)", (
        "first = Constant<value=int64 {0}>() four = Constant<value=int64[4] {1, 2, 3, 4}>() "
        "number = Gather<axis=1>(rois, first) picture = Cast<to=7>(number) "
        "corners = Gather<axis=1>(rois, four) "
        f'y = RoiAlign<coordinate_transformation_mode="{shift}", mode="avg", '
        f"output_height={found['output_height']}, output_width={found['output_width']}, "
        f"sampling_ratio={found['sampling_ratio']}, spatial_scale={found['spatial_scale']:.9g}>"
        "(x, corners, picture)")


_MOVED = {"stride": [1, 1], "padding": [0, 0], "dilation": [1, 1], "groups": 1, "deform_groups": 1}
PLUGINS = {
    "EfficientNMS_TRT": Plugin(_TENSORRT, {
        "score_threshold": 0.25, "iou_threshold": 0.5, "max_output_boxes": 100,
        "background_class": -1, "score_activation": 0, "class_agnostic": 0, "box_coding": 0},
        (2,), _detections),
    "MMCVModulatedDeformConv2d": Plugin(_MMLAB, _MOVED, (4, 5), _deformed, 19),
    "MMCVDeformConv2d": Plugin(_MMLAB, _MOVED, (3,), _deformed_alone, 19),
    "grid_sampler": Plugin(_MMLAB, {"interpolation_mode": 0, "padding_mode": 0,
                                    "align_corners": 0}, (2,), _sampled, 20),
    "MMCVRoiAlign": Plugin(_MMLAB, {"output_height": 1, "output_width": 1, "sampling_ratio": 0,
                                    "spatial_scale": 1.0, "aligned": 1}, (2,), _regions, 16)}


def with_functions(model: onnx.ModelProto) -> bool:
    """Gives a model such functions for its nodes of plugins; says whether it has any."""
    opset = next(i.version for i in model.opset_import if i.domain in ("", "ai.onnx"))
    made = 0
    for node in model.graph.node:
        plugin = PLUGINS.get(node.op_type)
        if plugin is None or node.domain not in plugin.domains or (
                len(node.input) not in plugin.inputs):
            continue
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute
                      if a.name in plugin.attributes}
        name = f"{node.op_type}_{made}"
        model.functions.append(function_of(node.op_type, attributes, len(node.input), opset, name))
        node.domain, node.op_type = _OURS, name
        del node.attribute[:]
        made += 1
    if made:
        model.opset_import.append(helper.make_opsetid(_OURS, 1))
        model.ir_version = max(model.ir_version, 8)
    return bool(made)
