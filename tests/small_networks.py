"""Networks of a few layers as ONNX files, for tests of any room."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def save_classifier(path: Path, batch: int | str = 1) -> Path:
    """A network of conv, relu, pool, matmul and softmax for pictures of 8x8: 3 classes."""
    random = np.random.default_rng(1)
    weights = [numpy_helper.from_array(random.standard_normal(shape).astype(np.float32), name)
               for name, shape in (("w", (4, 3, 3, 3)), ("b", (4,)), ("m", (4, 3)))]
    nodes = [
        helper.make_node("Conv", ["image", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("MatMul", ["f", "m"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["prob"], axis=1),
    ]
    graph = helper.make_graph(
        nodes, "classifier",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [batch, 3, 8, 8])],
        [helper.make_tensor_value_info("prob", TensorProto.FLOAT, [batch, 3])], weights)
    onnx.save(helper.make_model(graph, ir_version=7,
                                opset_imports=[helper.make_opsetid("", 13)]), str(path))
    return path


def save_two_by_two(path: Path) -> Path:
    """Two inputs (a float matrix, whole numbers) and two outputs, no weights."""
    nodes = [
        helper.make_node("Cast", ["n"], ["nf"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["x", "nf"], ["sum"]),
        helper.make_node("Mul", ["x", "nf"], ["product"]),
    ]
    graph = helper.make_graph(
        nodes, "two",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3]),
         helper.make_tensor_value_info("n", TensorProto.INT64, [2, 3])],
        [helper.make_tensor_value_info("sum", TensorProto.FLOAT, [2, 3]),
         helper.make_tensor_value_info("product", TensorProto.FLOAT, [2, 3])])
    onnx.save(helper.make_model(graph, ir_version=7,
                                opset_imports=[helper.make_opsetid("", 13)]), str(path))
    return path
