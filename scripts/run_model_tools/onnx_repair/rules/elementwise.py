"""Operators that work element by element, and casts."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from run_model_tools.onnx_repair.refusal import Refused
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.narrow import FORMS, in_form
from run_model_tools.onnx_repair.values import COMPUTED, SIGNED, UNSIGNED, Node, Value, type_name
from run_model_tools.onnx_repair.walk import Walk


@rule("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Ceil", "Cos", "Cosh",
      "Erf", "Exp", "Floor", "IsNaN", "Log", "Neg", "Not", "Reciprocal", "Relu", "Round",
      "Sigmoid", "Sign", "Sin", "Sinh", "Sqrt", "Tan", "Tanh")
def unary(walk: Walk, node: Node) -> Value:
    x = node.tensor(0)
    if node.op == "Relu" and not x.is_float:
        return walk.graph.op("Max", x, 0)
    if node.op == "Sign" and x.elem_type in UNSIGNED:
        # TVM's would compare it with -1.
        return cast(walk, cast(walk, x, TensorProto.BOOL), x.elem_type)
    return walk.graph.op(node.op, x)


@rule("Erfc")
def erfc(walk: Walk, node: Node) -> Value:
    """TensorFlow's, which tf2onnx does not translate."""
    erf = walk.graph.op("Erf", node.tensor(0))
    return walk.graph.op("Sub", walk.graph.like(1, erf), erf)


def aligned(walk: Walk, node: Node) -> tuple[Value, Value]:
    """Both operands of a node that broadcasts; before opset 7 the second began at `axis`."""
    a, b = node.tensor(0), node.tensor(1)
    if node.opset < 7 and b.rank and a.rank > b.rank and node.attrs.get("broadcast", 0):
        axis = node.attrs.get("axis", a.rank - b.rank) % a.rank
        shape = (*b.shape, *[1] * (a.rank - axis - b.rank))
        b = reshaped(walk, b, shape)
    return a, b


def reshaped(walk: Walk, value: Value, shape: tuple[int, ...]) -> Value:
    """The value with another shape of as many elements."""
    shape = tuple(int(d) for d in shape)
    if value.shape == shape:
        return value
    allow = {"allowzero": 1} if 0 in shape else {}
    return walk.graph.op("Reshape", value, np.array(shape, np.int64), **allow)


def refuse_zero(divisor: Value) -> None:
    """Of whole numbers, whose division by 0 ends the program that does it."""
    if not divisor.is_float and divisor.array is not None and not divisor.array.all():
        raise Refused("it divides whole numbers by 0", "correct the constant that it divides by.")


@rule("Add", "Sub", "Mul", "Div", "And", "Or", "Xor", "Greater", "GreaterOrEqual", "Less",
      "LessOrEqual", "BitwiseAnd", "BitwiseOr", "BitwiseXor")
def binary(walk: Walk, node: Node) -> Value:
    if node.op == "Div":
        refuse_zero(node.tensor(1))
    return walk.graph.op(node.op, *aligned(walk, node))


@rule("Equal")
def equal(walk: Walk, node: Node) -> Value:
    a, b = aligned(walk, node)
    if a.elem_type == TensorProto.BOOL:
        return walk.graph.op("Not", walk.graph.op("Xor", a, b))
    return walk.graph.op("Equal", a, b)


