"""Relax's operators whose attributes are others than Relay's: (call, Relax's call) -> expression.

None from one of them: the readers have no use for it, and TVM computes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from tvm import relax

from run_model_tools.kernels.relax.nodes import (
    Call,
    Constant,
    Expr,
    Op,
    TensorType,
    Tuple,
    TupleType,
    constant,
    expression,
    integers,
    made,
    reshaped,
)
from run_model_tools.kernels.relax.rows import ROW_CONVERTERS, along_rows

Converter = Callable[[Call, Any], "Expr | None"]


def _applied(name: str, like: TensorType, *arguments: Expr) -> Expr:
    """An operator on single numbers."""
    return along_rows(made(name, like, list(arguments), getattr(relax.op, name)))


def _number(value: Expr) -> float | None:
    """Of a float32 constant that has one."""
    if (isinstance(value, Constant) and value.data.array.size == 1
            and value.data.dtype == "float32"):
        return float(value.data.array.reshape(()))
    return None


def _with(name: str, attributes: Callable[[Any], dict[str, Any]]) -> Converter:
    """Another name, and attributes of Relax's call in Relay's words."""
    def convert(node: Call, call: Any) -> Expr:
        return replace(node, op=Op(name), attrs=SimpleNamespace(**attributes(call.attrs)))
    return convert


def _unread(node: Call) -> Expr:
    """An operator with what Relay's of this name has not, which no reader may take for that one."""
    return replace(node, op=Op(f"relax.{node.op.name}"))


def _as_named(name: str, *attributes: str, **more: Any) -> Converter:
    return _with(name, lambda attrs: {**{a: getattr(attrs, a) for a in attributes}, **more})


def _convolution(attrs: Any) -> dict[str, Any]:
    return {"strides": integers(attrs.strides), "padding": integers(attrs.padding),
            "dilation": integers(attrs.dilation), "groups": int(attrs.groups),
            "data_layout": str(attrs.data_layout), "kernel_layout": str(attrs.kernel_layout),
            "out_dtype": ""}


def _convolution_with_padding(node: Call, call: Any) -> Expr | None:
    """A convolution takes in the zeros that are put around its picture before it."""
    attributes, data = _convolution(call.attrs), node.args[0]
    plain = replace(node, attrs=SimpleNamespace(**attributes))
    if (not isinstance(data, Call) or data.op.name != "nn.pad" or data.attrs.pad_mode != "constant"
            or _number(data.args[1]) != 0 or attributes["data_layout"] != "NCHW"):
        return plain
    (above, below), (left, right) = data.attrs.pad_width[2:]
    if any(map(any, data.attrs.pad_width[:2])) or min(above, below, left, right) < 0:
        return plain
    before = attributes["padding"]
    attributes["padding"] = [before[0] + above, before[1] + left, before[2] + below,
                             before[3] + right]
    known = {name: value for name, value in attributes.items() if name != "out_dtype"}
    return Call(node.checked_type, node.op, [data.args[0], *node.args[1:]],
                lambda x, kernel: relax.op.nn.conv2d(x, kernel, **known),
                SimpleNamespace(**attributes))


def _pooling(attrs: Any) -> dict[str, Any]:
    return {"pool_size": integers(attrs.pool_size), "strides": integers(attrs.strides),
            "padding": integers(attrs.padding), "dilation": integers(attrs.dilation),
            "ceil_mode": bool(attrs.ceil_mode), "layout": str(attrs.layout),
            "count_include_pad": bool(attrs.count_include_pad)}


def _reduction(attrs: Any) -> dict[str, Any]:
    return {"axis": None if attrs.axis is None else integers(attrs.axis), "exclude": False,
            "keepdims": bool(attrs.keepdims)}


