"""A convolution in 8 bits: what is multiplied in whole numbers, and how they stand for numbers.

Activations are unsigned bytes (value = scale * (byte - zero point)), weights signed bytes with one
scale for each output channel.  kernels/c/int8.h says what the C code does with them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from run_model_tools.kernels.convolutions.convolution import Convolution
from run_model_tools.kernels.int8.weight_rounding import Moments

LARGEST_WEIGHT = 127


@dataclass(frozen=True)
class Quantization:
    """How an unsigned byte stands for a number: scale * (byte - zero_point).

    The channels of a tensor may have scales of their own, which cost nothing: a layer has a factor
    for each of its output channels anyway, and the next one multiplies them into its weights.
    """

    scale: float
    zero_point: int
    channels: tuple[float, ...] | None = None
    """Of each lane of a blocked tensor, in order, a factor of `scale`; None: 1 for all."""

    def of_channel(self, channel: int) -> Quantization:
        """That of one lane: channel c of a tensor is lane c % lanes of block c // lanes."""
        if self.channels is None:
            return self
        return Quantization(self.scale * self.channels[channel], self.zero_point)

    def of_all_channels(self) -> Quantization:
        """One scale for all channels, that of the largest."""
        return Quantization(self.scale * max(self.channels or (1.0,)), self.zero_point)

    def scales(self, lanes: np.ndarray | list[int] | range) -> np.ndarray:
        """float64, of some lanes."""
        if self.channels is None:
            return np.full(len(lanes), self.scale)
        return self.scale * np.array(self.channels)[np.asarray(lanes, int)]

    @staticmethod
    def of_range(low: float, high: float) -> Quantization:
        """With all of [low, high] and exactly zero, which padding needs, among its numbers."""
        low, high = min(float(low), 0.0), max(float(high), 0.0)
        scale = (high - low) / 255 or 1.0
        return Quantization(scale, int(np.clip(round(-low / scale), 0, 255)))

    def to_bytes(self, numbers: np.ndarray) -> np.ndarray:
        """The nearest bytes, in float64; all channels alike."""
        return np.clip(np.rint(np.asarray(numbers, np.float64) / self.scale + self.zero_point),
                       0, 255).astype(np.uint8)

    def to_numbers(self, data: np.ndarray) -> np.ndarray:
        """What bytes stand for, float64; all channels alike."""
        return (data.astype(np.float64) - self.zero_point) * self.scale


