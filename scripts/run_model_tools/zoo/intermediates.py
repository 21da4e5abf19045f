"""Every intermediate value of a network, for finding the first operator that computes otherwise."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import onnx

from run_model_tools.errors import MALFORMED_FILE, ToolError


def member_name(index: int, value: str) -> str:
    """"0007:conv1.relu": the node's place in the graph, and the value's name as it is there."""
    return f"{index:04d}:{value}"


def compute(path: Path, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """{member name: float32 value} of the inputs and of each node's outputs, in graph order.

    ONNX Runtime computes it without any optimisation, so that every value exists as the file has
    it.  Inputs have the index 0 and the nodes count from 1; values that are not numbers of a
    floating type are left out.
    """
    import onnxruntime

    model = onnx.load(str(path))
    order = [(index, name) for index, node in enumerate(model.graph.node, 1)
             for name in node.output if name]
    if len(order) > 9999:
        raise ToolError(MALFORMED_FILE, f"{path} has {len(order)} intermediate values, where at "
                                        "most 9999 are expected.")
    there = {output.name for output in model.graph.output}
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name)
                              for _, name in order if name not in there)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    names = [name for _, name in order]
    values = dict(zip(names, session.run(names, inputs)))
    pairs = [(0, name, value) for name, value in inputs.items()]
    pairs += [(index, name, values[name]) for index, name in order]
    return {member_name(index, name): np.ascontiguousarray(value, np.float32)
            for index, name, value in pairs if value.dtype.kind == "f"}


def npz_bytes(values: dict[str, np.ndarray]) -> bytes:
    """The values as a .npz file, uncompressed, in their order."""
    buffer = io.BytesIO()
    np.savez(buffer, **values)
    return buffer.getvalue()
