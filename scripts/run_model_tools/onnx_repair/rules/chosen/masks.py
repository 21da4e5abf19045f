"""Masks of chosen rows: how many rows they choose, what the others are filled with, and whether two
of them hold at the same places.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.reductions import reduce
from run_model_tools.onnx_repair.rules.shapes import expanded
from run_model_tools.onnx_repair.values import Chosen, Value
from run_model_tools.onnx_repair.walk import Walk

MOVES = ("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze")
"""Operators that leave the elements of a mask in their order."""
_DEEPEST = 30
"""Operators by which two masks may be computed alike."""


def filled_rows(walk: Walk, one: Chosen, number: float) -> Value:
    """All rows, with a number in those that are not chosen."""
    mask = reshaped(walk, one.mask, (one.rows.shape[0], *[1] * (one.rows.rank - 1)))
    return walk.graph.op("Where", mask, one.rows, walk.graph.like(number, one.rows))


def count_of(walk: Walk, one: Chosen) -> Value:
    """How many rows are chosen."""
    return reduce(walk, "ReduceSum", cast(walk, one.mask, TensorProto.INT64), None, False)


def mask_of_parts(walk: Walk, one: Chosen, times: int) -> Value:
    """Of rows that are so many rows each, behind each other."""
    count = one.rows.shape[0]
    return expanded(walk, reshaped(walk, one.mask, (count, 1)), (count, times))


def is_same(walk: Walk, one: Chosen, other: Chosen | None) -> bool:
    """Whether both are chosen by masks that hold at the same places."""
    if other is None or one.mask.size != other.mask.size:
        return False
    if one.mask is other.mask:
        return True
    makers, values = walk.graph.makers, walk.graph.values

    def plain(value: Value) -> tuple[Value, int]:
        """What the mask repeats, and how often each element of it."""
        times = value.size
        while (node := makers.get(value.name)) is not None:
            before = values[node.input[0]]
            if node.op_type == "Expand":
                lead = before.shape[:max((i + 1 for i, d in enumerate(before.shape) if d > 1),
                                         default=0)]
                if value.shape[:len(lead)] != lead or before.rank != value.rank:
                    break
            elif node.op_type not in MOVES:
                break
            value = before
        return value, times // max(value.size, 1)

    def alike(a: Value, b: Value, depth: int = 0) -> bool:
        if a is b:
            return True
        if a.shape != b.shape or a.elem_type != b.elem_type or depth > _DEEPEST:
            return False
        if a.array is not None or b.array is not None:
            return a.array is not None and b.array is not None and np.array_equal(a.array, b.array)
        first, second = makers.get(a.name), makers.get(b.name)
        if first is None or second is None or first.op_type != second.op_type \
                or len(first.input) != len(second.input) or first.domain != second.domain \
                or list(first.output).index(a.name) != list(second.output).index(b.name):
            return False
        attributes = [{x.name: helper.get_attribute_value(x) for x in node.attribute}
                      for node in (first, second)]
        return attributes[0] == attributes[1] and all(
            left == right or bool(left and right) and alike(values[left], values[right], depth + 1)
            for left, right in zip(first.input, second.input))

    (a, times), (b, others) = plain(one.mask), plain(other.mask)
    return times == others and alike(a, b)
