"""Relay expressions that change between the network's layout, NCHW, and blocks of channels."""

from __future__ import annotations

import numpy as np
from tvm import relay

from run_model_kernels.tensors import Blocked


def to_blocked(data: relay.Expr, shape: tuple[int, ...], lanes: int) -> relay.Expr:
    """(1, C, H, W) -> (1, blocks, H, W, lanes); lanes past the last channel are zero."""
    missing = -shape[1] % lanes
    if missing:
        data = relay.nn.pad(data, ((0, 0), (0, missing), (0, 0), (0, 0)))
    return relay.layout_transform(data, "NCHW", f"NCHW{lanes}c")


def to_planar(value: Blocked, tensors: tuple[relay.Expr, ...]) -> relay.Expr:
    """The channels of `value`, whose tensors are `tensors`, as (1, C, H, W)."""
    parts = [relay.layout_transform(t, f"NCHW{value.lanes}c", "NCHW") for t in tensors]
    counts = [t.shape[1] * t.shape[4] for t in value.tensors]
    whole = parts[0] if len(parts) == 1 else relay.concatenate(parts, 1)
    order = np.concatenate([[0], np.cumsum(counts)])[value.places[:, 0]] + value.places[:, 1]
    if np.array_equal(order, np.arange(sum(counts))):
        return whole
    if np.array_equal(order, np.arange(len(order))):
        return relay.strided_slice(whole, [0], [len(order)], axes=[1])
    return relay.take(whole, relay.const(order.astype(np.int32)), axis=1)
