"""What is known of whole numbers that a model computes of shapes: which of them count chosen rows,
how many these are at most, and which shapes are of as many rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto, helper

from run_model_tools.onnx_repair.evaluation import evaluate
from run_model_tools.onnx_repair.graph import OPSET
from run_model_tools.onnx_repair.rules.chosen.masks import MOVES, is_same, mask_of_parts
from run_model_tools.onnx_repair.rules.elementwise import reshaped
from run_model_tools.onnx_repair.rules.shapes import concatenated
from run_model_tools.onnx_repair.values import Chosen, Value
from run_model_tools.onnx_repair.walk import Walk

_WIDE = (TensorProto.INT32, TensorProto.INT64, TensorProto.FLOAT, TensorProto.DOUBLE)
"""Types that have all numbers of rows."""


@dataclass(frozen=True)
class Number:
    """What is known of a whole number."""

    most: int | None = None
    """How large it may be."""
    exact: bool = False
    """Whether it is that."""
    of: Chosen | None = None
    """Whose rows it counts, as far as `most`."""
    less: Chosen | None = None
    """By the number of whose rows it is less."""

    @property
    def all_of(self) -> Chosen | None:
        """Whose rows it counts all."""
        return self.of if self.of is not None and self.most == self.of.rows.shape[0] else None

    def is_other(self, other: Number) -> bool | None:
        """Whether it is another number; None where that is not known."""
        if self.exact and other.exact:
            return self.most != other.most
        if self.of is not None and other.exact and other.most is not None and other.most < 0:
            return True
        return None


def numbers_of(walk: Walk, value: Value) -> list[Number]:
    """What is known of each of a value's elements."""
    unknown = [Number()] * value.size
    if value.array is not None:
        return [Number(int(n), exact=True) for n in value.array.ravel()]
    if value.extents_of is not None:
        one = value.extents_of
        extents = [Number(n, exact=True) for n in (*[1] * one.lead, *one.rows.shape[1:])]
        extents.insert(one.axis, Number(one.rows.shape[0], of=one))
        return extents[:value.size]
    node = walk.graph.makers.get(value.name)
    if node is None:
        return unknown
    inputs = [walk.graph.values[name] for name in node.input]
    if node.op_type in MOVES or node.op_type == "Cast" and value.elem_type in _WIDE:
        return numbers_of(walk, inputs[0])
    if node.op_type == "Concat":
        return [number for one in inputs for number in numbers_of(walk, one)]
    if node.op_type in ("Gather", "Slice", "Transpose") and all(
            one.array is not None for one in inputs[1:]):
        first, known = inputs[0], numbers_of(walk, inputs[0])
        given = {one.name: (one.type_proto(), np.asarray(one.array)) for one in inputs[1:]}
        given[first.name] = (helper.make_tensor_type_proto(TensorProto.INT64, first.shape),
                             np.arange(first.size).reshape(first.shape))
        places = evaluate(node, given, "", OPSET)
        return unknown if places is None else [known[place] for place in places[0].ravel()]
    if node.op_type == "ScatterElements" and value.rank == 1 and inputs[1].array is not None \
            and not any(a.name == "reduction" and a.s != b"none" for a in node.attribute):
        known = numbers_of(walk, inputs[0])
        for place, number in zip(inputs[1].ints() or [], numbers_of(walk, inputs[2])):
            known[place] = number
        return known
    if node.op_type == "ReduceMin" and value.size == 1:
        return [_least(walk, numbers_of(walk, inputs[0]))]
    if node.op_type == "Min" and all(one.size == value.size for one in inputs):
        each = zip(*(numbers_of(walk, one) for one in inputs))
        return [_least(walk, list(ones)) for ones in each]
    if node.op_type == "Add" and all(one.size == value.size for one in inputs):
        return [_sum(walk, a, b) for a, b in zip(*(numbers_of(walk, one) for one in inputs))]
    if node.op_type == "Mul" and all(one.size == value.size for one in inputs):
        return [_times(walk, a, b) for a, b in zip(*(numbers_of(walk, one) for one in inputs))]
    if node.op_type == "Sub" and all(one.size == value.size for one in inputs):
        pairs = zip(*(numbers_of(walk, one) for one in inputs))
        return [Number(a.most, less=b.all_of) if a.exact else Number() for a, b in pairs]
    if node.op_type == "Where" and all(one.size == value.size for one in inputs):
        made = walk.graph.makers.get(inputs[0].name)
        if made is None or made.op_type != "Equal":
            return unknown
        sides = [numbers_of(walk, walk.graph.values[name]) for name in made.input]
        if any(len(side) != value.size for side in sides):
            return unknown
        ways = (numbers_of(walk, one) for one in inputs[1:])
        return [Number() if (other := a.is_other(b)) is None else no if other else yes
                for a, b, yes, no in zip(*sides, *ways)]
    return unknown


