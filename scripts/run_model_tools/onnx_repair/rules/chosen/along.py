"""Operators that work along the axis of chosen rows, wherever it lies: sums and other reductions,
softmax, the place of the largest one, and products of matrices.

The others get a number that changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.rules.chosen.axes import as_rows, in_place
from run_model_tools.onnx_repair.rules.chosen.masks import count_of, filled_rows, is_same
from run_model_tools.onnx_repair.rules.chosen.places import as_many, holding
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.reductions import reduce
from run_model_tools.onnx_repair.values import Chosen, Node, Value
from run_model_tools.onnx_repair.walk import Walk

_NEUTRAL = {"ReduceSum": 0, "ReduceL1": 0, "ReduceL2": 0, "ReduceSumSquare": 0, "ReduceMean": 0,
            "ReduceLogSum": 0, "ReduceProd": 1, "ReduceMax": -np.inf, "ReduceMin": np.inf,
            "ReduceLogSumExp": -np.inf}
_OF_ALL_NUMBERS = ("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin")


def along_rows(walk: Walk, node: Node, op: str, given: Sequence[Chosen]) -> Chosen | Value | None:
    """What a node makes of chosen rows if it works along their axis; None of any other."""
    one = given[0]
    if op == "MatMul":
        return _product(walk, node)
    if op == "Einsum":
        return _einstein_sum(walk, node, given)
    if node.inputs[0] is not one or len(given) > 1:
        return None
    if op.startswith("Reduce"):
        axes = node.axes() or (
            [] if node.attrs.get("noop_with_empty_axes", 0) else list(range(_rank(one))))
        axes = sorted({axis % _rank(one) for axis in axes})
        return _reduced(walk, node, one, axes) if one.axis in axes else None
    if op in ("ArgMax", "ArgMin") and node.attrs.get("axis", 0) % _rank(one) == one.axis:
        return _place_of_extreme(walk, node, one)
    if op in ("Softmax", "LogSoftmax") and node.opset >= 13 and node.attrs.get(
            "axis", -1) % _rank(one) == one.axis:
        made = walk.node_in(op, 13, [_filled(walk, one, -np.inf)], axis=one.axis)
        return as_rows(walk, one, made, one.axis)
    return None


def _rank(one: Chosen) -> int:
    return one.lead + one.rows.rank


def _filled(walk: Walk, one: Chosen, number: float) -> Value:
    """All rows as the model has them, with a number in those that are not chosen."""
    rows = filled_rows(walk, one, number)
    return in_place(walk, one.but(rows=rows)) if one.axis else rows


def _reduced(walk: Walk, node: Node, one: Chosen, axes: list[int]) -> Value:
    if node.op not in _NEUTRAL or not one.rows.is_float and node.op not in _OF_ALL_NUMBERS:
        raise one.why
    keepdims = bool(node.attrs.get("keepdims", 1))
    if node.op == "ReduceSum" and (number := _number_holding(walk, one)) is not None:
        return reshaped(walk, number, (1,) * keepdims)
    neutral, count = _NEUTRAL[node.op], count_of(walk, one)
    if not one.rows.is_float and np.isinf(neutral):
        limits = np.iinfo(one.rows.dtype)
        neutral = limits.max if neutral > 0 else limits.min
    whole = _filled(walk, one, neutral)
    if node.op == "ReduceMean":
        # The mean of nothing is 0 in ONNX Runtime.
        each = int(np.prod([whole.shape[axis] for axis in axes if axis != one.axis],
                           dtype=np.int64))
        count = walk.graph.op("Mul", walk.graph.op("Max", count, 1), each)
        return walk.graph.op("Div", reduce(walk, "ReduceSum", whole, axes, keepdims),
                             cast(walk, count, whole.elem_type))
    made = walk.node_in(node.op, 18, [whole, walk.graph.constant(axes, np.int64)],
                        keepdims=int(keepdims))
    if np.isfinite(_NEUTRAL[node.op]):
        return made
    # TVM begins with the least finite number.
    return walk.graph.op("Where", walk.graph.op("Greater", count, 0), made,
                         walk.graph.like(neutral if made.is_float else 0, made))


def _number_holding(walk: Walk, one: Chosen) -> Value | None:
    """For how many of the rows, which are what a Cast makes of a condition, it holds: as many
    places NonZero gives of them."""
    made = walk.graph.makers.get(one.rows.name)
    if made is None or made.op_type != "Cast" or one.rows.elem_type != TensorProto.INT64 \
            or walk.graph.values[made.input[0]].elem_type != TensorProto.BOOL:
        return None
    found = holding(walk, one.but(rows=walk.graph.values[made.input[0]]))
    if found is None:
        return None
    number = walk.graph.op("Identity", count_of(walk, found))
    number.extents_of = found.but(along=0, of=None)
    return number


def _place_of_extreme(walk: Walk, node: Node, one: Chosen) -> Value:
    """Counted among the chosen rows."""
    if not one.rows.is_float:
        raise one.why
    whole = _filled(walk, one, -np.inf if node.op == "ArgMax" else np.inf)
    found = walk.node_in(node.op, 13, [whole], axis=one.axis,
                         keepdims=node.attrs.get("keepdims", 1),
                         select_last_index=node.attrs.get("select_last_index", 0))
    ordinals = walk.graph.op("CumSum", cast(walk, reshaped(walk, one.mask, (one.mask.size,)),
                                         TensorProto.INT64), np.array(0))
    return walk.graph.op("Gather", walk.graph.op("Sub", ordinals, 1), found, axis=0)


def _product(walk: Walk, node: Node) -> Chosen | Value | None:
    """Over the rows of both factors; with rows that are batches, the result's rows behind other
    axes, or its columns."""
    a, b = node.inputs
    if isinstance(a, Chosen) and isinstance(b, Chosen):
        if not is_same(walk, a, b):
            return None
        if a.axis == _rank(a) - 1 and b.axis == max(_rank(b) - 2, 0):
            return walk.node_in("MatMul", 13, [_filled(walk, a, 0), _filled(walk, b, 0)])
        if _rank(a) != _rank(b) or a.axis != b.axis or a.axis >= _rank(a) - 2:
            return None
        return as_rows(walk, a, walk.node_in("MatMul", 13, [_filled(walk, a, 0),
                                                            _filled(walk, b, 0)]), a.axis)
    one, other = (a, b) if isinstance(a, Chosen) else (b, a)
    if not isinstance(one, Chosen) or not isinstance(other, Value) or _rank(one) < 2:
        return None
    behind = _rank(one) - one.axis
    if behind == (1 if one is a else 2) and not one.axis and other.rank > 1:
        whole = as_many(walk, one, other.shape[-2 if one is a else -1])
        return walk.node_in("MatMul", 13, [whole, other] if one is a else [other, whole])
    if behind == (1 if one is a else 2) or other.rank > (2 if behind > 2 else _rank(one)):
        return None
    whole = _filled(walk, one, 0)
    made = walk.node_in("MatMul", 13, [whole, other] if one is a else [other, whole])
    # A vector before columns takes the axis away that was before them.
    return as_rows(walk, one, made, made.rank - 1 if behind == 1 else one.axis)


def _einstein_sum(walk: Walk, node: Node, given: Sequence[Chosen]) -> Chosen | Value | None:
    """Of which one letter stands for the chosen rows."""
    equation = node.attrs["equation"].replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if not arrow or "." in equation or len(terms) != len(node.inputs):
        return None
    letters = {term[i.axis] for term, i in zip(terms, node.inputs) if isinstance(i, Chosen)}
    letter, one = min(letters), given[0]
    if len(letters) > 1 or any(term.count(letter) != isinstance(i, Chosen)
                               for term, i in zip(terms, node.inputs)) \
            or not all(is_same(walk, one, i) for i in given):
        return None
    made = walk.node_in("Einsum", 12, [_filled(walk, i, 0) if isinstance(i, Chosen) else i
                                       for i in node.inputs], equation=equation)
    return as_rows(walk, one, made, right.index(letter)) if letter in right else made
