"""ONNX Runtime's own operators on whole numbers (com.microsoft), as its quantiser writes them.

Static ones become what QDQ says: their operands dequantised, the operator, and quantised again,
which is what they are defined by and where the kernels of bytes are found.  Those that multiply
what was quantised at run time stay sums of whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from run_model_tools.few_bits import BNB_FLOAT4, NORMAL_FLOAT4, FewBits
from run_model_tools.onnx_repair.refusal import Refused
from run_model_tools.onnx_repair.rules import RULES, rule
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.matmul import product
from run_model_tools.onnx_repair.rules.onnx_runtime import DOMAIN
from run_model_tools.onnx_repair.rules.onnx_runtime.attention import (
    WITHOUT_ROTATION,
    attended_to_itself,
    embedded,
)
from run_model_tools.onnx_repair.rules.onnx_runtime.fused import channels_first, channels_last
from run_model_tools.onnx_repair.rules.quantisation import (
    bias_of_products,
    centred,
    convolved_bytes,
    dequantize,
    dequantize_rule,
    dynamically_quantized,
    exact_parts,
    exact_product,
    product_with,
    quantize,
    quantize_rule,
)
from run_model_tools.onnx_repair.rules.recurrent import Product, Products, part, unrolled
from run_model_tools.onnx_repair.rules.shapes import concatenated
from run_model_tools.onnx_repair.rules.tables import rows_of_steps
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk

RULES[DOMAIN, "QuantizeLinear"] = quantize_rule
RULES[DOMAIN, "DequantizeLinear"] = dequantize_rule


def _in_floats(walk: Walk, node: Node, first: int,
               compute: Callable[[list[Value]], Value]) -> Value:
    """Operands (tensor, scale, zero point) dequantised, computed with and quantised again."""
    count = first // 3
    values = [dequantize(walk, node.tensor(3 * i), node.tensor(3 * i + 1), node.get(3 * i + 2))
              for i in range(count)]
    zero = node.get(first + 1)
    to = node.tensor(0).elem_type
    return quantize(walk, compute(values), node.tensor(first), zero, to)


@rule("QLinearAdd", "QLinearMul", domain=DOMAIN)
def qlinear_binary(walk: Walk, node: Node) -> Value:
    return _in_floats(walk, node, 6, lambda v: walk.graph.op(node.op[len("QLinear"):], *v))


@rule("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", "QLinearAveragePool",
      "QLinearGlobalAveragePool", domain=DOMAIN)
def qlinear_unary(walk: Walk, node: Node) -> Value:
    op = node.op[len("QLinear"):]
    given = node.attrs.but("channels_last", "opset")
    opset = node.attrs.get("opset", 13)
    if not node.attrs.get("channels_last", 0):
        return _in_floats(walk, node, 3, lambda v: walk.node_in(op, opset, list(v), 1, **given))
    return _in_floats(walk, node, 3, lambda v: channels_last(walk, walk.node_in(
        op, opset, [channels_first(walk, v[0])], 1, **given)))


@rule("QLinearConv", domain=DOMAIN, ignored=("kernel_shape",))
def qlinear_conv_any_layout(walk: Walk, node: Node) -> Value:
    """ONNX's, whose picture may have its channels last; its weights have them where ONNX has."""
    x = node.tensor(0)
    if not node.attrs.get("channels_last", 0):
        return convolved_bytes(walk, node, x)
    return channels_last(walk, convolved_bytes(walk, node, channels_first(walk, x)))


@rule("QLinearConcat", domain=DOMAIN)
def qlinear_concat(walk: Walk, node: Node) -> Value:
    scale, zero = node.tensor(0), node.tensor(1)
    values = [dequantize(walk, node.tensor(i), node.tensor(i + 1), node.get(i + 2))
              for i in range(2, len(node.inputs), 3)]
    return quantize(walk, concatenated(walk, values, node.attrs["axis"] % values[0].rank), scale,
                    zero, zero.elem_type)


@rule("QLinearWhere", domain=DOMAIN)
def qlinear_where(walk: Walk, node: Node) -> Value:
    values = [dequantize(walk, node.tensor(i), node.tensor(i + 1), node.get(i + 2)) for i in (1, 4)]
    return quantize(walk, walk.graph.op("Where", node.tensor(0), *values), node.tensor(7),
                    node.get(8), node.tensor(1).elem_type)


