"""Products of open rows with weights, as functions that Relax calls: the kernel of a few rows, for
one block after the other, and that of one (c/open-blocks.c.in)."""

from __future__ import annotations

import numpy as np

from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, c_defines
from run_model_tools.kernels.products.matmul import Product, make, options
from run_model_tools.kernels.programs.program import Program
from run_model_tools.kernels.tensors import Tensor
from run_model_tools.kernels.tiles import vectors
from run_model_tools.kernels.views import View, constant_tensor, whole

ROWS = 8
"""Of a block: a register tile of the kernels, and few that are computed in vain."""
_WIDE = 16
"""Vectors of columns from which a product is cut into four parts, for several cores."""


def layers_of(weights: np.ndarray, isa: Isa, epilogue: Program | None = None,
              operands: tuple[np.ndarray | None, ...] = ()) -> list[Layer]:
    """The layer of ROWS rows times `weights` (depth, columns), and that of one row, which has the
    same constants; none where there is none, or the first one alone.

    epilogue: of the node "product", its inputs are `operands` by number: a number for each column,
    or None for as many rows as the result has, which follow the rows as the layer's inputs.
    """
    depth, columns = weights.shape

    def of_rows(rows: int) -> Product:
        left = View(Tensor((rows, depth)), ((), ((rows, depth),), ((depth, 1),)))
        return Product(left, weights, 1.0, _placed(epilogue, operands, (rows, columns)))

    block = of_rows(ROWS)
    found = options(block, isa)
    if not found:
        return []
    parts, tile = [1, 4 if vectors(columns, isa) >= _WIDE else 1], found[0]["tile"]
    layers = [make(block, isa, tile, parts)]
    if layers[0].shared_bytes or len(layers[0].phases) != 1:
        return []
    one = make(of_rows(1), isa, [1, tile[1]], parts)
    if (one.phases == layers[0].phases and not one.shared_bytes
            and len(one.constants) == len(layers[0].constants)
            and all(map(np.array_equal, one.constants, layers[0].constants))):
        layers.append(one)
    return layers


def _placed(epilogue: Program | None, operands: tuple[np.ndarray | None, ...],
            shape: tuple[int, int]) -> Program | None:
    """With views of the operands of a result of this shape."""
    if epilogue is None:
        return None
    views = [whole(Tensor(shape)) if operand is None
             else whole(constant_tensor(operand)).broadcast(shape) for operand in operands]
    return Program(shape, views, list(epilogue.nodes))


def source(name: str, layers: list[Layer]) -> str:
    """C code, to follow ffi_c's, of the function `name` (inputs ..., constants ..., [result])."""
    layer = layers[0]
    inputs, constants = range(len(layer.inputs)), range(len(layer.constants))
    arguments = ", ".join(["task", *(f"(block)[{i}]" for i in inputs),
                           *(f"call->constants[{i}]" for i in constants), "out", "0", "scratch"])
    types = ", ".join(["int", *["const void *"] * (len(inputs) + len(constants)),
                       "void *", "void *", "void *"])
    symbols = [one.symbol(0) for one in layers]
    calls = {f"{what}(task, block, out, scratch)": f"{symbol}({arguments})"
             for what, symbol in zip(("LAYER", "LAYER_OF_ONE"), symbols)}
    return "".join(f"int {symbol}({types});\n" for symbol in symbols) + c_defines({
        "FUNCTION": f"__tvm_ffi_{name}", **calls, "BLOCK": ROWS, "INPUTS": len(inputs),
        "INPUT_ROW": [4 * shape[-1] for shape, _ in layer.inputs],
        "OUTPUT_ROW": 4 * layer.output_shape[-1], "CONSTANTS": len(constants),
        "TASKS": layer.phases[0].tasks, "SCRATCH": max(one.scratch_bytes for one in layers),
    }) + '#include "open-blocks.c.in"\n'
