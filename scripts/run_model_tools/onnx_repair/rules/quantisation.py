"""Quantised operators: scales and zero points as the importer wants them, or spelled out."""

from __future__ import annotations

import functools

import numpy as np
from onnx import TensorProto, helper

from run_model_tools.onnx_repair.graph import unsupported_type
from run_model_tools.onnx_repair.refusal import Refused
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.convolution import convolved
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.indexing import sliced
from run_model_tools.onnx_repair.rules.matmul import product
from run_model_tools.onnx_repair.rules.narrow import FORMS, in_form, to_even
from run_model_tools.onnx_repair.rules.reductions import reduce
from run_model_tools.onnx_repair.values import (
    COMPUTED,
    NARROW_FLOATS,
    NARROW_WHOLES,
    Node,
    Value,
)
from run_model_tools.onnx_repair.walk import Walk

_BYTES = (TensorProto.INT8, TensorProto.UINT8)


@rule("QuantizeLinear", ignored=("precision",))
def quantize_rule(walk: Walk, node: Node) -> Value:
    x, scale, zero = node.tensor(0), node.tensor(1), node.get(2)
    to = zero.elem_type if zero is not None else (
        node.attrs.get("output_dtype") or TensorProto.UINT8)
    axis, block = node.attrs.get("axis", 1), node.attrs.get("block_size", 0)
    if to in FORMS:
        wide = TensorProto.DOUBLE if x.elem_type == TensorProto.DOUBLE else TensorProto.FLOAT
        x = walk.graph.op("Div", cast(walk, x, wide),
                          cast(walk, alongside(walk, x, scale, axis, block), wide))
        return in_form(walk, cast(walk, x, TensorProto.FLOAT), FORMS[to],
                       bool(node.attrs.get("saturate", 1)))
    return quantize(walk, x, scale, zero, to, axis, block)


def quantize(walk: Walk, x: Value, scale: Value, zero: Value | None, to: int, axis: int = 1,
             block: int = 0) -> Value:
    """x / scale, rounded to even, plus the zero point, kept within the type."""
    graph = walk.graph
    if (few := NARROW_WHOLES.get(to)) is not None:
        held = helper.np_dtype_to_tensor_dtype(np.dtype(few.held))
        made = quantize(walk, x, scale, zero and walk.graph.held(zero), held, axis, block)
        return graph.op("Clip", made, graph.like(few.low, made), graph.like(few.high, made))
    if to not in COMPUTED:
        raise unsupported_type(to)
    dtype = helper.tensor_dtype_to_np_dtype(to)
    if zero is None:
        zero = graph.constant(np.zeros(scale.shape, dtype))
    if x.elem_type == TensorProto.FLOAT and to in _BYTES and not block and scale.size == 1:
        return graph.op("QuantizeLinear", x, reshaped(walk, scale, ()), reshaped(walk, zero, ()))
    if x.elem_type == TensorProto.FLOAT and to in _BYTES and not block and scale.rank == 1:
        return graph.op("QuantizeLinear", x, scale, zero, axis=axis % x.rank)
    wide = TensorProto.DOUBLE if x.elem_type == TensorProto.DOUBLE else TensorProto.FLOAT
    scale, zero = alongside(walk, x, scale, axis, block), alongside(walk, x, zero, axis, block)
    y = graph.op("Round", graph.op("Div", cast(walk, x, wide), cast(walk, scale, wide)))
    # float32 does not hold the limits of 32 bits.
    wide = TensorProto.DOUBLE if dtype.itemsize > 2 else wide
    y = graph.op("Add", cast(walk, y, wide), cast(walk, zero, wide))
    limits = np.iinfo(dtype)
    return cast(walk, graph.op("Clip", y, graph.like(limits.min, y), graph.like(limits.max, y)),
                to)