@dataclass(frozen=True)
class QuantizedConvolution:
    """A Convolution whose activations are bytes.

    Its geometry, clamp and (float32) weights are those of `convolution`, its input shapes too, but
    the tensors hold bytes; only a picture (convolution.planar) comes as float32 and is made bytes
    on the way.  Concatenated inputs may have different scales: each is multiplied into the weights
    before they are rounded.
    """

    convolution: Convolution
    inputs: tuple[Quantization, ...]
    """Of each input tensor, the residual last; of a picture one for each channel."""
    output: Quantization | None
    """None: the output is float32."""
    moments: Moments | None = field(default=None, kw_only=True)
    """Of its inputs, by which weights are rounded; None: each to the nearest number."""

    @property
    def channel_inputs(self) -> list[Quantization]:
        """Of each input channel, in the order of the weights."""
        conv = self.convolution
        if conv.planar:
            return list(self.inputs)
        lanes = conv.input_shapes[0][4]
        return [self.inputs[piece.tensor].of_channel(piece.block * lanes + piece.first + i)
                for piece in conv.input_lanes for i in range(piece.count)]

    @cached_property
    def output_lanes(self) -> list[int]:
        """Where the output channels lie: a depthwise layer's blocks are those of its input."""
        conv = self.convolution
        if not conv.depthwise or conv.planar:
            return list(range(conv.output_channels))
        lanes = conv.input_shapes[0][4]
        return [block * lanes + i for block, piece in enumerate(conv.input_lanes)
                for i in range(piece.count)]

    @cached_property
    def scaled_weight(self) -> np.ndarray:
        """float64 weights that take input steps (byte - zero point) instead of numbers."""
        conv = self.convolution
        scales = self._input_scales
        weight = conv.weight.astype(np.float64)
        per_group = conv.output_channels // conv.groups
        depth = weight.shape[1]
        result = np.empty_like(weight)
        for group in range(conv.groups):
            rows = slice(group * per_group, (group + 1) * per_group)
            result[rows] = weight[rows] * scales[group * depth:(group + 1) * depth, None, None]
        return result

    @cached_property
    def weight_scales(self) -> np.ndarray:
        """float64, one for each output channel."""
        largest = np.abs(self.scaled_weight).max(axis=(1, 2, 3), initial=0.0)
        return np.where(largest > 0, largest / LARGEST_WEIGHT, 1.0)

    @cached_property
    def weight(self) -> np.ndarray:
        """int8, of the shape of the float32 weights."""
        steps = self.scaled_weight / self.weight_scales[:, None, None, None]
        if self.moments is None:
            return np.rint(steps).astype(np.int8)
        return self.moments.rounded(steps, self._input_scales, LARGEST_WEIGHT)

    @property
    def _input_scales(self) -> np.ndarray:
        return np.array([q.scale for q in self.channel_inputs])

    @cached_property
    def _mean_error(self) -> np.ndarray:
        """float64 (output channels,): what rounding the weights takes from the usual sum."""
        if self.moments is None:
            return np.zeros(self.convolution.output_channels)
        lost = self.scaled_weight - self.weight * self.weight_scales[:, None, None, None]
        groups = self.convolution.groups
        lost = lost.reshape(groups, len(lost) // groups, -1)
        return (lost @ self.moments.means(self._input_scales)[:, :, None]).reshape(-1)

    @cached_property
    def start(self) -> np.ndarray:
        """int64 (output channels,): minus the sum of zero points times weights."""
        conv = self.convolution
        zeros = np.array([q.zero_point for q in self.channel_inputs], np.int64)
        per_group = conv.output_channels // conv.groups
        depth = self.weight.shape[1]
        result = np.empty(conv.output_channels, np.int64)
        for group in range(conv.groups):
            rows = slice(group * per_group, (group + 1) * per_group)
            sums = self.weight[rows].astype(np.int64).sum(axis=(2, 3))
            result[rows] = -sums @ zeros[group * depth:(group + 1) * depth]
        return result

    @property
    def _output(self) -> Quantization:
        return self.output or Quantization(1.0, 0)

    @property
    def _output_scales(self) -> np.ndarray:
        return self._output.scales(self.output_lanes)

    @property
    def scale(self) -> np.ndarray:
        """float32 (output channels,): of a sum, in steps of the output."""
        return (self.weight_scales / self._output_scales).astype(np.float32)

    @property
    def residual_scale(self) -> np.ndarray:
        """float32 (output channels,): of a residual's byte, in steps of the output."""
        if not self.convolution.residual:
            return np.zeros(0, np.float32)
        return (self.inputs[-1].scales(self.output_lanes) / self._output_scales).astype(np.float32)

    @property
    def bias(self) -> np.ndarray:
        """float32 (output channels,): with the output's and the residual's zero points."""
        bias = (self.convolution.bias.astype(np.float64) + self._mean_error) / self._output_scales
        bias = bias + self._output.zero_point
        if self.convolution.residual:
            bias = bias - self.residual_scale.astype(np.float64) * self.inputs[-1].zero_point
        return bias.astype(np.float32)

    @property
    def bounds(self) -> tuple[np.float32, np.float32]:
        """Of the result in steps of the output, before it is rounded."""
        return byte_bounds(self.convolution.low, self.convolution.high, self.output)

    def check(self) -> None:
        """Raises ValueError if a sum could be too large for 32 bits."""
        most = 255 * np.abs(self.weight.astype(np.int64)).sum(axis=(1, 2, 3)) + np.abs(self.start)
        # Signed dot products start 128 times the weights' sum higher.
        if len(most) and most.max() * 2 >= 2**31:
            raise ValueError("a sum of this convolution does not fit into 32 bits")

    def fits(self) -> bool:
        """Whether sums fit into 32 bits and the clamp falls on one byte for all channels."""
        try:
            self.check()
            return self.output is None or bool(self.bounds)
        except ValueError:
            return False

    def output_defines(self) -> dict[str, object]:
        """int8.h's macros."""
        defines: dict[str, object] = {}
        if self.convolution.residual:
            tensors = len(self.convolution.input_shapes)
            defines["RESIDUAL_INPUT"] = tensors
        if self.output is None:
            return defines | {"OUTPUT_FLOAT": 1} | self.convolution.clamp_defines()
        low, high = self.bounds
        return defines | {"BYTE_LOW": low, "BYTE_HIGH": high}

    def layer_inputs(self, lanes: int) -> tuple[tuple[tuple[int, ...], str], ...]:
        """Layer.inputs."""
        conv = self.convolution
        shapes = conv.layer_inputs(lanes)
        first = "float32" if conv.planar else "uint8"
        return tuple((shape, first if i < len(conv.input_shapes) else "uint8")
                     for i, (shape, _) in enumerate(shapes))

    @property
    def output_dtype(self) -> str:
        return "float32" if self.output is None else "uint8"


def clamp_fits(low: float, high: float, output: Quantization) -> bool:
    """Whether a clamp falls on one byte for all channels."""
    try:
        byte_bounds(low, high, output)
        return True
    except ValueError:
        return False


def byte_bounds(low: float, high: float,
                output: Quantization | None) -> tuple[np.float32, np.float32]:
    """A clamp in steps of the output, within what bytes can be."""
    if output is None:
        return np.float32(low), np.float32(high)
    factors = np.array(output.channels or (1.0,)) * output.scale
    steps = [x / factors + output.zero_point if math.isfinite(x) else np.array([x])
             for x in (low, high)]
    # A range that ends at the clamp ends at it but for a rounding.
    steps = [np.where(s > 254.99, 255, np.clip(s, 0, 255)) for s in steps]
    if any(s.min() != s.max() for s in steps):
        raise ValueError("a clamp falls on differing bytes of the channels")
    steps = [s[0] for s in steps]
    return np.float32(np.clip(steps[0], 0, 255)), np.float32(np.clip(steps[1], 0, 255))
