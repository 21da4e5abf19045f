"""Pictures out of blocks and into them (c/f32-blocks-to-planes.c.in, c/f32-planes-to-blocks.c.in).

TVM moves one number after the other, which takes ten times as long, but joins that with operators
of its own before and after: what is small is left to it.
"""

from __future__ import annotations

import math

import numpy as np

from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, Phase, batched
from run_model_tools.kernels.plan import LayerStep, Plan, RelayStep
from run_model_tools.kernels.tensors import Blocked

_TASK_NUMBERS = 60_000
"""What a core moves in about 5 us."""


def is_large(shape: tuple[int, ...]) -> bool:
    """Whether pictures (N, C, H, W) are worth a layer that moves them."""
    return math.prod(shape) >= _TASK_NUMBERS


def to_planes(value: Blocked, isa: Isa) -> Layer:
    """The layer of one picture: of `value`'s tensors, its channels in their order, (1, channels,
    height, width) float32."""
    blocks, places = value.whole_blocks()
    channels = np.full(len(blocks) * isa.lanes, -1)
    channels[places] = np.arange(value.channels)
    return _layer("blocks_to_planes", isa, channels.size, value.size, {
        "BLOCKS": len(blocks), "BLOCK_TENSOR": [block.tensor for block in blocks],
        "BLOCK_INDEX": [block.block for block in blocks], "CHANNELS": channels.tolist()},
        [tensor.shape_of_one for tensor in value.tensors], (1, value.channels, *value.size))


def to_blocks(channels: int, size: tuple[int, int], isa: Isa) -> Layer:
    """The layer of one picture: (1, channels, height, width) -> (1, blocks, height, width, lanes)
    float32, zeros in the lanes past the last channel."""
    blocks = -(-channels // isa.lanes)
    return _layer("planes_to_blocks", isa, blocks * isa.lanes, size, {"CHANNELS": channels},
                  [(1, channels, *size)], (1, blocks, *size, isa.lanes))


def use_layers(plan: Plan, isa: Isa) -> None:
    """Changes the plan: large pictures come into blocks by a layer."""
    plan.steps = [_into_blocks(step, isa) if isinstance(step, RelayStep)
                  and step.what == "to_blocked" and step.output.dtype == "float32"
                  and is_large(step.inputs[0].shape) else step for step in plan.steps]


def _into_blocks(step: RelayStep, isa: Isa) -> LayerStep:
    batch, channels, height, width = step.inputs[0].shape
    return LayerStep(step.inputs, step.output,
                     batched(to_blocks(channels, (height, width), isa), batch))


def _layer(kind: str, isa: Isa, lanes: int, size: tuple[int, int], defines: dict[str, object],
           inputs: list[tuple[int, ...]], output: tuple[int, ...]) -> Layer:
    pixels = math.prod(size)
    tasks = max(1, min(16, lanes * pixels // _TASK_NUMBERS))
    return Layer(
        kind=kind, template=f"f32-{kind.replace('_', '-')}.c.in",
        defines={**isa.defines(), **defines, "PIXELS": pixels, "TASKS": tasks},
        phases=(Phase(kind, tasks),), inputs=tuple((shape, "float32") for shape in inputs),
        constants=(), output_shape=output, variant=isa.variant(),
        note={"kernel": kind, "tasks": tasks})