@rule("DequantizeLinear")
def dequantize_rule(walk: Walk, node: Node) -> Value:
    made = dequantize(walk, node.tensor(0), node.tensor(1), node.get(2), node.attrs.get("axis", 1),
                      node.attrs.get("block_size", 0))
    return cast(walk, made, node.attrs.get("output_dtype", 0) or made.elem_type)


def dequantize(walk: Walk, x: Value, scale: Value, zero: Value | None, axis: int = 1,
               block: int = 0) -> Value:
    """(x - zero point) * scale."""
    graph = walk.graph
    scale = graph.held(scale)
    x, scale, zero = _in_whole_numbers(walk, x, scale, zero)
    x = graph.held(x)
    zero = None if zero is None else graph.held(zero)
    plain = scale.elem_type == TensorProto.FLOAT and not block and x.elem_type in (
        *_BYTES, TensorProto.INT32)
    if zero is None:
        zero = graph.constant(np.zeros(scale.shape, x.dtype))
    elif x.elem_type == TensorProto.INT32:
        # As ONNX has it.
        plain = plain and zero.array is not None and not zero.array.any()
    if plain and scale.size == 1:
        return graph.op("DequantizeLinear", x, reshaped(walk, scale, ()),
                        reshaped(walk, zero, ()))
    if plain and scale.rank == 1:
        return graph.op("DequantizeLinear", x, scale, zero, axis=axis % x.rank)
    rounded = _rounded_floats(walk, x)
    x = x if rounded is None else rounded
    exact = TensorProto.INT32 if x.dtype.itemsize < 4 else TensorProto.INT64
    exact = TensorProto.FLOAT if x.is_float else exact
    difference = graph.op("Sub", cast(walk, x, exact),
                          cast(walk, alongside(walk, x, zero, axis, block), exact))
    made = graph.op("Mul", cast(walk, difference, TensorProto.FLOAT), cast(
        walk, alongside(walk, x, scale, axis, block), TensorProto.FLOAT))
    return cast(walk, made, scale.elem_type)


def _in_whole_numbers(walk: Walk, x: Value, scale: Value, zero: Value | None
                      ) -> tuple[Value, Value, Value | None]:
    """Constants of halves, as floats of four bits are, in bytes and with half their scale: a
    scale of float16 then need not round what it makes of them."""
    if x.elem_type not in NARROW_FLOATS or x.array is None or scale.array is None or (
            zero is not None and (zero.array is None or np.any(zero.array.astype(np.float32)))):
        return x, scale, zero
    doubled, half = 2 * x.array.astype(np.float32), scale.array / 2
    if (abs(doubled) > 127).any() or (doubled != np.rint(doubled)).any() or (
            (2 * half != scale.array).any()):
        return x, scale, zero
    return walk.graph.constant(doubled.astype(np.int8)), walk.graph.constant(
        half.astype(scale.dtype)), None


def _rounded_floats(walk: Walk, x: Value) -> Value | None:
    """The float32 numbers that quantize() has made the whole numbers x of; those of 16 bits are
    exact in either."""
    makers, values = walk.graph.makers, walk.graph.values
    floats = x
    while floats.elem_type in (x.elem_type, TensorProto.INT32) and (
            made := makers.get(floats.name)) is not None and made.op_type == "Cast":
        floats = values[made.input[0]]
    if floats.elem_type != TensorProto.FLOAT or x.elem_type not in (TensorProto.INT16,
                                                                    TensorProto.UINT16):
        return None
    path, name = [], floats.name
    for op in ("Clip", "Add", "Round"):
        if (made := makers.get(name)) is None or made.op_type != op:
            return None
        path.append(made)
        name = made.input[0]
    low, high, zero = (values[name].array for name in (*path[0].input[1:], path[1].input[1]))
    own = np.iinfo(x.dtype)
    if low is None or high is None or zero is None:
        return None
    is_whole = low == own.min and high == own.max and (zero == np.rint(zero)).all()
    return floats if is_whole else None


