"""Functions of single numbers, as networks put them together: activations, sums, products.

An Expression becomes C code on vectors (c/vector_math.h) in whatever kernel has the numbers at
hand: SiLU, Hardswish, GELU, Mish, a normalisation after an activation, a residual that is added
before or after it are all the same to the kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

_Read = TypeVar("_Read")
"""What a step reads, in an expression or in a program."""

_erf = np.vectorize(math.erf, otypes=[np.float64])


def _sigmoid(x: np.ndarray) -> np.ndarray:
    e = np.exp(-abs(x))
    return np.where(x < 0, e, 1.0) / (1 + e)


def _softplus(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0) + np.log1p(np.exp(-abs(x)))


FUNCTIONS: dict[str, tuple[str, Callable[..., np.ndarray]]] = {
    "identity": ("{}", np.asarray),
    "add": ("{} + {}", np.add),
    "subtract": ("{} - {}", np.subtract),
    "multiply": ("{} * {}", np.multiply),
    "divide": ("{} / {}", np.divide),
    "maximum": ("maximum({}, {})", np.maximum),
    "minimum": ("minimum({}, {})", np.minimum),
    "negative": ("-{}", np.negative),
    "abs": ("absolute({})", np.abs),
    "sqrt": ("square_root({})", np.sqrt),
    "rsqrt": ("splat(1.0f) / square_root({})", lambda x: 1 / np.sqrt(x)),
    "exp": ("exponential({})", np.exp),
    "normal_exp": ("normal_exponential({})",
                   lambda x: np.where(x < math.log(2 ** -126), 0, np.exp(x))),
    "log": ("logarithm({})", np.log),
    "erf": ("error_function({})", _erf),
    "tanh": ("hyperbolic_tangent({})", np.tanh),
    "sin": ("sine({})", np.sin),
    "cos": ("cosine({})", np.cos),
    "tan": ("tangent({})", np.tan),
    "atan": ("arctangent({})", np.arctan),
    "sigmoid": ("sigmoid({})", _sigmoid),
    "softplus": ("softplus({})", _softplus),
    "tanh_of_softplus": ("tanh_of_softplus({})", lambda x: np.tanh(_softplus(x))),
    "leaky_relu": ("leaky_relu({}, {})", lambda x, slope: np.where(x < 0, x * slope, x)),
    "if_less": ("chosen({} < {}, {}, {})", lambda a, b, x, y: np.where(a < b, x, y)),
    "if_less_equal": ("chosen({} <= {}, {}, {})", lambda a, b, x, y: np.where(a <= b, x, y)),
    "if_equal": ("chosen({} == {}, {}, {})", lambda a, b, x, y: np.where(a == b, x, y)),
}
"""By name: the C expression of vectors, and NumPy's function for the same."""


@dataclass(frozen=True)
class Operand:
    """What a step reads: exactly one of these."""

    step: int | None = None
    """The result of an earlier step."""
    input: int | None = None
    """An input of the expression; of an epilogue 0 is the sum and 1 the residual."""
    number: float | None = None
    channel: int | None = None
    """One of Expression.channels."""


@dataclass(frozen=True)
class Operation:
    """One step: a name of FUNCTIONS and what it is applied to."""

    function: str
    operands: tuple[Operand, ...]