def known_numbers(walk: Walk, value: Value) -> list[int] | None:
    """All of its elements, where the shapes of rows tell them."""
    numbers = numbers_of(walk, value)
    return [n.most for n in numbers if n.most is not None] if all(
        n.exact for n in numbers) else None


def _times(walk: Walk, a: Number, b: Number) -> Number:
    """Of rows in so many parts each, as a Reshape has them."""
    a, b = (b, a) if a.exact else (a, b)
    if not b.exact or not b.most or b.most < 0:
        return Number()
    if a.exact:
        return Number((a.most or 0) * b.most, exact=True)
    rows = a.less or a.all_of
    if rows is None or a.most is None:
        return Number()
    mask = mask_of_parts(walk, rows, b.most)
    parts = Chosen(reshaped(walk, mask, (mask.size,)), mask, rows.why)
    return Number(a.most * b.most, less=parts) if a.less else Number(a.most * b.most, of=parts)


def _sum(walk: Walk, a: Number, b: Number) -> Number:
    """Of rows with others behind them or before them, as a Concat has them or is to have them."""
    if any(n.exact and n.most == 0 for n in (a, b)):
        return b if a.exact and a.most == 0 else a
    parts = [n.all_of or n.most for n in (a, b)]
    if walk.is_open or any(n.all_of is None and not (n.exact and n.most and n.most > 0)
                           for n in (a, b)):
        return Number()
    if a.exact and b.exact:
        return Number(sum(n.most or 0 for n in (a, b)), exact=True)
    one = next(n.all_of for n in (a, b) if n.all_of is not None)
    mask = _mask_of_both(walk, parts)
    return Number(mask.size, of=Chosen(mask, mask, one.why))


def _mask_of_both(walk: Walk, parts: list[Chosen | int | None]) -> Value:
    """The mask of two lots of rows behind each other, which may be any rows of a known number."""
    def is_of(mask: Value, part: Chosen | int | None) -> bool:
        if isinstance(part, Chosen):
            return is_same(walk, Chosen(mask, mask, part.why), part)
        return mask.array is not None and mask.size == part and bool(mask.array.all())

    for names, joined in walk.joined.items():
        masks = [walk.graph.values[name] for name in names]
        if len(masks) == 2 and any(
                is_of(masks[0], parts[n]) and is_of(masks[1], parts[1 - n]) for n in (0, 1)):
            return joined
    # No Concat so far: rows of a known number, as a graph's own loops, come behind the others.
    parts.sort(key=lambda part: not isinstance(part, Chosen))
    masks = [reshaped(walk, part.mask, (part.mask.size,)) if isinstance(part, Chosen)
             else walk.graph.constant(np.ones(part or 0, np.bool_)) for part in parts]
    made = concatenated(walk, masks, 0)
    walk.joined[tuple(mask.name for mask in masks)] = made
    return made


def _least(walk: Walk, numbers: list[Number]) -> Number:
    most = min((n.most for n in numbers if n.most is not None), default=None)
    counts = [n for n in numbers if not n.exact]
    if counts and counts[0].of is not None and all(
            n.of is not None and is_same(walk, n.of, counts[0].of) for n in counts):
        return Number(most, of=counts[0].of)
    return Number(most)


def shape_of_rows(walk: Walk, shape: Value) -> tuple[Chosen, list[int]] | None:
    """Of a shape whose first extent counts chosen rows, these and the others."""
    found = shape_around_rows(walk, shape)
    return None if found is None or found[1] else (found[0], found[2])


def shape_around_rows(walk: Walk, shape: Value) -> tuple[Chosen, int, list[int]] | None:
    """Of a shape one of whose extents counts chosen rows, these, which it is, and the others."""
    numbers = numbers_of(walk, shape)
    open_ = [axis for axis, number in enumerate(numbers) if not number.exact]
    one = numbers[open_[0]].all_of if len(open_) == 1 else None
    rest = [n.most for n in numbers if n.exact and n.most is not None]
    return None if one is None else (one, open_[0], rest)


def emptiness(walk: Walk, condition: Value) -> Chosen | None:
    """The rows of which a condition says that there are none."""
    makers, values = walk.graph.makers, walk.graph.values
    node = makers.get(condition.name)
    while node is not None and node.op_type in (*MOVES, "Cast"):
        node = makers.get(node.input[0])
    if node is None or node.op_type != "Equal" or values[node.input[1]].ints() != [0]:
        return None
    value = values[node.input[0]]
    made = makers.get(value.name)
    if made is not None and made.op_type == "ReduceProd" and value.size == 1:
        value = values[made.input[0]]
    first, *rest = numbers_of(walk, value)
    return first.all_of if all(n.most and n.exact for n in rest) else None
