"""What tests write small networks with, as ONNX models."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Network:
    """A model in the making; each operator gives the name of its result."""

    def __init__(self, seed: int, channels: int = 3, size: tuple[int, ...] = (17, 14),
                 batch: int = 1):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights, self.outputs = [], [], []
        self.shape = {"x": (batch, channels, *size)}

    def add(self, op: str, inputs: list[str], count: int = 1, **attributes):
        names = [f"t{len(self.nodes)}_{i}" for i in range(count)]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names[0] if count == 1 else names

    def weight(self, values) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def numbers(self, *shape: int, scale: float = 1.0) -> str:
        return self.weight((self.random.standard_normal(shape) * scale).astype(np.float32))

    def conv(self, x: str, inputs: int, outputs: int, kernel: int = 1, groups: int = 1,
             bias: bool = True, **attributes) -> str:
        depth = inputs // groups
        weights = [self.numbers(outputs, depth, kernel, kernel,
                                scale=(depth * kernel ** 2) ** -0.5)]
        if bias:
            weights.append(self.numbers(outputs))
        attributes.setdefault("pads", [kernel // 2] * 4)
        return self.add("Conv", [x, *weights], group=groups, **attributes)

    def norm(self, x: str, channels: int) -> str:
        positive = self.weight(self.random.uniform(0.5, 2, channels).astype(np.float32))
        return self.add("BatchNormalization", [x, self.numbers(channels), self.numbers(channels),
                                               self.numbers(channels), positive])

    def relu(self, x: str) -> str:
        return self.add("Relu", [x])

    def concat(self, *parts: str) -> str:
        return self.add("Concat", list(parts), axis=1)

    def split(self, x: str, *sizes: int) -> list[str]:
        return self.add("Split", [x, self.weight(np.array(sizes, np.int64))], len(sizes), axis=1)

    def shuffle(self, x: str, groups: int, shape: tuple[int, int, int], batch: int = 1) -> str:
        channels, height, width = shape
        whole = self.weight(np.array([batch, channels, height, width], np.int64))
        parts = self.weight(np.array([batch, groups, channels // groups, height, width], np.int64))
        swapped = self.add("Transpose", [self.add("Reshape", [x, parts])], perm=[0, 2, 1, 3, 4])
        return self.add("Reshape", [swapped, whole])

    def model(self, *outputs: str) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes, "network",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape["x"])],
            [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs],
            self.weights)
        versions = {node.domain: 1 for node in self.nodes} | {"": 13}
        model = helper.make_model(graph, ir_version=7, opset_imports=[
            helper.make_opsetid(domain, version) for domain, version in versions.items()])
        return onnx.shape_inference.infer_shapes(model)