@rule("BitShift")
def bit_shift(walk: Walk, node: Node) -> Value:
    """Numbers with a sign, since opset 28, by powers of 2; as far as all bits go, or back, the sign
    is what is left."""
    graph, x, by = walk.graph, node.tensor(0), node.tensor(1)
    direction = node.attrs["direction"]
    if x.elem_type not in SIGNED:
        return graph.op("BitShift", x, by, direction=direction)
    bits = x.dtype.itemsize * 8
    beyond = graph.op("Or", graph.op("Less", by, 0), graph.op("GreaterOrEqual", by, bits))
    unsigned = next(t for t in UNSIGNED if helper.tensor_dtype_to_np_dtype(t).itemsize * 8 == bits)
    one = graph.constant(1, helper.tensor_dtype_to_np_dtype(unsigned))
    places = cast(walk, graph.op("Where", beyond, graph.like(0, by), by), unsigned)
    power = cast(walk, graph.op("BitShift", one, places, direction="LEFT"), x.elem_type)
    if direction == "LEFT":
        made, rest = graph.op("Mul", x, power), graph.like(0, x)
    else:
        # Rounded down, which division is not; the sign bit alone is a negative power.
        low = graph.op("BitwiseAnd", x, graph.op("Sub", power, 1))
        made = graph.op("Div", graph.op("Sub", x, low), power)
        rest = graph.op("Where", graph.op("Less", x, 0), graph.like(-1, x), graph.like(0, x))
        made = graph.op("Where", graph.op("Less", power, 0), rest, made)
    return graph.op("Where", beyond, rest, made)


@rule("BitCast")
def bit_cast(walk: Walk, node: Node) -> Value:
    """Of whole numbers, and of any that are known."""
    x, to = node.tensor(0), node.attrs["to"]
    if x.array is not None and to in COMPUTED:
        return walk.graph.constant(x.array.view(helper.tensor_dtype_to_np_dtype(to)))
    if to == x.elem_type or {to, x.elem_type} <= {*SIGNED, *UNSIGNED}:
        return cast(walk, x, to)
    raise Refused(f"it takes the bits of {x.type_name} for {type_name(to)}",
                  "export the network without it.")


@rule("Mod")
def mod(walk: Walk, node: Node) -> Value:
    graph, (a, b) = walk.graph, aligned(walk, node)
    if not a.is_float:
        refuse_zero(b)
        if not node.attrs.get("fmod", 0):
            return graph.op("Mod", a, b, fmod=0)
        # Of whole numbers, the remainder with the dividend's sign.
        return graph.op("Sub", a, graph.op("Mul", graph.op("Div", a, b), b))
    rest = graph.op("Mod", a, b, fmod=1)
    if node.attrs.get("fmod", 0) or node.opset < 28:
        return rest
    # Since opset 28 with the divisor's sign, by one divisor more, which is exact.
    other_sign = graph.op("Less", graph.op("Mul", graph.op("Sign", rest), graph.op("Sign", b)), 0)
    return graph.op("Where", other_sign, graph.op("Add", rest, b), rest)


@rule("Pow")
def power(walk: Walk, node: Node) -> Value:
    """Small whole exponents are products, which whole numbers need to be exact."""
    graph = walk.graph
    x, y = aligned(walk, node)
    if y.array is not None and y.size == 1 and len(y.shape) <= x.rank:
        exponent = float(y.array.ravel()[0])
        if exponent in (1.0, 2.0, 3.0, 4.0):
            square = graph.op("Mul", x, x) if exponent > 1 else x
            return square if exponent <= 2 else graph.op(
                "Mul", square, x if exponent == 3 else square)
    if x.is_float:
        return graph.op("Pow", x, cast(walk, y, x.elem_type))
    # The importer would compute whole numbers in 24 bits.
    return cast(walk, graph.op("Pow", cast(walk, x, TensorProto.DOUBLE),
                               cast(walk, y, TensorProto.DOUBLE)), x.elem_type)


@rule("Max", "Min")
def extreme(walk: Walk, node: Node) -> Value:
    values = node.tensors()
    result = values[0]
    for value in values[1:]:
        result = walk.graph.op(node.op, result, value)
    return result


@rule("Sum", "Mean")
def total(walk: Walk, node: Node) -> Value:
    values = node.tensors()
    result = values[0]
    for value in values[1:]:
        result = walk.graph.op("Add", result, value)
    if node.op == "Mean" and len(values) > 1:
        result = walk.graph.op("Mul", result, 1 / len(values))
    return result


