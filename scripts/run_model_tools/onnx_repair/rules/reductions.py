"""Sums and other reductions, over any axes however an opset names them."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.values import INTEGERS, Node, Value
from run_model_tools.onnx_repair.walk import Walk


def reduce(walk: Walk, op: str, x: Value, axes: list[int] | None, keepdims: bool = True) -> Value:
    """ReduceSum, ReduceMean, ReduceMax, ReduceMin or ReduceProd over axes (None: all)."""
    axes = sorted({a % x.rank for a in axes}) if axes is not None else list(range(x.rank))
    if not axes:
        return x
    if x.pictures is not None and axes == [2, 3, 4] and op != "ReduceProd":
        of_each = reduce(walk, op, x.pictures, [2, 3])
        apart = reshaped(walk, of_each, (x.shape[0], x.shape[2], x.shape[1]))
        made = walk.graph.op(op, apart, np.array([1], np.int64), keepdims=0)
        return reshaped(walk, made, (*made.shape, 1, 1, 1)) if keepdims else made
    if op == "ReduceMean" and x.rank in (3, 4, 5) and x.is_float \
            and axes == list(range(2, x.rank)):
        # What exporters made of a global pooling.
        pooled = walk.graph.op("GlobalAveragePool", x)
        return pooled if keepdims else reshaped(walk, pooled, x.shape[:2])
    return walk.graph.op(op, x, np.array(axes, np.int64), keepdims=int(keepdims))


@rule("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
      "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare")
def reduction(walk: Walk, node: Node) -> Value:
    graph = walk.graph
    x = node.tensor(0)
    axes = node.axes()
    keepdims = bool(node.attrs.get("keepdims", 1))
    if not axes:
        axes = [] if node.attrs.get("noop_with_empty_axes", 0) else list(range(x.rank))
    axes = sorted({a % x.rank for a in axes})
    if x.size == 0:
        return _of_nothing(walk, node.op, x, axes, keepdims)

    def run(op: str, value: Value) -> Value:
        return reduce(walk, op, value, axes, keepdims)

    kind = x.elem_type
    if kind == TensorProto.BOOL:
        return cast(walk, run(node.op, cast(walk, x, TensorProto.INT32)), TensorProto.BOOL)
    if kind in INTEGERS and node.op in ("ReduceMean", "ReduceL2", "ReduceLogSum",
                                        "ReduceLogSumExp"):
        x = cast(walk, x, TensorProto.DOUBLE)
    if node.op == "ReduceL1":
        made = run("ReduceSum", graph.op("Abs", x))
    elif node.op == "ReduceSumSquare":
        made = run("ReduceSum", graph.op("Mul", x, x))
    elif node.op == "ReduceL2":
        made = graph.op("Sqrt", run("ReduceSum", graph.op("Mul", x, x)))
    elif node.op == "ReduceLogSum":
        made = graph.op("Log", run("ReduceSum", x))
    elif node.op == "ReduceLogSumExp":
        made = _log_sum_exp(walk, x, axes, keepdims)
    else:
        made = run(node.op, x)
    return cast(walk, made, kind)


def _log_sum_exp(walk: Walk, x: Value, axes: list[int], keepdims: bool) -> Value:
    graph = walk.graph
    if not axes:
        return x
    # Infinities minus themselves are none.
    low, high = (graph.like(f(np.finfo(x.dtype).max), x) for f in (np.negative, np.positive))
    largest = graph.op("Min", graph.op("Max", reduce(walk, "ReduceMax", x, axes), low), high)
    total = reduce(walk, "ReduceSum", graph.op("Exp", graph.op("Sub", x, largest)), axes)
    made = graph.op("Add", graph.op("Log", total), largest)
    shape = tuple(d for i, d in enumerate(made.shape) if i not in axes)
    return made if keepdims else reshaped(walk, made, shape)


def _of_nothing(walk: Walk, op: str, x: Value, axes: list[int], keepdims: bool) -> Value:
    """Reductions over no elements have the neutral element of their operation."""
    shape = tuple(1 if i in axes else d for i, d in enumerate(x.shape)
                  if keepdims or i not in axes)
    is_float = x.is_float
    lowest = -np.inf if is_float else 0 if x.dtype.kind == "b" else np.iinfo(x.dtype).min
    highest = np.inf if is_float else 1 if x.dtype.kind == "b" else np.iinfo(x.dtype).max
    neutral = {"ReduceProd": 1, "ReduceMax": lowest, "ReduceMin": highest,
               "ReduceMean": np.nan if is_float else 0,
               "ReduceLogSum": lowest, "ReduceLogSumExp": lowest}.get(op, 0)
    return walk.graph.constant(np.full(shape, neutral, x.dtype))


@rule("ArgMax", "ArgMin")
def arg_extreme(walk: Walk, node: Node) -> Value:
    graph = walk.graph
    x = node.tensor(0)
    if not x.rank:
        return graph.constant(np.zeros((), np.int64))
    axis = node.attrs.get("axis", 0) % x.rank
    last = x.shape[axis] - 1
    backwards = bool(node.attrs.get("select_last_index", 0)) and last > 0
    if backwards:
        x = graph.op("Gather", x, np.arange(last, -1, -1), axis=axis)
    place = best_place(walk, x, axis, node.attrs.get("keepdims", 1), node.op)
    return graph.op("Sub", graph.like(last, place), place) if backwards else place


def best_place(walk: Walk, x: Value, axis: int, keepdims: int = 0, op: str = "ArgMax") -> Value:
    """Where all numbers are the least that there is (bytes of 0, minus infinity), TVM finds -1."""
    return walk.graph.op("Max", walk.graph.op(op, x, axis=axis, keepdims=keepdims), 0)


@rule("Softmax", "LogSoftmax", "Hardmax")
def softmax(walk: Walk, node: Node) -> Value:
    """Until opset 12 it is over all axes from `axis` on, taken as one."""
    x = node.tensor(0)
    if not x.rank:
        x = reshaped(walk, x, (1,))
        return reshaped(walk, _softmax(walk, node.op, x, 0), ())
    axis = node.attrs.get("axis", -1 if node.opset >= 13 else 1) % (
        x.rank + (1 if node.opset < 13 and node.attrs.get("axis", 1) == x.rank else 0))
    if node.opset >= 13 or all(d == 1 for d in x.shape[axis + 1:]) and axis < x.rank:
        return _softmax(walk, node.op, x, axis)
    before = int(np.prod(x.shape[:axis]))
    flat = reshaped(walk, x, (before, x.size // before))
    return reshaped(walk, _softmax(walk, node.op, flat, 1), x.shape)


def _softmax(walk: Walk, op: str, x: Value, axis: int) -> Value:
    graph = walk.graph
    if op == "Softmax":
        return graph.op("Softmax", x, axis=axis)
    if op == "LogSoftmax":
        # The logarithm of a softmax is minus infinity where a probability is too small a float.
        shifted = graph.op("Sub", x, reduce(walk, "ReduceMax", x, [axis]))
        total = reduce(walk, "ReduceSum", graph.op("Exp", shifted), [axis])
        return graph.op("Sub", shifted, graph.op("Log", total))
    places = np.arange(x.shape[axis]).reshape([-1 if i == axis else 1 for i in range(x.rank)])
    return cast(walk, graph.op("Equal", best_place(walk, x, axis, 1), places), x.elem_type)
