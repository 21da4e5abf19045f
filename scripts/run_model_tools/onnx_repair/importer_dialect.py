"""The last step: a valid model of opset 18 -> what TVM's importer makes the same of.

Relay's importer takes only the first of several axes that are an input, and all where they are an
attribute, which ONNX gave up at opset 18; it expects a padding's value in a list, and reads no
output that is left out.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

from run_model_tools.onnx_repair.open_extents import VALUE
from run_model_tools.onnx_repair.walk import RELAY

_REDUCTIONS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd")


def to_dialect(model: onnx.ModelProto, importer: str = RELAY) -> onnx.ModelProto:
    """Changes the model and gives it back."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node if importer == RELAY else ():
        # Several may then have one name, which is that of the node that they were made of.
        node.name = node.doc_string or node.name
        node.ClearField("doc_string")
        if node.op_type in _REDUCTIONS and len(node.input) > 1:
            axes = numpy_helper.to_array(constants[node.input[1]])
            node.attribute.append(helper.make_attribute("axes", [int(a) for a in axes]))
            del node.input[1:]
        elif node.op_type == "Pad" and len(node.input) > 2:
            value = numpy_helper.to_array(constants[node.input[2]])
            _replace(model, constants, node, 2, value.reshape(1))
    used = {name for node in model.graph.node for name in node.input}
    used.update(value.name for value in model.graph.output)
    used.update(value.name + VALUE for value in model.graph.input)
    kept = [tensor for tensor in model.graph.initializer if tensor.name in used]
    if len(kept) != len(model.graph.initializer):
        del model.graph.initializer[:]
        model.graph.initializer.extend(kept)
    return model


def _replace(model: onnx.ModelProto, constants: dict[str, onnx.TensorProto],
             node: onnx.NodeProto, index: int, array: np.ndarray) -> None:
    """A constant input of one node by another, which gets a name of its own."""
    count = 0
    while f"dialect_{count}" in constants:
        count += 1
    tensor = numpy_helper.from_array(array, f"dialect_{count}")
    constants[tensor.name] = tensor
    model.graph.initializer.append(tensor)
    node.input[index] = tensor.name
