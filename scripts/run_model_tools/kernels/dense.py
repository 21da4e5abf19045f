"""A fully connected layer on one vector (c/f32-dense.c.in)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from run_model_tools.kernels.expressions import Expression, of_channel
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, Phase
from run_model_tools.kernels.tiles import even, packed_weights, vectors


@dataclass(frozen=True)
class Dense:
    """output[o] = clamp(bias[o] + sum of weight[o, i] * input[i]) of (1, n) float32 tensors."""

    weight: np.ndarray
    """float32 (outputs, inputs)."""
    bias: np.ndarray
    """float32 (outputs,)."""
    low: float = -math.inf
    high: float = math.inf
    expression: Expression | None = None
    """Of the sum with its bias, instead of clamping."""

    @property
    def multiply_adds(self) -> int:
        return self.weight.size


def options(dense: Dense, isa: Isa) -> list[dict]:
    """Parameters worth trying, best guess first: vectors of outputs at a time, and parts."""
    count = vectors(dense.weight.shape[0], isa)
    most = max(1, dense.multiply_adds // 50_000)  # 5 us of reading weights on one core
    found = []
    for tile in (4, 2, 3, 1):
        if tile <= count or tile == 1:
            tiles = even(count, tile).tiles
            parts = [n for n in (16, 8, 4, 2, 1) if n <= min(most, tiles)]
            found += [{"vectors": tile, "parts": n} for n in parts[:2]]
    return found


def make(dense: Dense, isa: Isa, vectors: int, parts: int) -> Layer:
    """A layer with these parameters."""
    outputs, inputs = dense.weight.shape
    tiles = even(-(-outputs // isa.lanes), vectors)
    parts = min(parts, tiles.tiles)
    weight = dense.weight.reshape(outputs, inputs, 1, 1)
    packed = [packed_weights(weight, list(range(inputs)), part, isa.lanes)
              for part in tiles.ranges()]
    places = -(-outputs // isa.lanes) * isa.lanes
    constants = [dense.bias, *(dense.expression.channels if dense.expression else ())]
    bounds = {"CLAMP_LOW": dense.low, "CLAMP_HIGH": dense.high}
    epilogue = (dense.expression.defines(places) if dense.expression else
                {k: float(v) for k, v in bounds.items() if math.isfinite(v)})
    defines = {**isa.defines(), **epilogue, **tiles.defines("VECTOR", "VECTORS"), "INPUTS": inputs,
               "OUTPUTS": outputs, "PARTS": parts}
    return Layer("dense", "f32-dense.c.in", defines, (Phase("dense", parts),),
                 (((1, inputs), "float32"),),
                 (np.concatenate(packed).astype(isa.number),
                  np.concatenate([of_channel(values, places) for values in constants])),
                 (1, outputs),
                 variant=isa.variant(1, vectors),
                 note={"kernel": "dense", "vectors": vectors, "parts": parts,
                       "multiply_adds": dense.multiply_adds})
