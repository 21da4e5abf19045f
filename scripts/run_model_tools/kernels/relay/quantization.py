"""QuantizeLinear and DequantizeLinear in Relay: exactly as ONNX defines them.

TVM rounds halves away from zero where ONNX rounds them to even, and takes the operators apart
before the planner could see them.  So they become operators of our own (`mark`), which the planner
reads (readers/quantization.py), or sums and products that round as they should (`spell_out`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tvm
from tvm import relay

from run_model_tools.inside_tvm.faster_folding import evaluate
from run_model_tools.inside_tvm.operators import own_operators
from run_model_tools.kernels.int8.grid import Grid
from run_model_tools.kernels.relay import quantized_rows
from run_model_tools.kernels.relay.graph import MOVES, operator, shape_of
from run_model_tools.kernels.relay.quantized_rows import Steps

QUANTIZE, DEQUANTIZE = "run_model.quantize", "run_model.dequantize"
# They give numbers that they were given (zero, and so padding, is on every grid).
_MOVES = MOVES | {"nn.max_pool2d", "layout_transform"}


def quantize(x: relay.Expr, grid: Grid) -> relay.Expr:
    """The whole numbers of float32 `x`."""
    low, high = grid.limits
    steps = relay.divide(x, relay.const(np.float32(grid.scale)))
    # Whole numbers bound it, so that it may as well be clipped first.
    steps = relay.clip(steps, float(low - grid.zero_point), float(high - grid.zero_point))
    whole = relay.add(relay.cast(to_even(steps), "int32"), relay.const(np.int32(grid.zero_point)))
    return relay.annotation.stop_fusion(relay.cast(whole, grid.dtype))


def to_even(steps: relay.Expr) -> relay.Expr:
    """`steps` rounded, halves to even.

    TVM writes `steps` out four times when it fuses them, which a chain of such would do to the
    power of its length: what is made of it has to stop that.
    """
    # TVM rounds halves away from zero, which is to even for half the number.
    half = relay.const(np.float32(0.5))
    even = relay.multiply(relay.round(relay.multiply(steps, half)), relay.const(np.float32(2)))
    is_half = relay.equal(relay.subtract(steps, relay.floor(steps)), half)
    return relay.where(is_half, even, relay.round(steps))


def _quantize_along(x: relay.Expr, scale: relay.Expr, zero: relay.Expr, axis: int,
                    dtype: str) -> relay.Expr:
    """QuantizeLinear with scales that are computed, or one for each index along an axis."""
    def alongside(parameter: relay.Expr, kind: str) -> relay.Expr:
        parameter = relay.cast(parameter, kind)
        shape, rank = _shape(parameter), len(_shape(x))
        size = int(np.prod(shape, dtype=np.int64))
        if size == 1:
            return relay.reshape(parameter, ())
        return relay.reshape(parameter, [size if a == axis % rank else 1 for a in range(rank)])

    low, high = (int(n) for n in (np.iinfo(dtype).min, np.iinfo(dtype).max))
    steps = relay.clip(relay.divide(x, alongside(scale, "float32")), -1e6, 1e6)
    whole = relay.add(relay.cast(to_even(steps), "int32"), alongside(zero, "int32"))
    return relay.annotation.stop_fusion(relay.cast(relay.clip(whole, low, high), dtype))


def dequantize(x: relay.Expr, grid: Grid) -> relay.Expr:
    """float32 of whole numbers."""
    steps = relay.subtract(relay.cast(x, "int32"), relay.const(np.int32(grid.zero_point)))
    return relay.multiply(relay.cast(steps, "float32"), relay.const(np.float32(grid.scale)))


def mark(mod: tvm.IRModule) -> tvm.IRModule:
    """With operators of our own for those of one scale, and constants as float32."""
    _register()
    return _rewritten(mod, lambda x, grid: _call(QUANTIZE, x, grid),
                      lambda x, grid: _call(DEQUANTIZE, x, grid), rows=True)


def spell_out(mod: tvm.IRModule, rows: bool) -> tvm.IRModule:
    """With arithmetic instead of them, for TVM's schedules; `rows`: as rows of whole numbers of
    float32 where they are no pictures."""
    return _rewritten(mod, quantize, dequantize, rows=rows)


def grid_of(call: relay.Call) -> Grid:
    """Of an operator of our own."""
    attrs = call.attrs
    return Grid(float(str(attrs["scale"])), int(attrs["zero_point"]), str(attrs["dtype"]))


def _call(name: str, x: relay.Expr, grid: Grid) -> relay.Call:
    # A text, since attributes' floats are written into names with few digits.
    return own_operators.called(tvm, name, [x], scale=repr(grid.scale),
                                zero_point=int(grid.zero_point), dtype=grid.dtype)


_registered: set[str] = set()


def _register() -> None:
    for name in (QUANTIZE, DEQUANTIZE):
        if name in _registered:
            continue
        _registered.add(name)

        def kind(arguments: Any, attributes: Any, to_float: bool = name == DEQUANTIZE) -> Any:
            return relay.TensorType(arguments[0].shape,
                                    "float32" if to_float else str(attributes["dtype"]))

        own_operators.declare(name, "As in ONNX, with one scale.", ["data"], kind)


def _rewritten(mod: tvm.IRModule, to_whole: Callable, to_float: Callable,
               rows: bool) -> tvm.IRModule:
    if not any(operator(e).startswith("qnn.") for e in _calls(mod["main"])):
        return mod
    main = relay.transform.InferType()(mod)["main"]
    body = _Rewriter(to_whole, to_float, main.body if rows else None).visit(main.body)
    mod = tvm.IRModule.from_expr(relay.Function(main.params, body))
    return relay.transform.InferType()(mod)


def _calls(function: relay.Function) -> list[relay.Call]:
    found: list[relay.Call] = []
    relay.analysis.post_order_visit(
        function, lambda e: found.append(e) if isinstance(e, relay.Call) else None)
    return found


class _Rewriter(relay.ExprMutator):
    """Replaces both operators, and leaves out pairs of them that change nothing."""

    def __init__(self, to_whole: Callable, to_float: Callable, rows_of: relay.Expr | None):
        """`rows_of`: the network, if what is no picture of it becomes rows of whole numbers."""
        super().__init__()
        self.to_whole, self.to_float = to_whole, to_float
        self.makes_rows = rows_of is not None
        self.pictures = set() if rows_of is None else quantized_rows.pictures(rows_of)
        self.steps: dict[relay.Expr, Steps] = {}
        """Of float32 values that are whole numbers times a scale, where rows are made."""
        self.rounded: dict[relay.Expr, relay.Expr] = {}
        """Of what has been quantized as rows are: how many steps."""
        self.sources: dict[relay.Expr, tuple[relay.Expr, Grid]] = {}
        """Of what has been quantized: the float32 that it was."""
        self.grids: dict[relay.Expr, Grid] = {}
        """Of float32 values that are on a grid already."""

    def visit_call(self, call: relay.Call) -> relay.Expr:
        made = super().visit_call(call)
        name = operator(made)
        if name == "cast" and isinstance(made.args[0], relay.Constant):
            # Importers convert zero points.
            return relay.const(made.args[0].data.numpy().astype(str(made.attrs.dtype)))
        if (whole := _whole_constant(made)) is not None:
            return whole
        if name == "qnn.quantize":
            return self._quantized(made, self.makes_rows and call not in self.pictures)
        if name == "qnn.dequantize":
            return self._dequantized(made)
        if name == "nn.dense" and shape_of(call)[0] > 1:
            return self._product(made)
        if name == "nn.conv2d" and operator(made.args[0]) in MOVES:
            return self._of_picture(made)
        if name in MOVES and len(made.args) == 1 and made.args[0] in self.steps:
            steps = quantized_rows.moved(made, self.steps[made.args[0]])
            if steps is not None:
                self.steps[made] = steps
        if self._keeps(made) and made.args[0] in self.grids:
            self.grids[made] = self.grids[made.args[0]]
        if name == "concatenate" and isinstance(made.args[0], relay.Tuple):
            fields = made.args[0].fields
            first = self.grids.get(fields[0])
            if first is not None and all(self.grids.get(field) == first for field in fields):
                self.grids[made] = first
        return made

    @staticmethod
    def _keeps(call: relay.Call) -> bool:
        name = operator(call)
        if name == "nn.pad":
            return (str(call.attrs.pad_mode) == "constant" and len(call.args) == 2
                    and isinstance(call.args[1], relay.Constant)
                    and not call.args[1].data.numpy().any())
        return name in _MOVES

    def _quantized(self, call: relay.Call, is_row: bool) -> relay.Expr:
        dtype = str(call.attrs.out_dtype)
        if all(isinstance(a, relay.Constant) for a in call.args):
            return _constant_in_whole(call, dtype)
        grid = _grid(call.args[1], call.args[2], dtype)
        if grid is None:
            x, scale, zero = call.args
            return _quantize_along(x, scale, zero, int(call.attrs.axis), dtype)
        if is_row:
            steps = quantized_rows.rounded(call.args[0], grid)
            made = quantized_rows.numbers_of(steps, grid)
            self.rounded[made] = steps
        else:
            made = self.to_whole(call.args[0], grid)
        self.sources[made] = (call.args[0], grid)
        return made

    def _dequantized(self, call: relay.Call) -> relay.Expr:
        data = call.args[0]
        if isinstance(data, relay.Constant):
            return self._constant(call)
        known = self.sources.get(data)
        given = _grid(call.args[1], call.args[2], known[1].dtype if known else _dtype(data))
        if given is None:
            return call
        if known is not None and known[1] == given and self.grids.get(known[0]) == given:
            return known[0]
        scale = np.array(given.scale, np.float32)
        if data in self.rounded and known is not None and (
                known[1].zero_point == given.zero_point):
            # QLinearMatMul scales before it rounds.
            whole = self.rounded[data]
            made = relay.multiply(whole, relay.const(scale))
        else:
            whole = quantized_rows.steps_of(data, given)
            made = self.to_float(data, given)
        if self.makes_rows:
            self.steps[made] = Steps(whole, scale)
        self.grids[made] = given
        return made

    def _constant(self, call: relay.Call) -> relay.Expr:
        """float32 of a constant, channel by channel if it has a scale for each."""
        if not all(isinstance(a, relay.Constant) for a in call.args):
            return call
        data, scales, zeros = _arrays(call)
        whole = (data.astype(np.int64) - zeros).astype(np.float32)
        made = relay.const(whole * scales)
        if self.makes_rows:
            self.steps[made] = Steps(relay.const(whole), scales)
        return made

    def _of_picture(self, convolution: relay.Call) -> relay.Expr:
        """A convolution of rows that have become a picture: quantized again, which changes nothing
        but that layers of bytes see it."""
        grid = self.grids.get(convolution.args[0])
        if grid is None or not self.makes_rows:
            return convolution
        again = self.to_float(self.to_whole(convolution.args[0], grid), grid)
        return relay.Call(convolution.op, [again, convolution.args[1]], convolution.attrs)

    def _product(self, call: relay.Call) -> relay.Expr:
        left, right = (self.steps.get(argument) for argument in call.args)
        if left is None or right is None:
            return call
        return quantized_rows.product(call, left, right) or call


def _whole_constant(call: relay.Call) -> relay.Constant | None:
    """What was done to weights of bytes before they become floats (clipped to fewer bits, turned),
    which no compiled code does: TVM's own folding does not know our operators."""
    if not call.args or not isinstance(call.op, tvm.ir.Op) or not all(
            isinstance(a, relay.Constant) for a in call.args):
        return None
    arrays = [a.data.numpy() for a in call.args]
    if any(array.dtype.kind not in "iu" for array in arrays):
        return None
    value = evaluate(call.op.name, call.attrs, arrays)
    return None if value is None or value.dtype.kind not in "iu" else relay.const(value)


