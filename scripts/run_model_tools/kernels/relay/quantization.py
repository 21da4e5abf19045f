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
from tvm.relay.op import op as relay_op

from run_model_tools.kernels.int8.grid import Grid
from run_model_tools.kernels.relay.graph import operator

QUANTIZE, DEQUANTIZE = "run_model.quantize", "run_model.dequantize"
# They give numbers that they were given (zero, and so padding, is on every grid).
_MOVES = {"reshape", "transpose", "squeeze", "expand_dims", "nn.batch_flatten", "nn.max_pool2d",
          "strided_slice", "layout_transform", "copy"}


def quantize(x: relay.Expr, grid: Grid) -> relay.Expr:
    """The whole numbers of float32 `x`."""
    low, high = grid.limits
    steps = relay.divide(x, relay.const(np.float32(grid.scale)))
    # Whole numbers bound it, so that it may as well be clipped first.
    steps = relay.clip(steps, float(low - grid.zero_point), float(high - grid.zero_point))
    # TVM rounds halves away from zero, which is to even for half the number.
    half = relay.const(np.float32(0.5))
    even = relay.multiply(relay.round(relay.multiply(steps, half)), relay.const(np.float32(2)))
    is_half = relay.equal(relay.subtract(steps, relay.floor(steps)), half)
    rounded = relay.where(is_half, even, relay.round(steps))
    whole = relay.add(relay.cast(rounded, "int32"), relay.const(np.int32(grid.zero_point)))
    return relay.cast(whole, grid.dtype)


def dequantize(x: relay.Expr, grid: Grid) -> relay.Expr:
    """float32 of whole numbers."""
    steps = relay.subtract(relay.cast(x, "int32"), relay.const(np.int32(grid.zero_point)))
    return relay.multiply(relay.cast(steps, "float32"), relay.const(np.float32(grid.scale)))


def mark(mod: tvm.IRModule) -> tvm.IRModule:
    """With operators of our own for those of one scale, and constants as float32."""
    _register()
    return _rewritten(mod, lambda x, grid: _call(QUANTIZE, x, grid),
                      lambda x, grid: _call(DEQUANTIZE, x, grid))


def spell_out(mod: tvm.IRModule) -> tvm.IRModule:
    """With arithmetic instead of them, for TVM's schedules."""
    return _rewritten(mod, quantize, dequantize)


def grid_of(call: relay.Call) -> Grid:
    """Of an operator of our own."""
    attrs = call.attrs
    return Grid(float(str(attrs["scale"])), int(attrs["zero_point"]), str(attrs["dtype"]))


def _call(name: str, x: relay.Expr, grid: Grid) -> relay.Call:
    # A text, since attributes' floats are written into names with few digits.
    attributes = tvm.ir.make_node("DictAttrs", scale=repr(grid.scale),
                                  zero_point=int(grid.zero_point), dtype=grid.dtype)
    return relay.Call(relay_op.get(name), [x], attributes)


_registered: set[str] = set()


def _register() -> None:
    for name in (QUANTIZE, DEQUANTIZE):
        if name in _registered:
            continue
        _registered.add(name)
        relay_op.register(name, "As in ONNX, with one scale.")
        operator_ = relay_op.get(name)
        operator_.set_num_inputs(1)
        operator_.add_argument("data", "Tensor", "What is converted.")

        def kind(arguments: Any, attributes: Any, to_float: bool = name == DEQUANTIZE) -> Any:
            return relay.TensorType(arguments[0].shape,
                                    "float32" if to_float else str(attributes["dtype"]))
        operator_.add_type_rel(name + "Rel", kind)
        operator_.set_support_level(10)
        relay_op.register_pattern(name, relay.op.OpPattern.OPAQUE)
        relay_op.register_stateful(name, False)


def _rewritten(mod: tvm.IRModule, to_whole: Callable, to_float: Callable) -> tvm.IRModule:
    main = mod["main"]
    if not any(operator(e).startswith("qnn.") for e in _calls(main)):
        return mod
    body = _Rewriter(to_whole, to_float).visit(main.body)
    mod = tvm.IRModule.from_expr(relay.Function(main.params, body))
    return relay.transform.InferType()(mod)


def _calls(function: relay.Function) -> list[relay.Call]:
    found: list[relay.Call] = []
    relay.analysis.post_order_visit(
        function, lambda e: found.append(e) if isinstance(e, relay.Call) else None)
    return found


class _Rewriter(relay.ExprMutator):
    """Replaces both operators, and leaves out pairs of them that change nothing."""

    def __init__(self, to_whole: Callable, to_float: Callable):
        super().__init__()
        self.to_whole, self.to_float = to_whole, to_float
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
        if name == "qnn.quantize":
            return self._quantized(made)
        if name == "qnn.dequantize":
            return self._dequantized(made)
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

    def _quantized(self, call: relay.Call) -> relay.Expr:
        grid = _grid(call.args[1], call.args[2], str(call.attrs.out_dtype))
        if grid is None:
            return call
        made = self.to_whole(call.args[0], grid)
        self.sources[made] = (call.args[0], grid)
        return made

    def _dequantized(self, call: relay.Call) -> relay.Expr:
        data = call.args[0]
        if isinstance(data, relay.Constant):
            return _constant(call)
        known = self.sources.get(data)
        given = _grid(call.args[1], call.args[2], known[1].dtype if known else _dtype(data))
        if given is None:
            return call
        if known is not None and known[1] == given and self.grids.get(known[0]) == given:
            return known[0]
        made = self.to_float(data, given)
        self.grids[made] = given
        return made


def _dtype(expr: relay.Expr) -> str:
    kind = expr.type_annotation if isinstance(expr, relay.Var) else relay.transform.InferTypeLocal(
        expr)
    return str(kind.dtype)


def _grid(scale: relay.Expr, zero_point: relay.Expr, dtype: str) -> Grid | None:
    """None where it is not one scale, known now."""
    if not isinstance(scale, relay.Constant) or not isinstance(zero_point, relay.Constant):
        return None
    scales, zeros = scale.data.numpy(), zero_point.data.numpy()
    if scales.size != 1 or zeros.size != 1 or dtype not in ("int8", "uint8", "int16", "uint16"):
        return None
    return Grid(float(scales.reshape(-1)[0]), int(zeros.reshape(-1)[0]), dtype)


def _constant(call: relay.Call) -> relay.Expr:
    """float32 of a constant, channel by channel if it has a scale for each."""
    if not all(isinstance(a, relay.Constant) for a in call.args):
        return call
    data, scale, zero = (a.data.numpy() for a in call.args)
    shape = [1] * data.ndim
    if scale.size > 1:
        shape[int(call.attrs.axis)] = scale.size
    steps = data.astype(np.int64) - (zero.reshape(shape) if zero.size > 1 else int(zero.item()))
    scales = scale.astype(np.float32)
    numbers = steps.astype(np.float32) * (scales.reshape(shape) if scale.size > 1
                                          else scales.reshape(-1)[0])
    return relay.const(numbers.astype(np.float32))
