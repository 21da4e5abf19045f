"""Resampling, gathering and expressions of blocked tensors, and how planes become them and they
planes, against their definitions."""

from __future__ import annotations

import numpy as np

import reference
from layer_runner import on_every_machine, run_layers
from random_convolutions import EPS, random_epilogue
from run_model_tools.kernels.convolutions.convolution import plain_lanes
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer
from run_model_tools.kernels.pictures import elementwise, layouts, resampling
from run_model_tools.kernels.pictures.elementwise import Elementwise, Gather, Source
from run_model_tools.kernels.pictures.resampling import Axis, Resampling
from run_model_tools.kernels.tensors import Blocked, Tensor

Check = tuple[Layer, list[np.ndarray], np.ndarray, np.ndarray]
"""A layer, its inputs, what it should give as (channels, height, width), a bound of the error."""


def random_axis(rng: np.random.Generator, size: int, weighted: bool) -> Axis:
    outputs = int(rng.integers(1, 3 * size + 1))
    if weighted:
        method = str(rng.choice(["linear", "cubic"]))
        coordinates = str(rng.choice(["half_pixel", "align_corners", "asymmetric"]))
        axis = resampling.resized(size, outputs, method, coordinates)
        assert axis is not None
        return axis
    return resampling.taken(rng.integers(-1, size, outputs))


def sampled(axis: Axis, data: np.ndarray, along: int, fill: float) -> np.ndarray:
    weights = np.ones(axis.positions.shape) if axis.weights is None else axis.weights
    total = np.zeros(1)
    for taps, factors in zip(axis.positions.T, weights.T.astype(np.float64)):
        shape = [-1 if i == along else 1 for i in range(3)]
        here = np.where((taps < 0).reshape(shape), fill, np.take(data, taps.clip(0), along))
        total = total + here * factors.reshape(shape)
    return total


def random_resampling(rng: np.random.Generator, isa: Isa) -> Check:
    size, channels = tuple(rng.integers(1, 12, 2).tolist()), int(rng.integers(1, 3 * isa.lanes))
    weighted, fill = bool(rng.random() < 0.5), float(np.float32(rng.standard_normal()))
    rows, columns = (random_axis(rng, s, weighted) for s in size)
    shape = (1, -(-channels // isa.lanes), *size, isa.lanes)
    layer = resampling.make(Resampling(rows, columns, (shape,), plain_lanes(channels, isa.lanes),
                                       fill), isa)
    x = rng.standard_normal(shape).astype(isa.number)
    planes = reference.unblocked(x, channels).astype(np.float64)
    want = sampled(columns, sampled(rows, planes, 1, fill), 2, fill)
    return layer, [x], want, np.full(want.shape, 16 * EPS * 8.0 if weighted else 0.0)


def random_gather(rng: np.random.Generator, isa: Isa) -> Check:
    size = tuple(rng.integers(1, 9, 2).tolist())
    shapes = [(1, int(rng.integers(1, 4)), *size, isa.lanes) for _ in range(3)]
    everywhere = [(t, c) for t, shape in enumerate(shapes) for c in range(shape[1] * isa.lanes)]
    channels = int(rng.integers(1, len(everywhere)))
    begin = int(rng.integers(0, len(everywhere) - channels + 1))
    # Runs of channels, some of them from elsewhere.
    sources = np.array(everywhere[begin:begin + channels])
    for _ in range(3):
        sources[rng.integers(channels)] = everywhere[rng.integers(len(everywhere))]
    dtype = str(rng.choice([isa.number, "uint8"]))
    layer = elementwise.make_gather(Gather(tuple(shapes), sources, np.arange(channels),
                                           -(-channels // isa.lanes)), isa, dtype)
    xs = [(128 + 40 * rng.standard_normal(shape)).astype(dtype) for shape in shapes]
    want = np.stack([xs[t][0, c // isa.lanes, :, :, c % isa.lanes] for t, c in sources])
    return layer, xs, want, np.zeros(want.shape)


def random_elementwise(rng: np.random.Generator, isa: Isa) -> Check:
    size, channels = tuple(rng.integers(1, 12, 2).tolist()), int(rng.integers(1, 3 * isa.lanes))
    blocks = -(-channels // isa.lanes)
    lanes = np.full(blocks * isa.lanes, -1)
    lanes[:channels] = np.arange(channels)
    expression = random_epilogue(rng, channels, True)
    kind = str(rng.choice(["blocks", "vector", *([] if isa.half else ["plane"])]))
    whole = (1, blocks, *size, isa.lanes)
    other = {"blocks": whole, "vector": (1, channels, 1, 1), "plane": (1, 1, *size)}[kind]
    first = Source("blocks", (0,) * blocks, tuple(range(blocks)))
    second = Source(kind, (1,) * blocks, tuple(range(blocks)))
    layer = elementwise.make(
        Elementwise(expression.placed(np.arange(channels), len(lanes)), (first, second),
                    (whole, other), tuple(lanes.tolist()), size), isa)
    x, y = (rng.standard_normal(shape).astype(isa.number if len(shape) == 5 else np.float32)
            for shape in (whole, other))
    planes = reference.unblocked(x, channels).astype(np.float64)
    more = reference.unblocked(y, channels) if kind == "blocks" else y[0]
    want = expression.evaluate([planes, np.broadcast_to(more, planes.shape)])
    return layer, [x, y], want, 32 * EPS * (abs(planes) + abs(more) + 1)


def random_from_blocks(rng: np.random.Generator, isa: Isa) -> Check:
    size = tuple(rng.integers(1, 12, 2).tolist())
    shapes = [(1, int(rng.integers(1, 4)), *size, isa.lanes) for _ in range(2)]
    everywhere = [(t, c) for t, shape in enumerate(shapes) for c in range(shape[1] * isa.lanes)]
    channels = int(rng.integers(1, len(everywhere) + 1))
    places = np.array(everywhere[:channels])
    if rng.random() < 0.5:
        places = rng.permutation(np.array(everywhere))[:channels]
    layer = layouts.to_planes(Blocked(tuple(map(Tensor, shapes)), places), isa)
    xs = [rng.standard_normal(shape, np.float32) for shape in shapes]
    want = np.stack([xs[t][0, c // isa.lanes, :, :, c % isa.lanes] for t, c in places])
    return layer, xs, want, np.zeros(want.shape)


def random_to_blocks(rng: np.random.Generator, isa: Isa) -> Check:
    channels, *size = rng.integers(1, 3 * isa.lanes, 3).tolist()
    layer = layouts.to_blocks(channels, tuple(size), isa)
    x = rng.standard_normal((1, channels, *size), np.float32)
    # Lanes past the last channel belong to it: there are none left over, and they are zero.
    lanes = np.pad(x[0], [(0, -channels % isa.lanes), (0, 0), (0, 0)])
    return layer, [x], lanes, np.zeros(lanes.shape)


@on_every_machine
def test_equals_the_definition(tmp_path, machine):
    rng = machine.rng()
    cases = [make(rng, isa) for isa in machine.isas for _ in range(machine.count(6))
             for make in (random_resampling, random_gather, random_elementwise,
                          *([] if isa.half else [random_from_blocks, random_to_blocks]))]
    outputs = run_layers([case[:2] for case in cases], tmp_path, machine.toolchain)
    for (layer, _, want, bound), output in zip(cases, outputs):
        got = output[0] if output.ndim == 4 else reference.unblocked(output, len(want))
        assert got.shape == want.shape and np.isfinite(output).all(), layer.note
        assert (abs(got - want) <= bound).all(), (layer.note, layer.variant)
