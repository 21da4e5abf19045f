"""Types and shapes of one node's outputs, by ONNX's own inference."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx
from onnx import helper, numpy_helper

from run_model_tools.onnx_repair.evaluation import IR_VERSION
from run_model_tools.onnx_repair.values import Value

# Constants that a shape may depend on are small.
_SHAPE_DATA = 1024


def infer(node: onnx.NodeProto, inputs: Iterable[Value], names: Iterable[str], domain: str,
          opset: int) -> dict[str, onnx.TypeProto]:
    """By the outputs' names; raises what ONNX's inference does, for types that do not fit together
    ValidationError, or ValueError."""
    types = {name: value.type_proto() for name, value in zip(names, inputs)}
    data = {name: numpy_helper.from_array(np.asarray(value.array), name)
            for name, value in zip(names, inputs)
            if value.is_constant and value.size <= _SHAPE_DATA}
    imports = [helper.make_opsetid(domain, opset)]
    if node.op_type in ("LessOrEqual", "GreaterOrEqual"):
        # ONNX infers nothing of them before opset 16, and no shapes after.
        shape = np.broadcast_shapes(*(value.shape for value in inputs))
        return {node.output[0]: helper.make_tensor_type_proto(onnx.TensorProto.BOOL, shape)}
    if "" not in node.input:
        return onnx.shape_inference.infer_node_outputs(
            onnx.defs.get_schema(node.op_type, opset, domain), node, types, data, None, imports,
            IR_VERSION)
    # Inputs that are left out are known to the inference of whole models only.
    graph = helper.make_graph(
        [node], "one", [onnx.ValueInfoProto(name=n, type=t) for n, t in types.items()],
        [onnx.ValueInfoProto(name=n) for n in node.output if n], list(data.values()))
    model = helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    return {value.name: value.type for value in inferred.graph.output}
