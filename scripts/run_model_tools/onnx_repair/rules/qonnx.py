"""Quantised networks as Brevitas, QKeras and FINN write them (QONNX): numbers are rounded to steps
and stay floats, of any number of bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import TensorProto, helper

from run_model_tools.onnx_repair.refusal import Refused
from run_model_tools.onnx_repair.rules import Rule, rule
from run_model_tools.onnx_repair.rules.elementwise import cast
from run_model_tools.onnx_repair.rules.narrow import Form, in_form
from run_model_tools.onnx_repair.rules.quantisation import dequantize, quantize
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk

_DOMAINS = ("qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general")


def _rule(*operators: str) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        for domain in _DOMAINS:
            rule(*operators, domain=domain)(function)
        return function

    return register


@_rule("Quant", "IntQuant")
def quant(walk: Walk, node: Node) -> Value:
    """Steps of a scale, from the lowest to the highest number of so many bits."""
    x, scale, zero = node.tensor(0), node.tensor(1), _number(node, 2, "its zero point")
    bits, signed = _number(node, 3, "its number of bits"), node.attrs.get("signed", 1)
    narrow, rounding = node.attrs.get("narrow", 0), _rounding(node, "ROUND")
    if bits == 1 and signed:
        above = walk.graph.op("GreaterOrEqual", walk.graph.op("Add", walk.graph.op(
            "Div", x, scale), zero), 0)
        steps = walk.graph.op("Where", above, walk.graph.like(1, x), walk.graph.like(-1, x))
        return _scaled(walk, steps, zero, scale)
    low, high = _range(bits, bool(signed), bool(narrow))
    made = _by_bytes(walk, x, scale, low, high) if not zero and rounding == "ROUND" else None
    if made is not None:
        return made
    steps = walk.graph.op("Div", x, scale)
    if zero:
        steps = walk.graph.op("Add", steps, zero)
    steps = walk.graph.op("Clip", steps, walk.graph.like(low, x), walk.graph.like(high, x))
    return _scaled(walk, _rounded(walk, steps, rounding), zero, scale)


def _by_bytes(walk: Walk, x: Value, scale: Value, low: float, high: float) -> Value | None:
    """As QuantizeLinear and DequantizeLinear, for kernels of bytes; None where bytes do not hold
    the steps, or several axes have scales."""
    dtype = next((np.dtype(name) for name in ("int8", "uint8")
                  if np.iinfo(name).min <= low and high <= np.iinfo(name).max), None)
    shape = (1,) * (x.rank - scale.rank) + scale.shape
    axes = [axis for axis, extent in enumerate(shape) if extent != 1]
    if (dtype is None or x.elem_type != TensorProto.FLOAT or scale.elem_type != TensorProto.FLOAT
            or scale.array is None or len(shape) != x.rank or len(axes) > 1):
        return None
    flat = walk.graph.constant(scale.array.reshape(-1) if axes else scale.array.reshape(()))
    axis = axes[0] if axes else 1
    if x.array is not None:
        steps = np.rint(np.clip(x.array / scale.array, low, high))
        stored = walk.graph.constant(steps.astype(dtype))
    else:
        stored = quantize(walk, x, flat, None, helper.np_dtype_to_tensor_dtype(dtype), axis)
        if (low, high) != (np.iinfo(dtype).min, np.iinfo(dtype).max):
            stored = walk.graph.op("Clip", stored, walk.graph.like(low, stored),
                                   walk.graph.like(high, stored))
    return dequantize(walk, stored, flat, None, axis)


@_rule("BipolarQuant")
def bipolar_quant(walk: Walk, node: Node) -> Value:
    x, scale = node.tensor(0), node.tensor(1)
    above = walk.graph.op("GreaterOrEqual", x, 0)
    signs = walk.graph.op("Where", above, walk.graph.like(1, x), walk.graph.like(-1, x))
    return walk.graph.op("Mul", signs, scale)


@_rule("Trunc")
def trunc(walk: Walk, node: Node) -> Value:
    """Steps of more bits in some of fewer: of larger steps from version 2 on, of the same before
    it."""
    graph = walk.graph
    x, scale, zero = node.tensor(0), node.tensor(1), _number(node, 2, "its zero point")
    rounding, last = _rounding(node, "FLOOR"), len(node.inputs) - 1
    bits = _number(node, last, "its number of bits")
    steps = graph.op("Round", graph.op("Add", graph.op("Div", x, scale), zero))
    if last == 4:
        factor = 2.0 ** (_number(node, 3, "its number of bits") - bits)
        steps = graph.op("Mul", steps, 1 / factor)
        return _scaled(walk, _rounded(walk, steps, rounding), zero, scale)
    given, wanted = (node.constant(i, "a scale") for i in (1, 4))
    _number(node, 3, "its number of bits")
    assert given is not None and wanted is not None
    factors = np.exp2(np.rint(np.log2(wanted / given))).astype(x.dtype)
    low, high = _range(bits, bool(node.attrs.get("signed", 1)), bool(node.attrs.get("narrow", 0)))
    steps = graph.op("Clip", graph.op("Div", steps, factors), graph.like(low, x),
                     graph.like(high, x))
    steps = _rounded(walk, steps, rounding)
    if zero:
        steps = graph.op("Sub", steps, (zero / factors).astype(x.dtype))
    return graph.op("Mul", steps, node.tensor(4))


@_rule("FloatQuant")
def float_quant(walk: Walk, node: Node) -> Value:
    """Rounded to floats of a few bits, times a scale."""
    x, scale = node.tensor(0), node.tensor(1)
    exponent, fraction, bias = (_number(node, i, what) for i, what in (
        (2, "its exponent's bits"), (3, "its fraction's bits"), (4, "its exponent's bias")))
    most = (2 - 2.0 ** -fraction) * 2.0 ** min(2 ** exponent - 1 - bias, 63)
    if len(node.inputs) > 5:
        most = min(most, _number(node, 5, "its largest number"))
    saturates, infinite = node.attrs.get("saturation", 1), node.attrs.get("has_inf", 0)
    node.attrs.get("has_nan"), node.attrs.get("has_subnormal")
    if _rounding(node, "ROUND") != "ROUND" or exponent > 7 or abs(bias) > 63 or fraction > 20:
        raise Refused("it rounds otherwise than to even, or to floats whose exponents have more "
                      "than 7 bits", "export it with rounding_mode ROUND and smaller floats.")
    form = Form(int(fraction), int(1 - bias), most, np.inf if infinite else np.nan)
    steps = in_form(walk, cast(walk, walk.graph.op("Div", x, scale), TensorProto.FLOAT), form,
                    bool(saturates))
    return walk.graph.op("Mul", cast(walk, steps, x.elem_type), scale)


@_rule("MultiThreshold")
def multi_threshold(walk: Walk, node: Node) -> Value:
    """How many of the thresholds of its channel a number reaches."""
    graph = walk.graph
    x, thresholds = node.tensor(0), node.tensor(1)
    layout = node.attrs.get("data_layout", "") or {3: "NWC"}.get(x.rank, "NC")
    node.attrs.get("out_dtype")
    axis = layout.index("C") if "C" in layout else 1
    channels, count = thresholds.shape
    total = None
    for index in range(count):
        one = graph.op("Reshape", graph.op("Gather", thresholds, np.array(index), axis=1),
                       np.array([channels if a == axis else 1 for a in range(x.rank)]))
        reached = cast(walk, graph.op("GreaterOrEqual", x, cast(walk, one, x.elem_type)),
                       x.elem_type)
        total = reached if total is None else graph.op("Add", total, reached)
    assert total is not None
    scaled = graph.op("Mul", total, node.attrs.get("out_scale", 1.0))
    return graph.op("Add", scaled, node.attrs.get("out_bias", 0.0))


def _number(node: Node, index: int, what: str) -> float:
    array = node.constant(index, what)
    if array is None or len(set(array.ravel().tolist())) != 1:
        raise Refused(f"{what} is missing, or not one for all", "export one for each tensor.")
    return float(array.ravel()[0])


def _range(bits: float, signed: bool, narrow: bool) -> tuple[float, float]:
    if signed:
        return -2.0 ** (bits - 1) + narrow, 2.0 ** (bits - 1) - 1
    return 0.0, 2.0 ** bits - 1 - narrow


def _scaled(walk: Walk, steps: Value, zero: float, scale: Value) -> Value:
    return walk.graph.op("Mul", walk.graph.op("Sub", steps, zero) if zero else steps, scale)


def _rounding(node: Node, default: str) -> str:
    mode = str(node.attrs.get("rounding_mode", default)).upper()
    return "ROUND" if mode == "HALF_EVEN" else mode


def _rounded(walk: Walk, x: Value, mode: str) -> Value:
    graph = walk.graph
    if mode in ("ROUND", "CEIL", "FLOOR"):
        return graph.op(mode.title(), x)
    amount = graph.op("Abs", x)
    if mode == "UP":
        amount = graph.op("Ceil", amount)
    elif mode == "DOWN":
        amount = graph.op("Floor", amount)
    elif mode == "HALF_UP":
        amount = graph.op("Floor", graph.op("Add", amount, 0.5))
    elif mode == "HALF_DOWN":
        amount = graph.op("Ceil", graph.op("Add", amount, -0.5))
    else:
        raise Refused(f"it rounds by '{mode}', of which nothing is known",
                      "export it with rounding_mode ROUND.")
    return graph.op("Mul", graph.op("Sign", x), amount)
