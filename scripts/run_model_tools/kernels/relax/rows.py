"""Convolutions and poolings along one axis as those of pictures of one row, with what is done to
single numbers between them: (N, C, L) becomes (N, C, 1, L) where it is worth it."""

from __future__ import annotations

from typing import Any

from tvm import relax

from run_model_tools.kernels.relax.nodes import (
    Call,
    Constant,
    Expr,
    TensorType,
    constant,
    integers,
    made,
    reshaped,
)
from run_model_tools.kernels.relay.arithmetic import is_elementwise


def _is_row(expr: Expr) -> bool:
    """Whether it was made of a picture of one row."""
    if not isinstance(expr, Call) or expr.op.name != "reshape":
        return False
    shape, inner = expr.checked_type.shape, expr.args[0].checked_type.shape
    return len(shape) == 3 and inner == (*shape[:2], 1, shape[2])


def _row(expr: Expr) -> Expr:
    if isinstance(expr, Call) and _is_row(expr):
        return expr.args[0]
    batch, channels, length = expr.checked_type.shape
    return reshaped(expr, (batch, channels, 1, length))


def _row_type(kind: TensorType) -> TensorType:
    return TensorType((*kind.shape[:2], 1, kind.shape[2]), kind.dtype)


def _window(attrs: Any) -> dict[str, Any]:
    before, after = integers(attrs.padding)
    return {"strides": [1, int(attrs.strides[0])], "padding": [0, before, 0, after],
            "dilation": [1, int(attrs.dilation[0])]}


def _convolution(node: Call, call: Any) -> Expr | None:
    weight, attrs = node.args[1], call.attrs
    if (str(attrs.data_layout) != "NCW" or str(attrs.kernel_layout) != "OIW"
            or not isinstance(weight, Constant)):
        return None
    common, groups = _window(attrs), int(attrs.groups)

    def write(x: Any, kernel: Any) -> Any:
        return relax.op.nn.conv2d(x, kernel, groups=groups, **common)
    return reshaped(made(
        "nn.conv2d", _row_type(node.checked_type),
        [_row(node.args[0]), constant(weight.data.numpy()[:, :, None, :])], write, **common,
        groups=groups, data_layout="NCHW", kernel_layout="OIHW", out_dtype=""),
        node.checked_type.shape)


def _pooling(node: Call, call: Any) -> Expr | None:
    attrs = call.attrs
    if str(attrs.layout) != "NCW":
        return None
    name = node.op.name.replace("1d", "2d")
    operator = relax.op.nn.max_pool2d if name == "nn.max_pool2d" else relax.op.nn.avg_pool2d
    common = {**_window(attrs), "pool_size": [1, int(attrs.pool_size[0])],
              "ceil_mode": bool(attrs.ceil_mode),
              "count_include_pad": bool(attrs.count_include_pad)}
    return reshaped(made(name, _row_type(node.checked_type), [_row(node.args[0])],
                         lambda x: operator(x, **common), **common, layout="NCHW"),
                    node.checked_type.shape)


def along_rows(node: Expr) -> Expr:
    """An operator on single numbers, as one of rows where an argument is one of them."""
    if (not isinstance(node, Call) or not isinstance(node.checked_type, TensorType)
            or len(node.checked_type.shape) != 3 or not any(map(_is_row, node.args))
            or not is_elementwise(node)):
        return node
    arguments: list[Expr] = []
    for argument in node.args:
        if isinstance(argument, Constant):
            value = argument.data.numpy()
            if value.ndim > 1:
                value = value.reshape((1,) * (3 - value.ndim) + value.shape)[:, :, None, :]
            arguments.append(constant(value))
        elif argument.checked_type.shape == node.checked_type.shape:
            arguments.append(_row(argument))
        else:
            return node
    return reshaped(Call(_row_type(node.checked_type), node.op, arguments, node.write, node.attrs),
                    node.checked_type.shape)


ROW_CONVERTERS = {"nn.conv1d": _convolution, "nn.max_pool1d": _pooling, "nn.avg_pool1d": _pooling}
"""As operators.CONVERTERS."""
