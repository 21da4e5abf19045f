"""Chosen rows in an order of their own: the largest ones, boxes that no better one overlaps, and
what is taken at their places.

Detectors end so (torchvision's, and those that were exported with NonMaxSuppression).  The places
of chosen rows are counted in all rows of their tensor here, and not, as the model has it, among the
chosen ones, which shows only where something else is done with them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto, helper

from run_model_tools.onnx_repair.evaluation import evaluate
from run_model_tools.onnx_repair.graph import OPSET
from run_model_tools.onnx_repair.refusal import data_dependent
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.chosen import MOVES, chosen, count_of, filled_rows, is_same
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.rolled import rolled
from run_model_tools.onnx_repair.rules.shapes import concatenated, expanded
from run_model_tools.onnx_repair.values import Chosen, Node, Value
from run_model_tools.onnx_repair.walk import Walk

DOMAIN = "run_model"
SUPPRESSION = "SuppressedBoxes"
"""What a NonMaxSuppression becomes (inside_tvm/chosen_boxes.py)."""
_WIDE = (TensorProto.INT32, TensorProto.INT64, TensorProto.FLOAT, TensorProto.DOUBLE)
"""Types that have all numbers of rows."""


@dataclass(frozen=True)
class _Number:
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

    def is_other(self, other: _Number) -> bool | None:
        """Whether it is another number; None where that is not known."""
        if self.exact and other.exact:
            return self.most != other.most
        if self.of is not None and other.exact and other.most is not None and other.most < 0:
            return True
        return None


def _numbers(walk: Walk, value: Value) -> list[_Number]:
    """Of each of its elements."""
    unknown = [_Number()] * value.size
    if value.array is not None:
        return [_Number(int(n), exact=True) for n in value.array.ravel()]
    if value.extents_of is not None:
        one = value.extents_of
        extents = [_Number(n, exact=True) for n in (*[1] * one.lead, *one.rows.shape[1:])]
        extents.insert(one.axis, _Number(one.rows.shape[0], of=one))
        return extents[:value.size]
    node = walk.graph.makers.get(value.name)
    if node is None:
        return unknown
    inputs = [walk.graph.values[name] for name in node.input]
    if node.op_type in MOVES or node.op_type == "Cast" and value.elem_type in _WIDE:
        return _numbers(walk, inputs[0])
    if node.op_type == "Concat":
        return [number for one in inputs for number in _numbers(walk, one)]
    if node.op_type in ("Gather", "Slice", "Transpose") and all(
            one.array is not None for one in inputs[1:]):
        first, known = inputs[0], _numbers(walk, inputs[0])
        given = {one.name: (one.type_proto(), np.asarray(one.array)) for one in inputs[1:]}
        given[first.name] = (helper.make_tensor_type_proto(TensorProto.INT64, first.shape),
                             np.arange(first.size).reshape(first.shape))
        places = evaluate(node, given, "", OPSET)
        return unknown if places is None else [known[place] for place in places[0].ravel()]
    if node.op_type == "ReduceMin" and value.size == 1:
        return [_least(walk, _numbers(walk, inputs[0]))]
    if node.op_type == "Min" and all(one.size == value.size for one in inputs):
        return [_least(walk, list(ones)) for ones in zip(*(_numbers(walk, one) for one in inputs))]
    if node.op_type == "Add" and all(one.size == value.size for one in inputs):
        pairs = zip(*(_numbers(walk, one) for one in inputs))
        return [a if b.exact and b.most == 0 else b if a.exact and a.most == 0 else _Number()
                for a, b in pairs]
    if node.op_type == "Sub" and all(one.size == value.size for one in inputs):
        pairs = zip(*(_numbers(walk, one) for one in inputs))
        return [_Number(a.most, less=b.all_of) if a.exact else _Number() for a, b in pairs]
    if node.op_type == "Where" and all(one.size == value.size for one in inputs):
        made = walk.graph.makers.get(inputs[0].name)
        if made is None or made.op_type != "Equal":
            return unknown
        sides = [_numbers(walk, walk.graph.values[name]) for name in made.input]
        if any(len(side) != value.size for side in sides):
            return unknown
        ways = (_numbers(walk, one) for one in inputs[1:])
        return [_Number() if (other := a.is_other(b)) is None else no if other else yes
                for a, b, yes, no in zip(*sides, *ways)]
    return unknown


def known_numbers(walk: Walk, value: Value) -> list[int] | None:
    """All of its elements, where the shapes of rows tell them."""
    numbers = _numbers(walk, value)
    return [n.most for n in numbers if n.most is not None] if all(
        n.exact for n in numbers) else None


def _least(walk: Walk, numbers: list[_Number]) -> _Number:
    most = min((n.most for n in numbers if n.most is not None), default=None)
    counts = [n for n in numbers if not n.exact]
    if counts and counts[0].of is not None and all(
            n.of is not None and is_same(walk, n.of, counts[0].of) for n in counts):
        return _Number(most, of=counts[0].of)
    return _Number(most)


def shape_of_rows(walk: Walk, shape: Value) -> tuple[Chosen, list[int]] | None:
    """Of a shape whose first extent counts chosen rows, these and the others."""
    found = shape_around_rows(walk, shape)
    return None if found is None or found[1] else (found[0], found[2])


def shape_around_rows(walk: Walk, shape: Value) -> tuple[Chosen, int, list[int]] | None:
    """Of a shape one of whose extents counts chosen rows, these, which it is, and the others."""
    numbers = _numbers(walk, shape)
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
    first, *rest = _numbers(walk, value)
    return first.all_of if all(n.most and n.exact for n in rest) else None


def counted(walk: Walk, one: Chosen) -> Chosen:
    """The same rows with places as the model counts them, among the chosen ones."""
    if one.of is None:
        return one
    if one.of.first:
        return one.but(of=None, column=None)
    graph = walk.graph
    turns = graph.op("CumSum", cast(walk, reshaped(walk, one.of.mask, (one.of.mask.size,)),
                                    TensorProto.INT64), np.array(0))
    turns = graph.op("Sub", turns, 1)
    rows = filled_rows(walk, one, 0)
    found = cast(walk, graph.op("Gather", turns, rows, axis=0), one.rows.elem_type)
    if one.column is not None:
        here = np.arange(rows.shape[-1]) == one.column
        found = graph.op("Where", graph.constant(here), found, rows)
    return one.but(rows=found, of=None, column=None)


def in_front(walk: Walk, one: Chosen) -> Chosen:
    """The same rows, with those that are chosen before all others."""
    if one.first:
        return one
    graph, count = walk.graph, one.rows.shape[0]
    mask = reshaped(walk, one.mask, (count,))
    turn = graph.op("CumSum", cast(walk, mask, TensorProto.INT64), np.array(0))
    every, found = graph.constant(np.arange(count)), count_of(walk, one)
    to = graph.op("Where", mask, graph.op("Sub", turn, 1),
                  graph.op("Sub", graph.op("Add", every, found), turn))
    places = graph.op("ScatterElements", every, to, every, axis=0)
    return one.but(rows=graph.op("Gather", one.rows, places, axis=0), first=True,
                   mask=first_places(walk, count, found))


def every_place(walk: Walk, limit: Value) -> Chosen | None:
    """0, 1, 2 ... for each of the chosen rows that a number counts; None of any other."""
    one = _numbers(walk, limit)[0].all_of
    if one is None:
        return None
    rows = walk.graph.constant(np.arange(one.rows.shape[0]), limit.dtype)
    return one.but(rows=rows, of=one, column=None, along=0, cut=False, lead=0)


def holding(walk: Walk, one: Chosen) -> Chosen | None:
    """A NonZero of chosen rows: their places at which something holds; None of lists of rows."""
    if one.rows.rank != 1 or one.lead:
        return None
    count = one.rows.shape[0]
    mask = walk.graph.op("And", reshaped(walk, one.mask, (count,)),
                         cast(walk, one.rows, TensorProto.BOOL))
    return one.but(rows=walk.graph.constant(np.arange(count)[:, None]), mask=mask, first=False,
                   along=1, of=one, column=None)


def first_places(walk: Walk, most: int, count: Value) -> Value:
    """A mask of the first `count` of `most` places."""
    count = reshaped(walk, cast(walk, count, TensorProto.INT64), (1,))
    return walk.graph.op("Less", walk.graph.constant(np.arange(most)), count)


def largest(walk: Walk, node: Node, one: Chosen) -> list[Chosen]:
    """A TopK of chosen numbers."""
    if one.rows.rank != 1 or one.lead:
        raise one.why
    k, count = node.tensor(1), one.rows.shape[0]
    number = _numbers(walk, k)[0]
    most = count if number.most is None else min(number.most, count)
    if most < 0:
        raise one.why
    top = bool(node.attrs.get("largest", 1))
    places = walk.node_in("TopK", 11, [
        _keys(walk, one.rows, reshaped(walk, one.mask, (count,)), top),
        walk.graph.constant([most], np.int64)], 2, largest=int(top))[1]
    if number.of is not None and is_same(walk, one, number.of):
        mask = walk.graph.op("Gather", reshaped(walk, one.mask, (count,)), places, axis=0)
    else:
        wanted = walk.graph.op("Min", reshaped(walk, cast(walk, k, TensorProto.INT64), ()),
                               count_of(walk, one))
        mask = first_places(walk, most, wanted)
    values = one.but(rows=walk.graph.op("Gather", one.rows, places, axis=0), mask=mask, first=True)
    return [values, values.but(rows=places, of=one, column=None)]


def _keys(walk: Walk, x: Value, mask: Value, top: bool) -> Value:
    """What to sort numbers by so that those of the mask come before all others, infinite ones too.
    """
    graph, sign = walk.graph, -1 if top else 1
    if x.is_float:
        bound, last = float(np.finfo(x.dtype).max), np.inf
    else:
        x = cast(walk, x, TensorProto.INT64)
        bound, last = np.iinfo(np.int64).max - 1, np.iinfo(np.int64).max
    bounded = graph.op("Max" if top else "Min", x, graph.like(sign * bound, x))
    return graph.op("Where", mask, bounded, graph.like(sign * last, x))


def taken(walk: Walk, node: Node, places: Chosen) -> Chosen | None:
    """A Gather of chosen rows at chosen places of theirs; None of any other."""
    x = node.inputs[0]
    if node.op == "GatherND" and places.rows.shape[1:] == (1,):
        places = places.but(rows=reshaped(walk, places.rows, places.rows.shape[:1]), column=None)
    if node.attrs.get("axis", 0) or node.attrs.get("batch_dims", 0) or not isinstance(
            x, Chosen) or any(i.axis or i.cut for i in (x, places)) \
            or places.column is not None or places.rows.rank != 1:
        return None
    if places.of is None and not x.first or places.of is not None and not is_same(
            walk, x, places.of):
        return None
    at = places.rows
    if places.of is None:
        at = filled_rows(walk, places, 0)
        count = cast(walk, count_of(walk, x), at.elem_type)
        at = walk.graph.op("Where", walk.graph.op("Less", at, walk.graph.like(0, at)),
                           walk.graph.op("Add", at, count), at)
    rows = walk.node_in("Gather", 13, [x.rows, at])
    return x.but(rows=rows, mask=places.mask, first=places.first, along=0, cut=False)


def columns(walk: Walk, node: Node, one: Chosen) -> Chosen | None:
    """A Gather or Slice of columns of places; None of any other."""
    if one.column is None or one.rows.rank != 2 or one.lead:
        return None
    every = np.arange(one.rows.shape[1])
    if node.op == "Gather" and node.attrs.get("axis", 0) % 2 == 1:
        at = node.ints(1, "which columns")
        rank = node.tensor(1).rank
    elif node.op == "Slice" and node.opset >= 10 and node.ints(3, "the axes") in ([1], [-1]):
        (start,), (end,) = node.ints(1, "the begin") or [0], node.ints(2, "the end") or [0]
        at = every[start:end:(node.ints(4, "the steps") or [1])[0]].tolist()
        rank = 1
    else:
        return None
    if at is None or rank > 1:
        return None
    taken_ = [int(every[place]) for place in at]
    if one.column in taken_ and len(taken_) > 1:
        one = counted(walk, one)
    rows = walk.graph.op("Gather", one.rows, np.array(taken_), axis=1)
    if rank == 0:
        rows = reshaped(walk, rows, rows.shape[:1])
    if one.column not in taken_:
        return one.but(rows=rows, of=None, column=None)
    return one.but(rows=rows, column=0 if rank else None)


def behind_each_other(walk: Walk, node: Node) -> Chosen | None:
    """A Concat along the rows; None of any other."""
    parts = [i for i in node.inputs if i is not None]
    one = next(i for i in parts if isinstance(i, Chosen))
    if node.attrs["axis"] % one.rows.rank or one.lead:
        return None
    rows: list[Value] = []
    masks: list[Value] = []
    for part in parts:
        if isinstance(part, Chosen):
            if part.lead or part.rows.rank != one.rows.rank:
                return None
            rows.append(part.rows)
            masks.append(reshaped(walk, part.mask, (part.mask.size,)))
        elif isinstance(part, Value) and part.rank == one.rows.rank:
            if part.shape[0]:
                rows.append(part)
                masks.append(walk.graph.constant(np.ones(part.shape[0], np.bool_)))
        else:
            return None
    if len(rows) == 1:
        return one
    name = tuple(mask.name for mask in masks)
    if name not in walk.joined:
        walk.joined[name] = _joined(walk, masks)
    return one.but(rows=_joined(walk, rows), mask=walk.joined[name], first=False)


def _joined(walk: Walk, values: list[Value]) -> Value:
    """Behind each other, computed at once where they are computed alike."""
    together = rolled(walk, values)
    if together is None:
        return concatenated(walk, values, 0)
    first = values[0]
    return reshaped(walk, together, (len(values) * first.shape[0], *first.shape[1:]))


def rows_between(walk: Walk, node: Node, one: Chosen) -> Chosen | None:
    """A Slice of the chosen rows from known places on; None of any other."""
    if node.opset < 10 or any(v is not None and v.array is None
                              for v in (node.get(n) for n in (1, 3, 4))):
        return None
    starts, axes, steps = (node.ints(n, "the begin and steps") for n in (1, 3, 4))
    if (axes or list(range(len(starts or [])))) != [0] or (steps or [1]) != [1]:
        return None
    count, (start,) = one.rows.shape[0], starts or [0]
    (last,) = _numbers(walk, node.tensor(2))
    if last.all_of is not None and is_same(walk, one, last.all_of):
        last = _Number(count, exact=True)
    if not last.exact or last.most is None:
        return None
    end = last.most
    if start < 0:
        return None
    if start == 0 and end >= count:
        return one
    one = in_front(walk, one)
    # Without the last ones, a row is there where one is so many rows behind it.
    behind = max(-end, 0)
    start, end = min(start, count), min(count + end if behind else end, count)
    if start >= end:
        return None

    def part(value: Value, by: int) -> Value:
        return walk.graph.op("Slice", value, np.array([start + by]), np.array([end + by]),
                             np.array([0]))

    return one.but(rows=part(one.rows, 0),
                   mask=part(reshaped(walk, one.mask, (count,)), behind))


@rule("NonMaxSuppression")
def suppressed(walk: Walk, node: Node) -> Chosen | Value:
    """Boxes that no better one of their class overlaps by more than a threshold, the best first."""
    graph = walk.graph
    refused = data_dependent("the shape of its result")
    if walk.is_open:
        raise refused
    given = [i for i in node.inputs[:2] if isinstance(i, Chosen)]
    candidates: Value | None = None
    if given:
        places, best = given[0], given[-1]
        if len(given) != 2 or places.lead != 1 or best.lead != 2 or not is_same(
                walk, places, best):
            raise places.why
        count = places.rows.shape[0]
        candidates = reshaped(walk, places.mask, (1, 1, count))
        boxes = reshaped(walk, places.rows, (1, count, 4))
        scores = reshaped(walk, best.rows, (1, 1, count))
    else:
        boxes, scores = node.tensor(0), node.tensor(1)
    boxes, scores = cast(walk, boxes, TensorProto.FLOAT), cast(walk, scores, TensorProto.FLOAT)
    batch, classes, count = scores.shape
    wanted = node.get(2)
    most = 0 if wanted is None else _numbers(walk, wanted)[0].most
    most = count if most is None else min(most, count)
    if most <= 0 or not batch * classes:
        return graph.constant(np.zeros((0, 3), np.int64))
    least = node.get(4)
    if least is not None:
        above = graph.op("Greater", scores, reshaped(walk, least, ()))
        candidates = above if candidates is None else graph.op("And", candidates, above)
    if candidates is None:
        counts = graph.constant(np.full((batch, classes), count, np.int64))
    else:
        scores = _keys(walk, scores, candidates, True)
        counts = graph.op("ReduceSum", cast(walk, candidates, TensorProto.INT64), np.array([2]),
                          keepdims=0)
    order = walk.node_in("TopK", 11, [scores, graph.constant([count], np.int64)], 2)[1]
    threshold = node.get(3)
    threshold = graph.constant(np.zeros(1, np.float32)) if threshold is None else reshaped(
        walk, threshold, (1,))
    kept = graph.foreign(DOMAIN, SUPPRESSION, [order, boxes, counts, threshold],
                         [(batch, classes, most + 1)], most=most,
                         center_point_box=node.attrs.get("center_point_box", 0))[0]
    found, which = graph.ops("Split", [kept, np.array([1, most])], 2, axis=2)
    if wanted is not None and wanted.array is None:
        found = graph.op("Min", found, reshaped(walk, wanted, ()))
    mask = graph.op("Less", graph.constant(np.arange(most)), found)
    of = graph.constant(np.indices((batch, classes, most))[:2].transpose(1, 2, 3, 0))
    rows = graph.op("Concat", of, graph.op("Unsqueeze", which, np.array([3])), axis=3)
    total = batch * classes * most
    made = chosen(walk, node, reshaped(walk, rows, (total, 3)), reshaped(walk, mask, (total,)),
                  refused, first=batch * classes == 1)
    return made.but(of=given[0].but(lead=0), column=2) if given else made


def assigned(walk: Walk, node: Node) -> Chosen | None:
    """A ScatterElements of rows to their own places among others; None of any other."""
    x, places, updates = node.inputs
    if not isinstance(x, Chosen) or not isinstance(places, Chosen) or not isinstance(
            updates, Chosen) or places.of is None or node.attrs.get("axis", 0) or node.attrs.get(
            "reduction", "none") != "none" or x.lead or x.rows.shape != updates.rows.shape \
            or places.rows.shape != x.rows.shape or not is_same(walk, x, places.of) \
            or not is_same(walk, places, updates) or not _is_own_place(walk, places.rows):
        return None
    mask = reshaped(walk, places.mask, (x.rows.shape[0], *[1] * (x.rows.rank - 1)))
    return x.but(rows=walk.graph.op("Where", mask, updates.rows, x.rows))


def _is_own_place(walk: Walk, rows: Value) -> bool:
    """Whether all elements of each row are its place."""
    count = rows.shape[0]
    while rows.array is None:
        node = walk.graph.makers.get(rows.name)
        if node is None or node.op_type not in ("Expand", *MOVES):
            return False
        rows = walk.graph.values[node.input[0]]
        if rows.shape[:1] != (count,):
            return False
    return bool((rows.array.reshape(count, -1) == np.arange(count)[:, None]).all())


def padded(walk: Walk, node: Node, one: Chosen) -> Value | None:
    """A Pad that makes any number of chosen rows as many as it says; None of any other."""
    if node.opset < 11 or node.attrs.get("mode", "constant") != "constant" or len(
            node.inputs) > 3 or one.lead:
        return None
    pads = _numbers(walk, node.tensor(1))
    end = pads.pop(one.rows.rank)
    if not all(n.exact and n.most == 0 for n in pads) or end.less is None or end.most is None \
            or not is_same(walk, one, end.less):
        return None
    number = node.constant(2, "the number")
    one = in_front(walk, one)
    rows = filled_rows(walk, one, 0 if number is None else number.item())
    count, wanted = rows.shape[0], end.most
    if wanted <= count:
        return walk.graph.op("Slice", rows, np.array([0]), np.array([wanted]), np.array([0]))
    behind = [0] * one.rows.rank + [wanted - count] + [0] * (one.rows.rank - 1)
    return walk.node_in("Pad", 13, [rows, walk.graph.constant(behind, np.int64), node.get(2)])


def output(walk: Walk, one: Chosen) -> tuple[Value, Value, int]:
    """The rows of an output of the model with 0 behind those that are chosen, how many these are,
    and along which axis they lie."""
    from run_model_tools.onnx_repair.rules.chosen_axes import in_place

    one = in_front(walk, counted(walk, one))
    rows = in_place(walk, one.but(rows=filled_rows(walk, one, 0)))
    return rows, reshaped(walk, count_of(walk, one), (1,)), one.axis


def for_each(walk: Walk, x: Value, shape: Value) -> Chosen | None:
    """x for each of the chosen rows that a shape is of, as Expand and ConstantOfShape make it; None
    of any other shape."""
    from run_model_tools.onnx_repair.rules.chosen_axes import as_rows

    found = shape_around_rows(walk, shape)
    if found is None or x.rank > len(found[2]) + 1:
        return None
    one, axis, rest = found
    wanted = (*rest[:axis], one.rows.shape[0], *rest[axis:])
    if (*[1] * (len(wanted) - x.rank), *x.shape)[axis] != 1:
        return None
    plain = one.but(of=None, column=None, along=0, cut=False, lead=0)
    return as_rows(walk, plain, expanded(walk, x, np.broadcast_shapes(x.shape, wanted)), axis)
