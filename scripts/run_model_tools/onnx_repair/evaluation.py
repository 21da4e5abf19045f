"""What an ONNX model computes: in ONNX Runtime, or where it has no kernel in ONNX's reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper

IR_VERSION = 10
MOST_IN_ONE_FILE = 1_900_000_000
"""Protocol buffers end at 2 GiB; weights beyond that go to a file of their own."""


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
    for run in (_as_written, run_reference):
        try:
            results = run(model, arrays)
        except Exception:  # Each has its own kinds of what it cannot do.
            continue
        if all(isinstance(r, (np.ndarray, np.generic)) for r in results):
            return [np.asarray(r) for r in results]
    return None


def session(model: str | bytes, optimized: bool = True) -> Any:
    """An onnxruntime.InferenceSession of a file or of a serialized model: on one thread, so that
    sums are added in one order, and silent, since what goes wrong is raised."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _as_written(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> list[Any]:
    return session(model.SerializeToString(), optimized=False).run(None, inputs)


def run_reference(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> list[Any]:
    """In ONNX's own evaluator."""
    from onnx.reference import ReferenceEvaluator

    with np.errstate(all="ignore"):
        return ReferenceEvaluator(model).run(None, inputs)
