"""Values over three axes as pictures, one for each of their planes, for which there are faster
kernels.

A value (N, C, D, H, W) that a convolution makes knows the pictures (N * D, C, H, W) that it was
made as (Value.pictures).  What follows and has a way with pictures goes on with these; whatever has
not reads the value, and only then are numbers moved.  What reaches over several planes reads them
as windows along the first axis, which are slices of it: kernels read such where they lie.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import replace
from typing import Any

import numpy as np

from run_model_tools.onnx_repair.rules import Rule
from run_model_tools.onnx_repair.rules.elementwise import reshaped
from run_model_tools.onnx_repair.rules.indexing import sliced
from run_model_tools.onnx_repair.rules.padding import padded
from run_model_tools.onnx_repair.rules.shapes import (
    concatenated,
    expanded,
    pictures_of,
    volume_of,
)
from run_model_tools.onnx_repair.values import Attributes, Inputs, Node, Thing, Value
from run_model_tools.onnx_repair.walk import Walk

_ONE_BY_ONE = frozenset((
    "Abs", "Add", "BatchNormalization", "Cast", "Celu", "Clip", "Div", "Dropout", "Elu", "Erf",
    "Exp", "Gelu", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu", "Log", "Max", "Mean",
    "Min", "Mish", "Mul", "Neg", "PRelu", "Pow", "Reciprocal", "Relu", "Selu", "Sigmoid",
    "Softplus", "Softsign", "Sqrt", "Sub", "Sum", "Swish", "Tanh", "ThresholdedRelu"))
"""Operators whose results have each number of their inputs, or channel, by itself."""
_OF_CHANNELS = {"Concat": 0, "Split": 0, "QuantizeLinear": 1, "DequantizeLinear": 1}
"""Those that are so along an axis of channels alone, and which axis is theirs if none is named."""
_OF_FIRST = ("BatchNormalization", "Clip", "DequantizeLinear", "Dropout", "QuantizeLinear", "Split")
"""Of whose inputs the first one alone has planes."""


def of_volumes(rule: Rule, walk: Walk, node: Node) -> Items[Thing | None] | Thing:
    """What the rule makes of a node, of whose inputs one knows its pictures: of these, where the
    node has its results number by number, or joins or parts channels."""
    joins = node.op in _OF_CHANNELS and node.attrs.get("axis", _OF_CHANNELS[node.op]) % 5 == 1
    seen = _as_pictures(walk, node) if joins or node.op in _ONE_BY_ONE else None
    # Before opset 7, operands began at any axis.
    if seen is None or node.opset < 7:
        return rule(walk, node)
    inputs, batch = seen
    attrs = Attributes({**node.attrs, "axis": 1}) if joins else node.attrs
    made = rule(walk, replace(node, inputs=inputs, attrs=attrs))
    assert isinstance(node.inputs, Inputs)
    node.inputs.unread = inputs.unread
    results: Items[Any] = made if isinstance(made, (list, tuple)) else [made]
    # Statistics of channels, which a normalisation that trains gives too, have no planes.
    return [volume_of(walk, one, batch) if isinstance(one, Value) and one.rank == 4 else one
            for one in results]


def _as_pictures(walk: Walk, node: Node) -> tuple[Inputs, int] | None:
    """The inputs of a node that has volumes, as ones of pictures, and of how many volumes these
    are; None where they do not go together so."""
    given = list(node.inputs)
    # The largest: numbers of channels, as squeezing leaves them, know pictures too.
    volume = max((i for i in given if isinstance(i, Value) and i.pictures is not None),
                 key=lambda value: value.size)
    if node.op in _OF_FIRST:
        if volume is not given[0] or node.attrs.get("block_size", 0):
            return None
        return Inputs([volume.pictures, *given[1:]]), volume.shape[0]
    inputs = [_beside(walk, one, volume, node.op == "Concat") for one in given]
    return None if any(one is None for one in inputs) else (Inputs(inputs), volume.shape[0])


def _beside(walk: Walk, value: Thing | None, volume: Value, joined: bool) -> Value | None:
    """An operand as one of pictures; None of one that is spread along the planes or over the
    batch."""
    if not isinstance(value, Value):
        return None
    batch, _, depth, *size = volume.shape
    if value.rank == 5 and (value.shape[0], value.shape[2:]) == (batch, volume.shape[2:]):
        return pictures_of(walk, value)
    shape = (*[1] * (5 - value.rank), *value.shape)
    fits = len(shape) == 5 and shape[2] == 1 and shape[0] in (1, batch if depth == 1 else 1)
    if joined or not fits:
        return None
    seen = reshaped(walk, value, (shape[0], shape[1], *shape[3:]))
    if value.is_constant or shape[0] != 1:
        return seen
    # Kernels know numbers of each picture's channels, and none that several pictures share.
    return expanded(walk, seen, (batch * depth, *seen.shape[1:])) if batch == 1 else None


def windows(walk: Walk, pictures: Value, batch: int, pads: tuple[int, int], firsts: Items[int],
            step: int, count: int, mode: str = "constant") -> list[Value]:
    """For each of `firsts` the pictures first, first + step ... of those of each volume, counted
    with `pads` before and after them: zeros, or with mode "edge" the nearest of its planes."""
    depth = pictures.shape[0] // batch
    ranges = [range(first, first + step * (count - 1) + 1, step) for first in firsts]
    if batch == 1:
        wide = padded(walk, pictures, {0: pads}, mode)
        return [sliced(walk, wide, {0: places}) for places in ranges]
    apart = reshaped(walk, pictures, (batch, depth, *pictures.shape[1:]))
    wide = padded(walk, apart, {1: pads}, mode)
    return [reshaped(walk, sliced(walk, wide, {1: places}), (batch * count, *pictures.shape[1:]))
            for places in ranges]


_MOST_COPIES = 8
"""Of the input, where they are made, so that a long kernel takes no more memory than it saves time.
"""


def convolved(walk: Walk, x: Value, weight: Value, bias: Value | None, strides: Items[int],
              dilations: Items[int], pads: Items[int], group: int) -> Value | None:
    """A convolution over three axes as one over the last two, of the planes that a window holds,
    whose channels lie behind each other; of groups, the sum of those of each plane.  None where
    that would copy too much, or the weights are no constants.

    weight: (outputs, inputs / group, depth, height, width).
    """
    graph = walk.graph
    batch, _, depth, *_ = x.shape
    before, after = pads[0], pads[3]
    step, spread, length = strides[0], dilations[0], weight.shape[2]
    count = (depth + before + after - spread * (length - 1) - 1) // step + 1
    # Planes that only ever fall into the padding give nothing.
    taps = [tap for tap in range(length) if any(
        0 <= tap * spread - before + step * place < depth for place in range(count))]
    if not taps or count * len(taps) > _MOST_COPIES * (depth + before + after):
        return None
    # All taps of a kernel, or each of them by itself.
    parts = [taps] if group == 1 else [[tap] for tap in taps]
    kernels = [_of_taps(walk, weight, part) for part in parts]
    seen = windows(walk, pictures_of(walk, x), batch, (before, after),
                   [tap * spread for tap in taps], step, count)
    behind = [concatenated(walk, seen, 1)] if group == 1 else seen
    made: Value | None = None
    for one, kernel in zip(behind, kernels):
        if kernel is None:
            return None
        part = graph.op("Conv", one, kernel, bias if made is None else None,
                        kernel_shape=weight.shape[3:], strides=strides[1:],
                        dilations=dilations[1:], pads=[*pads[1:3], *pads[4:]], group=group)
        made = part if made is None else graph.op("Add", made, part)
    assert made is not None
    return volume_of(walk, made, batch)


def _of_taps(walk: Walk, weight: Value, taps: list[int]) -> Value | None:
    """Weights (outputs, inputs, depth, height, width) of some taps along the depth, as those of so
    many times the inputs; quantised ones stay so.  None of such that are no constants."""
    graph, quantised = walk.graph, None
    if weight.array is None:
        quantised = graph.makers.get(weight.name)
        if quantised is None or quantised.op_type != "DequantizeLinear":
            return None
        whole, *grid = (graph.values[name] for name in quantised.input)
        axes = [attribute.i for attribute in quantised.attribute if attribute.name == "axis"]
        if whole.array is None or axes not in ([], [0]):
            return None
        weight = whole
    assert weight.array is not None
    array = weight.array[:, :, taps].swapaxes(1, 2)
    made = graph.constant(np.ascontiguousarray(array).reshape(
        len(array), -1, *weight.shape[3:]))
    if quantised is None:
        return made
    return graph.op("DequantizeLinear", made, *grid, axis=0 if axes else None)


def planes_behind(weight: np.ndarray, stride: int, before: int) -> tuple[np.ndarray, range]:
    """A transposed convolution's weights (inputs, outputs, depth, height, width) as such of planes:
    ((inputs of all planes, outputs of `stride` planes, height, width), which planes these are).

    Plane o of the result, counted without the `before` planes that are not wanted, is place
    o % stride of cell o // stride; cell j is made of the planes j + e of the input, for the e that
    are given.  Plane i of the input is in plane stride * i + t of the whole result by tap t.
    """
    inputs, outputs, length, *kernel = weight.shape
    taps = [(place, tap) for place in range(stride) for tap in range(length)
            if (place + before - tap) % stride == 0]
    offsets = [(place + before - tap) // stride for place, tap in taps]
    planes = range(min(offsets), max(offsets) + 1)
    made = np.zeros((len(planes), inputs, stride, outputs, *kernel), weight.dtype)
    for (place, tap), offset in zip(taps, offsets):
        made[offset - planes[0], :, place] = weight[:, :, tap]
    return made.reshape(len(planes) * inputs, stride * outputs, *kernel), planes


def from_cells(walk: Walk, cells: Value, batch: int, stride: int, wanted: int) -> Value:
    """The volume whose planes are `stride` by `stride` behind each other in the channels of
    pictures, the first `wanted` of them."""
    count, channels, *size = cells.shape
    made = reshaped(walk, cells, (count * stride, channels // stride, *size))
    if count * stride != batch * wanted:
        apart = made if batch == 1 else reshaped(
            walk, made, (batch, count * stride // batch, *made.shape[1:]))
        cut = sliced(walk, apart, {0 if batch == 1 else 1: range(wanted)})
        made = reshaped(walk, cut, (batch * wanted, *made.shape[1:]))
    return volume_of(walk, made, batch)