@rule("QLinearReduceMean", domain=DOMAIN)
def qlinear_reduce_mean(walk: Walk, node: Node) -> Value:
    return _in_floats(walk, node, 3, lambda v: walk.node_in(
        "ReduceMean", 13, list(v), 1, axes=node.attrs.get("axes"),
        keepdims=node.attrs.get("keepdims", 1)))


@rule("QGemm", domain=DOMAIN)
def qgemm(walk: Walk, node: Node) -> Value:
    """alpha * A * B + C, C in steps of the products; float32 where no output scale is given."""
    graph = walk.graph
    a = node.tensor(0)
    made = _whole_gemm(walk, node)
    if made is None:
        columns = 0 if node.attrs.get("transB", 0) else 1
        left = dequantize(walk, a, node.tensor(1), node.get(2))
        right = dequantize(walk, node.tensor(3), node.tensor(4), node.get(5), columns)
        made = walk.node_in("Gemm", 13, [left, right], 1, transA=node.attrs.get("transA", 0),
                            transB=node.attrs.get("transB", 0))
    alpha = float(node.attrs.get("alpha", 1.0))
    if alpha != 1:
        made = graph.op("Mul", made, alpha)
    bias = bias_of_products(node, 6)
    if bias is not None:
        steps = graph.op("Mul", reshaped(walk, node.tensor(1), ()), node.tensor(4))
        if alpha != 1:
            steps = graph.op("Mul", steps, alpha)
        flat = reshaped(walk, steps, () if steps.size == 1 else (steps.size,))
        made = graph.op("Add", made, dequantize(walk, bias, flat, None, bias.rank - 1))
    if node.get(7) is None:
        return made
    zero = node.get(8)
    return quantize(walk, made, node.tensor(7), zero,
                    a.elem_type if zero is None else zero.elem_type)


def _whole_gemm(walk: Walk, node: Node) -> Value | None:
    """A * B of a QGemm in whole numbers, scaled once; None where one row is multiplied, for which
    there are layers of bytes, or the weights are computed."""
    a, b = node.tensor(0), node.tensor(3)
    if node.attrs.get("transA", 0) or b.array is None or walk.is_open or a.shape[0] == 1:
        return None
    if node.attrs.get("transB", 0):
        b = walk.graph.constant(np.ascontiguousarray(b.array.T))
    return _scaled_product(walk, a, node.tensor(1), node.get(2), b, node.tensor(4), node.get(5),
                           None)


def _scaled_product(walk: Walk, a: Value, a_scale: Value, a_zero: Value | None,
                    b: Value, b_scale: Value, b_zero: Value | None, bias: Value | None) -> Value:
    """A product of whole numbers in float32."""
    total = exact_product(walk, a, a_zero, b, b_zero, TensorProto.FLOAT)
    made = _scaled(walk, total, a_scale, b_scale)
    return made if bias is None else walk.graph.op("Add", made, bias)


def _scaled(walk: Walk, total: Value, a_scale: Value, b_scale: Value) -> Value:
    graph = walk.graph
    return graph.op("Mul", total, graph.op("Mul", reshaped(walk, a_scale, ()), b_scale))


@rule("MatMulIntegerToFloat", domain=DOMAIN)
def matmul_integer_to_float(walk: Walk, node: Node) -> Value:
    if node.tensor(2).size != 1:
        raise Refused("its left operand has a scale for each row")
    return _scaled_product(walk, node.tensor(0), node.tensor(2), node.get(4), node.tensor(1),
                           node.tensor(3), node.get(5), node.get(6))


@rule("DynamicQuantizeMatMul", domain=DOMAIN)
def dynamic_quantize_matmul(walk: Walk, node: Node) -> Value:
    a, scale, zero = dynamically_quantized(walk, node.tensor(0))
    return _scaled_product(walk, a, scale, zero, node.tensor(1), node.tensor(2), node.get(3),
                           node.get(4))


@rule("DynamicQuantizeLSTM", domain=DOMAIN, ignored=(
    "activation_alpha", "activation_beta", "hidden_size"))
