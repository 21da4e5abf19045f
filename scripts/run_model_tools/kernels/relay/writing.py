"""What steps that are left to TVM become in Relay."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relay

from run_model_tools.kernels.relay.operators import to_blocked, to_planar

__all__ = ["again", "constant", "part", "pictures", "reshape", "to_blocked", "to_planar"]


def again(call: relay.Call, arguments: list[Any]) -> relay.Call:
    """The operator once more, of these arguments, where lists stand for tuples."""
    made = [relay.Tuple(a) if isinstance(a, list) else a for a in arguments]
    return relay.Call(call.op, made, call.attrs, call.type_args)


def constant(value: relay.Expr) -> relay.Expr:
    """A constant's expression."""
    return value


def part(value: relay.Expr, index: int) -> relay.Expr:
    return relay.TupleGetItem(value, index)


def reshape(value: relay.Expr, shape: tuple[int, ...]) -> relay.Expr:
    return relay.reshape(value, shape)


def pictures(value: relay.Expr, count: int, places: np.ndarray) -> relay.Expr:
    """Of `count` pictures in blocks those at these places, zeros at -1."""
    if places.min() < 0:
        value = relay.nn.pad(value, ((0, 1), *[(0, 0)] * 4))
    return relay.take(value, relay.const(np.where(places < 0, count, places).astype(np.int32)),
                      axis=0)