@rule("Where")
def where(walk: Walk, node: Node) -> Value:
    condition, x, y = node.tensor(0), node.tensor(1), node.tensor(2)
    if condition.array is not None and condition.array.size:
        shape = np.broadcast_shapes(condition.shape, x.shape, y.shape)
        for chosen, found in ((x, condition.array.all()), (y, not condition.array.any())):
            if found and chosen.shape == shape:
                return chosen
    if x.elem_type == TensorProto.BOOL:
        # ONNX Runtime has no Where of these, so that nothing could be compared.
        here, elsewhere = (walk.graph.op("And", *pair) for pair in (
            (condition, x), (walk.graph.op("Not", condition), y)))
        return walk.graph.op("Or", here, elsewhere)
    return walk.graph.op("Where", condition, x, y)


@rule("Clip")
def clip(walk: Walk, node: Node) -> Value:
    x = node.tensor(0)
    if node.opset < 11:
        bounds = [walk.graph.like(node.attrs[key], x) if key in node.attrs else None
                  for key in ("min", "max")]
    else:
        bounds = [node.get(1), node.get(2)]
    low, high = bounds
    if (x.is_float and low is not None and high is not None
            and low.array is not None and high.array is not None
            and low.array.item() <= high.array.item()):
        return walk.graph.op("Clip", x, low.array.reshape(()), high.array.reshape(()))
    for op, bound in (("Max", low), ("Min", high)):
        if bound is not None:
            x = walk.graph.op(op, x, reshaped(walk, bound, ()))
    return x


_WIDER = {TensorProto.INT8: TensorProto.INT32, TensorProto.UINT8: TensorProto.INT32,
          TensorProto.INT16: TensorProto.INT32, TensorProto.UINT16: TensorProto.INT32,
          TensorProto.UINT32: TensorProto.INT64}
"""Narrow whole numbers and those by which a float becomes one.  ONNX leaves open what -1.0 is as
uint8: PyTorch and ONNX Runtime take the lowest bits of the wider number, 255, whereas LLVM takes
whatever its instructions give."""


def cast(walk: Walk, x: Value, to: int, saturates: bool = True) -> Value:
    """The value as another type; what is not 0 is true.  saturates: what a type of FORMS does not
    hold becomes its largest number."""
    x = walk.graph.held(x)
    if x.elem_type == to:
        return x
    if to in FORMS:
        return in_form(walk, cast(walk, x, TensorProto.FLOAT), FORMS[to], saturates)
    if to == TensorProto.BOOL:
        return walk.graph.op("Not", walk.graph.op("Equal", x, 0))
    if to == TensorProto.BFLOAT16:
        return walk.graph.rounded(walk.graph.op("Cast", x, to=TensorProto.FLOAT))
    if to not in COMPUTED:
        raise Refused(f"it casts to {type_name(to)}, which compiled code has not",
                      "export the network in float32 or whole numbers.", "type")
    if x.is_float and to in _WIDER:
        x = walk.graph.op("Cast", x, to=_WIDER[to])
    return walk.graph.op("Cast", x, to=to)


@rule("Cast", ignored=("round_mode",))
def cast_rule(walk: Walk, node: Node) -> Value:
    to = node.attrs["to"]
    if isinstance(to, str):  # Of opsets before 6.
        to = TensorProto.DataType.Value(to.upper())
    return cast(walk, node.tensor(0), to, bool(node.attrs.get("saturate", 1)))


@rule("CastLike", ignored=("round_mode",))
def cast_like(walk: Walk, node: Node) -> Value:
    return cast(walk, node.tensor(0), node.tensor(1).elem_type,
                bool(node.attrs.get("saturate", 1)))


@rule("IsInf")
def is_inf(walk: Walk, node: Node) -> Value:
    x = node.tensor(0)
    signs = [sign for key, sign in (("detect_negative", -1), ("detect_positive", 1))
             if node.attrs.get(key, 1)]
    if not signs:
        return walk.graph.constant(np.zeros(x.shape, np.bool_))
    found = [walk.graph.op("Equal", x, walk.graph.like(sign * np.inf, x)) for sign in signs]
    return found[0] if len(found) == 1 else walk.graph.op("Or", *found)


@rule("Identity")
def identity(walk: Walk, node: Node) -> list:
    return node.inputs[:1] or [node.tensor(0)]
