"""A picture's channels out of their blocks, as planes (c/f32-blocks-to-planes.c.in)."""

from __future__ import annotations

import math

import numpy as np

from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, Phase
from run_model_tools.kernels.tensors import Blocked

_TASK_NUMBERS = 60_000
"""What a core moves in about 5 us."""


def can_move(value: Blocked) -> bool:
    """Whether it is large enough to be worth a layer: what is small is left to TVM, which joins it
    with what comes before and after."""
    return value.is_float and value.channels * math.prod(value.size) >= _TASK_NUMBERS


def make(value: Blocked, isa: Isa) -> Layer:
    """The layer: of `value`'s tensors, its channels in their order, (1, channels, height, width)
    float32."""
    blocks, places = value.whole_blocks()
    channels = np.full(len(blocks) * isa.lanes, -1)
    channels[places] = np.arange(value.channels)
    pixels = math.prod(value.size)
    numbers = channels.size * pixels
    tasks = max(1, min(16, numbers // _TASK_NUMBERS))
    return Layer(
        kind="blocks_to_planes", template="f32-blocks-to-planes.c.in",
        defines={**isa.defines(), "BLOCKS": len(blocks),
                 "BLOCK_TENSOR": [block.tensor for block in blocks],
                 "BLOCK_INDEX": [block.block for block in blocks],
                 "CHANNELS": channels.tolist(), "PIXELS": pixels, "TASKS": tasks},
        phases=(Phase("blocks_to_planes", tasks),),
        inputs=tuple((tensor.shape_of_one, "float32") for tensor in value.tensors), constants=(),
        output_shape=(1, value.channels, *value.size), variant=isa.variant(),
        note={"kernel": "blocks_to_planes", "tasks": tasks})