@dataclass(frozen=True, eq=False)
class Expression:
    """The result of the last of some steps, for every number of some tensors of one shape."""

    steps: tuple[Operation, ...]
    inputs: int = 1
    channels: tuple[np.ndarray, ...] = ()
    """Constants that have a number for each channel: float32 (channels,)."""

    @property
    def text(self) -> str:
        """For keys and reports: "sigmoid(x0) multiply(x0,t0)", constants by channel as c0, c1."""
        return " ".join(f"{step.function}({','.join(map(_name, step.operands))})"
                        for step in self.steps)

    def macro(self, name: str, as_array: bool = False) -> dict[str, object]:
        """{"NAME(x0, ..., channel)": a C expression}: x0 and so on are vectors (variables), or with
        `as_array` x is an array of them; `channel` points to a bias behind which, CHANNEL_STEP
        floats apart, lie the constants by channel (c/epilogue.h)."""
        inputs = "x, " if as_array else "".join(f"x{i}, " for i in range(self.inputs))
        lines = [f"const vec x{i} = (x)[{i}];" for i in range(self.inputs * as_array)]
        subtracted = subtracted_products(
            [(step.function, step.operands) for step in self.steps], lambda operand: operand.step,
            lambda operand: operand.step is not None or operand.input is not None)
        for i, step in enumerate(self.steps):
            expression = FUNCTIONS[step.function][0].format(*map(_c_operand, step.operands))
            expression = f"rounded({expression})" if i in subtracted else expression
            lines.append(f"const vec t{i} = {expression};")
        return {f"{name}({inputs}channel)": f"({{ {' '.join(lines)} t{len(self.steps) - 1}; }})"}

    def defines(self, step: int) -> dict[str, object]:
        """epilogue.h's macros.  `step`: floats between one constant by channel and the next."""
        found = replace(self, inputs=2).macro("EPILOGUE")
        if self.channels:
            found |= {"CHANNEL_CONSTANTS": len(self.channels), "CHANNEL_STEP": step}
        return found

    def finite_at_zero(self) -> bool:
        """Whether lanes in which no channel lies get finite numbers from it."""
        with np.errstate(all="ignore"):
            nothing = replace(self, channels=tuple(np.zeros(1) for _ in self.channels))
            return bool(np.isfinite(nothing.evaluate([np.zeros(1)] * self.inputs)).all())

    def placed(self, places: np.ndarray, count: int) -> Expression:
        """With the constants of channel i at places[i] of `count`, zeros elsewhere."""
        channels = []
        for values in self.channels:
            spread = np.zeros(count, np.float32)
            spread[places] = values
            channels.append(spread)
        return replace(self, channels=tuple(channels))

    def evaluate(self, inputs: Sequence[np.ndarray], channel_axis: int = 0) -> np.ndarray:
        """In float64, of arrays whose axis `channel_axis` is that of channels."""
        results: list[np.ndarray] = []

        def value(operand: Operand) -> np.ndarray:
            if operand.step is not None:
                return results[operand.step]
            if operand.input is not None:
                return np.asarray(inputs[operand.input], np.float64)
            if operand.number is not None:
                return np.asarray(operand.number, np.float64)
            assert operand.channel is not None
            after = inputs[0].ndim - channel_axis - 1
            return self.channels[operand.channel].astype(np.float64).reshape(-1, *(1,) * after)
        for step in self.steps:
            results.append(FUNCTIONS[step.function][1](*map(value, step.operands)))
        return results[-1]


def subtracted_products(steps: Sequence[tuple[str, Sequence[_Read]]],
                        step_of: Callable[[_Read], int | None],
                        varies: Callable[[_Read], bool]) -> set[int]:
    """Of steps, each a function and what it reads, the products of numbers that are taken from
    others: E[x^2] - E[x]^2 and a * d - b * c are 0 where both sides are equal, and a fused
    multiply-add would leave what one of them rounds."""
    taken = {step_of(read[1]) for function, read in steps
             if function == "subtract" and varies(read[0])}
    return {index for index, (function, read) in enumerate(steps)
            if index in taken and function == "multiply" and all(map(varies, read))}


def _name(operand: Operand) -> str:
    if operand.step is not None:
        return f"t{operand.step}"
    if operand.input is not None:
        return f"x{operand.input}"
    if operand.channel is not None:
        return f"c{operand.channel}"
    return repr(operand.number)


def _c_operand(operand: Operand) -> str:
    if operand.channel is not None:
        return f"load((channel) + {operand.channel + 1} * CHANNEL_STEP)"
    if operand.number is not None:
        return f"splat({c_number(operand.number)})"
    return _name(operand)


def c_number(number: float) -> str:
    """A float32 constant of C."""
    value = float(np.float32(number))
    if math.isnan(value):
        return '__builtin_nanf("")'
    if math.isinf(value):
        return "__builtin_inff()" if value > 0 else "-__builtin_inff()"
    return value.hex() + "f"