def _type(expr: relay.Expr) -> Any:
    return expr.type_annotation if isinstance(expr, relay.Var) else relay.transform.InferTypeLocal(
        expr)


def _dtype(expr: relay.Expr) -> str:
    return str(_type(expr).dtype)


def _shape(expr: relay.Expr) -> tuple[int, ...]:
    return tuple(int(d) for d in _type(expr).shape)


def _grid(scale: relay.Expr, zero_point: relay.Expr, dtype: str) -> Grid | None:
    """None where it is not one scale, known now."""
    if not isinstance(scale, relay.Constant) or not isinstance(zero_point, relay.Constant):
        return None
    scales, zeros = scale.data.numpy(), zero_point.data.numpy()
    if scales.size != 1 or zeros.size != 1 or dtype not in ("int8", "uint8", "int16", "uint16"):
        return None
    return Grid(float(scales.reshape(-1)[0]), int(zeros.reshape(-1)[0]), dtype)


def _constant_in_whole(call: relay.Call, dtype: str) -> relay.Expr:
    """The whole numbers of a constant."""
    data, scales, zeros = _arrays(call)
    limits = np.iinfo(dtype)
    whole = np.rint(data.astype(np.float32) / scales).astype(np.float64) + zeros
    return relay.const(whole.clip(limits.min, limits.max).astype(dtype))


def _arrays(call: relay.Call) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(data, scales, zero points), which broadcast with each other."""
    data, scale, zero = (a.data.numpy() for a in call.args)
    shape = [1] * data.ndim
    if scale.size > 1:
        shape[int(call.attrs.axis)] = scale.size
    return (data, scale.astype(np.float32).reshape(shape if scale.size > 1 else ()),
            zero.astype(np.int64).reshape(shape if zero.size > 1 else ()))
