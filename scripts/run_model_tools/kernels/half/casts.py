"""Between float32 and float16 (c/f32-f16-cast.c.in)."""

from __future__ import annotations

import math

from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, Phase

_TASK_VECTORS = 8_000
"""Vectors that a core does in about 5 us."""


def make_cast(shape: tuple[int, ...], to: str, isa: Isa) -> Layer:
    """The layer that makes `to`, "float16" or "float32", of a tensor in blocks of the other."""
    vectors = math.prod(shape) // isa.lanes
    tasks = max(1, min(16, vectors // _TASK_VECTORS))
    defines: dict[str, object] = {"LANES": isa.lanes, "VECTORS": vectors, "TASKS": tasks}
    if to == "float32":
        defines["TO_FLOAT"] = 1
    return Layer(
        kind=f"cast_to_{to}", template="f32-f16-cast.c.in", defines=defines,
        phases=(Phase("half_cast", tasks),),
        inputs=((tuple(shape), "float16" if to == "float32" else "float32"),), constants=(),
        output_shape=tuple(shape), output_dtype=to, variant=isa.variant(),
        note={"kernel": "half_cast", "tasks": tasks})
