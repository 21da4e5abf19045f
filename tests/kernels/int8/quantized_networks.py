"""Small quantized networks (QuantizeLinear and DequantizeLinear around layers) as ONNX models."""

from __future__ import annotations

from typing import Callable

import numpy as np
import onnx

from network_builder import Network


class QuantizedNetwork(Network):
    """A network in the making whose values are rounded between its layers."""

    def __init__(self, seed: int, dtype: str = "int8", **options):
        super().__init__(seed, **options)
        self.dtype = np.dtype(dtype)
        self.scales: dict[str, float] = {}

    def grid(self, x: str, scale: float, zero: int | None = None) -> str:
        """x rounded to multiples of `scale`, as float32."""
        if zero is None:
            zero = 0 if self.dtype == np.int8 else 128
        parameters = [self.weight(np.float32(scale)), self.weight(np.array(zero, self.dtype))]
        whole = self.add("QuantizeLinear", [x, *parameters])
        result = self.add("DequantizeLinear", [whole, *parameters])
        self.scales[result] = scale
        return result

    def whole_conv(self, x: str, inputs: int, outputs: int, kernel: int = 1, groups: int = 1,
                   per_channel: bool = True, float_bias: bool = False, **attributes) -> str:
        """A convolution with signed weights of bytes and a bias in steps of the sum."""
        depth = inputs // groups
        weight = self.random.standard_normal((outputs, depth, kernel, kernel))
        weight /= (depth * kernel ** 2) ** 0.5
        if per_channel:
            scales = (np.abs(weight).max(axis=(1, 2, 3)) / 127).astype(np.float32)
        else:
            scales = np.float32(np.abs(weight).max() / 127)
        grid = scales.reshape(-1, 1, 1, 1) if per_channel else scales
        whole = np.rint(weight / grid).astype(np.int8)
        zeros = np.zeros_like(scales, np.int8)
        axis = {"axis": 0} if per_channel else {}
        weights = self.add("DequantizeLinear", [self.weight(whole), self.weight(scales),
                                                self.weight(zeros)], **axis)
        bias = self.random.standard_normal(outputs).astype(np.float32) / 4
        if float_bias:
            biases = self.weight(bias)
        else:
            steps = np.atleast_1d(scales * np.float32(self.scales[x]))
            ints = np.rint(bias / steps).astype(np.int32)
            biases = self.add("DequantizeLinear", [
                self.weight(ints), self.weight(steps if per_channel else steps[0]),
                self.weight(np.zeros_like(ints if per_channel else ints[0]))], **axis)
        attributes.setdefault("pads", [kernel // 2] * 4)
        return self.add("Conv", [x, weights, biases], group=groups, **attributes)


def _layers(dtype: str, per_channel: bool) -> onnx.ModelProto:
    """A picture, 3x3, depthwise, 1x1, a sum, pooling, and the end of a classifier."""
    n = QuantizedNetwork(31, dtype)
    zero = {"int8": 0, "uint8": 128}[dtype]
    low = zero - 128
    x = n.grid("x", 0.031, zero + 5)
    a = n.grid(n.relu(n.whole_conv(x, 3, 24, 3, per_channel=per_channel, strides=[2, 2])), 0.02,
               low)
    b = n.grid(n.add("Clip", [n.whole_conv(a, 24, 24, 3, groups=24, per_channel=per_channel),
                              n.weight(np.float32(0)), n.weight(np.float32(1.9))]), 0.011, low)
    c = n.grid(n.whole_conv(b, 24, 24, per_channel=per_channel), 0.021, zero + 3)
    d = n.grid(n.relu(n.add("Add", [a, c])), 0.03, low)
    e = n.grid(n.whole_conv(d, 24, 40, 3, groups=2, per_channel=per_channel, dilations=[2, 2],
                            pads=[2, 2, 2, 2]), 0.023, zero)
    p = n.grid(n.add("MaxPool", [e], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
               0.023, zero)
    q = n.grid(n.add("AveragePool", [p], kernel_shape=[2, 2]), 0.02, zero)
    r = n.grid(n.whole_conv(q, 40, 17, float_bias=True), 0.03, zero)
    g = n.grid(n.add("GlobalAveragePool", [r]), 0.01, zero)
    return n.model(d, e, p, r, g)


def _joined() -> onnx.ModelProto:
    """Concatenation on one grid and on another, a sigmoid, and a layer that stays float32."""
    n = QuantizedNetwork(32)
    x = n.grid("x", 0.03)
    a = n.grid(n.whole_conv(x, 3, 20, 3), 0.02)
    b = n.grid(n.whole_conv(a, 20, 12), 0.03)
    joined = n.grid(n.concat(a, b), 0.025)
    c = n.grid(n.whole_conv(joined, 32, 16, 3), 0.02, 4)
    gate = n.grid(n.add("Sigmoid", [c]), 1 / 256, -128)
    d = n.grid(n.add("Mul", [c, gate]), 0.01)
    plain = n.conv(d, 16, 8, 3)
    return n.model(plain, c, n.whole_conv(d, 16, 8))


def _constants() -> onnx.ModelProto:
    """Weights and a sum's constant that are quantised in the graph (the weights to fewer bits than
    a byte has), scales by channel and scales that are computed."""
    n = QuantizedNetwork(33)
    scale, zero = n.weight(np.float32(0.01)), n.weight(np.int8(3))
    weight = n.numbers(16, 3, 3, 3, scale=0.2)
    step = n.weight(np.float32(0.08)), n.weight(np.int8(0))
    weight = n.add("Clip", [n.add("QuantizeLinear", [weight, *step]), n.weight(np.int8(-8)),
                            n.weight(np.int8(7))])
    weight = n.add("DequantizeLinear", [weight, *step])
    a = n.grid(n.add("Conv", [n.grid("x", 0.03), weight], pads=[1] * 4), 0.03)
    # Halves are where rounding to even differs from rounding away from zero.
    halves = n.weight(((np.arange(16) - 8) * 0.01 + 0.005).astype(np.float32).reshape(1, 16, 1, 1))
    for op in ("QuantizeLinear", "DequantizeLinear"):
        halves = n.add(op, [halves, scale, zero])
    b = n.grid(n.add("Add", [a, halves]), 0.03)
    channels = [n.weight(np.linspace(0.02, 0.05, 16, dtype=np.float32)),
                n.weight(np.arange(16).astype(np.int8))]
    for op in ("QuantizeLinear", "DequantizeLinear"):
        b = n.add(op, [b, *channels], axis=1)
    most = n.add("ReduceMax", [n.add("Abs", [b])], keepdims=0)
    computed = n.add("Div", [most, n.weight(np.float32(127))])
    for op in ("QuantizeLinear", "DequantizeLinear"):
        b = n.add(op, [b, computed, zero])
    return n.model(halves, b)


def _moved_bytes() -> onnx.ModelProto:
    """Operators on bytes themselves, as ONNX Runtime's QOperator format has them."""
    n = QuantizedNetwork(34)
    scale, zero = n.weight(np.float32(0.02)), n.weight(np.int8(-5))
    whole = n.add("QuantizeLinear", [n.whole_conv(n.grid("x", 0.03), 3, 20, 3), scale, zero])

    def out(x: str) -> str:
        return n.add("DequantizeLinear", [x, scale, zero])

    pooled = n.add("MaxPool", [whole], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    larger = n.add("Resize", [pooled, "", n.weight(np.float32([1, 1, 2, 2]))], mode="nearest")
    ends = [n.weight(np.array(v, np.int64)) for v in ([0, 12], [15, 0], [2, 3], [2, -3])]
    cut = n.add("Slice", [whole, *ends])
    joined = n.concat(whole, whole)
    padded = n.add("Pad", [joined, n.weight(np.array([0, 0, 1, 0, 0, 0, 0, 2])), zero])
    n.scales[out(pooled)] = 0.02
    following = n.grid(n.whole_conv(n.nodes[-1].output[0], 20, 9), 0.05)
    return n.model(n.nodes[-1].output[0], following, out(larger), out(cut), out(padded))


def _five_axes() -> onnx.ModelProto:
    """Pixels that are written twice each way, as Keras enlarges pictures: what has five axes lies
    in no blocks, whatever its last one is."""
    n = QuantizedNetwork(35)
    x = n.grid(n.conv(n.grid("x", 0.03), 3, 6), 0.02)
    channels, (height, width) = 6, n.shape["x"][2:]
    rows = n.add("Reshape", [n.add("Transpose", [x], perm=[0, 2, 3, 1]),
                             n.weight(np.array([1, height, 1, width, channels]))])
    twice = n.grid(n.add("Tile", [rows, n.weight(np.array([1, 1, 2, 1, 1]))]), 0.02)
    pixels = n.add("Reshape", [twice, n.weight(np.array([1, 2 * height, width, 1, channels]))])
    large = n.grid(n.add("Tile", [pixels, n.weight(np.array([1, 1, 1, 2, 1]))]), 0.02)
    return n.model(n.add("Reshape", [large, n.weight(
        np.array([1, 2 * height, 2 * width, channels]))]))


QUANTIZED: dict[str, Callable[[], onnx.ModelProto]] = {
    "signed": lambda: _layers("int8", True), "unsigned": lambda: _layers("uint8", True),
    "one_scale": lambda: _layers("int8", False), "joined": _joined,
    "constants": _constants, "moved_bytes": _moved_bytes, "five_axes": _five_axes}
