"""Rows gathered of large tables, as a language model's words are: the table stays in the bits that
its numbers need, and what is gathered becomes float32."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from run_model_tools.few_bits import FewBits, few_bits
from run_model_tools.onnx_repair.evaluation import evaluate
from run_model_tools.onnx_repair.graph import OPSET
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.values import Value
from run_model_tools.onnx_repair.walk import Walk

_FEWEST = 1 << 20
"""Bytes of float32 from which a table is looked at."""
_MAKE_TABLES = ("Cast", "DequantizeLinear", "Gather", "Mul", "Reshape", "Sub", "Transpose")
_SMALLEST_EXPONENT = 2
"""Of float32's, from which on a number is a product of two that are no denormal ones."""


def rows_of_table(walk: Walk, x: Value, places: Value) -> Value | None:
    """What is gathered along the first axis of a table whose numbers need few bits; None of others.
    """
    table = None if places.is_constant else _known_floats(walk, x)
    if table is None:
        return None
    matrix = table.reshape(len(table), -1)
    found = few_bits(matrix.T)
    if found is None or found.bits == 16 and not found.is_half and not _are_products(matrix):
        return None
    rows = (_of_sixteen_bits(walk, found, places) if found.bits == 16
            else rows_of_steps(walk, found, matrix.shape[1], places))
    return cast(walk, reshaped(walk, rows, (*places.shape, *x.shape[1:])), x.elem_type)


def _known_floats(walk: Walk, x: Value) -> np.ndarray | None:
    """The numbers of a large table that is constant, or made of what is."""
    if x.elem_type not in (TensorProto.FLOAT, TensorProto.FLOAT16) or x.varies or (
            x.rank < 2 or x.size * 4 < _FEWEST):
        return None
    table = _computed(walk, x)
    return None if table is None else table.astype(np.float32)


def _computed(walk: Walk, x: Value) -> np.ndarray | None:
    """What a constant holds, or what dequantises or moves one, which graph.op() leaves where it
    makes more bytes of fewer; None of all else."""
    maker = walk.graph.makers.get(x.name)
    if maker is None or maker.op_type not in _MAKE_TABLES:
        return x.array
    inputs = [walk.graph.values[name] for name in dict.fromkeys(maker.input)]
    arrays = {}
    for one in inputs:
        array = _computed(walk, one)
        if array is None:
            return None
        arrays[one.name] = one.type_proto(), array
    made = evaluate(maker, arrays, "", OPSET)
    return made[0] if made else None


def _gathered(walk: Walk, columns: np.ndarray, places: Value) -> Value:
    graph = walk.graph
    return graph.op("Gather", graph.constant(np.ascontiguousarray(columns.T)), places, axis=0)


def rows_of_steps(walk: Walk, found: FewBits, length: int, places: Value) -> Value:
    """float32 (*places, length): rows of a table of 4 or 8 bits, whose columns `found` has as rows.
    """
    graph = walk.graph
    assert found.steps is not None
    numbers = (_nibbles(walk, found.numbers.T, places) if found.bits == 4
               else _gathered(walk, found.numbers, places))
    steps = _by_block(walk, _gathered(walk, found.steps, places), found, length)
    if found.levels is not None:
        return graph.op("Mul", _meant(walk, found.levels, numbers), steps)
    assert found.zeros is not None
    zeros: Value | int = int(found.zeros[0, 0])
    if (found.zeros != zeros).any():
        zeros = _by_block(walk, cast(walk, _gathered(walk, found.zeros, places),
                                     TensorProto.INT32), found, length)
    difference = graph.op("Sub", cast(walk, numbers, TensorProto.INT32), zeros)
    return graph.op("Mul", cast(walk, difference, TensorProto.FLOAT), steps)


def _meant(walk: Walk, numbers: np.ndarray, by: Value) -> Value:
    """What each number of `by` says in a table of floats."""
    return walk.graph.op("Gather", numbers.astype(np.float32), cast(walk, by, TensorProto.INT32),
                         axis=0)


def _by_block(walk: Walk, blocks: Value, found: FewBits, length: int) -> Value:
    """What each number of a row has of its block."""
    if found.block >= length:
        return blocks
    return walk.graph.op("Gather", blocks, np.arange(length) // found.block, axis=blocks.rank - 1)


def _are_products(matrix: np.ndarray) -> bool:
    """Whether numbers of bfloat16 are what _of_sixteen_bits() makes of their bits."""
    smallest = np.float32(2.0) ** (_SMALLEST_EXPONENT - 127)
    return all(bool((np.isfinite(row) & ((row == 0) | (np.abs(row) >= smallest))).all())
               for row in matrix)


def _of_sixteen_bits(walk: Walk, found: FewBits, places: Value) -> Value:
    """Rows of bfloat16 or float16.  ONNX has no operator that takes bits for those of a float, and
    float16 is float32 in a repaired model (half_precision.py): tables have what each byte says, and
    what is made of two is exact."""
    graph = walk.graph
    high, low = (_gathered(walk, byte.astype(np.uint8), places)
                 for byte in (found.numbers >> 8, found.numbers & 255))
    byte = np.arange(256)
    signs = np.where(byte < 128, 1.0, -1.0)

    if not found.is_half:
        # A power of two of the sign and seven bits of the exponent, times what the other byte says.
        powers = np.where(byte & 127, signs * 2.0 ** (2 * (byte & 127) - 127), signs * 0.0)
        rest = 2.0 ** (byte >> 7) * (1 + (byte & 127) / 128)
        return graph.op("Mul", _meant(walk, powers, high), _meant(walk, rest, low))
    # The sign, the exponent and two bits of the fraction, and as many last places as the rest says.
    exponent = byte >> 2 & 31
    last_place = signs * 2.0 ** (np.maximum(exponent, 1) - 25)
    first = last_place * 256 * ((byte & 3) + np.where(exponent, 4, 0))
    return graph.op("Add", _meant(walk, first, high), graph.op(
        "Mul", _meant(walk, last_place, high), cast(walk, low, TensorProto.FLOAT)))


def _nibbles(walk: Walk, numbers: np.ndarray, places: Value) -> Value:
    """uint8 (*places, length): rows of uint8 (rows, length) below 16, two to a byte until then."""
    graph, length = walk.graph, numbers.shape[1]
    even = np.pad(numbers, [(0, 0), (0, length % 2)])
    packed = graph.op("Gather", graph.constant(even[:, ::2] | even[:, 1::2] << 4), places, axis=0)
    last = np.array([packed.rank])
    low = graph.op("BitwiseAnd", packed, graph.constant(15, np.uint8))
    high = graph.op("BitShift", packed, graph.constant(4, np.uint8), direction="RIGHT")
    pairs = graph.op("Concat", *(graph.op("Unsqueeze", half, last) for half in (low, high)),
                     axis=packed.rank)
    both = reshaped(walk, pairs, (*places.shape, even.shape[1]))
    return both if length % 2 == 0 else graph.op(
        "Slice", both, np.array([0]), np.array([length]), last - 1)
