"""Random convolutions, and the check of a kernel that sums up by the definition against float64."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import layer_runner
import reference
from run_model_tools.kernels.convolutions.convolution import Convolution, Lanes, plain_lanes
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.programs.expressions import Builder, Expression, Operand

EPS = np.finfo(np.float32).eps / 2

LIPSCHITZ = 1.2
"""How much more than its argument an activation of random_epilogue() can change."""

Case = tuple[Convolution, Isa, dict]


def random_conv(rng: np.random.Generator, lanes: int, **fixed) -> Convolution:
    """A random convolution; `fixed` overrides what is drawn.

    kernel, strides, dilation, padding, size: as in Convolution; channels: of each input tensor;
    outputs: output channels; groups; scattered: whether to read parts of blocks in any order, and
    one not at all; depthwise: of whole blocks in any order; planar.
    """
    def pair(low: int, high: int) -> tuple[int, int]:
        return tuple(int(n) for n in rng.integers(low, high + 1, 2))
    kernel = fixed.get("kernel") or pair(1, 4)
    strides = fixed.get("strides") or pair(1, 3)
    dilation = fixed.get("dilation") or ((1, 1) if rng.random() < 0.7 else pair(1, 3))
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    padding = fixed.get("padding")
    if padding is None:
        padding = tuple(int(rng.integers(0, extent[axis % 2] + 1)) for axis in range(4))
    size = fixed.get("size") or tuple(int(rng.integers(1, 24)) for _ in range(2))
    size = tuple(max(size[a], extent[a] - padding[a] - padding[a + 2], 1) for a in (0, 1))
    groups = fixed.get("groups", 1)
    planar = fixed.get("planar", False)
    depthwise = fixed.get("depthwise", False)
    tensors = fixed.get("channels") or [int(c) for c in rng.integers(
        1 + depthwise, 2 * lanes + 3, rng.integers(1, 4))]
    pieces: tuple[Lanes, ...] = ()
    channels = sum(tensors)
    if not planar:
        found = [p for t, c in enumerate(tensors) for p in plain_lanes(c, lanes, t)]
        if depthwise:
            found = [found[i] for i in rng.permutation(len(found))]
        elif fixed.get("scattered", rng.random() < 0.5):
            # What splits and shuffles leave: parts of blocks, in any order.
            found = [piece for p in found for piece in _cut(rng, p)]
            found = [found[i] for i in rng.permutation(len(found))]
            if groups == 1 and len(found) > 1:
                found.pop()
        pieces = tuple(found)
        channels = sum(p.count for p in pieces)
    outputs = fixed.get("outputs") or int(rng.integers(1, 4 * lanes + 2))
    if depthwise:
        groups = outputs = channels
    shapes = [(1, c, *size) if planar else (1, -(-c // lanes), *size, lanes) for c in tensors]
    residual = bool(rng.random() < 0.3)
    return Convolution(
        weight=rng.standard_normal((outputs, channels // groups, *kernel)).astype(np.float32),
        bias=rng.standard_normal(outputs).astype(np.float32),
        input_shapes=tuple(shapes), input_lanes=pieces, strides=strides, padding=padding,
        dilation=dilation, groups=groups,
        low=[-math.inf, 0.0, -0.5][rng.integers(3)], high=[math.inf, 6.0, 0.5][rng.integers(3)],
        residual=residual,
        expression=random_epilogue(rng, outputs, residual) if rng.random() < 0.5 else None)


def random_epilogue(rng: np.random.Generator, channels: int, residual: bool = False,
                    by_channel: bool = True) -> Expression:
    """Activations as networks have them, with the residual before or after, and constants by
    channel, if they are wanted; none is steeper than LIPSCHITZ."""
    builder = Builder()
    value, last = Operand(input=0), bool(rng.random() < 0.5)
    if residual and not last:
        value = builder.apply("add", Operand(input=1), value)
    kind = rng.integers(7 if by_channel else 5)
    if kind == 0:
        value = builder.apply("multiply", value, builder.apply("sigmoid", value))
    elif kind == 1:
        sixth = builder.apply("divide", value, Operand(number=6.0))
        gate = builder.clip(builder.apply("add", sixth, Operand(number=0.5)), 0.0, 1.0)
        value = builder.apply("multiply", value, gate)
    elif kind == 2:
        erf = builder.apply("erf", builder.apply("divide", value, Operand(number=2 ** 0.5)))
        half = builder.apply("multiply", value, Operand(number=0.5))
        value = builder.apply("multiply", half, builder.apply("add", erf, Operand(number=1.0)))
    elif kind == 3:
        power = builder.apply("add", builder.apply("exp", value), Operand(number=1.0))
        power = builder.apply("tanh", builder.apply("log", power))
        value = builder.apply("multiply", value, power)
    elif kind == 5:
        slopes = builder.constant(rng.uniform(-1, 1, channels))
        value = builder.apply("leaky_relu", value, slopes)
    elif kind == 6:
        value = builder.clip(value, 0.0, math.inf)
        value = builder.apply("multiply", value, builder.constant(rng.uniform(-1, 1, channels)))
        value = builder.apply("add", value, builder.constant(rng.uniform(-1, 1, channels)))
    else:
        value = builder.apply("tanh", value)
    if residual and last:
        value = builder.apply("add", value, Operand(input=1))
    return builder.finish(value, 2 if residual else 1)


def _cut(rng: np.random.Generator, piece: Lanes) -> list[Lanes]:
    if piece.count == 1:
        return [piece]
    at = int(rng.integers(1, piece.count))
    return [Lanes(piece.tensor, piece.block, piece.first, at),
            Lanes(piece.tensor, piece.block, piece.first + at, piece.count - at)]


def bound_after_epilogue(bound: np.ndarray, size: np.ndarray) -> np.ndarray:
    """An error's bound after random_epilogue() of sums of numbers whose absolute sum is `size`."""
    return LIPSCHITZ * bound + 16 * EPS * (size + 1)