def dynamic_quantize_lstm(walk: Walk, node: Node) -> list[Value]:
    """Inputs and, at every step, states are quantised by their range; its weights lie transposed,
    with scales and zero points at 8 to 11."""
    x, lengths = node.tensor(0), node.get(4)
    if lengths is not None and lengths.array is not None and (
            lengths.array == x.shape[0]).all():
        lengths = None
    if lengths is None and _is_plain_lstm(walk, node):
        count, hidden = node.tensor(2).shape[0], node.tensor(2).shape[1]
        one = (count, x.shape[1], hidden)
        operands = [None if i == 4 else node.get(i) for i in range(len(node.inputs))]
        return walk.graph.foreign(
            DOMAIN, node.op, operands, [(x.shape[0], *one), one, one], hidden_size=hidden,
            direction=node.attrs.get("direction", "forward"))[:max(node.outputs, 1)]

    def products_of(index: int, scales: int, direction: int) -> Product:
        b, scale, zero = (None if v is None else part(walk, v, direction) for v in (
            node.tensor(index), node.tensor(scales), node.get(scales + 1)))
        assert b is not None and scale is not None
        parts = exact_parts(walk, b, zero, 0)
        whole = centred(walk, b, zero, False)

        def times(a: Value) -> Value:
            quantized, a_scale, a_zero = dynamically_quantized(walk, a)
            left = centred(walk, quantized, a_zero, True)
            total = product_with(walk, left, parts, TensorProto.FLOAT) if parts else (
                cast(walk, product(walk, left, whole), TensorProto.FLOAT))
            return _scaled(walk, total, a_scale, scale)

        return times

    weights: list[Products] = [
        (products_of(1, 8, i), products_of(2, 10, i)) for i in range(node.tensor(1).shape[0])]
    others = [node.get(3), node.get(5), node.get(6), node.get(7)]
    return unrolled(walk, node, "LSTM", node.tensor(2).shape[1], x, weights, others,
                    lengths)[:max(node.outputs, 1)]


def _is_plain_lstm(walk: Walk, node: Node) -> bool:
    """Whether the importer takes it (inside_tvm/operators/quantized_lstm.py)."""
    usual = ["sigmoid", "tanh", "tanh"] * node.tensor(1).shape[0]
    weights = [node.get(i) for i in (1, 2, 3, 8, 9, 10, 11)]
    return (walk.knows(node.op) and not walk.is_open and node.get(7) is None
            and [a.lower() for a in node.attrs.get("activations") or usual] == usual
            and not node.attrs.get("clip") and not node.attrs.get("input_forget")
            and all(w is None or w.is_constant for w in weights))


@rule("QAttention", domain=DOMAIN, ignored=WITHOUT_ROTATION)
def quantised_attention(walk: Walk, node: Node) -> list[Value | None]:
    packed = _scaled_product(walk, node.tensor(0), node.tensor(3), node.get(6), node.tensor(1),
                             node.tensor(4), node.get(7), node.get(2))
    return attended_to_itself(walk, node, packed, node.get(5), node.get(8), None)


@rule("QEmbedLayerNormalization", domain=DOMAIN)
def quantised_embed_layer_normalization(walk: Walk, node: Node) -> list[Value | None]:
    """Tables and factors have their scales at 8 and after, their zero points at 13."""
    return embedded(walk, node, None, lambda tensor, index: dequantize(
        walk, tensor, node.tensor(8 + index), node.get(13 + index)))


