"""What is asked of Relay's expressions again and again."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from run_model_tools.kernels.relay import nodes as relay


def post_order(body: relay.Expr) -> list[relay.Expr]:
    """All expressions, each after what it reads."""
    return relay.post_order(body)


def users_of(order: list[relay.Expr]) -> dict[relay.Expr, list[relay.Expr]]:
    """Which expressions read each, once for every argument."""
    users: dict[relay.Expr, list[relay.Expr]] = defaultdict(list)
    for expr in order:
        for argument in arguments(expr):
            users[argument].append(expr)
    return users


MOVES = frozenset(("reshape", "squeeze", "expand_dims", "transpose", "strided_slice",
                   "broadcast_to", "copy", "nn.batch_flatten"))
"""What gives the numbers that it is given, some of them or some more often, in another order."""


def is_read_once(expr: relay.Expr, users: dict[relay.Expr, list[relay.Expr]]) -> bool:
    """Whether no two operators read the same number of an expression, also of what only moves its
    numbers."""
    readers = users[expr]
    if len(readers) == 1 and operator(readers[0]) in MOVES:
        return is_read_once(readers[0], users)
    if len(readers) == 1 and operator(readers[0]) == "split":
        return all(is_read_once(part, users) for part in users[readers[0]])
    return len(readers) < 2


def arguments(expr: relay.Expr) -> list[relay.Expr]:
    """What an expression reads."""
    if isinstance(expr, relay.Call):
        return list(expr.args)
    if isinstance(expr, relay.Tuple):
        return list(expr.fields)
    if isinstance(expr, relay.TupleGetItem):
        return [expr.tuple_value]
    return []


def operator(expr: relay.Expr) -> str:
    """The operator's name, or "" for what is no call of one."""
    is_call = isinstance(expr, relay.Call) and hasattr(expr.op, "name")
    return str(expr.op.name) if is_call else ""


def shape_of(expr: relay.Expr) -> tuple[int, ...]:
    """The static shape of a tensor; () for a tuple."""
    kind = expr.checked_type
    return shape_of_type(kind) if isinstance(kind, relay.TensorType) else ()


def shape_of_type(kind: relay.TensorType) -> tuple[int, ...]:
    """The shape that a tensor's type says; -1 for an extent that is not known before running."""
    return tuple(int(d) if isinstance(d, (int, np.integer)) or hasattr(d, "value") else -1
                 for d in kind.shape)