def alongside(walk: Walk, x: Value, parameter: Value, axis: int, block: int) -> Value:
    """Scales or zero points in a shape that broadcasts with what they are of."""
    if block:
        axis %= x.rank
        needed = [-(-d // block) if i == axis else d for i, d in enumerate(x.shape)]
        if list(parameter.shape) != needed:
            raise Refused(f"its scales or zero points have the shape {list(parameter.shape)}, and "
                          f"blocks of {block} along axis {axis} of {list(x.shape)} need {needed}",
                          "look at what quantised the network.", "invalid")
        places = np.arange(x.shape[axis]) // block
        return walk.graph.op("Gather", parameter, places, axis=axis)
    if parameter.size == 1:
        return reshaped(walk, parameter, ())
    return reshaped(walk, parameter, tuple(d if i == axis % x.rank else 1
                                           for i, d in enumerate(x.shape)))


@rule("DynamicQuantizeLinear")
def dynamic_quantize(walk: Walk, node: Node) -> list[Value]:
    return dynamically_quantized(walk, node.tensor(0))


def dynamically_quantized(walk: Walk, x: Value) -> list[Value]:
    """[unsigned bytes, scale, zero point], of the range that the values have at run time."""
    graph = walk.graph
    high = graph.op("Max", _extreme(walk, "ReduceMax", x), 0)
    low = graph.op("Min", _extreme(walk, "ReduceMin", x), 0)
    scale = graph.op("Div", graph.op("Sub", high, low), 255)
    # Where all are 0, it is 1 in ONNX Runtime too: networks divide their biases by it.
    scale = graph.op("Where", graph.op("Equal", scale, 0), graph.like(1, scale), scale)
    zero = to_even(walk, graph.op("Div", graph.op("Neg", low), scale))
    zero = graph.op("Clip", zero, graph.like(0, x), graph.like(255, x))
    y = graph.op("Add", to_even(walk, graph.op("Div", x, scale)), zero)
    y = graph.op("Clip", y, graph.like(0, x), graph.like(255, x))
    return [cast(walk, y, TensorProto.UINT8), scale, cast(walk, zero, TensorProto.UINT8)]


def _extreme(walk: Walk, op: str, x: Value) -> Value:
    """The largest or the smallest number: of each row first, which goes on vectors."""
    if x.rank > 1:
        x = reduce(walk, op, x, [x.rank - 1], False)
    return reduce(walk, op, x, None, False)


def _by_rows(walk: Walk, parameter: Value, rows: bool) -> Value:
    """A scale or zero point, one for all, for each row or for each column, beside a matrix."""
    if parameter.size == 1:
        return reshaped(walk, parameter, ())
    if rows and parameter.rank == 1:
        return reshaped(walk, parameter, (parameter.size, 1))
    return parameter


def centred(walk: Walk, x: Value, zero: Value | None, rows: bool,
            to: int = TensorProto.INT32) -> Value:
    """x minus its zero point, which may be one for each row or column, in 32 bits."""
    x = cast(walk, x, to)
    if zero is None:
        return x
    return walk.graph.op("Sub", x, _by_rows(walk, cast(walk, zero, to), rows))


Parts = list[tuple[Value, int]]
"""(float32 tensor, factor): whole numbers as a sum."""


def exact_product(walk: Walk, a: Value, a_zero: Value | None, b: Value, b_zero: Value | None,
                  to: int) -> Value:
    """The product of bytes minus their zero points, as float32 or int32: of float32 numbers, which
    have the fastest kernels, where these hold all sums exactly."""
    spans = _spans(a, a_zero)
    parts = exact_parts(walk, b, b_zero, b.rank - 2 if b.rank > 1 else 0, spans)
    if parts is not None:
        return product_with(walk, centred(walk, a, a_zero, True, TensorProto.FLOAT), parts, to)
    if walk.is_open or a.rank == 1 or b.rank == 1:
        return cast(walk, product(walk, centred(walk, a, a_zero, True),
                                  centred(walk, b, b_zero, False)), to)
    depth = ((1 << 24) - 1) // (_farthest(spans) * _farthest(_spans(b, b_zero)))
    left = centred(walk, a, a_zero, True, TensorProto.FLOAT)
    right = centred(walk, b, b_zero, False, TensorProto.FLOAT)
    pieces = [range(first, min(first + depth, a.shape[-1]))
              for first in range(0, a.shape[-1], depth)]
    return _added(walk, [(product(walk, sliced(walk, left, {a.rank - 1: piece}),
                                  sliced(walk, right, {b.rank - 2: piece})), 1)
                         for piece in pieces], to)


def product_with(walk: Walk, left: Value, parts: Parts, to: int) -> Value:
    """The product of whole numbers of 32 bits with others."""
    left = cast(walk, left, TensorProto.FLOAT)
    return _added(walk, [(product(walk, left, part), factor) for part, factor in parts], to)


def _added(walk: Walk, parts: Parts, to: int) -> Value:
    """Their sum, in 32 bits where it is one."""
    if len(parts) == 1 and parts[0][1] == 1:
        return cast(walk, parts[0][0], to)
    wholes = []
    for part, factor in parts:
        whole = cast(walk, part, TensorProto.INT32)
        wholes.append(whole if factor == 1 else walk.graph.op("Mul", whole, factor))
    return cast(walk, functools.reduce(lambda x, y: walk.graph.op("Add", x, y), wholes), to)


@rule("MatMulInteger")
def matmul_integer(walk: Walk, node: Node) -> Value:
    return exact_product(walk, node.tensor(0), node.get(2), node.tensor(1), node.get(3),
                         TensorProto.INT32)


@rule("QLinearMatMul")
def qlinear_matmul(walk: Walk, node: Node) -> Value:
    """In whole numbers, scaled once."""
    graph = walk.graph
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = (node.tensor(i) for i in range(8))
    total = exact_product(walk, a, a_zero, b, b_zero, TensorProto.FLOAT)
    scales = [_by_rows(walk, cast(walk, scale, TensorProto.FLOAT), rows)
              for scale, rows in ((a_scale, True), (b_scale, False), (y_scale, True))]
    factor = graph.op("Div", graph.op("Mul", scales[0], scales[1]), scales[2])
    one = graph.constant(np.ones(y_zero.shape, np.float32))
    return quantize(walk, graph.op("Mul", total, factor), one, y_zero, y_zero.elem_type,
                    total.rank - 2)


def _convolved_integers(walk: Walk, node: Node, x: Value, x_zero: Value | None, w: Value,
                        w_zero: Value | None) -> Value:
    """A convolution of whole numbers, as some of float32, which holds each one's sums exactly."""
    if w_zero is not None and w_zero.size > 1:
        w_zero = reshaped(walk, w_zero, (w_zero.size, *[1] * (w.rank - 1)))
    parts = exact_parts(walk, w, w_zero, tuple(range(1, w.rank)), _spans(x, x_zero))
    if parts is None:
        raise Refused(f"it sums {w.size // w.shape[0]} products of bytes, which float32 does not "
                      "hold exactly",
                      "write it with QuantizeLinear and DequantizeLinear (QDQ).")
    spans = _spans(x, x_zero)
    x = centred(walk, x, x_zero, False, TensorProto.FLOAT)

    def convolved_with(part: Value) -> Value:
        most = 1 << 24
        if part.array is not None:
            most = _largest_sum(part.array.astype(np.int64), tuple(range(1, w.rank)), spans)
        # Winograd's algorithm comes close to whole numbers only.
        return to_even(walk, convolved(walk, node, x, part, None), most)

    return _added(walk, [(convolved_with(part), factor) for part, factor in parts],
                  TensorProto.INT32)


_Spans = list[tuple[int, int]]
"""How far bytes can lie (below, above) their zero point, of one zero point or another."""
_ANY_BYTES: _Spans = [(0, 255), (255, 0)]
"""Of a zero point that is not known, whose extremes bound all others."""


def exact_parts(walk: Walk, w: Value, w_zero: Value | None, axes: int | tuple[int, ...],
                spans: _Spans = _ANY_BYTES) -> Parts | None:
    """Floats whose sum is `w`, bytes, minus its zero point; None where there are none for certain
    that, multiplied by bytes of these spans, keep all sums along `axes` below 2 ** 24: there
    float32 holds whole numbers exactly, in whatever order they are added."""
    if w.array is None or (w_zero is not None and w_zero.array is None):
        taps = int(np.prod([w.shape[a] for a in np.atleast_1d(axes)]))
        varies = walk.is_open and w.array is None
        if varies or taps * _farthest(spans) * _farthest(_spans(w, w_zero)) >= 1 << 24:
            return None
        return [(centred(walk, w, w_zero, False, TensorProto.FLOAT), 1)]
    whole = np.asarray(w.array, np.int32)
    whole = whole if w_zero is None else whole - np.asarray(w_zero.array, np.int32)
    upper = (whole + 8) >> 4
    for parts in ([(whole, 1)], [(upper, 16), (whole - 16 * upper, 1)]):
        if all(_largest_sum(part, axes, spans) < 1 << 24 for part, _ in parts):
            return [(walk.graph.constant(part.astype(np.float32)), factor)
                    for part, factor in parts]
    return None


def _largest_sum(weights: np.ndarray, axes: int | tuple[int, ...], spans: _Spans) -> int:
    """Of products with bytes of one zero point: the largest are above it where the weights have one
    sign, and below it where they have the other."""
    positive = np.maximum(weights, 0).sum(axes, dtype=np.int64)
    negative = np.maximum(-weights, 0).sum(axes, dtype=np.int64)
    return max(int(np.maximum(above * positive + below * negative,
                              above * negative + below * positive).max(initial=0))
               for below, above in spans)


def _spans(x: Value, zero: Value | None) -> _Spans:
    known = np.zeros(1, np.int64) if zero is None else zero.array
    if known is None or not known.size:
        return _ANY_BYTES
    limits = np.iinfo(x.dtype)
    return [(z - int(limits.min), int(limits.max) - z) for z in (int(known.min()),
                                                                 int(known.max()))]


def _farthest(spans: _Spans) -> int:
    return max(map(max, spans))


@rule("ConvInteger")
def conv_integer(walk: Walk, node: Node) -> Value:
    return _convolved_integers(walk, node, node.tensor(0), node.get(2), node.tensor(1),
                               node.get(3))


def bias_of_products(node: Node, index: int) -> Value | None:
    """What is added to sums of products of bytes, in their steps: no byte has the range of them,
    and one that stands there has a scale of its own, of which the operator knows nothing."""
    bias = node.get(index)
    if bias is not None and bias.elem_type != TensorProto.INT32:
        raise Refused(f"its bias is {bias.type_name} where it has to be int32, and ONNX Runtime "
                      "does not take the file either",
                      "have the network quantised with QuantFormat.QDQ.", "invalid")
    return bias


@rule("QLinearConv")
def qlinear_conv(walk: Walk, node: Node) -> Value:
    return convolved_bytes(walk, node, node.tensor(0))


def convolved_bytes(walk: Walk, node: Node, x: Value) -> Value:
    """As QDQ: dequantised, convolved, quantised; so are the kernels of whole numbers found."""
    x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = (node.tensor(i) for i in range(1, 8))
    bias = bias_of_products(node, 8)
    left = dequantize(walk, x, x_scale, x_zero)
    right = dequantize(walk, w, w_scale, w_zero, 0)
    if bias is not None:
        factor = walk.graph.op("Mul", reshaped(walk, x_scale, ()), w_scale)
        flat = reshaped(walk, factor, () if factor.size == 1 else (factor.size,))
        bias = dequantize(walk, bias, flat, None, 0)
    return quantize(walk, convolved(walk, node, left, right, bias), y_scale, y_zero,
                    y_zero.elem_type)