def _bound(bounds: Callable[[float], tuple[float, float]]) -> Converter:
    """maximum and minimum with a number."""
    def convert(node: Call, call: Any) -> Expr | None:
        at = next((i for i, other in enumerate(node.args) if _number(other) is not None), None)
        if at is None or node.args[1 - at].checked_type.shape != node.checked_type.shape:
            return None
        number = _number(node.args[at])
        if number is None or math.isnan(number):
            return None
        low, high = bounds(number)

        def write(x: Any) -> Any:
            bound = expression(np.float32(number).reshape(()))
            return node.write(x, bound) if at == 1 else node.write(bound, x)
        return made("nn.relu" if (low, high) == (0.0, math.inf) else "clip", node.checked_type,
                     [node.args[1 - at]], write, a_min=low, a_max=high)
    return convert


def _clip(node: Call, call: Any) -> Expr | None:
    low, high = (getattr(bound, "value", None) for bound in call.args[1:])
    if low is None or high is None:
        return _unread(node)
    return replace(node, attrs=SimpleNamespace(a_min=float(low), a_max=float(high)))


def _split(attrs: Any) -> dict[str, Any]:
    what = attrs.indices_or_sections
    return {"axis": int(attrs.axis),
            "indices_or_sections": integers(what) if hasattr(what, "__len__") else int(what)}


def _strided_slice(node: Call, call: Any) -> Expr | None:
    parts = [getattr(argument, "fields", None) for argument in call.args[1:]]
    if any(part is None or not all(hasattr(f, "value") for f in part) for part in parts):
        return _unread(node)
    numbers = [[int(f.value) for f in part] for part in parts if part is not None]
    strides = numbers[3] if len(numbers) > 3 else [1] * len(numbers[0])
    return replace(node, attrs=SimpleNamespace(
        axes=numbers[0], begin=numbers[1], end=numbers[2], strides=strides, slice_mode="end"))


def _take(node: Call, call: Any) -> Expr | None:
    axis = call.attrs.axis
    return replace(node, attrs=SimpleNamespace(axis=None if axis is None else int(axis),
                                               batch_dims=0))


def _matmul(node: Call, call: Any) -> Expr | None:
    """Relay's products have two axes, or three of which the first is a batch."""
    left, right = node.args
    a, b, shape = left.checked_type.shape, right.checked_type.shape, node.checked_type.shape
    dtype = node.checked_type.dtype
    if dtype != "float32" or len(a) < 2 or len(b) < 2 or min((*a, *b, *shape)) < 1:
        return None
    if len(b) == 2 and isinstance(right, Constant):
        rows = reshaped(left, (math.prod(a[:-1]), a[-1]))
        turned = constant(np.ascontiguousarray(right.data.numpy().T))
        product = made("nn.dense", TensorType((math.prod(a[:-1]), b[1]), dtype), [rows, turned],
                       lambda x, w: relax.op.matmul(x, relax.op.permute_dims(w)))
        return reshaped(product, shape)
    batch = math.prod(shape[:-2])
    if any(math.prod(s[:-2]) not in (1, batch) for s in (a, b)):
        return None
    product = made("nn.batch_matmul", TensorType((batch, *shape[-2:]), dtype),
                   [reshaped(x, (math.prod(s[:-2]), *s[-2:])) for x, s in ((left, a), (right, b))],
                   relax.op.matmul, transpose_a=False, transpose_b=False)
    return reshaped(product, shape)


def _batch_norm(node: Call, call: Any) -> Expr | None:
    """Recorded statistics are a factor and a term for each channel."""
    attrs, data = call.attrs, node.args[0]
    if (bool(attrs.training) or data.checked_type.dtype != "float32"
            or not all(isinstance(a, Constant) for a in node.args[1:])):
        return _unread(node)
    gamma, beta, mean, variance = (a.data.numpy().astype(np.float64) for a in node.args[1:]
                                   if isinstance(a, Constant))
    factor = 1 / np.sqrt(variance + float(attrs.epsilon))
    factor = factor * gamma if bool(attrs.scale) else factor
    term = (beta if bool(attrs.center) else 0.0) - mean * factor
    rank = len(data.checked_type.shape)
    spread = [1] * rank
    spread[int(attrs.axis)] = -1
    factors, terms = (constant(v.astype(np.float32).reshape(spread)) for v in (factor, term))
    scaled = _applied("multiply", data.checked_type, data, factors)
    result = _applied("add", data.checked_type, scaled, terms)
    # Nothing reads the statistics of a network that is not trained.
    return Tuple(TupleType((data.checked_type,) * len(node.checked_type.fields)),
                 [result, *node.args[3:]][:len(node.checked_type.fields)])


