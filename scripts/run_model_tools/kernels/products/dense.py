"""A fully connected layer on one vector (c/f32-dense.c.in)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, Phase
from run_model_tools.kernels.products.matmul import Product
from run_model_tools.kernels.programs.expressions import Expression, Operand, of_channel
from run_model_tools.kernels.programs.program import Program
from run_model_tools.kernels.tensors import Tensor
from run_model_tools.kernels.tiles import bfloat16_bits, even, packed_weights, vectors
from run_model_tools.kernels.views import constant_tensor, whole


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
    packed = np.concatenate([packed_weights(weight, list(range(inputs)), part, isa.lanes)
                             for part in tiles.ranges()])
    places = -(-outputs // isa.lanes) * isa.lanes
    constants = [dense.bias, *(dense.expression.channels if dense.expression else ())]
    bounds = {"CLAMP_LOW": dense.low, "CLAMP_HIGH": dense.high}
    epilogue = (dense.expression.defines(places) if dense.expression else
                {k: float(v) for k, v in bounds.items() if math.isfinite(v)})
    defines = {**isa.defines(), **epilogue, **tiles.defines("VECTOR", "VECTORS"), "INPUTS": inputs,
               "OUTPUTS": outputs, "PARTS": parts}
    if isa.bfloat16:
        defines["BFLOAT16"] = 1
    return Layer("dense_bf16" if isa.bfloat16 else "dense", "f32-dense.c.in", defines,
                 (Phase("dense", parts),),
                 (((1, inputs), "float32"),),
                 (bfloat16_bits(packed) if isa.bfloat16 else packed.astype(isa.number),
                  np.concatenate([of_channel(values, places) for values in constants])),
                 (1, outputs),
                 variant=isa.variant(1, vectors) + ("bf16" if isa.bfloat16 else ""),
                 note={"kernel": "dense", "vectors": vectors, "parts": parts,
                       "multiply_adds": dense.multiply_adds})


def of_rows(dense: Dense, rows: Tensor) -> Product:
    """The layer on each row of a float32 (rows, inputs) tensor, as a product of matrices: it reads
    the weights once for several rows, where the kernel for a vector would for each."""
    outputs = dense.weight.shape[0]
    program = Program((rows.shape[0], outputs), [])

    def channels(values: np.ndarray) -> int:
        view = whole(constant_tensor(values.astype(np.float32)))
        return program.add_input(view.broadcast(program.shape))

    def operand(known: Operand) -> int:
        if known.step is not None:
            return results[known.step]
        if known.number is not None:
            return program.add("constant", value=known.number)
        if known.channel is not None:
            assert dense.expression is not None
            return channels(dense.expression.channels[known.channel])
        assert known.input == 0, "a residual is none of a fully connected layer's"
        return total

    total = last = program.add("add", program.add("product"), channels(dense.bias))
    results: list[int] = []
    for step in dense.expression.steps if dense.expression else ():
        last = program.add(step.function, *map(operand, step.operands))
        results.append(last)
    if not dense.expression:
        for function, bound in (("maximum", dense.low), ("minimum", dense.high)):
            if math.isfinite(bound):
                last = program.add(function, last, program.add("constant", value=bound))
    if last != len(program.nodes) - 1:
        program.add("identity", last)  # equal nodes are one, so the last step's may lie before
    left = whole(rows)
    return Product(left.reshape((1, *rows.shape)) or left, dense.weight.T, epilogue=program)
