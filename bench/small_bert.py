"""A small BERT encoder as an ONNX file: many short products of matrices, softmaxes and norms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LAYERS, WIDTH, TOKENS, HEADS, INNER = 4, 256, 64, 4, 1024
_OPSET = 17


class _Graph:
    """Nodes and weights as they are added; a tensor is known by its name."""

    def __init__(self, seed: int) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._random = np.random.default_rng(seed)

    def add(self, op: str, *inputs: str, **attributes: object) -> str:
        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, values: np.ndarray) -> str:
        name = f"weight_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def dense(self, value: str, inputs: int, outputs: int) -> str:
        weights = self._random.standard_normal((inputs, outputs)) / np.sqrt(inputs)
        bias = self._random.standard_normal(outputs) * 0.02
        product = self.add("MatMul", value, self.constant(weights.astype(np.float32)))
        return self.add("Add", product, self.constant(bias.astype(np.float32)))

    def norm(self, value: str) -> str:
        ones = self.constant(np.ones(WIDTH, np.float32))
        zeros = self.constant(np.zeros(WIDTH, np.float32))
        return self.add("LayerNormalization", value, ones, zeros, axis=-1, epsilon=1e-12)

    def heads(self, value: str, order: list[int]) -> str:
        shape = self.constant(np.array([1, TOKENS, HEADS, WIDTH // HEADS], np.int64))
        return self.add("Transpose", self.add("Reshape", value, shape), perm=order)

    def attention(self, value: str) -> str:
        query = self.heads(self.dense(value, WIDTH, WIDTH), [0, 2, 1, 3])
        key = self.heads(self.dense(value, WIDTH, WIDTH), [0, 2, 3, 1])
        content = self.heads(self.dense(value, WIDTH, WIDTH), [0, 2, 1, 3])
        scale = self.constant(np.array(np.sqrt(WIDTH // HEADS), np.float32))
        scores = self.add("Div", self.add("MatMul", query, key), scale)
        mixed = self.add("MatMul", self.add("Softmax", scores, axis=-1), content)
        together = self.add("Reshape", self.add("Transpose", mixed, perm=[0, 2, 1, 3]),
                            self.constant(np.array([1, TOKENS, WIDTH], np.int64)))
        return self.dense(together, WIDTH, WIDTH)

    def gelu(self, value: str) -> str:
        root, one, half = (self.constant(np.array(number, np.float32))
                           for number in (np.sqrt(2), 1, 0.5))
        error = self.add("Erf", self.add("Div", value, root))
        return self.add("Mul", self.add("Mul", value, self.add("Add", error, one)), half)

    def layer(self, value: str) -> str:
        value = self.norm(self.add("Add", self.attention(value), value))
        inner = self.gelu(self.dense(value, WIDTH, INNER))
        return self.norm(self.add("Add", self.dense(inner, INNER, WIDTH), value))


def write_small_bert(path: Path) -> None:
    """Takes the embedded tokens (1, 64, 256) and gives as many hidden states."""
    graph = _Graph(seed=1)
    value = "embedded"
    for _ in range(LAYERS):
        value = graph.layer(value)
    shape = [1, TOKENS, WIDTH]
    model = helper.make_model(
        helper.make_graph(
            graph.nodes, "small_bert",
            [helper.make_tensor_value_info("embedded", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(value, TensorProto.FLOAT, shape)], graph.weights),
        opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, str(path))
