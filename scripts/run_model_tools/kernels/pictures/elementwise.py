"""What networks do to each number of blocked tensors by itself (c/f32-elementwise.c.in)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, Phase
from run_model_tools.kernels.programs.expressions import Expression, of_channel

_TASK_VECTORS = 4_000
"""Vectors times functions that a core does in about 5 us."""
_CAST_VECTORS = 8_000
"""Vectors that it casts in that time."""


@dataclass(frozen=True)
class Source:
    """Where an input of the expression is, in layer input `tensor` of each output block."""

    kind: str
    """"blocks"; "vector": (1, channels, 1, 1); "plane": (1, 1, height, width) or lane 0 of one
    block."""
    tensors: tuple[int, ...]
    """The layer's input that each output block reads."""
    blocks: tuple[int, ...]
    """Which of its blocks, for the kind "blocks"."""


@dataclass(frozen=True)
class Elementwise:
    """output = expression(inputs) at every place of [1][blocks][height][width][lanes]."""

    expression: Expression
    """Its constants by channel have a number for each lane of all output blocks."""
    sources: tuple[Source, ...]
    input_shapes: tuple[tuple[int, ...], ...]
    channels: tuple[int, ...]
    """Of each lane of the output's blocks, the number of its channel, or -1."""
    size: tuple[int, int]
    """Height and width of the output."""


def can_be_half(work: Elementwise) -> bool:
    """Whether it can be of blocks in half precision: what is no blocks is float32."""
    return all(len(work.input_shapes[source.tensors[0]]) == (4 if source.kind == "vector" else 5)
               for source in work.sources)


def make(work: Elementwise, isa: Isa) -> Layer:
    """The layer."""
    lanes, blocks, pixels = isa.lanes, len(work.channels) // isa.lanes, math.prod(work.size)
    most = blocks * pixels * (2 + len(work.expression.steps)) // _TASK_VECTORS
    tasks = max(1, min(16, most, blocks * pixels))
    kinds = {"blocks": "SOURCE_BLOCKS", "vector": "SOURCE_VECTOR", "plane": "SOURCE_PLANE"}
    steps, offsets = [], []
    for source in work.sources:
        plane = work.input_shapes[source.tensors[0]][1:]
        steps.append({"blocks": lanes, "vector": 0}.get(source.kind, math.prod(plane) // pixels))
        offsets += [block * pixels * lanes if source.kind == "blocks" else 0
                    for block in source.blocks]
    defines = {
        **isa.defines(), **work.expression.macro("EXPRESSION", as_array=True),
        "BLOCKS": blocks, "PIXELS": pixels, "TASKS": tasks, "INPUTS": len(work.sources),
        "CHANNEL_STEP": blocks * lanes,
        "SOURCE_KIND": [kinds[source.kind] for source in work.sources], "SOURCE_STEP": steps,
        "SOURCE_TENSOR": [t for source in work.sources for t in source.tensors],
        "SOURCE_OFFSET": offsets}
    if any(source.kind == "vector" for source in work.sources):
        defines["VECTOR_CHANNEL"] = list(work.channels)
    if -1 in work.channels:
        defines["UNUSED_LANES"] = [-(channel >= 0) for channel in work.channels]
    constants = [of_channel(values, blocks * lanes)
                 for values in (np.zeros(0), *work.expression.channels)]
    return Layer(
        kind="elementwise", template="f32-elementwise.c.in", defines=defines,
        phases=(Phase("elementwise", tasks),),
        inputs=tuple((shape, isa.number if len(shape) == 5 else "float32")
                     for shape in work.input_shapes),
        constants=(np.concatenate(constants),) if work.expression.channels else (),
        output_shape=(1, blocks, *work.size, lanes), output_dtype=isa.number, variant=isa.variant(),
        note={"kernel": "elementwise", "expression": work.expression.text, "tasks": tasks})


@dataclass(frozen=True)
class Gather:
    """Channels from anywhere to given lanes of the blocks of one tensor."""

    input_shapes: tuple[tuple[int, ...], ...]
    sources: np.ndarray
    """int (channels, 2): of each channel, its input and the channel there."""
    places: np.ndarray
    """int (channels,): where each goes."""
    blocks: int


def make_gather(gather: Gather, isa: Isa, dtype: str | None = None) -> Layer:
    """The layer (c/gather.c.in), of Isa.number or of "uint8"."""
    dtype = dtype or isa.number
    lanes = isa.lanes
    height, width = gather.input_shapes[0][2:4]
    pixels = height * width
    pieces: list[list[int]] = []  # tensor, block, first lane, output block, output lane, count
    for index in np.argsort(gather.places):
        tensor, channel = map(int, gather.sources[index])
        here = [tensor, *divmod(channel, lanes), *divmod(int(gather.places[index]), lanes)]
        last = pieces[-1] if pieces else None
        if last and [last[0], last[1], last[2] + last[5], last[3], last[4] + last[5]] == here:
            last[5] += 1
        else:
            pieces.append([*here, 1])
    starts = [sum(piece[3] < block for piece in pieces) for block in range(gather.blocks + 1)]
    tasks = max(1, min(16, gather.blocks * pixels // _TASK_VECTORS))
    defines = {
        **isa.defines(), "BLOCKS": gather.blocks, "PIXELS": pixels, "TASKS": tasks,
        "PIECE_TENSOR": [p[0] for p in pieces],
        "PIECE_OFFSET": [p[1] * pixels * lanes for p in pieces],
        "PIECE_FIRST": [p[2] for p in pieces], "PIECE_TO": [p[4] for p in pieces],
        "PIECE_COUNT": [p[5] for p in pieces], "BLOCK_PIECES": starts}
    if dtype == "uint8":
        defines["OF_BYTES"] = 1
    return Layer(
        kind="gather_int8" if dtype == "uint8" else "gather", template="gather.c.in",
        defines=defines, phases=(Phase("gather", tasks),),
        inputs=tuple((shape, dtype) for shape in gather.input_shapes), constants=(),
        output_shape=(1, gather.blocks, height, width, lanes), output_dtype=dtype,
        variant=isa.variant(),
        note={"kernel": "gather", "tasks": tasks})


def make_cast(shape: tuple[int, ...], to: str, isa: Isa) -> Layer:
    """The layer (c/f32-f16-cast.c.in) that makes `to`, "float16" or "float32", of a tensor in
    blocks of the other."""
    vectors = math.prod(shape) // isa.lanes
    tasks = max(1, min(16, vectors // _CAST_VECTORS))
    defines: dict[str, object] = {"LANES": isa.lanes, "VECTORS": vectors, "TASKS": tasks}
    if to == "float32":
        defines["TO_FLOAT"] = 1
    return Layer(
        kind=f"cast_to_{to}", template="f32-f16-cast.c.in", defines=defines,
        phases=(Phase("half_cast", tasks),),
        inputs=((tuple(shape), "float16" if to == "float32" else "float32"),), constants=(),
        output_shape=tuple(shape), output_dtype=to, variant=isa.variant(),
        note={"kernel": "half_cast", "tasks": tasks})
