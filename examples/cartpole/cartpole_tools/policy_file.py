"""The policy as an ONNX file: observation float32 [1, 4] -> q_values float32 [1, 2]."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from run_model_tools.tuners.q_network import QNetwork

INPUT, OUTPUT = "observation", "q_values"


def policy_file(network: QNetwork) -> bytes:
    """The file's contents: one Gemm for each layer and Relu between them, opset 13."""
    nodes, weights = [], []
    layers = len(network.parameters) // 2
    value = INPUT
    for i in range(layers):
        kernel, bias = f"weight{i}", f"bias{i}"
        weights += [numpy_helper.from_array(network.parameters[2 * i], kernel),
                    numpy_helper.from_array(network.parameters[2 * i + 1], bias)]
        result = OUTPUT if i + 1 == layers else f"sum{i}"
        nodes.append(helper.make_node("Gemm", [value, kernel, bias], [result], name=f"dense{i}"))
        if i + 1 < layers:
            value = f"hidden{i}"
            nodes.append(helper.make_node("Relu", [result], [value], name=f"relu{i}"))
    inputs, outputs = network.parameters[0].shape[0], network.parameters[-1].shape[0]
    graph = helper.make_graph(
        nodes, "cartpole_policy",
        [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, [1, inputs])],
        [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, [1, outputs])], weights)
    model = helper.make_model(graph, ir_version=8, producer_name="examples/cartpole/train",
                              opset_imports=[helper.make_opsetid("", 13)])
    onnx.checker.check_model(model)
    return model.SerializeToString()


def read_policy(path: Path) -> QNetwork:
    """The network of a file with such contents."""
    weights = onnx.load(str(path)).graph.initializer
    network = object.__new__(QNetwork)
    network.parameters = [np.array(numpy_helper.to_array(weight)) for weight in weights]
    return network
