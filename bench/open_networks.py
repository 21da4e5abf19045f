"""Networks with open extents, as exporters write them: an encoder of texts like BERT (4 layers of
256 numbers), a detector of pictures like YOLO (three scales, 80 classes), a classifier of pictures
like MobileNet (inverted residuals), a segmenter of pictures like U-Net, and a classifier of a
table's rows (two hidden layers of 64 numbers)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_OPSET = 17
_WIDE, _HEADS, _LAYERS, _WORDS, _KNOWN = 256, 4, 4, 512, 8000


class Builder:
    """Nodes and weights of a graph; each method gives the name of what it makes."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._random = np.random.default_rng(0)

    def node(self, operator: str, *inputs: str, outputs: int = 1, **attributes: object) -> str:
        names = [f"t{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(operator, list(inputs), names, names[0], **attributes))
        return names[0]

    def constant(self, values: object, dtype: type = np.int64) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def random(self, *shape: int, scale: float = 0.05) -> str:
        return self.constant(self._random.standard_normal(shape) * scale, np.float32)

    def dense(self, x: str, inner: int, outer: int) -> str:
        return self.node("Add", self.node("MatMul", x, self.random(inner, outer)),
                         self.random(outer))

    def normalised(self, x: str) -> str:
        return self.node("LayerNormalization", x, self.constant(np.ones(_WIDE), np.float32),
                         self.random(_WIDE))

    def convolution(self, x: str, inner: int, outer: int, side: int = 3, stride: int = 1) -> str:
        found = self.linear_convolution(x, inner, outer, side, stride)
        return self.node("Mul", found, self.node("Sigmoid", found))

    def linear_convolution(self, x: str, inner: int, outer: int, side: int, stride: int = 1,
                           group: int = 1) -> str:
        of_group = inner // group
        weights = self.random(outer, of_group, side, side,
                              scale=(2 / (of_group * side * side)) ** 0.5)
        return self.node("Conv", x, weights, self.random(outer), kernel_shape=[side, side],
                         pads=[side // 2] * 4, strides=[stride, stride], group=group)

    def write(self, path: Path, inputs: dict[str, tuple[int, list[str | int]]], output: str,
              shape: list[str | int]) -> Path:
        graph = helper.make_graph(
            self.nodes, path.stem, [helper.make_tensor_value_info(name, kind, extents)
                                    for name, (kind, extents) in inputs.items()],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)], self.weights)
        onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[
            helper.make_opsetid("", _OPSET), helper.make_opsetid("com.microsoft", 1)]), str(path))
        return path


