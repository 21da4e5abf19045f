"""Products of matrices, whose operands are views."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from run_model_tools.kernels.plan import ProductStep
from run_model_tools.kernels.products import matmul
from run_model_tools.kernels.products.matmul import Product
from run_model_tools.kernels.relay import nodes as relay
from run_model_tools.kernels.relay.graph import shape_of
from run_model_tools.kernels.relay.readers.moves import view_of
from run_model_tools.kernels.relay.readers.network import Network, Value
from run_model_tools.kernels.relay.whole_numbers import Bounds, bounds_of, bounds_of_array
from run_model_tools.kernels.tensors import Tensor
from run_model_tools.kernels.views import ConstantTensor, View, whole


def _dense(net: Network, expr: relay.Call) -> Value:
    return _product(net, expr, transposed=(False, True))


def _matmul(net: Network, expr: relay.Call) -> Value:
    return _product(net, expr, (bool(expr.attrs.transpose_a), bool(expr.attrs.transpose_b)))


def _product(net: Network, expr: relay.Call, transposed: tuple[bool, bool]) -> Value:
    shape = shape_of(expr)
    if str(expr.checked_type.dtype) != "float32" or min(shape) < 1 or len(shape) not in (2, 3):
        return None
    views = []
    for argument, turned in zip(expr.args, transposed):
        view = view_of(net, net.values[argument])
        if view is None:
            return None
        if len(view.axes) == 2:
            view = replace(view, axes=((), *view.axes))
        views.append(view.transpose([0, 2, 1]) if turned else view)
    left, right = views
    if isinstance(left.tensor, ConstantTensor) and isinstance(right.tensor, ConstantTensor):
        return None
    batch = max(left.shape[0], right.shape[0])
    scale = left.scale * right.scale
    left, right = replace(left, scale=1.0), replace(right, scale=1.0)
    if isinstance(right.tensor, ConstantTensor) and right.shape[0] == 1:
        # Rows of all batches are multiplied by the same weights.
        flat = (1, left.shape[0] * left.shape[1], left.shape[2])
        rows = left.reshape(flat) or whole(net.plain(left)).reshape(flat)
        assert rows is not None
        weights = _numbers(right)[0]
        product = Product(rows, weights, scale, **(
            _whole(bounds_of(expr.args[0]), weights) if scale == 1 else {}))
    else:
        product = Product(left.broadcast((batch, *left.shape[1:])),
                          right.broadcast((batch, *right.shape[1:])), scale)
    if not matmul.options(product, net.isa) or math.prod(product.shape) != math.prod(shape):
        return None
    output = Tensor(product.shape)
    net.plan.steps.append(ProductStep(matmul.inputs_of(product), output, product))
    return whole(output).reshape(shape)


def _whole(left: Bounds | None, weights: np.ndarray) -> dict[str, Any]:
    """What Product says of whole numbers."""
    if left is None or not left.within("int16"):
        return {}
    right = bounds_of_array(weights)
    if right is None or not right.within("int16"):
        return {}
    farthest = max(-left.low, left.high)
    largest = float(np.abs(weights).sum(0, dtype=np.float64).max())
    if farthest * largest >= 1 << 31:
        return {}
    is_bytes = (left.spread <= 255 and right.within("int8")
                and (farthest + 255) * largest < 1 << 31)
    return {"is_whole": True, "is_bytes": is_bytes,
            "left_low": left.low if is_bytes and left.high - left.low <= 255 else None}


def _numbers(view: View) -> np.ndarray:
    """A constant's."""
    assert isinstance(view.tensor, ConstantTensor)
    at = np.full((1,), view.offset)
    for axis in view.axes:
        for count, stride in axis:
            at = (at[:, None] + np.arange(count) * stride).reshape(-1)
    return view.tensor.data.reshape(-1)[at].reshape(view.shape)


READERS = {"nn.dense": _dense, "nn.matmul": _matmul, "nn.batch_matmul": _matmul}
