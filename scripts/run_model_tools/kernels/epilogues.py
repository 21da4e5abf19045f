"""Finds what can be done to a convolution's result before it is stored: bias, residual, clamp, and
what else is done to each number.

Batch normalisations after grouped convolutions, which TVM does not fold, are scales and biases too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from run_model_tools.kernels.programs.expressions import Builder, Expression, Operand
from run_model_tools.kernels.relay import nodes as relay
from run_model_tools.kernels.relay.arithmetic import apply, numbers_of_channels, region_after
from run_model_tools.kernels.relay.graph import operator, post_order, shape_of, users_of
from run_model_tools.kernels.relay.whole_numbers import is_dense_of_whole

_ROUNDS = 1 << 20
"""A sum with a number of this size is one that rounds, whatever is added next."""


@dataclass(eq=False)
class Epilogue:
    """A convolution (or dense layer) and the operators after it that become part of it."""

    calls: list[relay.Call]
    """The convolution, and each operator on the result of the one before it."""
    scale: np.ndarray | None = None
    """(output channels,): the sum is multiplied by it before the bias is added."""
    bias: np.ndarray | None = None
    residual: relay.Expr | None = None
    low: float = -math.inf
    high: float = math.inf
    expression: Expression | None = None
    """Of the sum with its bias (input 0) and the residual (input 1), where more is done than to add
    the residual and to clamp, which it has within."""

    @property
    def call(self) -> relay.Call:
        return self.calls[0]

    @property
    def last(self) -> relay.Call:
        return self.calls[-1]


def find_epilogues(body: relay.Expr, expressions: bool) -> dict[relay.Expr, Epilogue]:
    """By the last expression that each takes in.

    Where two convolutions are added, the one that is computed last takes the other as residual.
    `expressions`: whether more than bias, residual and clamp is taken in.
    """
    order = post_order(body)
    users = users_of(order)
    rank = {expr: index for index, expr in enumerate(order)}
    found: dict[relay.Expr, Epilogue] = {}
    taken: set[relay.Expr] = set()
    # Backwards: of two that could take an addition in, the later one is asked first.
    for call in reversed(order):
        if operator(call) not in ("nn.conv2d", "nn.conv2d_transpose", "nn.dense"):
            continue
        if shape_of(call)[0] > 1 and is_dense_of_whole(call):
            continue  # a product, whose weights stay whole
        epilogue = Epilogue([call])
        while True:
            here = epilogue.last
            if len(users[here]) != 1:
                break
            user = users[here][0]
            if user in taken or not _take_in(epilogue, user):
                break
            epilogue.calls.append(user)
            taken.add(user)
        others = 0 if epilogue.residual is not None or _is_alone(call) else 1
        more = region_after(epilogue.last, users, rank, taken, others) if expressions else []
        if more and _extend(epilogue, more):
            taken.update(more)
        found[epilogue.last] = epilogue
    return found


def _is_alone(call: relay.Call) -> bool:
    """Whether no residual can be added to what it computes."""
    return operator(call) in ("nn.dense", "nn.conv2d_transpose")


def _extend(epilogue: Epilogue, more: list[relay.Call]) -> bool:
    """Makes of all that is done to the sum after its bias an expression, if that is possible."""
    builder = Builder()
    value = Operand(input=0)
    if epilogue.residual is not None:
        value = builder.apply("add", value, Operand(input=1))
    known = {epilogue.last: builder.clip(value, epilogue.low, epilogue.high)}
    residual = epilogue.residual

    def operand_of(argument: relay.Expr) -> Operand:
        nonlocal residual
        if argument not in known:
            residual = argument
            known[argument] = Operand(input=1)
        return known[argument]
    for call in more:
        known[call] = apply(builder, call, operand_of)
    expression = builder.finish(known[more[-1]], 1 if residual is None else 2)
    if not expression.finite_at_zero():
        return False
    epilogue.expression, epilogue.residual = expression, residual
    epilogue.calls += more
    epilogue.low, epilogue.high = -math.inf, math.inf
    return True


def _take_in(epilogue: Epilogue, user: relay.Expr) -> bool:
    """Makes `user`, the only one that reads epilogue.last, a part of it if that is possible."""
    name = operator(user)
    clamped = math.isfinite(epilogue.low) or math.isfinite(epilogue.high)
    if name == "nn.relu":
        epilogue.low = max(epilogue.low, 0.0)
        epilogue.high = max(epilogue.high, 0.0)
        return True
    if name == "clip":
        epilogue.low = min(max(epilogue.low, float(user.attrs.a_min)), float(user.attrs.a_max))
        epilogue.high = max(min(epilogue.high, float(user.attrs.a_max)), float(user.attrs.a_min))
        return True
    if clamped or name not in ("add", "nn.bias_add", "multiply"):
        return False
    if name == "nn.bias_add" and int(user.attrs.axis) not in (1, -3):
        return False
    is_dense = operator(epilogue.call) == "nn.dense"
    alone = _is_alone(epilogue.call)
    other = user.args[1] if user.args[0] == epilogue.last else user.args[0]
    shape = shape_of(epilogue.call)
    if isinstance(other, relay.Constant):
        if epilogue.residual is not None or name == "nn.bias_add" and is_dense:
            return False
        value = other.data.numpy()
        numbers = numbers_of_channels(value, shape, name == "nn.bias_add")
        if numbers is None or value.dtype != np.float32:
            return False
        if name != "multiply" and (np.abs(numbers) >= _ROUNDS).any():
            return False
        if name == "multiply":
            epilogue.scale = numbers if epilogue.scale is None else epilogue.scale * numbers
            epilogue.bias = None if epilogue.bias is None else epilogue.bias * numbers
        else:
            epilogue.bias = numbers if epilogue.bias is None else epilogue.bias + numbers
        return True
    if name != "add" or alone or epilogue.residual is not None or shape_of(other) != shape:
        return False
    epilogue.residual = other
    return True