def write_encoder(path: Path) -> Path:
    """(ids, mask), both int64 [batch, length], length up to 512 -> float32 [batch, length, 256]."""
    b = Builder()
    shape = b.node("Shape", "ids")
    length = b.node("Gather", shape, b.constant(1))
    places = b.node("Slice", b.constant(np.arange(_WORDS)[None]), b.constant([0]),
                    b.node("Unsqueeze", length, b.constant([0])), b.constant([1]))
    x = b.node("Add", b.node("Gather", b.random(_KNOWN, _WIDE), "ids"),
               b.node("Gather", b.random(_WORDS, _WIDE), places))
    x = b.normalised(x)
    known = b.node("Cast", b.node("Unsqueeze", "mask", b.constant([1, 2])), to=TensorProto.FLOAT)
    hidden = b.node("Mul", b.node("Sub", b.constant(1, np.float32), known),
                    b.constant(-1e9, np.float32))
    heads = b.constant([0, 0, _HEADS, _WIDE // _HEADS])
    for _ in range(_LAYERS):
        q, k, v = (b.node("Reshape", b.dense(x, _WIDE, _WIDE), heads) for _ in range(3))
        scores = b.node("MatMul", b.node("Transpose", q, perm=[0, 2, 1, 3]),
                        b.node("Transpose", k, perm=[0, 2, 3, 1]))
        scores = b.node("Div", scores, b.constant((_WIDE / _HEADS) ** 0.5, np.float32))
        shares = b.node("Softmax", b.node("Add", scores, hidden), axis=-1)
        mixed = b.node("MatMul", shares, b.node("Transpose", v, perm=[0, 2, 1, 3]))
        mixed = b.node("Reshape", b.node("Transpose", mixed, perm=[0, 2, 1, 3]),
                       b.constant([0, 0, _WIDE]))
        x = b.normalised(b.node("Add", x, b.dense(mixed, _WIDE, _WIDE)))
        inner = b.dense(x, _WIDE, 4 * _WIDE)
        erf = b.node("Erf", b.node("Div", inner, b.constant(2 ** 0.5, np.float32)))
        inner = b.node("Mul", b.node("Mul", inner, b.node(
            "Add", erf, b.constant(1, np.float32))), b.constant(0.5, np.float32))
        x = b.normalised(b.node("Add", x, b.dense(inner, 4 * _WIDE, _WIDE)))
    texts: list[str | int] = ["batch", "length"]
    return b.write(path, {"ids": (TensorProto.INT64, texts), "mask": (TensorProto.INT64, texts)}, x,
                   ["batch", "length", _WIDE])


def write_detector(path: Path) -> Path:
    """float32 [batch, 3, height, width], sides of whole 32s -> [batch, 84, anchors]."""
    b = Builder()

    def block(x: str, channels: int) -> str:
        a = b.convolution(x, channels, channels, 1)
        halves = [b.node("Slice", a, b.constant([i * channels // 2]),
                         b.constant([(i + 1) * channels // 2]), b.constant([1])) for i in (0, 1)]
        inner = b.convolution(b.convolution(halves[1], channels // 2, channels // 2),
                              channels // 2, channels // 2)
        joined = b.node("Concat", *halves, b.node("Add", halves[1], inner), axis=1)
        return b.convolution(joined, channels * 3 // 2, channels, 1)

    x = b.convolution("images", 3, 16, 3, 2)
    scales, channels = [], 16
    for _ in range(4):
        x = block(b.convolution(x, channels, 2 * channels, 3, 2), 2 * channels)
        channels *= 2
        scales.append((x, channels))
    (upper, _), (middle, _), (lower, _) = scales[1:]
    twice = b.constant([1, 1, 2, 2], np.float32)

    def larger(x: str, beside: str) -> str:
        found = b.node("Resize", x, "", twice, mode="nearest", nearest_mode="floor",
                       coordinate_transformation_mode="asymmetric")
        return b.node("Concat", found, beside, axis=1)

    middle = b.convolution(larger(lower, middle), 256 + 128, 128, 1)
    upper = b.convolution(larger(middle, upper), 128 + 64, 64, 1)
    found = []
    for x, channels in ((upper, 64), (middle, 128), (lower, 256)):
        head = b.convolution(x, channels, 64)
        y = b.node("Conv", head, b.random(84, 64, 1, 1), b.random(84), kernel_shape=[1, 1])
        found.append(b.node("Reshape", y, b.constant([0, 84, -1])))
    y = b.node("Sigmoid", b.node("Concat", *found, axis=2))
    return b.write(path, {"images": (TensorProto.FLOAT, ["batch", 3, "height", "width"])}, y,
                   ["batch", 84, "anchors"])


def write_mobile(path: Path) -> Path:
    """float32 [batch, 3, height, width] -> [batch, 100]."""
    b = Builder()
    x = b.node("HardSwish", b.linear_convolution("images", 3, 16, 3, 2))
    inner = 16
    for outer, side, stride, count in ((24, 3, 2, 2), (40, 5, 2, 3), (96, 3, 2, 3), (160, 5, 2, 2)):
        for number in range(count):
            wide = 4 * inner
            y = b.node("HardSwish", b.linear_convolution(x, inner, wide, 1))
            y = b.node("HardSwish", b.linear_convolution(
                y, wide, wide, side, stride if number == 0 else 1, wide))
            y = b.linear_convolution(y, wide, outer, 1)
            x = y if number == 0 else b.node("Add", x, y)
            inner = outer
    x = b.node("HardSwish", b.linear_convolution(x, inner, 640, 1))
    x = b.node("Flatten", b.node("GlobalAveragePool", x))
    return b.write(path, {"images": (TensorProto.FLOAT, ["batch", 3, "height", "width"])},
                   b.dense(x, 640, 100), ["batch", 100])


def write_segmenter(path: Path) -> Path:
    """float32 [batch, 3, height, width], sides of whole 8s -> [batch, 2, height, width]."""
    b = Builder()
    twice = b.constant([1, 1, 2, 2], np.float32)

    def block(x: str, inner: int, outer: int) -> str:
        for channels in (inner, outer):
            x = b.linear_convolution(x, channels, outer, 3)
            x = b.node("Relu", b.node("InstanceNormalization", x, b.constant(
                np.ones(outer), np.float32), b.random(outer)))
        return x

    x, channels, beside = block("images", 3, 32), 32, []
    for _ in range(3):
        beside.append((x, channels))
        x = block(b.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]), channels, 2 * channels)
        channels *= 2
    for other, fewer in reversed(beside):
        x = b.node("Resize", x, "", twice, mode="linear")
        x = block(b.node("Concat", other, x, axis=1), channels + fewer, fewer)
        channels = fewer
    return b.write(path, {"images": (TensorProto.FLOAT, ["batch", 3, "height", "width"])},
                   b.linear_convolution(x, channels, 2, 1), ["batch", 2, "height", "width"])


def write_table(path: Path) -> Path:
    """Rows of 32 numbers, as many as there are."""
    build = Builder()
    x = "rows"
    for inner, outer in ((32, 64), (64, 64)):
        x = build.node("Relu", build.dense(x, inner, outer))
    shares = build.node("Softmax", build.dense(x, 64, 4), axis=-1)
    return build.write(path, {"rows": (TensorProto.FLOAT, ["count", 32])}, shares, ["count", 4])
