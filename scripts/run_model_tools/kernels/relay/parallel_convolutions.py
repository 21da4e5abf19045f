"""Convolutions of one tensor whose results are added: one convolution with the sum of the kernels.

Networks are trained with such branches (RepVGG, MobileOne, GhostNetV3) and often exported with
them.  A tensor times constants by channel, as a batch normalisation leaves it, is a branch too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import tvm
from tvm import relay

from run_model_tools.inside_tvm.node_names import names_in, place_of
from run_model_tools.inside_tvm.plain_graphs import mapped, nodes_of
from run_model_tools.kernels.relay.arithmetic import numbers_of_channels
from run_model_tools.kernels.relay.graph import arguments, operator, shape_of, users_of
from run_model_tools.kernels.relay.readers.network import integers


@dataclass(frozen=True, eq=False)
class _Branch:
    """A convolution of `data` plus a bias, in float64; without `call`, of one tap for each channel
    by itself."""

    data: relay.Expr
    call: relay.Call | None
    """The convolution that has its window and its groups."""
    kernel: np.ndarray
    """(channels, channels of a group, height, width); without `call` (channels, 1, 1, 1)."""
    bias: np.ndarray
    """(channels,)"""
    names: tuple[str, ...]
    count: int = 1
    """Of branches that it is the sum of."""


def with_sums_merged(mod: tvm.IRModule) -> tvm.IRModule:
    """The simplified module with one convolution for each such sum, where one of its windows has
    all places of the others: no number is read for a result that was not read for it before."""
    mod = relay.transform.InferType()(mod)
    order = nodes_of(relay, mod)
    users = users_of(order)
    branches: dict[relay.Expr, _Branch] = {}
    inside: set[relay.Expr] = set()
    for expr in order:
        # What something else reads too is computed for that one in any case, and what a convolution
        # reads is no part of it.
        known = {a: branches[a] for a in arguments(expr) if operator(expr) != "nn.conv2d"
                 and a in branches and len(users[a]) == 1}
        branch = _branch(expr, known)
        if branch is not None:
            branches[expr] = branch
            inside.update(known)
    ends = {expr: branch for expr, branch in branches.items()
            if branch.count > 1 and expr not in inside}
    became: dict[relay.Expr, relay.Expr] = {}

    def change(call: relay.Call, args: list[relay.Expr]) -> relay.Expr | None:
        became.update(zip(call.args, args))
        branch = ends.get(call)
        return None if branch is None else _written(branch, became[branch.data])

    return mapped(relay, mod, change)


def _branch(expr: relay.Expr, known: dict[relay.Expr, _Branch]) -> _Branch | None:
    """What an expression is; `known`: which branches it is made of, if any."""
    name = operator(expr)
    if name == "nn.conv2d":
        return _convolution(expr)
    if name not in ("add", "nn.bias_add", "multiply"):
        return None
    names = tuple(names_in(expr))
    constants = [a for a in expr.args if isinstance(a, relay.Constant)]
    if not constants and name == "add":
        first, second = expr.args
        if first not in known or second not in known or shape_of(first) != shape_of(second):
            return None
        return _sum(known[first], known[second], names)
    if len(constants) != 1:
        return None
    other = expr.args[1] if expr.args[0] is constants[0] else expr.args[0]
    by_axis = name == "nn.bias_add"
    numbers = numbers_of_channels(constants[0].data.numpy(), shape_of(expr), by_axis)
    if (numbers is None or len(shape_of(expr)) != 4 or shape_of(other) != shape_of(expr)
            or by_axis and int(expr.attrs.axis) % 4 != 1):
        return None
    if other not in known:
        return None if name != "multiply" else _Branch(
            other, None, numbers.astype(np.float64).reshape(-1, 1, 1, 1), np.zeros(len(numbers)),
            names)
    branch = known[other]
    names = branch.names + names
    if name != "multiply":
        return replace(branch, bias=branch.bias + numbers, names=names)
    return replace(branch, kernel=branch.kernel * numbers.reshape(-1, 1, 1, 1),
                   bias=branch.bias * numbers, names=names)


def _convolution(call: relay.Call) -> _Branch | None:
    attrs, weight = call.attrs, call.args[1]
    if (str(attrs.data_layout) != "NCHW" or str(attrs.kernel_layout) != "OIHW"
            or not isinstance(weight, relay.Constant) or len(shape_of(call)) != 4
            or str(call.checked_type.dtype) != "float32"
            or str(weight.checked_type.dtype) != "float32"
            or str(attrs.out_dtype) not in ("", "float32")):
        return None
    kernel = weight.data.numpy().astype(np.float64)
    return _Branch(call.args[0], call, kernel, np.zeros(len(kernel)), tuple(names_in(call)))


def _sum(first: _Branch, second: _Branch, names: tuple[str, ...]) -> _Branch | None:
    """None where they are of different tensors, or none has the other's places in its window."""
    large, small = first, second
    if large.call is None or small.call is not None and (
            small.kernel[0, 0].size > large.kernel[0, 0].size):
        large, small = small, large
    if large.call is None or large.data != small.data:
        return None
    places = _places(large.call, small.call)
    added = _by_groups(large, small)
    if places is None or added is None:
        return None
    kernel = large.kernel.copy()
    kernel[:, :, places[0][:, None], places[1]] += added
    return replace(large, kernel=kernel, bias=large.bias + small.bias,
                   names=first.names + second.names + names, count=large.count + small.count)


def _places(large: relay.Call, small: relay.Call | None) -> list[np.ndarray] | None:
    """Along rows and columns, which taps of the large window the small one's are; None where some
    are none of its."""
    found = []
    for axis in (0, 1):
        stride, step, before, taps = _window(large, axis)
        other = (1, 1, 0, 1) if small is None else _window(small, axis)
        distance = np.arange(other[3]) * other[1] - other[2] + before
        if other[0] != stride or (distance % step).any() or distance.min() < 0 or (
                distance.max() // step >= taps):
            return None
        found.append(distance // step)
    return found


def _window(call: relay.Call, axis: int) -> tuple[int, int, int, int]:
    """(stride, dilation, padding before, taps) along rows or columns."""
    attrs = call.attrs
    return (integers(attrs.strides)[axis], integers(attrs.dilation)[axis],
            integers(attrs.padding)[axis], shape_of(call.args[1])[2 + axis])


def _by_groups(large: _Branch, small: _Branch) -> np.ndarray | None:
    """The small kernel for the groups of the large one; None where those are others."""
    assert large.call is not None
    groups = int(large.call.attrs.groups)
    if small.call is not None:
        return small.kernel if int(small.call.attrs.groups) == groups else None
    channels, depth = large.kernel.shape[:2]
    if depth * groups != channels:
        return None
    spread = np.zeros((channels, depth, 1, 1))
    every = np.arange(channels)
    spread[every, every % depth] = small.kernel[:, 0]
    return spread


def _written(branch: _Branch, data: relay.Expr) -> relay.Expr:
    assert branch.call is not None
    span = place_of(relay, list(dict.fromkeys(branch.names)))
    call = branch.call
    weight = relay.const(branch.kernel.astype(np.float32))
    made = relay.Call(call.op, [data, weight], call.attrs, call.type_args, span)
    if not branch.bias.any():
        return made
    bias = relay.const(branch.bias.astype(np.float32).reshape(-1, 1, 1))
    return relay.Call(relay.op.get("add"), [made, bias], None, None, span)
