"""The operators of our own between float32 and whole numbers (relay/quantization.py)."""

from __future__ import annotations

import math
from collections.abc import Callable

from tvm import relay

from run_model_tools.kernels.plan import ByteSumStep, DequantizeStep, QuantizeStep
from run_model_tools.kernels.relay import quantization
from run_model_tools.kernels.relay.graph import operator, shape_of
from run_model_tools.kernels.relay.quantization import DEQUANTIZE, QUANTIZE, grid_of
from run_model_tools.kernels.relay.readers.network import Network, Value
from run_model_tools.kernels.tensors import Blocked, Tensor, lie_alike


def _quantize(net: Network, expr: relay.Call) -> Value:
    total = _sum_of_bytes(net, expr)
    if total is not None:
        return total
    grid = grid_of(expr)

    def one(tensor: Tensor) -> Tensor:
        output = Tensor(tensor.shape, grid.dtype)
        net.plan.steps.append(QuantizeStep(
            [tensor], output, lambda x: quantization.quantize(x, grid), "quantize", grid))
        return output
    return _each(net, net.values[expr.args[0]], one)


def _dequantize(net: Network, expr: relay.Call) -> Value:
    grid = grid_of(expr)

    def one(tensor: Tensor) -> Tensor:
        output = Tensor(tensor.shape, "float32")
        net.plan.steps.append(DequantizeStep(
            [tensor], output, lambda x: quantization.dequantize(x, grid), "dequantize", grid))
        return output
    return _each(net, net.values[expr.args[0]], one)


def _each(net: Network, value: Value, one: Callable[[Tensor], Tensor]) -> Value:
    if isinstance(value, Blocked):
        return Blocked(tuple(one(t) for t in value.tensors), value.places)
    return one(net.plain(value))


def _sum_of_bytes(net: Network, expr: relay.Call) -> Value:
    """quantize(add(dequantize, dequantize)), perhaps with a ReLU, as one step."""
    inner, low = expr.args[0], -math.inf
    if operator(inner) == "nn.relu":
        inner, low = inner.args[0], 0.0
    if operator(inner) != "add" or any(operator(a) != DEQUANTIZE for a in inner.args):
        return None
    values = [net.values[a.args[0]] for a in inner.args]
    if (not all(isinstance(v, Blocked) for v in values) or not lie_alike(*values)
            or any(shape_of(a) != shape_of(inner) for a in inner.args)):
        return None
    first, second = (grid_of(a) for a in inner.args)
    grid = grid_of(expr)
    if not grid.is_bytes or len({g.dtype for g in (first, second, grid)}) != 1:
        return None

    def build(a: relay.Expr, b: relay.Expr) -> relay.Expr:
        total = relay.add(quantization.dequantize(a, first), quantization.dequantize(b, second))
        return quantization.quantize(relay.nn.relu(total) if low == 0 else total, grid)
    tensors = [v.tensors[0] for v in values]
    output = Tensor(tensors[0].shape, grid.dtype)
    net.plan.steps.append(ByteSumStep(tensors, output, build, "add", (first, second), grid, low))
    return Blocked((output,), values[0].places)


READERS = {QUANTIZE: _quantize, DEQUANTIZE: _dequantize}
