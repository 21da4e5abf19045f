"""One node on constants: by ONNX Runtime, or where it has no kernel by ONNX's reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper

IR_VERSION = 10


def evaluate(node: onnx.NodeProto, inputs: dict[str, tuple[onnx.TypeProto, np.ndarray]],
             domain: str, opset: int) -> list[Any] | None:
    """The outputs of a node that has no subgraphs; None where neither can compute it."""
    graph = helper.make_graph(
        [node], "one", [onnx.ValueInfoProto(name=name, type=kind)
                        for name, (kind, _) in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in node.output if name])
    imports = [helper.make_opsetid(domain, opset)]
    if domain:
        imports.append(helper.make_opsetid("", 18))
    model = helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)
    arrays = {name: array for name, (_, array) in inputs.items()}
    for run in (_onnxruntime, _reference):
        try:
            results = run(model, arrays)
        except Exception:  # Each has its own kinds of what it cannot do.
            continue
        if all(isinstance(r, (np.ndarray, np.generic)) for r in results):
            return [np.asarray(r) for r in results]
    return None


def _onnxruntime(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> list[Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def _reference(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> list[Any]:
    from onnx.reference import ReferenceEvaluator

    with np.errstate(all="ignore"):
        return ReferenceEvaluator(model).run(None, inputs)
