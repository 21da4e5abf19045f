"""Which expressions are whole numbers for certain, and how far from zero they can lie."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from run_model_tools.kernels.relay import nodes as relay
from run_model_tools.kernels.relay.graph import MOVES, operator

_BYTES = ("int8", "uint8")
_EXACT = 1 << 24
"""Up to which float32 holds all whole numbers, and sums of them that stay below, in any order."""
MUCH = 1.5 * 2 ** 23
"""Added and taken away again it rounds: from 2 ** 23 on float32 has no fractions.  It is the number
that onnx_repair/rules/quantisation.py takes."""


@dataclass(frozen=True)
class Bounds:
    """Whole numbers from `low` to `high`."""

    low: int
    high: int
    spread: int
    """How far they lie from each other at most, which may be less than the bounds do: bytes minus
    a zero point that is not known are within 255 of each other."""

    @classmethod
    def of(cls, low: int, high: int) -> Bounds:
        """Any numbers within them."""
        return cls(low, high, high - low)

    def within(self, dtype: str) -> bool:
        """Whether a type, of whole numbers or float32, has all of them."""
        if dtype == "float32":
            return max(-self.low, self.high) <= _EXACT
        if dtype not in ("int8", "uint8", "int16", "uint16", "int32", "int64"):
            return False
        limits = np.iinfo(dtype)
        return limits.min <= self.low and self.high <= limits.max


def bounds_of(expr: relay.Expr) -> Bounds | None:
    """None where an expression may be no whole numbers, or ones that its type rounds or wraps."""
    return _bounds(expr, {})


def _bounds(expr: relay.Expr, known: dict[relay.Expr, Bounds | None]) -> Bounds | None:
    if expr not in known:
        kind = expr.checked_type
        dtype = str(kind.dtype) if isinstance(kind, relay.TensorType) else ""
        if dtype in _BYTES:
            limits = np.iinfo(dtype)
            found: Bounds | None = Bounds.of(int(limits.min), int(limits.max))
        else:
            found = _computed(expr, known)
        known[expr] = found if found is not None and found.within(dtype) else None
    return known[expr]


def _computed(expr: relay.Expr, known: dict[relay.Expr, Bounds | None]) -> Bounds | None:
    if isinstance(expr, relay.Constant):
        return bounds_of_array(expr.data.numpy())
    name = operator(expr)
    if name == "cast" or name in MOVES:
        return _bounds(expr.args[0], known)
    if name in ("add", "subtract"):
        a = _bounds(expr.args[0], known)
        b = None if a is None else _bounds(expr.args[1], known)
        if a is None or b is None:
            return None
        made = (Bounds.of(a.low + b.low, a.high + b.high) if name == "add"
                else Bounds.of(a.low - b.high, a.high - b.low))
        spreads = [0 if _is_one_number(e) else known_.spread
                   for e, known_ in zip(expr.args, (a, b))]
        return replace(made, spread=min(sum(spreads), made.spread))
    if name == "clip":
        return _clipped(expr, known)
    if name == "nn.dense" and isinstance(expr.args[1], relay.Constant):
        left = _bounds(expr.args[0], known)
        return None if left is None else bounds_of_product(left, expr.args[1].data.numpy().T)
    return None


def _is_one_number(expr: relay.Expr) -> bool:
    kind = expr.checked_type
    return isinstance(kind, relay.TensorType) and all(int(extent) == 1 for extent in kind.shape)


def _clipped(expr: relay.Call, known: dict[relay.Expr, Bounds | None]) -> Bounds | None:
    """Of numbers that are whole, or rounded by MUCH: these too within a clip's bounds."""
    low, high = float(expr.attrs.a_min), float(expr.attrs.a_max)
    if not (np.isfinite([low, high]).all() and low == np.trunc(low) and high == np.trunc(high)):
        return None
    inner = expr.args[0]
    shift: Bounds | None = Bounds.of(0, 0)
    if operator(inner) == "add" and not _is_rounded(inner):
        inner, shift = inner.args[0], _bounds(inner.args[1], known)
    if (_is_rounded(inner) and shift is not None and low - shift.high > -MUCH / 3
            and max(-low, high) < MUCH / 3):
        return Bounds.of(int(low), int(high))
    given = _bounds(expr.args[0], known)
    return None if given is None else Bounds.of(max(int(low), min(given.low, int(high))),
                                                min(int(high), max(given.high, int(low))))


def _is_rounded(expr: relay.Expr) -> bool:
    """Whether it is x + MUCH - MUCH, which is whole but where it is below -MUCH / 3."""
    for number in (-MUCH, MUCH):
        if operator(expr) != "add" or not isinstance(expr.args[1], relay.Constant):
            return False
        if str(expr.checked_type.dtype) != "float32" or (expr.args[1].data.numpy() != number).any():
            return False
        expr = expr.args[0]
    return True


def bounds_of_array(data: np.ndarray) -> Bounds | None:
    """Of numbers that are known."""
    if not data.size or data.dtype.kind not in "iuf":
        return None
    # A few numbers rule out most arrays, such as weights of networks that are not quantized.
    for some in (data.reshape(-1)[:64], data) if data.dtype.kind == "f" else ():
        if not np.isfinite(some).all() or (some != np.trunc(some)).any():
            return None
    return Bounds.of(int(data.min()), int(data.max()))


def bounds_of_product(left: Bounds, weights: np.ndarray) -> Bounds | None:
    """Of the sums of products with (depth, columns) weights; None where these are not whole."""
    if bounds_of_array(weights) is None:
        return None
    positive = np.maximum(weights, 0).sum(0, dtype=np.float64)
    negative = np.maximum(-weights, 0).sum(0, dtype=np.float64)
    return Bounds.of(int((left.low * positive - left.high * negative).min()),
                     int((left.high * positive - left.low * negative).max()))


def is_dense_of_whole(expr: relay.Expr) -> bool:
    """Whether it multiplies rows with constants that are whole numbers."""
    if operator(expr) != "nn.dense":
        return False
    weights = expr.args[1]
    while operator(weights) in MOVES:
        weights = weights.args[0]
    return isinstance(weights, relay.Constant) and (
        bounds_of_array(weights.data.numpy()) is not None)