def _layer_norm(node: Call, call: Any) -> Expr | None:
    axes = integers(call.attrs.axes)
    if len(axes) != 1:
        return _unread(node)
    return replace(node, attrs=SimpleNamespace(
        axis=axes[0], epsilon=float(call.attrs.epsilon), scale=bool(call.attrs.scale),
        center=bool(call.attrs.center)))


def _gelu(node: Call, call: Any) -> Expr | None:
    """x / 2 (1 + erf(x / sqrt 2))"""
    x, like = node.args[0], node.checked_type
    if like.dtype != "float32":
        return None
    scaled = _applied("multiply", like, x, constant(np.float32(0.5 ** 0.5).reshape(())))
    erf = _applied("erf", like, scaled)
    more = _applied("add", like, erf, constant(np.ones((), np.float32)))
    half = _applied("multiply", like, x, constant(np.float32(0.5).reshape(())))
    return _applied("multiply", like, half, more)


def _silu(node: Call, call: Any) -> Expr | None:
    x, like = node.args[0], node.checked_type
    return _applied("multiply", like, x, _applied("sigmoid", like, x))


def _pad(node: Call, call: Any) -> Expr | None:
    widths, attrs = integers(call.attrs.pad_width), call.attrs
    mode = {"replicate": "edge"}.get(str(attrs.pad_mode), str(attrs.pad_mode))
    pairs = [widths[i:i + 2] for i in range(0, len(widths), 2)]
    value = constant(np.float32(float(attrs.pad_value)).reshape(()))
    written = node.write
    return made("nn.pad", node.checked_type, [node.args[0], value], lambda x, _: written(x),
                 pad_width=pairs, pad_mode=mode)


CONVERTERS: dict[str, Converter] = {
    "nn.conv2d": _convolution_with_padding,
    **ROW_CONVERTERS,
    "nn.conv2d_transpose": _with("nn.conv2d_transpose", _convolution),
    "nn.max_pool2d": _with("nn.max_pool2d", _pooling),
    "nn.avg_pool2d": _with("nn.avg_pool2d", _pooling),
    "nn.adaptive_avg_pool2d": _as_named("nn.adaptive_avg_pool2d", "output_size", "layout"),
    **{name: _with(name, _reduction) for name in ("mean", "sum", "max", "min")},
    "maximum": _bound(lambda number: (number, math.inf)),
    "minimum": _bound(lambda number: (-math.inf, number)),
    "clip": _clip, "nn.leakyrelu": _as_named("nn.leaky_relu", "alpha"),
    "nn.prelu": _as_named("nn.prelu", "axis"), "nn.batch_norm": _batch_norm,
    "nn.layer_norm": _layer_norm, "nn.softmax": _as_named("nn.softmax", "axis"),
    "nn.log_softmax": _as_named("nn.log_softmax", "axis"), "nn.gelu": _gelu, "nn.silu": _silu,
    "matmul": _matmul, "permute_dims": _as_named("transpose", "axes"),
    "flatten": _as_named("reshape"), "concat": _with("concatenate", lambda attrs: {
        "axis": int(attrs.axis or 0)}),
    "split": _with("split", _split), "strided_slice": _strided_slice, "take": _take,
    "flip": _as_named("reverse", "axis"), "nn.pad": _pad,
    "image.resize2d": _as_named("image.resize2d", "layout", "method",
                                "coordinate_transformation_mode", "rounding_method",
                                "cubic_alpha", "cubic_exclude")}
"""By Relax's name of the operator, without "relax."."""
