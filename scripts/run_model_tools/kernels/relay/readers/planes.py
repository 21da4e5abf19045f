"""One number of each channel's whole plane: sums and means, also of squares and the like, largest
and smallest numbers, variances."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from run_model_tools.kernels.convolutions.convolution import Lanes
from run_model_tools.kernels.pictures.plane_reduction import PlaneReduction
from run_model_tools.kernels.plan import ElementwiseStep, PlaneReductionStep
from run_model_tools.kernels.programs.expressions import Builder, Expression, Operand
from run_model_tools.kernels.relay import nodes as relay
from run_model_tools.kernels.relay.graph import shape_of
from run_model_tools.kernels.relay.readers.network import Network, Value
from run_model_tools.kernels.tensors import Blocked, Tensor


def is_of_planes(expr: relay.Call) -> bool:
    """Whether a reduction goes over height and width."""
    attrs = expr.attrs
    axes = sorted(int(a) % 4 for a in attrs.axis) if attrs.axis is not None else []
    return (axes == [2, 3] and not bool(attrs.exclude) and len(shape_of(expr.args[0])) == 4
            and str(expr.checked_type.dtype) == "float32")


def _add(net: Network, expr: relay.Call, reduction: PlaneReduction,
         tensors: Sequence[Tensor]) -> Value:
    output = Tensor((tensors[0].shape[0], reduction.channels, 1, 1))
    net.plan.steps.append(PlaneReductionStep(list(tensors), output, reduction))
    return net.reshaped(output, shape_of(expr))


def reduced(net: Network, expr: relay.Call, kind: str, factor: float = 1.0) -> Value:
    """The reduction of a value in blocks, with what is done to its numbers before if only this
    reads the result of that."""
    data = net.values[expr.args[0]]
    if not isinstance(data, Blocked) or not data.is_float:
        return None
    before = _only_before(net, expr, data)
    if before is not None:
        pieces, tensors, expression = before
        shapes = tuple(t.shape for t in tensors)
        return _add(net, expr, PlaneReduction(kind, shapes, pieces, factor, expression), tensors)
    shapes = tuple(t.shape for t in data.tensors)
    return _add(net, expr, PlaneReduction(kind, shapes, data.pieces(), factor), data.tensors)


def reads_alone(net: Network, expr: relay.Call) -> bool:
    """Whether reduced() takes something in."""
    data = net.values[expr.args[0]]
    return isinstance(data, Blocked) and _only_before(net, expr, data) is not None


def _only_before(net: Network, expr: relay.Call, data: Blocked
                 ) -> tuple[tuple[Lanes, ...], tuple[Tensor, ...], Expression] | None:
    """What an expression of one tensor, which makes the data for this reader alone, reads: channels
    and tensors, and the expression."""
    step = next((s for s in net.plan.steps if s.output is data.tensors[0]), None)
    if (not isinstance(step, ElementwiseStep) or len(data.tensors) != 1
            or net.users[expr.args[0]] != [expr]):
        return None
    work = step.elementwise
    if len(work.sources) != 1 or work.sources[0].kind != "blocks" or work.expression.channels:
        return None
    source = work.sources[0]
    pieces = tuple(Lanes(source.tensors[p.block], source.blocks[p.block], p.first, p.count)
                   for p in data.pieces())
    return pieces, tuple(step.inputs), work.expression


def _plainly(kind: str) -> Callable[[Network, relay.Call], Value]:
    def read(net: Network, expr: relay.Call) -> Value:
        return reduced(net, expr, kind) if is_of_planes(expr) else None
    return read


def _variance(net: Network, expr: relay.Call) -> Value:
    """Of the numbers and their means by channel, which Relax's operator does not take."""
    if len(expr.args) != 2:
        return None
    data, shape = net.values[expr.args[0]], shape_of(expr.args[0])
    if (not isinstance(data, Blocked) or not data.is_float or not is_of_planes(expr)
            or bool(getattr(expr.attrs, "unbiased", False))
            or shape_of(expr.args[1]) != (*shape[:2], 1, 1)
            or isinstance(net.values[expr.args[1]], relay.Constant)):
        return None
    builder = Builder()
    apart = builder.apply("subtract", Operand(input=0), Operand(input=1))
    square = builder.finish(builder.apply("multiply", apart, apart), 2)
    mean = net.plain(net.values[expr.args[1]])
    reduction = PlaneReduction("sum", tuple(t.shape for t in data.tensors), data.pieces(),
                               1 / math.prod(data.size), square)
    return _add(net, expr, reduction, [*data.tensors, mean])


def _global_max(net: Network, expr: relay.Call) -> Value:
    whole = str(expr.attrs.layout) == "NCHW" and shape_of(expr)[2:] == (1, 1)
    return reduced(net, expr, "max") if whole else None


READERS = {"sum": _plainly("sum"), "max": _plainly("max"), "min": _plainly("min"),
           "variance": _variance, "nn.global_max_pool2d": _global_max,
           "nn.adaptive_max_pool2d": _global_max}
