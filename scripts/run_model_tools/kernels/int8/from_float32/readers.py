"""What the layers that read an activation make of each of its channels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from run_model_tools.kernels.plan import ConvolutionStep, DenseStep, Plan, PoolingStep
from run_model_tools.kernels.tensors import Tensor


@dataclass(frozen=True)
class Reader:
    """A layer that reads an activation, by the activation's lanes."""

    power: np.ndarray
    """(lanes,): the sum of the squares of the weights that an error of the lane goes through."""
    largest: np.ndarray | None = None
    """(outputs, lanes): the largest of the lane's weights; None where it has none."""
    taps: int = 1
    """Weights of each lane and output."""


def readers(plan: Plan, tensor: Tensor) -> list[Reader]:
    """Of an activation of the plan, those of whose kind something is known."""
    lanes = tensor.shape[1] * tensor.shape[4] if len(tensor.shape) == 5 else tensor.shape[1]
    found: list[Reader] = []
    for step in plan.steps:
        if isinstance(step, ConvolutionStep):
            found += _of_convolution(step, tensor, lanes)
        elif isinstance(step, DenseStep) and tensor in step.inputs:
            weight = np.abs(step.dense.weight.astype(np.float64))
            found.append(Reader(np.square(weight).sum(0), weight))
        elif isinstance(step, PoolingStep) and tensor in step.inputs:
            found += _through_pooling(plan, step, tensor, lanes)
    return found


def _of_convolution(step: ConvolutionStep, tensor: Tensor, lanes: int) -> Iterable[Reader]:
    conv = step.convolution
    data = step.inputs[:len(conv.input_shapes)]
    if conv.residual and step.inputs[-1] is tensor:
        yield Reader(np.ones(lanes))
    if conv.planar or tensor not in data:
        return
    width, depth, each = (conv.input_shapes[0][4], conv.weight.shape[1],
                          conv.output_channels // conv.groups)
    weight = np.abs(conv.weight.astype(np.float64)).reshape(conv.output_channels, depth, -1)
    power, largest = np.zeros(lanes), np.zeros((conv.output_channels, lanes))
    channel = 0
    for piece in conv.input_lanes:
        for lane in range(piece.block * width + piece.first,
                          piece.block * width + piece.first + piece.count):
            if data[piece.tensor] is tensor:
                group, place = divmod(channel, depth)
                rows = slice(group * each, (group + 1) * each)
                power[lane] += np.square(weight[rows, place]).sum()
                largest[rows, lane] = np.maximum(largest[rows, lane], weight[rows, place].max(1))
            channel += 1
    yield Reader(power, largest, weight.shape[2])


def _through_pooling(plan: Plan, step: PoolingStep, tensor: Tensor,
                     lanes: int) -> Iterable[Reader]:
    """Of a maximum its own readers, as it hands the bytes on; of a mean nothing but itself."""
    pool = step.pooling
    if pool.kind != "max" or pool.planar:
        yield Reader(np.ones(lanes))
        return
    width = pool.input_shapes[0][4]
    for reader in readers(plan, step.output):
        power = np.zeros(lanes)
        largest = None if reader.largest is None else np.zeros((len(reader.largest), lanes))
        for block, piece in enumerate(pool.input_lanes):
            if step.inputs[piece.tensor] is tensor:
                there = slice(piece.block * width, (piece.block + 1) * width)
                here = slice(block * width, (block + 1) * width)
                power[there] += reader.power[here]
                if largest is not None and reader.largest is not None:
                    largest[:, there] = reader.largest[:, here]
        yield replace(reader, power=power, largest=largest)
