"""Numbers of fewer bits than compiled code has types for: rounded to where they are computed, and
kept as float32 or bytes, which hold all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.values import FLOAT4, Value
from run_model_tools.onnx_repair.walk import Walk


@dataclass(frozen=True)
class Form:
    """Which numbers a type of floats has: 1.f * 2**e with `fraction` bits of f, from e = `least`
    on, the same steps below it down to 0, and none above `most`."""

    fraction: int
    least: int
    most: float
    beyond: float
    """What larger ones become, where they do not become `most`."""


FORMS = {TensorProto.FLOAT8E4M3FN: Form(3, -6, 448.0, np.nan),
         TensorProto.FLOAT8E4M3FNUZ: Form(3, -7, 240.0, np.nan),
         TensorProto.FLOAT8E5M2: Form(2, -14, 57344.0, np.inf),
         TensorProto.FLOAT8E5M2FNUZ: Form(2, -15, 57344.0, np.nan),
         FLOAT4: Form(1, 0, 6.0, 6.0)}

def in_form(walk: Walk, x: Value, form: Form, saturates: bool) -> Value:
    """float32 numbers rounded to even, to the nearest ones that a form has."""
    graph = walk.graph
    # What is beyond twice the largest number need not be told from it.
    bound = form.most * (1 if saturates else 2)
    x = graph.op("Clip", x, graph.like(-bound, x), graph.like(bound, x))
    x = graph.op("Mul", x, 2.0 ** -form.least)
    unit = power_below(walk, graph.op("Abs", x), int(np.floor(np.log2(bound))) - form.least)
    x = graph.op("Mul", graph.op("Div", x, unit), 2.0 ** form.fraction)
    x = graph.op("Mul", to_even(walk, x), 2.0 ** (form.least - form.fraction))
    x = graph.op("Mul", x, unit)
    if saturates:
        return x
    for sign, op in ((1, "Greater"), (-1, "Less")):
        x = graph.op("Where", graph.op(op, x, sign * form.most),
                     graph.like(sign * form.beyond, x), x)
    return x


def power_below(walk: Walk, amount: Value, exponents: int) -> Value:
    """The largest of 1, 2 ... 2 ** exponents that is not above an amount, 1 for smaller ones: by
    comparisons, that of each half of those left, since all that is computed so is exact."""
    graph = walk.graph
    power = graph.like(1, amount)
    for step in _steps(exponents):
        above = graph.op("Not", graph.op("Less", amount, 2.0 ** step))
        amount = graph.op("Where", above, graph.op("Mul", amount, 2.0 ** -step), amount)
        power = graph.op("Mul", power, graph.op("Where", above, graph.like(2.0 ** step, amount),
                                                graph.like(1, amount)))
    return power


def any_power_below(walk: Walk, amount: Value) -> Value:
    """The largest power of two that is not above an amount of float32, 2 ** -126 of smaller
    ones."""
    graph = walk.graph
    large = graph.op("Not", graph.op("Less", amount, 1))
    least = graph.op("Where", large, graph.like(1, amount), graph.like(2.0 ** -126, amount))
    return graph.op("Mul", power_below(walk, graph.op("Div", amount, least), 127), least)


def _steps(exponents: int) -> list[int]:
    """Powers of two, the largest first, that sum up to any number up to `exponents`; 2 ** 64 and
    its inverse are numbers of float32, those of 128 are not both."""
    if exponents >= 64:
        return [64] * (exponents // 64) + _steps(63)
    return [1 << bit for bit in reversed(range(exponents.bit_length()))]


_MUCH = 1 << 22


def to_even(walk: Walk, x: Value, most: int = _MUCH) -> Value:
    """Numbers not farther from zero than `most`, 2 ** 24 at most, rounded to even: up to 2 ** 22 a
    sum with 1.5 * 2 ** 23 has no bits for fractions, and above 2 ** 23 no number has.  Round itself
    is a dozen operators for TVM, and a difference, not a sum, it would take for x."""
    graph = walk.graph
    if x.elem_type != TensorProto.FLOAT:
        return graph.op("Round", x)
    if most <= _MUCH:
        return graph.op("Add", graph.op("Add", x, 3.0 * _MUCH), -3.0 * _MUCH)
    bounds = graph.like(-_MUCH, x), graph.like(_MUCH, x)
    near = graph.op("Clip", x, *bounds)
    beyond = graph.op("Sub", x, near)
    next_ = graph.op("Clip", beyond, *bounds)
    return graph.op("Add", graph.op("Add", to_even(walk, near), to_even(walk, next_)),
                    graph.op("Sub", beyond, next_))