def of_channel(values: np.ndarray, places: int) -> np.ndarray:
    """Constants by channel, with zeros behind the last of them up to `places`."""
    return np.pad(values.astype(np.float32), (0, places - len(values)))


class Builder:
    """An expression in the making: finds simpler forms of what networks write out."""

    def __init__(self) -> None:
        self.steps: list[Operation] = []
        self.channels: list[np.ndarray] = []

    def constant(self, values: np.ndarray) -> Operand:
        """One number, or one for each channel."""
        flat = np.asarray(values, np.float32).reshape(-1)
        if flat.size == 1 or (flat == flat[0]).all():
            return Operand(number=float(flat[0]))
        for index, known in enumerate(self.channels):
            if np.array_equal(known, flat):
                return Operand(channel=index)
        self.channels.append(flat.copy())
        return Operand(channel=len(self.channels) - 1)

    def apply(self, function: str, *operands: Operand, exactly: bool = False) -> Operand:
        """The result of a function; exactly: by no other one that is within a rounding of it."""
        simpler = None if exactly else self._simpler(function, operands)
        if isinstance(simpler, Operand):
            return simpler
        step = simpler or Operation(function, operands)
        if step not in self.steps:
            self.steps.append(step)
        return Operand(step=self.steps.index(step))

    def clip(self, value: Operand, low: float, high: float) -> Operand:
        """Bounded where a bound is finite."""
        if low > -math.inf:
            value = self.apply("maximum", value, Operand(number=low))
        if high < math.inf:
            value = self.apply("minimum", value, Operand(number=high))
        return value

    def finish(self, result: Operand, inputs: int) -> Expression:
        """The expression of which `result` is the result, without steps that it does not need."""
        if result.step is None:  # An input as it is.
            result = self.apply("identity", result)
        assert result.step is not None
        needed = {result.step}
        for index in range(result.step, -1, -1):
            if index in needed:
                needed |= {o.step for o in self.steps[index].operands if o.step is not None}
        kept = sorted(needed)
        new = {old: index for index, old in enumerate(kept)}
        used = sorted({o.channel for i in kept for o in self.steps[i].operands
                       if o.channel is not None})

        def renamed(operand: Operand) -> Operand:
            if operand.step is not None:
                return Operand(step=new[operand.step])
            if operand.channel is not None:
                return Operand(channel=used.index(operand.channel))
            return operand
        steps = tuple(replace(self.steps[i], operands=tuple(map(renamed, self.steps[i].operands)))
                      for i in kept)
        return Expression(steps, inputs, tuple(self.channels[c] for c in used))

    def _step(self, operand: Operand, function: str) -> Operation | None:
        """The step that made an operand, if it is this function."""
        if operand.step is None or self.steps[operand.step].function != function:
            return None
        return self.steps[operand.step]

    def _simpler(self, function: str, operands: tuple[Operand, ...]) -> Operation | Operand | None:
        """What gives the same as the function of these operands in fewer steps, or None."""
        first = operands[0]
        second = operands[1] if len(operands) > 1 else Operand()
        if function == "multiply" and second.number == 1 or function == "add" and (
                second.number == 0):
            return first
        if function == "divide" and second.number is not None:
            # Where the reciprocal is a number like others, the quotient is within a rounding.
            number = np.float32(1 / second.number) if second.number else np.float32(np.inf)
            if 2.0 ** -126 < abs(number) < 2.0 ** 126:
                return Operation("multiply", (first, Operand(number=float(number))))
        if function == "log":
            # log(1 + e^x) as it is written overflows where the function does not.
            total = self._step(first, "add")
            for a, b in ((0, 1), (1, 0)) if total else ():
                exp = self._step(total.operands[a], "exp") if total else None
                if exp and total and total.operands[b].number == 1:
                    return Operation("softplus", exp.operands)
        if function == "tanh" and (plus := self._step(first, "softplus")):
            return Operation("tanh_of_softplus", plus.operands)
        return None