@rule("MatMulNBits", domain=DOMAIN, ignored=("accuracy_level",))
def matmul_of_few_bits(walk: Walk, node: Node) -> Value:
    """Weights of 2, 4 or 8 bits, in blocks along the sum with a scale each, as float32."""
    bits, block = node.attrs.get("bits", 4), node.attrs["block_size"]
    depth, columns = node.attrs["K"], node.attrs["N"]
    if bits not in (2, 4, 8):
        raise Refused(f"its weights have {bits} bits", "quantise it to 2, 4 or 8 bits.")
    if node.get(4) is not None:
        raise Refused("its weights are in another order (g_idx)")
    if node.attrs.get("weight_prepacked", 0):
        raise Refused("its weights lie as one kind of CPU wants them (weight_prepacked)")
    packed = node.constant(1, "its weights")
    scales = node.constant(2, "its scales")
    zeros = node.constant(3, "its zero points")
    assert packed is not None and scales is not None
    blocks = -(-depth // block)
    whole = unpacked(packed.reshape(columns, blocks, -1), bits).astype(np.float32)
    if zeros is None:
        zero = np.full((columns, blocks), 1 << (bits - 1), np.float32)
    else:
        row = -(-blocks * bits // 8) if zeros.dtype == np.uint8 else blocks
        if zeros.size != columns * row:
            raise Refused(f"its zero points have the shape {list(zeros.shape)}, and {blocks} "
                          f"blocks of each of {columns} columns need {[columns, row]} of "
                          f"{zeros.dtype}", "look at what quantised the network.", "invalid")
        zero = zeros.reshape(columns, row)
        zero = unpacked(zero, bits)[:, :blocks] if zeros.dtype == np.uint8 else zero
        zero = zero.astype(np.float32)
    weight = (whole - zero[..., None]) * scales.reshape(columns, blocks, 1).astype(np.float32)
    weight = weight.reshape(columns, -1)[:, :depth].T
    # In float32 whatever the others are, as ONNX Runtime does; rounded to half precision the
    # weights would need 16 bits.
    x, bias = cast(walk, node.tensor(0), TensorProto.FLOAT), node.get(5)
    made = product(walk, x, walk.graph.constant(np.ascontiguousarray(weight)))
    if bias is not None:
        made = walk.graph.op("Add", made, cast(walk, bias, TensorProto.FLOAT))
    return cast(walk, made, node.tensor(0).elem_type)


_LEVELS = {0: BNB_FLOAT4, 1: NORMAL_FLOAT4}
"""By quant_type, what 4 bits mean."""


@rule("MatMulBnb4", domain=DOMAIN)
def matmul_of_bitsandbytes(walk: Walk, node: Node) -> Value:
    """Weights of 4 bits, the first of a byte the higher ones, in blocks of the flat matrix [N, K],
    each with a largest size, as float32."""
    depth, columns, kind = (node.attrs[name] for name in ("K", "N", "quant_type"))
    packed, most = node.constant(1, "its weights"), node.constant(2, "its scales")
    if kind not in _LEVELS or not node.attrs.get("transB", 1):
        raise Refused(f"its weights are of the kind {kind}" if kind not in _LEVELS
                      else "its weights are not transposed")
    assert packed is not None and most is not None
    halves = np.stack([packed >> 4, packed & 15], -1).reshape(-1)[:columns * depth]
    scales = np.repeat(most.reshape(-1).astype(np.float32), node.attrs["block_size"])
    weight = (_LEVELS[kind][halves] * scales[:len(halves)]).reshape(columns, depth).T
    x = node.tensor(0)
    return product(walk, x, cast(walk, walk.graph.constant(np.ascontiguousarray(weight)),
                                 x.elem_type))


@rule("GatherBlockQuantized", domain=DOMAIN)
def gather_of_few_bits(walk: Walk, node: Node) -> Value:
    """Rows of a table of 4 or 8 bits, with a scale for each block along another axis; what is
    gathered is dequantised, not the table."""
    graph, bits = walk.graph, node.attrs.get("bits", 4)
    packed, zeros = node.constant(0, "its table"), node.constant(3, "its zero points")
    places, scales = node.tensor(1), node.tensor(2)
    assert packed is not None
    if node.tensor(0).elem_type == TensorProto.UINT8:  # Else it is of four bits by its type.
        if bits not in (4, 8):
            raise Refused(f"its table has {bits} bits", "quantise it to 4 or 8 bits.")
        numbers = unpacked(packed, bits)
        zero = None if zeros is None else unpacked(zeros, bits)[..., :scales.shape[-1]]
        middle = 1 << (bits - 1)
    else:
        bits, middle = 4, 8 if node.tensor(0).elem_type == TensorProto.INT4 else 0
        numbers = (packed.astype(np.int8) + middle).astype(np.uint8)
        zero = None if zeros is None else (zeros.astype(np.int8) + middle).astype(np.uint8)
    if zero is None:
        zero = np.full(scales.shape, middle, np.uint8)
    axis, along = (node.attrs.get(key, default) % numbers.ndim for key, default in (
        ("gather_axis", 0), ("quantize_axis", 1)))
    block = node.attrs.get("block_size", 128)
    if (axis, along) == (0, 1) and numbers.ndim == 2 and scales.array is not None:
        table = FewBits(bits, numbers.T, scales.array.astype(np.float32).T, zero.T,
                        block=block)
        return cast(walk, rows_of_steps(walk, table, numbers.shape[1], places), scales.elem_type)
    rows = graph.op("Gather", graph.constant(numbers), places, axis=axis)
    if along == axis:
        counted = graph.op("Where", graph.op("Less", places, 0),
                           graph.op("Add", places, numbers.shape[axis]), places)
        places, block = graph.op("Div", counted, block), 1
    elif along > axis:
        along += places.rank - 1
    scales = graph.op("Gather", scales, places, axis=axis)
    zero_points = graph.op("Gather", graph.constant(zero), places, axis=axis)
    return dequantize(walk, rows, scales, zero_points, along, block)


def unpacked(data: np.ndarray, bits: int) -> np.ndarray:
    """Of bytes, along the last axis, the lowest bits first."""
    parts = [data >> low & (1 << bits) - 1 for low in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(*data.shape[:-1], -1)
