"""Quantised networks as tools of AMD (Quark) and NVIDIA (ModelOpt) write them, where they have
operators of their own."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import Refused
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.indexing import sliced
from run_model_tools.onnx_repair.rules.narrow import FORMS, Form, any_power_below, in_form
from run_model_tools.onnx_repair.rules.quantisation import alongside, dequantize, quantize
from run_model_tools.onnx_repair.rules.reductions import reduce
from run_model_tools.onnx_repair.values import FLOAT4, Node, Value
from run_model_tools.onnx_repair.walk import Walk

QUARK, VITIS, TENSORRT = "com.amd.quark", "com.vai.quantize", "trt"
_EIGHT = FORMS[TensorProto.FLOAT8E4M3FN]
# Of a type of elements: its numbers, and the exponent of the largest.
_ELEMENTS = {"fp8_e5m2": (FORMS[TensorProto.FLOAT8E5M2], 15), "fp8_e4m3": (_EIGHT, 8),
             "fp6_e3m2": (Form(2, -2, 28.0, 28.0), 4), "fp6_e2m3": (Form(3, 0, 7.5, 7.5), 2),
             "fp4_e2m1": (FORMS[FLOAT4], 2)}


@rule("ExtendedQuantizeLinear", domain=QUARK)
@rule("VitisQuantizeLinear", domain=VITIS)
def extended_quantize(walk: Walk, node: Node) -> Value:
    """QuantizeLinear to any type, floats too: these are divided by the scale only."""
    x, scale, zero = node.tensor(0), node.tensor(1), node.tensor(2)
    axis = node.attrs.get("axis", 0)
    if not zero.is_float:
        return quantize(walk, x, scale, zero, zero.elem_type, axis)
    wide = cast(walk, x, TensorProto.FLOAT)
    scale, zero = (cast(walk, alongside(walk, x, p, axis, 0), TensorProto.FLOAT)
                   for p in (scale, zero))
    made = walk.graph.op("Add", walk.graph.op("Div", wide, scale), zero)
    if node.tensor(2).elem_type == TensorProto.FLOAT16:
        return cast(walk, made, TensorProto.FLOAT16)
    # What was bfloat16 in the file is float32 here.
    return walk.graph.rounded(made)


@rule("ExtendedDequantizeLinear", domain=QUARK)
@rule("VitisDequantizeLinear", domain=VITIS)
def extended_dequantize(walk: Walk, node: Node) -> Value:
    x, scale = node.tensor(0), node.tensor(1)
    return dequantize(walk, x, scale, node.get(2), node.attrs.get("axis", 0))


@rule("BFPQuantizeDequantize", domain=QUARK)
@rule("BFPFixNeuron", domain=VITIS)
def block_floating_point(walk: Walk, node: Node) -> Value:
    """Whole multiples of a step that each block has, by its largest number's exponent."""
    method = node.attrs.get("bfp_method", "to_bfp")
    other = node.attrs.get("use_compiler_version_cpu_kernel", 0)
    if method not in ("to_bfp", "to_bfp_prime") or other:
        raise Refused(f"it rounds by '{method}'{' of the compiler' if other else ''}, of which "
                      "nothing is known here",
                      "quantise the network with bfp_method 'to_bfp' or 'to_bfp_prime'.")
    part = node.attrs.get("sub_block_size", 2)
    finer = 2 ** node.attrs.get("sub_block_shift_bits", 1) - 1
    bits = node.attrs.get("bit_width", 16) - 9
    if not 1 <= bits <= 20:
        raise Refused(f"its numbers have {bits} bits beside sign and exponent",
                      "quantise the network to 10 to 29 bits.")
    first = bool(node.attrs.get("convert_to_bfloat_before_bfp", 0))

    def rounded(x: Value, power: Value, _axis: int) -> Value:
        return _steps(walk, node, x, power, 2.0 ** (bits - 1), 2 ** bits - 1, 1 - 2 ** bits)

    def rounded_in_parts(x: Value, power: Value, axis: int) -> Value:
        """Parts of a block have steps that are finer, as their own numbers are smaller."""
        if part < 1 or x.shape[axis] % part:
            raise Refused(f"its blocks of {x.shape[axis]} have no whole parts of {part}",
                          "quantise the network with blocks that parts fill.", "invalid")
        before, after = x.shape[:axis], x.shape[axis + 1:]
        parts = reshaped(walk, x, (*before, x.shape[axis] // part, part, *after))
        own = any_power_below(walk, reduce(walk, "ReduceMax", walk.graph.op("Abs", parts),
                                           [axis + 1], True))
        least = walk.graph.op("Mul", reshaped(walk, power, (*before, 1, 1, *after)), 2.0 ** -finer)
        made = rounded(parts, walk.graph.op("Max", own, least), axis)
        return reshaped(walk, made, x.shape)

    if method == "to_bfp":
        return _by_blocks(walk, node, 8, rounded, first)
    return _by_blocks(walk, node, 8, rounded_in_parts, first, spoilt=True)


@rule("MXQuantizeDequantize", domain=QUARK)
@rule("MXFixNeuron", domain=VITIS)
def microscaling(walk: Walk, node: Node) -> Value:
    """Numbers of few bits times a power of two that each block has (OCP's MX formats)."""
    kind = node.attrs.get("element_dtype", "int8")
    if kind != "int8" and kind not in _ELEMENTS:
        raise Refused(f"it rounds to '{kind}', of which nothing is known here",
                      f"quantise the network to int8 or {', '.join(_ELEMENTS)}.")

    def rounded(x: Value, power: Value, _axis: int) -> Value:
        if kind == "int8":
            return _steps(walk, node, x, power, 64.0, 127, -128)
        node.attrs.get("rounding_mode")
        form, exponent = _ELEMENTS[kind]
        scaled = walk.graph.op("Mul", walk.graph.op("Div", x, power), 2.0 ** exponent)
        made = walk.graph.op("Mul", in_form(walk, scaled, form, True), 2.0 ** -exponent)
        return walk.graph.op("Mul", made, power)

    return _by_blocks(walk, node, 32, rounded, False)


def _by_blocks(walk: Walk, node: Node, block: int, rounded: Callable[[Value, Value, int], Value],
               to_bfloat16: bool, spoilt: bool = False) -> Value:
    """rounded(numbers in blocks, the power of two below the largest of each block, the axis in
    blocks); what is NaN or infinite does not count, and stays, or makes its block NaN."""
    graph = walk.graph
    given = node.tensor(0)
    x = cast(walk, given, TensorProto.FLOAT)
    axis = node.attrs.get("axis", 1)
    axis = axis if x.rank > 1 else 0
    block = node.attrs.get("block_size", block)
    if x.size == 1:
        node.attrs.get("rounding_mode")
        return given
    if not -x.rank <= axis < x.rank or block < 1:
        raise Refused(f"its axis {axis} is none of the {x.rank} that its input has",
                      "quantise the network along another one.", "invalid")
    x = graph.rounded(x) if to_bfloat16 else x
    finite = graph.op("Less", graph.op("Abs", x), graph.like(np.inf, x))
    known = graph.op("Where", finite, x, graph.like(0, x))
    axis %= x.rank
    blocks = _in_blocks(walk, known, axis, block)
    largest = reduce(walk, "ReduceMax", graph.op("Abs", blocks), [axis + 1], True)
    made = rounded(blocks, any_power_below(walk, largest), axis + 1)
    if spoilt:
        lost = graph.op("Where", finite, graph.like(0, x), graph.like(np.nan, x))
        lost = reduce(walk, "ReduceSum", _in_blocks(walk, lost, axis, block), [axis + 1], True)
        return cast(walk, _out_of_blocks(walk, graph.op("Add", made, lost), x, axis),
                    given.elem_type)
    made = _out_of_blocks(walk, made, x, axis)
    return cast(walk, graph.op("Where", finite, made, x), given.elem_type)


def _in_blocks(walk: Walk, x: Value, axis: int, block: int) -> Value:
    """With an axis of blocks and one in each block in the place of an axis; the last is filled up
    with zeros."""
    count = math.ceil(x.shape[axis] / block)
    more = count * block - x.shape[axis]
    if more:
        shape = [more if a == axis else d for a, d in enumerate(x.shape)]
        x = walk.graph.op("Concat", x, walk.graph.constant(np.zeros(shape, x.dtype)), axis=axis)
    return reshaped(walk, x, (*x.shape[:axis], count, block, *x.shape[axis + 1:]))


def _out_of_blocks(walk: Walk, blocks: Value, like: Value, axis: int) -> Value:
    whole = (*like.shape[:axis], blocks.shape[axis] * blocks.shape[axis + 1],
             *like.shape[axis + 1:])
    return sliced(walk, reshaped(walk, blocks, whole), {axis: range(like.shape[axis])})


def _steps(walk: Walk, node: Node, x: Value, power: Value, steps: float, high: float,
           low: float) -> Value:
    """x as whole numbers of so many steps in the power of two, within bounds."""
    graph, mode = walk.graph, node.attrs.get("rounding_mode", 0)
    if mode not in (0, 1, 2):
        raise Refused(f"it rounds by mode {mode}, of which nothing is known here",
                      "quantise the network with rounding mode 0, 1 or 2.")
    exact = graph.op("Mul", graph.op("Div", x, power), steps)
    whole = graph.op("Round", exact)
    if mode != 2:
        # Halves go up, or away from zero.
        left = graph.op("Sub", exact, whole)
        up = graph.op("Equal", left, 0.5)
        if mode == 0:
            up = graph.op("And", up, graph.op("Greater", exact, 0))
            down = graph.op("And", graph.op("Equal", left, -0.5), graph.op("Less", exact, 0))
            whole = graph.op("Sub", whole, cast(walk, down, TensorProto.FLOAT))
        whole = graph.op("Add", whole, cast(walk, up, TensorProto.FLOAT))
    whole = graph.op("Clip", whole, graph.like(low, whole), graph.like(high, whole))
    return graph.op("Mul", graph.op("Mul", whole, 1 / steps), power)


@rule("TRT_FP8QuantizeLinear", domain=TENSORRT)
def eight_bits(walk: Walk, node: Node) -> Value:
    x, scale = (cast(walk, node.tensor(i), TensorProto.FLOAT) for i in (0, 1))
    return in_form(walk, walk.graph.op("Div", x, alongside(walk, x, scale, node.attrs.get(
        "axis", 1), 0)), _EIGHT, True)


@rule("TRT_FP8DequantizeLinear", domain=TENSORRT)
def out_of_eight_bits(walk: Walk, node: Node) -> Value:
    """Of what eight_bits() has made, or of weights as their bytes."""
    x = node.tensor(0)
    if x.elem_type == TensorProto.UINT8 and x.array is not None:
        tensor = TensorProto(data_type=TensorProto.FLOAT8E4M3FN, dims=x.shape,
                             raw_data=np.ascontiguousarray(x.array).tobytes())
        x = walk.graph.held(walk.graph.initializer(tensor))
    return dequantize(walk, x, node.tensor(1), None, node.attrs.get("axis", 1))


@rule("DequantizeLinear", domain=TENSORRT)
@rule("TRT_INT4DequantizeLinear", domain=TENSORRT)
@rule("TRT_INT4DequantizeLinear")  # ModelOpt gives it no domain.
def out_of_four_bits(walk: Walk, node: Node) -> Value:
    return dequantize(walk, node.tensor(0), node.tensor(1), node.get(2),
                      *_axis_and_block(node, 1))


@rule("TRT_INT4QuantizeLinear", domain=TENSORRT)
@rule("TRT_INT4QuantizeLinear")
def to_four_bits(walk: Walk, node: Node) -> Value:
    return quantize(walk, node.tensor(0), node.tensor(1), node.get(2), TensorProto.INT4,
                    *_axis_and_block(node, 1))


def _axis_and_block(node: Node, default: int) -> tuple[int, int]:
    """Of blocks whose size is not said, by how many scales there are along the one axis: it is a
    power of two for TensorRT, and the last block may be short."""
    axis, block = node.attrs.get("axis", default), node.attrs.get("block_size", 0)
    shape, scales = node.tensor(0).shape, node.tensor(1).shape
    if not block and len(scales) == len(shape) > 1:
        along = [i for i, (d, s) in enumerate(zip(shape, scales)) if d != s]
        if len(along) == 1 and 0 < scales[along[0]] < shape[along[0]]:
            axis, count = along[0], scales[along[0]]
            block = 1 << (-(-shape[axis] // count) - 1).bit_length()
        if not block or -(-shape[axis] // block) != count:
            raise Refused(f"its scales have the shape {list(scales)} beside {list(shape)}, which "
                          "does not tell its blocks", "quantise the network for opset 21.")
    return axis, block


@rule("TRT_MXFP8DynamicQuantize", domain=TENSORRT, ignored=("output_dtype",))
def blocks_of_eight_bits(walk: Walk, node: Node) -> list[Value]:
    """Floats of eight bits, and for each block the exponent of its scale, more 127."""
    graph = walk.graph
    x = cast(walk, node.tensor(0), TensorProto.FLOAT)
    axis, block = node.attrs.get("axis", -1) % x.rank, node.attrs.get("block_size", 32)
    blocks = _in_blocks(walk, x, axis, block)
    largest = reduce(walk, "ReduceMax", graph.op("Abs", blocks), [axis + 1], True)
    most = graph.op("Div", largest, 448)
    below = any_power_below(walk, most)
    scale = graph.op("Where", graph.op("Less", below, most), graph.op("Mul", below, 2), below)
    exponent = graph.op("Round", graph.op("Div", graph.op("Log", scale), math.log(2)))
    shape = (*x.shape[:axis], blocks.shape[axis], *x.shape[axis + 1:])
    return [_out_of_blocks(walk, in_form(walk, graph.op("Div", blocks, scale), _EIGHT, True), x,
                           axis),
            reshaped(walk, cast(walk, graph.op("Add", exponent, 127), TensorProto.UINT8), shape)]


@rule("TRT_MXFP8DequantizeLinear", domain=TENSORRT)
def out_of_blocks_of_eight_bits(walk: Walk, node: Node) -> Value:
    x, exponent = node.tensor(0), cast(walk, node.tensor(1), TensorProto.INT32)
    powers = walk.graph.constant((2.0 ** np.clip(np.arange(256) - 127, -126, 127)
                                  ).astype(np.float32))
    made = dequantize(walk, x, walk.graph.op("Gather", powers, exponent), None,
                      node.attrs.get("axis", -1), node.attrs.get("block_size", 32))
    return cast(walk, made, node.attrs.get("output_dtype", TensorProto.FLOAT))


@rule("TRT_FP4DynamicQuantize", domain=TENSORRT, ignored=("scale_type",))
def four_bits(walk: Walk, node: Node) -> list[Value]:
    """NVFP4: floats of four bits, and for each block a scale in eight bits that the number beside
    all of them is to be multiplied by."""
    graph = walk.graph
    x, scale = (cast(walk, node.tensor(i), TensorProto.FLOAT) for i in (0, 1))
    axis, block = node.attrs.get("axis", -1) % x.rank, node.attrs.get("block_size", 16)
    blocks = _in_blocks(walk, x, axis, block)
    scale = reshaped(walk, scale, ())
    largest = reduce(walk, "ReduceMax", graph.op("Abs", blocks), [axis + 1], True)
    each = in_form(walk, graph.op("Div", graph.op("Div", largest, 6), scale), _EIGHT, True)
    whole = graph.op("Mul", each, scale)
    divisor = graph.op("Where", graph.op("Equal", whole, 0), graph.like(1, whole), whole)
    few = in_form(walk, graph.op("Div", blocks, divisor), FORMS[FLOAT4], True)
    shape = (*x.shape[:axis], each.shape[axis], *x.shape[axis + 1:])
    return [_out_of_blocks(walk, few, x, axis), reshaped(walk, each, shape)]
