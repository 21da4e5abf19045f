"""A repaired model in float16 -> the same with float16 at its inputs and outputs only.

Between them everything is float32: sums of float16 lose digits with every product, and CPUs that
add in float32 have no use for the rounding in between.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

_HALF, _SINGLE = TensorProto.FLOAT16, TensorProto.FLOAT
TYPES = ("to", "dtype", "output_dtype", "stash_type")
"""Attributes that name the type of a result."""


def in_float32(model: onnx.ModelProto) -> onnx.ModelProto:
    """Changes the model, of opset 18 and without subgraphs, and gives it back."""
    graph = model.graph
    halves = [v for v in (*graph.input, *graph.output) if v.type.tensor_type.elem_type == _HALF]
    if not halves and not any(t.data_type == _HALF for t in graph.initializer) and not any(
            _is_half(a) for node in graph.node for a in node.attribute):
        return model
    taken = {name for node in graph.node for name in (*node.input, *node.output)}
    taken.update(v.name for v in (*graph.input, *graph.output))
    for tensor in graph.initializer:
        if tensor.data_type == _HALF:
            tensor.CopyFrom(widened(tensor))
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name in TYPES and attribute.i == _HALF:
                attribute.i = _SINGLE
            elif attribute.type == AttributeProto.TENSOR and attribute.t.data_type == _HALF:
                attribute.t.CopyFrom(widened(attribute.t))
    inputs = {v.name: _free(v.name + "_float32", taken) for v in graph.input
              if v.type.tensor_type.elem_type == _HALF}
    outputs = {v.name: _free(v.name + "_float32", taken) for v in graph.output
               if v.type.tensor_type.elem_type == _HALF}
    for node in graph.node:
        node.input[:] = [inputs.get(name, outputs.get(name, name)) for name in node.input]
        node.output[:] = [outputs.get(name, name) for name in node.output]
    nodes = [helper.make_node("Cast", [name], [wide], to=_SINGLE) for name, wide in inputs.items()]
    nodes += graph.node
    nodes += [helper.make_node("Cast", [wide], [name], to=_HALF) for name, wide in outputs.items()]
    del graph.node[:]
    graph.node.extend(nodes)
    return model


def _is_half(attribute: onnx.AttributeProto) -> bool:
    return (attribute.name in TYPES and attribute.i == _HALF
            or attribute.type == AttributeProto.TENSOR and attribute.t.data_type == _HALF)


def widened(tensor: onnx.TensorProto) -> onnx.TensorProto:
    """The same numbers in float32."""
    return numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float32), tensor.name)


def _free(wanted: str, taken: set[str]) -> str:
    name = wanted
    while name in taken:
        name += "_"
    taken.add(name)
    return name
