"""Operators of constants, computed while a network is read: biases that are reshaped, bounds that
are looked at.  What is not listed here TVM folds when it compiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from run_model_tools.kernels.relax.nodes import Constant, Expr


def folded(name: str, call: Any, arguments: list[Expr]) -> np.ndarray | None:
    """The result of a call of Relax's, if it is one of constants that is known here."""
    function = _FUNCTIONS.get(name)
    if function is None or not arguments or not all(isinstance(a, Constant) for a in arguments):
        return None
    values = [a.data.numpy() for a in arguments if isinstance(a, Constant)]
    with np.errstate(all="ignore"):
        return np.asarray(function(call, *values))


def _reshape(call: Any, x: np.ndarray) -> np.ndarray:
    return x.reshape([int(e) for e in call.ty.shape.values])


def _dequantize(call: Any, x: np.ndarray, scale: np.ndarray, zero: np.ndarray) -> np.ndarray:
    def spread(values: np.ndarray) -> np.ndarray:
        shape = [1] * x.ndim
        if values.size > 1:
            shape[int(call.attrs.axis)] = -1
        return values.reshape(shape)
    steps = x.astype(np.int32) - spread(zero).astype(np.int32)
    return (steps * spread(scale)).astype(str(call.ty.dtype))


def _plainly(function: Callable[..., Any]) -> Callable[..., Any]:
    """For functions that give what NumPy gives of operands of one type."""
    def compute(call: Any, *values: np.ndarray) -> np.ndarray:
        return np.asarray(function(*values)).astype(str(call.ty.dtype))
    return compute


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("relax.reshape", "relax.expand_dims", "relax.squeeze", "relax.flatten"),
                    _reshape),
    "relax.permute_dims": lambda call, x: x.transpose(
        None if call.attrs.axes is None else [int(a) for a in call.attrs.axes]),
    "relax.take": lambda call, x, indices: np.take(
        x, indices, None if call.attrs.axis is None else int(call.attrs.axis)),
    "relax.dequantize": _dequantize,
    "relax.broadcast_to": lambda call, x: np.broadcast_to(
        x, [int(e) for e in call.ty.shape.values]),
    **{f"relax.{name}": _plainly(getattr(np, name)) for name in (
        "add", "subtract", "multiply", "maximum", "minimum", "less", "isnan", "where", "sqrt",
        "negative")},
    "relax.astype": _plainly(np.asarray)}