def absolute_sums(conv: Convolution, tensors: list[np.ndarray], lanes: int) -> np.ndarray:
    """The sum of |w||x| at each output, with the bias and the residual."""
    absolute = dataclasses.replace(conv, weight=abs(conv.weight), bias=abs(conv.bias),
                                   low=-math.inf, high=math.inf, expression=None)
    return reference.convolve(absolute, [abs(t) for t in tensors], lanes)


def error_bound(conv: Convolution, tensors: list[np.ndarray], lanes: int) -> np.ndarray:
    """What rounding of every product and sum can do to reference.convolve()'s result."""
    size = absolute_sums(conv, tensors, lanes)
    bound = (math.prod(conv.weight.shape[1:]) + 3) * EPS * size
    return bound_after_epilogue(bound, size) if conv.expression else bound


def choose(rng: np.random.Generator, kernel: ModuleType, layers: list[tuple[Any, Isa]]
           ) -> list[tuple[Any, Isa, dict]]:
    """Random parameters of those that the kernel offers for each of the layers."""
    cases = []
    for layer, isa in layers:
        options = kernel.options(layer, isa)
        assert options, f"{kernel.__name__} refuses {layer}"
        cases.append((layer, isa, options[rng.integers(len(options))]))
    return cases


def check(kernel: ModuleType, cases: list[Case], folder: Path,
          toolchain: layer_runner.Toolchain = layer_runner.NATIVE) -> None:
    """Each result within what rounding of every product and sum can do."""
    rng = np.random.default_rng(len(cases))
    runs = layer_runner.run_cases(kernel, cases, rng, folder, toolchain)
    for (conv, isa, parameters), (tensors, output) in runs:
        want = reference.convolve(conv, tensors, isa.lanes)
        bound = error_bound(conv, tensors, isa.lanes)
        error = abs(reference.unblocked(output, conv.output_channels) - want)
        assert (error <= bound).all(), (conv.without_data(), isa.name, parameters,
                                        float((error / bound).max()))
        assert np.isfinite(output).all(), "lanes without a channel must be finite"
