"""Relax -> expressions as Relay has them (nodes.py), which the readers read.

Most of Relax's operators are Relay's under the same name; what has other attributes, or takes them
as arguments, is listed here.  Any other operator stays what it is and is left to TVM.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import tvm
from tvm import relax

from run_model_tools.kernels.relax.constants import folded
from run_model_tools.kernels.relax.made_layers import call as make_call
from run_model_tools.kernels.relax.made_layers import layer_of
from run_model_tools.kernels.relax.nodes import (
    Call,
    Expr,
    Function,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Var,
    constant,
    made,
)
from run_model_tools.kernels.relax.operators import CONVERTERS
from run_model_tools.kernels.relax.rows import along_rows
from run_model_tools.kernels.relay.nodes import PREFIX
from run_model_tools.kernels.relay.reading import NotForUs


def read_function(function: relax.Function) -> Function:
    """The function's expression.  Raises NotForUs for what nodes cannot say: branches, shapes that
    are not known before running."""
    reader = _Reader()
    params = []
    for parameter in function.params:
        node = Var(_type(parameter.ty), str(parameter.name))
        reader.values[parameter] = node
        params.append(node)
    if not isinstance(function.body, relax.SeqExpr):
        raise NotForUs(f"its body is a {type(function.body).__name__}")
    for block in function.body.blocks:
        for binding in block.bindings:
            if not isinstance(binding, relax.VarBinding):
                raise NotForUs("it has shapes that are not known before running")
            # Shapes are known where they are used.
            if not isinstance(binding.var.ty, relax.ShapeType):
                reader.values[binding.var] = reader.expression(binding.value)
    return Function(params, reader.expression(function.body.body))


class _Reader:
    def __init__(self) -> None:
        self.values: dict[Any, Expr] = {}

    def expression(self, expr: Any) -> Expr:
        if expr in self.values:
            return self.values[expr]
        if isinstance(expr, tvm.ir.GenericConst):
            self.values[expr] = constant(_array(expr))
            return self.values[expr]
        if isinstance(expr, relax.Tuple):
            fields = [self.expression(field) for field in expr.fields]
            return Tuple(TupleType(tuple(f.checked_type for f in fields)), fields)
        if isinstance(expr, relax.TupleGetItem):
            whole = self.expression(expr.tuple_value)
            if isinstance(whole, Tuple):
                return whole.fields[int(expr.index)]
            return TupleGetItem(_type(expr.ty), whole, int(expr.index))
        if isinstance(expr, relax.Call):
            return self._call(expr)
        raise NotForUs(f"it has a {type(expr).__name__}")

    def _call(self, call: Any) -> Expr:
        if not isinstance(call.op, tvm.ir.Op):
            raise NotForUs("it calls a function of its own")
        name = str(call.op.name)
        layer = layer_of(call)
        if layer is not None:
            return made(PREFIX + layer.kind, _type(call.ty),
                        [self.expression(argument) for argument in call.args[1].fields],
                        lambda *given: make_call(layer, list(given)), layer=layer)
        arguments: list[Expr] = []
        places: list[int] = []
        for index, argument in enumerate(call.args):
            if _is_tensor(argument):
                places.append(index)
                arguments.append(self.expression(argument))
        kind = _type(call.ty)
        if name == "relax.shape_to_tensor":
            return constant(np.array(_extents(call.args[0].ty), np.int64))
        known = folded(name, call, arguments)
        if known is not None:
            return constant(known)
        plain = Call(kind, Op(name.removeprefix("relax.")), arguments,
                     _writer(call, places), SimpleNamespace())
        convert = CONVERTERS.get(plain.op.name)
        return along_rows(plain if convert is None else convert(plain, call) or plain)


def _writer(call: Any, places: list[int]) -> Callable[..., Any]:
    """Makes the call once more, with other tensors at these places among its arguments."""
    given_once = [relax.ShapeExpr(_extents(a.ty)) if isinstance(a, relax.Var) and isinstance(
        a.ty, relax.ShapeType) else a for a in call.args]

    def write(*given: Any) -> Any:
        arguments = list(given_once)
        for place, value in zip(places, given):
            arguments[place] = relax.Tuple(value) if isinstance(value, list) else value
        return relax.Call(call.op, arguments, call.attrs, call.ty_args)
    return write


def _is_tensor(argument: Any) -> bool:
    """Whether an argument is a tensor, or several: others are shapes, numbers or functions."""
    kind = getattr(argument, "ty", None)
    if isinstance(kind, relax.TensorType):
        return True
    fields = getattr(kind, "fields", None)
    return fields is not None and len(fields) > 0 and all(
        isinstance(field, relax.TensorType) for field in fields)


def _type(kind: Any) -> Any:
    if isinstance(kind, relax.TensorType):
        return TensorType(tuple(_extents(kind.shape)), str(kind.dtype))
    fields = getattr(kind, "fields", None)
    if fields is not None:
        return TupleType(tuple(_type(field) for field in fields))
    raise NotForUs(f"it has a value that is no tensor ({type(kind).__name__})")


def _extents(shape: Any) -> list[int]:
    values = getattr(shape, "values", None)
    if values is None or not all(isinstance(e, tvm.tirx.IntImm) for e in values):
        raise NotForUs("it has shapes that are not known before running")
    return [int(e.value) for e in values]


def _array(expr: Any) -> np.ndarray:
    value = expr.value.numpy()
    return np.asarray(value)


