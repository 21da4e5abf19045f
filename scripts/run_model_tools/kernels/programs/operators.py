"""Networks' operators as nodes of programs (program.py), whatever they are read from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from run_model_tools.kernels.programs.program import Program

SAME_NAME = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "exp", "log", "erf",
             "tanh", "sin", "cos", "tan", "atan", "sigmoid", "sqrt", "rsqrt", "abs", "negative")
ONE_BY_ONE = (*SAME_NAME, "nn.relu", "clip", "nn.leaky_relu", "power", "copy", "nn.silu", "nn.gelu")
"""Those that one_by_one() knows."""


def one_by_one(program: Program, name: str, nodes: list[int], attrs: Any) -> bool:
    """The nodes of an operator on single numbers, the last of which is its result; whether there
    are such.  `attrs`: Relay's."""
    def constant(value: float) -> int:
        return program.add("constant", value=value)

    x = nodes[0]
    if name in SAME_NAME:
        program.add(name, *nodes)
    elif name == "nn.relu":
        program.add("maximum", x, constant(0.0))
    elif name == "clip":
        low = program.add("maximum", x, constant(float(attrs.a_min)))
        program.add("minimum", low, constant(float(attrs.a_max)))
    elif name == "nn.leaky_relu":
        below = program.add("minimum", x, constant(0.0))
        above = program.add("maximum", x, constant(0.0))
        program.add("add", above, program.add("multiply", below, constant(float(attrs.alpha))))
    elif name == "nn.silu":
        program.add("multiply", x, program.add("sigmoid", x))
    elif name == "nn.gelu":
        erf = program.add("erf", program.add("multiply", x, constant(0.5 ** 0.5)))
        half = program.add("multiply", x, constant(0.5))
        program.add("multiply", half, program.add("add", erf, constant(1.0)))
    elif name == "power":
        exponent = program.nodes[nodes[1]]
        if exponent.op != "constant" or exponent.value not in (0.5, -0.5, 1.0, 2.0, 3.0, 4.0):
            return False
        if abs(exponent.value) == 0.5:
            program.add("sqrt" if exponent.value > 0 else "rsqrt", x)
        elif exponent.value == 1:
            program.add("identity", x)
        else:
            square = program.add("multiply", x, x)
            if exponent.value > 2:
                program.add("multiply", square, x if exponent.value == 3 else square)
    elif name == "copy":
        program.add("identity", x)
    else:
        return False
    return True


def softmax(program: Program, x: int, is_log: bool) -> int:
    """Along rows; the node of the result."""
    less = program.add("subtract", x, program.add("max", x))
    e = program.add("normal_exp", less)
    total = program.add("sum", e)
    if is_log:
        return program.add("subtract", less, program.add("log", total))
    one = program.add("constant", value=1.0)
    return program.add("multiply", e, program.add("divide", one, total))


def layer_norm(program: Program, x: int, epsilon: float, weight: int | None, bias: int | None,
               mean_of: Callable[[int], int]) -> int:
    """Along rows; the node of the result.  `mean_of` gives the node of a sum's part of one column.
    """
    centred = program.add("subtract", x, mean_of(program.add("sum", x)))
    square = program.add("sum", program.add("multiply", centred, centred))
    variance = program.add("add", mean_of(square), program.add("constant", value=epsilon))
    result = program.add("multiply", centred, program.add("rsqrt", variance))
    if weight is not None:
        result = program.add("multiply", result, weight)
    return result if bias is None else program.add("add", result, bias)
