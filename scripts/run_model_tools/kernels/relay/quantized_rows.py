"""Quantized tensors that are no pictures: rows of whole numbers of float32, for products of such.

Layers of bytes (int8/) read and write pictures.  What a network of matrices quantizes is rounded
where it was made, as one of the operators that are done to it on the way to memory, and a product
with quantized weights is one of whole numbers that is scaled once, as QLinearMatMul is.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from tvm import relay

from run_model_tools.kernels.int8.grid import Grid
from run_model_tools.kernels.relay.graph import MOVES, arguments, operator, post_order, shape_of
from run_model_tools.kernels.relay.whole_numbers import MUCH

_APART = MOVES | {"nn.dense", "nn.matmul", "nn.batch_matmul", "nn.softmax", "nn.layer_norm",
                  "split", "take"}
"""What stands between a picture and rows."""


@dataclass(frozen=True)
class Steps:
    """Numbers that are whole ones of float32 times a scale."""

    whole: relay.Expr
    scale: np.ndarray
    """float32, of one number, or as many axes as the numbers have."""


def pictures(body: relay.Expr) -> set[relay.Expr]:
    """The expressions, with types, that lie as pictures from a convolution or pooling on, or to
    one, or are a single row: layers of bytes compute fully connected ones of these."""
    order = post_order(body)
    beside: dict[relay.Expr, list[relay.Expr]] = defaultdict(list)
    found: list[relay.Expr] = []
    for expr in order:
        name = operator(expr)
        if name.startswith("nn.conv2d") or "pool2d" in name:
            found += [expr, expr.args[0]]
        elif name == "nn.dense" and shape_of(expr)[0] == 1:
            found += _row(expr.args[0])
        elif name.startswith("qnn.") and math.prod(shape_of(expr)[:-1]) == 1:
            found.append(expr)
        if name in _APART or isinstance(expr, relay.Constant):
            continue
        for other in arguments(expr):
            if isinstance(other, relay.Tuple) or _is_picture(other):
                beside[expr].append(other)
                beside[other].append(expr)
    seen: set[relay.Expr] = set()
    while found:
        expr = found.pop()
        if expr not in seen:
            seen.add(expr)
            found += beside[expr]
    return seen


def _is_picture(expr: relay.Expr) -> bool:
    return len(shape_of(expr)) == 4 and not isinstance(expr, relay.Constant)


def _row(expr: relay.Expr) -> list[relay.Expr]:
    """A fully connected layer's input, and what it is quantized from."""
    found = [expr]
    while operator(expr) in MOVES or operator(expr).startswith("qnn."):
        expr = expr.args[0]
        found.append(expr)
    return found


def rounded(x: relay.Expr, grid: Grid) -> relay.Expr:
    """`x` in steps of a grid from its zero, as QuantizeLinear brings it there: float32."""
    low, high = grid.limits
    steps = relay.divide(x, relay.const(np.float32(grid.scale)))
    # A sum that has no bits for fractions rounds to even; a difference TVM would take for x.
    for number in (MUCH, -MUCH):
        steps = relay.add(steps, relay.const(np.float32(number)))
    return relay.clip(steps, float(low - grid.zero_point), float(high - grid.zero_point))


def numbers_of(steps: relay.Expr, grid: Grid) -> relay.Expr:
    """The whole numbers of a grid, of its type, that are so many steps from its zero."""
    return relay.cast(relay.add(steps, relay.const(np.float32(grid.zero_point))), grid.dtype)


def steps_of(numbers: relay.Expr, grid: Grid) -> relay.Expr:
    """How many steps from their zero the whole numbers of a grid are, as float32."""
    return relay.subtract(relay.cast(numbers, "float32"),
                          relay.const(np.float32(grid.zero_point)))


def moved(move: relay.Call, steps: Steps) -> Steps | None:
    """What becomes of them by one of MOVES; None where scales would have to move too."""
    whole = relay.Call(move.op, [steps.whole], move.attrs)
    if steps.scale.size == 1:
        return Steps(whole, steps.scale)
    if operator(move) != "transpose":
        return None
    axes = [int(a) for a in move.attrs.axes] if move.attrs.axes else None
    return Steps(whole, steps.scale.transpose(axes))


def product(dense: relay.Call, left: Steps, right: Steps) -> relay.Expr | None:
    """The same numbers as `dense`, of whole ones; None where these have a scale along the sums."""
    if left.scale.size > 1 or right.scale.size > 1 and right.scale.shape[1] > 1:
        return None
    whole = relay.Call(dense.op, [left.whole, right.whole], dense.attrs)
    return relay.multiply(whole, relay.const((left.scale * right.scale).squeeze()))
