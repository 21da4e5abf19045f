"""ResNet-18 and SqueezeNet 1.1 in their real shapes with seeded weights, as ONNX.

A network's speed and memory do not depend on its weights, so the side-by-side bench needs no
download. Batch norms are folded into the convolutions, as compilers do; ResNet-18 has 46.7 MB of
parameters, SqueezeNet 1.1 has 4.9 MB.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CLASSES = 1000


class _Graph:
    """Collects nodes; every layer returns the name of its output."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []

    def node(self, kind: str, *inputs: str, **attributes: object) -> str:
        output = f"{kind.lower()}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def weight(self, *shape: int) -> str:
        # He's deviation keeps activations in range through any number of layers.
        deviation = (2 / np.prod(shape[1:])) ** 0.5 if len(shape) > 1 else 0.01
        name = f"w{len(self._weights)}"
        values = (self._rng.standard_normal(shape) * deviation).astype(np.float32)
        self._weights.append(numpy_helper.from_array(values, name))
        return name

    def conv(self, x: str, channels_in: int, channels: int, kernel: int, stride: int = 1,
             pad: int = 0, relu: bool = True) -> str:
        y = self.node("Conv", x, self.weight(channels, channels_in, kernel, kernel),
                      self.weight(channels), kernel_shape=[kernel] * 2, strides=[stride] * 2,
                      pads=[pad] * 4)
        return self.node("Relu", y) if relu else y

    def max_pool(self, x: str, pad: int = 0, ceil: bool = False) -> str:
        return self.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[pad] * 4,
                         ceil_mode=int(ceil))

    def model(self, name: str, output: str) -> onnx.ModelProto:
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            self._nodes, name, [value("input0", TensorProto.FLOAT, [1, 3, 224, 224])],
            [value(output, TensorProto.FLOAT, [1, CLASSES])], self._weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        onnx.checker.check_model(model)
        return model


def resnet18() -> onnx.ModelProto:
    net = _Graph(18)
    x = net.max_pool(net.conv("input0", 3, 64, 7, 2, 3), pad=1)
    width = 64
    for channels in (64, 128, 256, 512):
        for _ in range(2):
            stride = 1 if channels == width else 2
            y = net.conv(x, width, channels, 3, stride, 1)
            y = net.conv(y, channels, channels, 3, 1, 1, relu=False)
            if stride != 1:
                x = net.conv(x, width, channels, 1, stride, relu=False)
            x = net.node("Relu", net.node("Add", y, x))
            width = channels
    x = net.node("Flatten", net.node("GlobalAveragePool", x))
    x = net.node("Gemm", x, net.weight(CLASSES, width), net.weight(CLASSES), transB=1)
    return net.model("resnet18", x)


def squeezenet() -> onnx.ModelProto:
    net = _Graph(11)

    def fire(x: str, channels_in: int, squeeze: int, expand: int) -> str:
        x = net.conv(x, channels_in, squeeze, 1)
        return net.node("Concat", net.conv(x, squeeze, expand, 1),
                        net.conv(x, squeeze, expand, 3, pad=1), axis=1)

    x = net.max_pool(net.conv("input0", 3, 64, 3, 2), ceil=True)
    width = 64
    for stage in ([(16, 64)] * 2, [(32, 128)] * 2, [(48, 192)] * 2 + [(64, 256)] * 2):
        for squeeze, expand in stage:
            x = fire(x, width, squeeze, expand)
            width = 2 * expand
        if width < 512:
            x = net.max_pool(x, ceil=True)
    x = net.conv(x, width, CLASSES, 1)
    x = net.node("Flatten", net.node("GlobalAveragePool", x))
    return net.model("squeezenet", net.node("Softmax", x, axis=1))


NETWORKS: dict[str, Callable[[], onnx.ModelProto]] = {
    "resnet18": resnet18, "squeezenet": squeezenet}


def write_network(name: str, path: Path) -> None:
    onnx.save(NETWORKS[name](), path)
