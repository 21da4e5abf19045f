"""Expressions as Relay has them, of a TVM that has no Relay: what relax/importing.py makes of a
Relax function, and the readers (relay/readers) read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from tvm import relax


@dataclass(frozen=True)
class TensorType:
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class TupleType:
    fields: tuple[TensorType, ...]


@dataclass(frozen=True)
class Op:
    name: str


@dataclass(eq=False)
class Expr:
    """Two expressions are the same only if they are the same object."""

    checked_type: Any


@dataclass(eq=False)
class Var(Expr):
    name_hint: str


@dataclass(frozen=True, eq=False)
class Data:
    """The numbers of a constant, as TVM's arrays give them."""

    array: np.ndarray

    def numpy(self) -> np.ndarray:
        return self.array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def dtype(self) -> str:
        return str(self.array.dtype)


@dataclass(eq=False)
class Constant(Expr):
    data: Data


@dataclass(eq=False)
class Tuple(Expr):
    fields: list[Expr]


@dataclass(eq=False)
class TupleGetItem(Expr):
    tuple_value: Expr
    index: int


@dataclass(eq=False)
class Call(Expr):
    op: Op
    args: list[Expr]
    write: Callable[..., Any]
    """Makes Relax's expression of the operator, given those of the arguments (lists of tuples)."""
    attrs: Any = None


@dataclass(eq=False)
class Function:
    params: list[Var]
    body: Expr


def constant(array: np.ndarray) -> Constant:
    return Constant(TensorType(array.shape, str(array.dtype)), Data(array))


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


def integers(values: Any) -> list[int]:
    return [int(v) for v in values]


def post_order(body: Expr) -> list[Expr]:
    """All expressions, each after what it reads."""
    order: list[Expr] = []
    seen: set[Expr] = set()
    stack: list[tuple[Expr, bool]] = [(body, False)]
    while stack:
        expr, complete = stack.pop()
        if complete:
            order.append(expr)
        elif expr not in seen:
            seen.add(expr)
            stack.append((expr, True))
            stack += [(inner, False) for inner in reversed(children(expr))]
    return order


def children(expr: Expr) -> list[Expr]:
    """What an expression reads."""
    if isinstance(expr, Call):
        return expr.args
    if isinstance(expr, Tuple):
        return expr.fields
    return [expr.tuple_value] if isinstance(expr, TupleGetItem) else []
