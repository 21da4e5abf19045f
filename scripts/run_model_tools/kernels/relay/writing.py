"""What steps that are left to TVM become in Relay."""

from __future__ import annotations

from typing import Any

from tvm import relay

from run_model_tools.kernels.relay.operators import to_blocked, to_planar

__all__ = ["again", "constant", "part", "reshape", "to_blocked", "to_planar"]


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
