"""Finds what can be done to a convolution's result before it is stored: bias, residual, clamp.

Batch normalisations after grouped convolutions, which TVM does not fold, are scales and biases too.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from tvm import relay


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

    @property
    def call(self) -> relay.Call:
        return self.calls[0]

    @property
    def last(self) -> relay.Call:
        return self.calls[-1]


def post_order(body: relay.Expr) -> list[relay.Expr]:
    """All expressions, each after what it reads."""
    order: list[relay.Expr] = []
    relay.analysis.post_order_visit(body, order.append)
    return order


def find_epilogues(body: relay.Expr) -> dict[relay.Expr, Epilogue]:
    """By the last expression that each takes in.

    Where two convolutions are added, the one that is computed last takes the other as residual.
    """
    order = post_order(body)
    users = defaultdict(list)
    for expr in order:
        for argument in _arguments(expr):
            users[argument].append(expr)
    found: dict[relay.Expr, Epilogue] = {}
    taken: set[relay.Expr] = set()
    # Backwards: of two that could take an addition in, the later one is asked first.
    for call in reversed(order):
        if operator(call) not in ("nn.conv2d", "nn.dense"):
            continue
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
        found[epilogue.last] = epilogue
    return found


def operator(expr: relay.Expr) -> str:
    """The operator's name, or "" for what is no call of one."""
    is_call = isinstance(expr, relay.Call) and hasattr(expr.op, "name")
    return str(expr.op.name) if is_call else ""


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
    other = user.args[1] if user.args[0] == epilogue.last else user.args[0]
    shape = shape_of(epilogue.call)
    if isinstance(other, relay.Constant):
        if epilogue.residual is not None or name == "nn.bias_add" and is_dense:
            return False
        value = other.data.numpy()
        numbers = _of_channels(value, shape, name == "nn.bias_add")
        if numbers is None or value.dtype != np.float32:
            return False
        if name == "multiply":
            epilogue.scale = numbers if epilogue.scale is None else epilogue.scale * numbers
            epilogue.bias = None if epilogue.bias is None else epilogue.bias * numbers
        else:
            epilogue.bias = numbers if epilogue.bias is None else epilogue.bias + numbers
        return True
    if name != "add" or is_dense or epilogue.residual is not None or shape_of(other) != shape:
        return False
    epilogue.residual = other
    return True


def _of_channels(value: np.ndarray, shape: tuple[int, ...], by_axis: bool) -> np.ndarray | None:
    """A constant that has one number for each channel, as (channels,), else None."""
    channels = shape[1]
    if by_axis:
        return value if value.shape == (channels,) else None
    # Broadcasting aligns the last axes.
    aligned = (1,) * (len(shape) - value.ndim) + value.shape
    if len(aligned) != len(shape) or aligned[1] not in (1, channels):
        return None
    if any(size != 1 for axis, size in enumerate(aligned) if axis != 1):
        return None
    return np.broadcast_to(value.reshape(-1), (channels,)).copy()


def shape_of(expr: relay.Expr) -> tuple[int, ...]:
    """The static shape of a tensor; () for a tuple."""
    kind = expr.checked_type
    return shape_of_type(kind) if isinstance(kind, relay.TensorType) else ()


def shape_of_type(kind: relay.TensorType) -> tuple[int, ...]:
    """The same of a tensor's type; -1 for an extent that is not known before running."""
    return tuple(int(d) if isinstance(d, (int, np.integer)) or hasattr(d, "value") else -1
                 for d in kind.shape)


def _arguments(expr: relay.Expr) -> list[relay.Expr]:
    if isinstance(expr, relay.Call):
        return list(expr.args)
    if isinstance(expr, relay.Tuple):
        return list(expr.fields)
    if isinstance(expr, relay.TupleGetItem):
        return [expr.tuple_value]
    return []
