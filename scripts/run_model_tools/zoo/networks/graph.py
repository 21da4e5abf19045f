"""Puts an ONNX graph together layer by layer; what the networks of this folder are written in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from run_model_tools.zoo.networks.weights import Kind, Weights

OPSET = 13
# Opset 13's first IR version; newer ones would shut out older readers for nothing.
IR_VERSION = 7
CLASSES = 1000


@dataclass(frozen=True)
class Tensor:
    """A value of the graph: [1, channels, size, size], or [1, channels] where size is 0.

    rectified: it comes out of a ReLU, so that its mean is no more zero than its variance.
    """

    name: str
    channels: int
    size: int
    rectified: bool = False


def symmetric_pads(kernel: int) -> tuple[int, int, int, int]:
    """(top, left, bottom, right) as Caffe and PyTorch pad an odd kernel."""
    return (kernel // 2,) * 4


def same_pads(size: int, kernel: int, stride: int) -> tuple[int, int, int, int]:
    """TensorFlow's SAME: the output has ceil(size / stride) rows; an odd rest goes to the end."""
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return (total // 2, total // 2, total - total // 2, total - total // 2)


class Graph:
    """Collects nodes and weights; each method appends a layer and gives its output.

    A layer's output is called after the layer, so that a name leads back to the weights it used.
    """

    def __init__(self, name: str, weights: Weights, input_name: str, size: int = 224) -> None:
        self._name = name
        self._weights = weights
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: list[onnx.TensorProto] = []
        self._constants: set[str] = set()
        self.input = Tensor(input_name, 3, size)

    def conv(self, layer: str, x: Tensor, channels: int, kernel: int = 1, stride: int = 1,
             pads: Sequence[int] = (0, 0, 0, 0), groups: int = 1, bias: bool = False,
             output: str | None = None, kind: Kind | None = None) -> Tensor:
        kind = kind or (Kind.KERNEL if x.rectified else Kind.LINEAR_KERNEL)
        inputs = [x.name, self._take(f"{layer}.weight", kind,
                                     (channels, x.channels // groups, kernel, kernel))]
        if bias:
            inputs.append(self._take(f"{layer}.bias", Kind.BIAS, (channels,)))
        attributes: dict[str, Any] = {"kernel_shape": [kernel, kernel], "strides": [stride, stride],
                                      "pads": list(pads)}
        if groups != 1:
            attributes["group"] = groups
        size = (x.size + pads[0] + pads[2] - kernel) // stride + 1
        return self.add("Conv", inputs, Tensor(output or layer, channels, size), **attributes)

    def batch_norm(self, layer: str, x: Tensor, epsilon: float = 1e-5,
                   scale: Kind = Kind.SCALE) -> Tensor:
        inputs = [x.name] + [
            self._take(f"{layer}.{name}", kind, (x.channels,)) for name, kind in
            (("weight", scale), ("bias", Kind.SHIFT), ("running_mean", Kind.MEAN),
             ("running_var", Kind.VARIANCE))]
        return self.add("BatchNormalization", inputs, Tensor(layer, x.channels, x.size),
                        epsilon=epsilon)

    def relu(self, x: Tensor, output: str | None = None) -> Tensor:
        return self._same_shape("Relu", [x], output or f"{x.name}.relu", rectified=True)

    def relu6(self, x: Tensor) -> Tensor:
        limits = [self.constant("zero", np.array(0, np.float32)),
                  self.constant("six", np.array(6, np.float32))]
        return self.add("Clip", [x.name, *limits],
                        Tensor(f"{x.name}.relu6", x.channels, x.size, True))

    def leaky_relu(self, x: Tensor, output: str) -> Tensor:
        return self._same_shape("LeakyRelu", [x], output, rectified=True, alpha=0.1)

    def sum(self, a: Tensor, b: Tensor, output: str) -> Tensor:
        return self._same_shape("Add", [a, b], output, rectified=False)

    def concat(self, parts: Sequence[Tensor], output: str) -> Tensor:
        channels = sum(part.channels for part in parts)
        return self.add("Concat", [part.name for part in parts],
                        Tensor(output, channels, parts[0].size, parts[0].rectified), axis=1)

    def halves(self, x: Tensor, output: str) -> tuple[Tensor, Tensor]:
        """The first and the second half of the channels."""
        parts = [Tensor(f"{output}.{i}", x.channels // 2, x.size, x.rectified) for i in (0, 1)]
        self._nodes.append(helper.make_node("Split", [x.name], [part.name for part in parts],
                                            name=output, axis=1))
        return parts[0], parts[1]

    def shuffle(self, x: Tensor, groups: int, output: str) -> Tensor:
        """ShuffleNet's channel shuffle: channel g * n + i becomes i * groups + g (n a group)."""
        each = x.channels // groups
        x = self._reshape(x, (1, groups, each, x.size, x.size), f"{output}.grouped")
        x = self._same_shape("Transpose", [x], f"{output}.swapped", perm=[0, 2, 1, 3, 4])
        return self._reshape(x, (1, x.channels, x.size, x.size), output)

    def max_pool(self, output: str, x: Tensor, pads: Sequence[int] | None = None) -> Tensor:
        """3x3 with stride 2; without `pads` the last window may stick out (Caffe's ceil mode)."""
        attributes = {"pads": list(pads)} if pads else {"ceil_mode": 1}
        size = (x.size + 2 - 3) // 2 + 1 if pads else -(-(x.size - 3) // 2) + 1
        return self.add("MaxPool", [x.name], Tensor(output, x.channels, size, x.rectified),
                        kernel_shape=[3, 3], strides=[2, 2], **attributes)

    def halve(self, output: str, x: Tensor) -> Tensor:
        """The largest of each 2x2."""
        return self.add("MaxPool", [x.name], Tensor(output, x.channels, x.size // 2, x.rectified),
                        kernel_shape=[2, 2], strides=[2, 2])

    def double(self, output: str, x: Tensor) -> Tensor:
        """Each value four times."""
        scales = self.constant("twice", np.array([1, 1, 2, 2], np.float32))
        return self.add("Resize", [x.name, "", scales],
                        Tensor(output, x.channels, x.size * 2, x.rectified), mode="nearest",
                        coordinate_transformation_mode="asymmetric", nearest_mode="floor")

    def average_pool(self, output: str, x: Tensor) -> Tensor:
        """3x3 with stride 2 and a border of 1, whose zeros count (PyTorch's default)."""
        result = Tensor(output, x.channels, (x.size - 1) // 2 + 1, x.rectified)
        return self.add("AveragePool", [x.name], result, kernel_shape=[3, 3], strides=[2, 2],
                        pads=[1, 1, 1, 1], count_include_pad=1)

    def global_average(self, x: Tensor, pooled: str = "pooled", flat: str = "flat") -> Tensor:
        """[1, channels]."""
        self.add("GlobalAveragePool", [x.name], Tensor(pooled, x.channels, 1))
        return self.add("Flatten", [pooled], Tensor(flat, x.channels, 0), axis=1)

    def linear(self, layer: str, x: Tensor, bias: bool = True, output: str = "logits") -> Tensor:
        inputs = [x.name, self._take(f"{layer}.weight", Kind.CLASSIFIER, (CLASSES, x.channels))]
        if bias:
            inputs.append(self._take(f"{layer}.bias", Kind.BIAS, (CLASSES,)))
        return self.add("Gemm", inputs, Tensor(output, CLASSES, 0), transB=1)

    def softmax(self, x: Tensor, output: str) -> Tensor:
        return self._same_shape("Softmax", [x], output, axis=1)

    def model(self, output: Tensor) -> onnx.ModelProto:
        """The checked network, from its input float32 [1, 3, size, size] to `output`."""
        return self.model_of([helper.make_tensor_value_info(output.name, TensorProto.FLOAT,
                                                            [1, output.channels])])

    def model_of(self, outputs: Sequence[onnx.ValueInfoProto]) -> onnx.ModelProto:
        """The checked network with outputs of any type and shape."""
        self._weights.check_all_taken()
        model = self.unchecked(outputs)
        onnx.checker.check_model(model, full_check=True)
        return model

    def unchecked(self, outputs: Sequence[onnx.ValueInfoProto] = ()) -> onnx.ModelProto:
        """What there is so far."""
        size = self.input.size
        return helper.make_model(
            helper.make_graph(
                self._nodes, self._name,
                [helper.make_tensor_value_info(self.input.name, TensorProto.FLOAT,
                                               [1, 3, size, size])],
                list(outputs), self._initializers),
            producer_name="run_model", ir_version=IR_VERSION,
            opset_imports=[helper.make_opsetid("", OPSET)])

    def add(self, op: str, inputs: Sequence[str], output: Tensor, **attributes: object) -> Tensor:
        """Any operator with one output."""
        self._nodes.append(helper.make_node(op, list(inputs), [output.name], name=output.name,
                                            **attributes))
        return output

    def _same_shape(self, op: str, xs: Sequence[Tensor], output: str,
                    rectified: bool | None = None, **attributes: object) -> Tensor:
        first = xs[0]
        result = Tensor(output, first.channels, first.size,
                        first.rectified if rectified is None else rectified)
        return self.add(op, [x.name for x in xs], result, **attributes)

    def _reshape(self, x: Tensor, shape: Sequence[int], output: str) -> Tensor:
        name = self.constant("shape_" + "x".join(map(str, shape)), np.array(shape, np.int64))
        return self.add("Reshape", [x.name, name],
                        Tensor(output, x.channels, x.size, x.rectified))

    def _take(self, name: str, kind: Kind, shape: tuple[int, ...]) -> str:
        self._initializers.append(numpy_helper.from_array(
            self._weights.take(name, kind, shape), name))
        return name

    def constant(self, name: str, value: np.ndarray) -> str:
        if name not in self._constants:
            self._constants.add(name)
            self._initializers.append(numpy_helper.from_array(np.asarray(value), name))
        return name
