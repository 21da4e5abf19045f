"""Operators of plugins of TensorRT and of OpenMMLab, by their functions."""

from __future__ import annotations

from onnx import TensorProto

from run_model_tools.onnx_repair.plugins import PLUGINS, function_of
from run_model_tools.onnx_repair.refusal import Refused, invalid
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import cast
from run_model_tools.onnx_repair.values import Node, Thing, Value
from run_model_tools.onnx_repair.walk import Walk

_OPSET = 17
_IGNORED = {"EfficientNMS_TRT": ("plugin_version", "plugin_namespace"),
            "MMCVDeformConv2d": ("im2col_step",)}


def by_its_function(walk: Walk, node: Node) -> list[Thing | None]:
    """In float32."""
    plugin = PLUGINS[node.op]
    if node.op == "EfficientNMS_TRT":
        _check_boxes(node)
    if node.op == "MMCVRoiAlign" and node.attrs.get("mode", "avg") != "avg":
        raise Refused(f"its mode is '{node.attrs['mode']}', and avg is known")
    if node.op == "MMCVDeformConv2d" and node.attrs.get("bias", 0):
        raise Refused("it has a bias")
    count = len(node.inputs)
    if count not in plugin.inputs:
        raise invalid(f"it has {count} inputs")
    attributes = {name: node.attrs.get(name, value) for name, value in plugin.attributes.items()}
    function = function_of(node.op, attributes, count, _OPSET, node.op)
    kind = node.tensor(0).elem_type
    node.inputs[:] = [cast(walk, node.tensor(i), TensorProto.FLOAT) for i in range(count)]
    made = walk.call(function, {"": plugin.opset or _OPSET}, node)
    return [cast(walk, x, kind) if isinstance(x, Value) and x.is_float else x for x in made]


def _check_boxes(node: Node) -> None:
    if node.get(2) is not None:
        raise Refused("it gets anchors, by which it is to decode boxes",
                      "export the network with boxes that are decoded.")
    boxes, scores = node.tensor(0), node.tensor(1)
    if scores.rank != 3 or boxes.shape[:2] != scores.shape[:2] or boxes.size != 4 * (
            scores.shape[0] * scores.shape[1]):
        raise (invalid if boxes.rank == 3 else Refused)(
            f"its boxes have the shape {list(boxes.shape)} and its scores {list(scores.shape)}, "
            "and one box for all classes is known")


for op, plugin in PLUGINS.items():
    for domain in plugin.domains:
        rule(op, domain=domain, ignored=_IGNORED.get(op, ()))(by_its_function)
