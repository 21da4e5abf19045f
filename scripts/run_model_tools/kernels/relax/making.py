"""Calls that are none of the network's own, made while it is read."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from tvm import relax

from run_model_tools.kernels.relax.nodes import Call, Constant, Expr, Op, TensorType, constant


def integers(values: Any) -> list[int]:
    return [int(v) for v in values]


def expression(array: np.ndarray) -> Any:
    """A constant of Relax's; by itself TVM makes 32 bits of the types of 64."""
    return relax.const(array, str(array.dtype))


def made(name: str, like: TensorType, arguments: list[Expr], write: Callable[..., Any],
         **attributes: Any) -> Call:
    """A call that is no call of the network's own."""
    return Call(like, Op(name), arguments, write, SimpleNamespace(**attributes))


def reshaped(value: Expr, shape: tuple[int, ...]) -> Expr:
    if value.checked_type.shape == shape:
        return value
    if isinstance(value, Constant):
        return constant(value.data.numpy().reshape(shape))
    return made("reshape", TensorType(shape, value.checked_type.dtype), [value],
                lambda x: relax.op.reshape(x, shape))
