"""What steps that are left to TVM become in Relax (relay/writing.py does the same in Relay)."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from run_model_tools.kernels.relax.nodes import Call, Constant, expression
from run_model_tools.kernels.tensors import Blocked


def again(call: Call, arguments: list[Any]) -> Any:
    """The operator once more, of these arguments: expressions, constants of the network's, or lists
    of both."""
    return call.write(*[[constant(f) for f in a] if isinstance(a, list) else constant(a)
                        for a in arguments])


def constant(value: Any) -> Any:
    """A constant's expression; anything else as it is."""
    return expression(value.data.numpy()) if isinstance(value, Constant) else value


def part(value: Any, index: int) -> Any:
    return relax.TupleGetItem(value, index)


def reshape(value: Any, shape: tuple[int, ...]) -> Any:
    return relax.op.reshape(value, shape)


def pictures(value: Any, count: int, places: np.ndarray) -> Any:
    """Of `count` pictures in blocks those at these places, zeros at -1."""
    if places.min() < 0:
        value = relax.op.nn.pad(value, [0, 1, *[0] * 8])
    return relax.op.take(value, expression(np.where(places < 0, count, places)), axis=0)


def to_blocked(data: Any, shape: tuple[int, ...], lanes: int) -> Any:
    """(N, C, H, W) -> (N, blocks, H, W, lanes); lanes past the last channel are zero."""
    batch, channels, height, width = shape
    missing = -channels % lanes
    if missing:
        data = relax.op.nn.pad(data, [0, 0, 0, missing, 0, 0, 0, 0])
    cut = relax.op.reshape(data, (batch, (channels + missing) // lanes, lanes, height, width))
    return relax.op.permute_dims(cut, [0, 1, 3, 4, 2])


def to_planar(value: Blocked, tensors: tuple[Any, ...]) -> Any:
    """The channels of `value`, whose tensors are `tensors`, as (N, C, H, W)."""
    parts, counts = [], []
    for expr, tensor in zip(tensors, value.tensors):
        batch, blocks, height, width, lanes = tensor.shape
        turned = relax.op.permute_dims(expr, [0, 1, 4, 2, 3])
        parts.append(relax.op.reshape(turned, (batch, blocks * lanes, height, width)))
        counts.append(blocks * lanes)
    whole = parts[0] if len(parts) == 1 else relax.op.concat(parts, 1)
    order = np.concatenate([[0], np.cumsum(counts)])[value.places[:, 0]] + value.places[:, 1]
    if np.array_equal(order, np.arange(sum(counts))):
        return whole
    if np.array_equal(order, np.arange(len(order))):
        return relax.op.strided_slice(whole, [1], [0], [len(order)])
    return relax.op.take(whole, expression(order.astype(np.int64)), axis=1)
