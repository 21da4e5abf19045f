"""Relay's operators on single numbers as steps of an Expression; which of them belong together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from run_model_tools.kernels.programs.expressions import Builder, Operand
from run_model_tools.kernels.relay import nodes as relay
from run_model_tools.kernels.relay.graph import arguments, operator, shape_of

FAST = {"fast_exp": "exp", "fast_tanh": "tanh", "fast_erf": "erf"}
"""What TVM calls approximations of its own: here they are as exact as the others."""
_SAME_NAME = {"nn.relu": "relu", **FAST}
_ONE = ("exp", "log", "erf", "tanh", "sin", "cos", "tan", "atan", "sigmoid", "abs", "negative",
        "sqrt", "rsqrt")
_TWO = ("add", "subtract", "multiply", "divide", "maximum", "minimum")
_POWERS: tuple[float | None, ...] = (2.0, 3.0, 4.0, 0.5, -0.5, -1.0, 1.0)

OPERATORS = {*_ONE, *_TWO, *_SAME_NAME, "clip", "copy", "power", "nn.leaky_relu", "nn.prelu",
             "nn.bias_add"}
"""Those that apply() knows."""


def is_elementwise(expr: relay.Expr) -> bool:
    """Whether apply() knows it: one of OPERATORS on float32, with constants that fit channels."""
    name = operator(expr)
    shape: tuple[int, ...] = ()
    if name in OPERATORS and isinstance(expr.checked_type, relay.TensorType):
        shape = shape_of(expr)
    if len(shape) < 2 or -1 in shape or str(expr.checked_type.dtype) != "float32":
        return False
    if name in ("nn.prelu", "nn.bias_add") and int(expr.attrs.axis) % len(shape) != 1:
        return False
    constants = [_numbers(expr, i) for i, argument in enumerate(expr.args)
                 if isinstance(argument, relay.Constant)]
    if any(numbers is None for numbers in constants) or len(constants) == len(expr.args):
        return False
    if name == "power":
        exponent = _numbers(expr, 1) if isinstance(expr.args[1], relay.Constant) else None
        return exponent is not None and Builder().constant(exponent).number in _POWERS
    return name != "nn.prelu" or len(constants) == 1


def apply(builder: Builder, call: relay.Call,
          operand_of: Callable[[relay.Expr], Operand]) -> Operand:
    """The result of a call that is_elementwise(); `operand_of` gives the operands of its arguments
    that are no constants."""
    name = operator(call)
    operands = []
    for index, argument in enumerate(call.args):
        if isinstance(argument, relay.Constant):
            numbers = _numbers(call, index)
            assert numbers is not None
            operands.append(builder.constant(numbers))
        else:
            operands.append(operand_of(argument))
    name = _SAME_NAME.get(name, name)
    if name in _ONE or name in _TWO:
        return builder.apply(name, *operands, exactly=name == "divide" and is_exact(call.args[1]))
    if name == "copy":
        return operands[0]
    if name == "relu":
        return builder.clip(operands[0], 0.0, np.inf)
    if name == "clip":
        return builder.clip(operands[0], float(call.attrs.a_min), float(call.attrs.a_max))
    if name == "nn.leaky_relu":
        return builder.apply("leaky_relu", operands[0], Operand(number=float(call.attrs.alpha)))
    if name == "nn.prelu":
        return builder.apply("leaky_relu", *operands)
    if name == "nn.bias_add":
        return builder.apply("add", *operands)
    assert name == "power", name
    return _power(builder, *operands)


def is_exact(divisor: relay.Expr) -> bool:
    """Whether a quotient must be that and no product (onnx_repair/exact_quotients.py)."""
    return isinstance(divisor, relay.Constant) and shape_of(divisor) == (1,)


def _numbers(call: relay.Call, index: int) -> np.ndarray | None:
    """The constant argument as numbers_of_channels()."""
    by_axis = operator(call) in ("nn.prelu", "nn.bias_add") and index == 1
    return numbers_of_channels(call.args[index].data.numpy(), shape_of(call), by_axis)


def _power(builder: Builder, base: Operand, exponent: Operand) -> Operand:
    if exponent.number == -1:
        return builder.apply("divide", Operand(number=1.0), base)
    if exponent.number in (0.5, -0.5):
        return builder.apply("sqrt" if exponent.number > 0 else "rsqrt", base)
    result = base
    for _ in range(int(exponent.number or 1) - 1):
        result = builder.apply("multiply", result, base)
    return result


def numbers_of_channels(value: np.ndarray, shape: tuple[int, ...], by_axis: bool
                        ) -> np.ndarray | None:
    """A float32 constant that has one number for each channel of a tensor of this shape (axis 1),
    or one for all, as (channels,); else None.

    by_axis: whether it stands for the channels as it is, and is not broadcast to the tensor.
    """
    if value.dtype != np.float32 or len(shape) < 2:
        return None
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


def region_after(start: relay.Call, users: dict[relay.Expr, list[relay.Expr]],
                 rank: dict[relay.Expr, int], taken: set[relay.Expr], others: int
                 ) -> list[relay.Call]:
    """Operators on single numbers that follow `start`, in order: as many as there can be of which
    nothing else reads any but the last, none of `taken`, reading at most `others` values of
    start's shape beside start's own.  Empty if there are none.

    `users`: of each expression; `rank`: its number in an order in which all can be computed.
    """
    shape = shape_of(start)
    members, waiting = {start}, list(users[start])
    while waiting:
        call = waiting.pop()
        if call in members or call in taken or len(members) > 64 or not (
                is_elementwise(call) and shape_of(call) == shape):
            continue
        members.add(call)
        waiting += users[call]
    for last in sorted(members - {start}, key=lambda call: -rank[call]):
        found, stack = {start}, [last]
        while stack:
            call = stack.pop()
            if call not in found:
                found.add(call)
                stack += [a for a in arguments(call) if a in members]
        inside = found - {last}
        read = {a for call in found - {start} for a in arguments(call)
                if a not in found and not isinstance(a, relay.Constant)}
        if (all(user in found for call in inside for user in users[call])
                and len(read) <= others and all(shape_of(a) == shape for a in read)):
            return sorted(found - {start}, key=lambda call: rank[call])
    return []


def region_before(last: relay.Call, users: dict[relay.Expr, list[relay.Expr]],
                  rank: dict[relay.Expr, int], taken: set[relay.Expr]) -> list[relay.Call]:
    """`last`, an operator on single numbers, and those before it of its shape that only it and they
    read, none of `taken`, in order."""
    shape, found = shape_of(last), {last}
    grown = True
    while grown and len(found) < 64:
        grown = False
        for call in list(found):
            for argument in arguments(call):
                if (argument not in found and argument not in taken and is_elementwise(argument)
                        and shape_of(argument) == shape
                        and all(user in found for user in users[argument])):
                    found.add(argument)
                    grown = True
    return sorted(found, key=lambda call: rank[call])
