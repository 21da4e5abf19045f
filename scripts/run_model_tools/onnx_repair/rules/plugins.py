"""Operators of TensorRT's plugins, by their functions."""

from __future__ import annotations

from run_model_tools.onnx_repair.plugins import DEFAULTS, DETECTION, DOMAINS, detections
from run_model_tools.onnx_repair.refusal import Refused, invalid
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import cast
from run_model_tools.onnx_repair.values import Node, Thing, Value
from run_model_tools.onnx_repair.walk import Walk

_OPSET = 17
_NAMES = ("plugin_version", "plugin_namespace")


def efficient_nms(walk: Walk, node: Node) -> list[Thing | None]:
    if node.get(2) is not None:
        raise Refused("it gets anchors, by which it is to decode boxes",
                      "export the network with boxes that are decoded.")
    boxes, scores = node.tensor(0), node.tensor(1)
    if scores.rank != 3 or boxes.shape[:2] != scores.shape[:2] or boxes.size != 4 * (
            scores.shape[0] * scores.shape[1]):
        raise (invalid if boxes.rank == 3 else Refused)(
            f"its boxes have the shape {list(boxes.shape)} and its scores {list(scores.shape)}, "
            "and one box for all classes is known")
    found = detections({name: node.attrs.get(name, value) for name, value in DEFAULTS.items()},
                       _OPSET)
    kind = boxes.elem_type
    node.inputs[:2] = [cast(walk, x, 1) for x in (boxes, scores)]
    count, places, values, classes = walk.call(found, {"": _OPSET}, node)
    assert isinstance(places, Value) and isinstance(values, Value)
    return [count, cast(walk, places, kind), cast(walk, values, kind), classes][:node.outputs]


for domain in DOMAINS:
    rule(DETECTION, domain=domain, ignored=_NAMES)(efficient_nms)
