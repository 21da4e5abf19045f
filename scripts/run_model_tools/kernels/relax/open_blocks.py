"""Products of open rows with weights, as functions that Relax calls: the kernel of a few rows, for
one block after the other (c/open-blocks.c.in)."""

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


def layer_of(weights: np.ndarray, isa: Isa, epilogue: Program | None = None,
             operands: tuple[np.ndarray | None, ...] = ()) -> Layer | None:
    """The layer of ROWS rows times `weights` (depth, columns), None where there is none.

    epilogue: of the node "product", its inputs are `operands` by number: a number for each column,
    or None for as many rows as the result has, which follow the rows as the layer's inputs.
    """
    depth, columns = weights.shape
    left = View(Tensor((ROWS, depth)), ((), ((ROWS, depth),), ((depth, 1),)))
    product = Product(left, weights, 1.0, _placed(epilogue, operands, columns))
    found = options(product, isa)
    if not found:
        return None
    parts = [1, 4 if vectors(columns, isa) >= _WIDE else 1]
    layer = make(product, isa, found[0]["tile"], parts)
    return None if layer.shared_bytes or len(layer.phases) != 1 else layer


def _placed(epilogue: Program | None, operands: tuple[np.ndarray | None, ...], columns: int
            ) -> Program | None:
    """With views of a block's operands."""
    if epilogue is None:
        return None
    shape = (ROWS, columns)
    views = [whole(Tensor(shape)) if operand is None
             else whole(constant_tensor(operand)).broadcast(shape) for operand in operands]
    return Program(shape, views, list(epilogue.nodes))


def source(name: str, layer: Layer) -> str:
    """C code, to follow ffi_c's, of the function `name` (inputs ..., constants ..., [result])."""
    inputs, constants = range(len(layer.inputs)), range(len(layer.constants))
    arguments = ", ".join(["task", *(f"(block)[{i}]" for i in inputs),
                           *(f"call->constants[{i}]" for i in constants), "out", "0", "scratch"])
    types = ", ".join(["int", *["const void *"] * (len(inputs) + len(constants)),
                       "void *", "void *", "void *"])
    symbol = layer.symbol(0)
    return f"int {symbol}({types});\n" + c_defines({
        "FUNCTION": f"__tvm_ffi_{name}", "LAYER(task, block, out, scratch)":
        f"{symbol}({arguments})", "BLOCK": ROWS, "INPUTS": len(inputs),
        "INPUT_ROW": [4 * shape[-1] for shape, _ in layer.inputs],
        "OUTPUT_ROW": 4 * layer.output_shape[-1], "CONSTANTS": len(constants),
        "TASKS": layer.phases[0].tasks, "SCRATCH": layer.scratch_bytes,
    }) + '#include "open-blocks.c.in"\n'
