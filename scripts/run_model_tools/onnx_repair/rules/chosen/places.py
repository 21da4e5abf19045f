"""Places of chosen rows, and what is taken or written at them.

They are counted in all rows of their tensor here, and not, as the model has it, among the chosen
ones, which shows only where something else is done with them.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.rules.chosen.counts import numbers_of
from run_model_tools.onnx_repair.rules.chosen.masks import MOVES, count_of, filled_rows, is_same
from run_model_tools.onnx_repair.rules.chosen.order import first_places, in_front
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.values import Chosen, Node, Thing, Value
from run_model_tools.onnx_repair.walk import Walk

_KEEP_NAN = ("Add", "Div", "Max", "Mean", "Min", "Mul", "Sub", "Sum")
"""Of one operand, whatever the others are."""


def counted(walk: Walk, one: Chosen) -> Chosen:
    """The same rows with places as the model counts them, among the chosen ones."""
    if one.of is None:
        return one
    if one.of.first:
        return one.but(of=None, column=None)
    graph = walk.graph
    ordinals = graph.op("CumSum", cast(walk, reshaped(walk, one.of.mask, (one.of.mask.size,)),
                                    TensorProto.INT64), np.array(0))
    ordinals = graph.op("Sub", ordinals, 1)
    rows = filled_rows(walk, one, 0)
    found = cast(walk, graph.op("Gather", ordinals, rows, axis=0), one.rows.elem_type)
    if one.column is not None:
        here = np.arange(rows.shape[-1]) == one.column
        found = graph.op("Where", graph.constant(here), found, rows)
    return one.but(rows=found, of=None, column=None)


def every_place(walk: Walk, limit: Value) -> Chosen | None:
    """0, 1, 2 ... for each of the chosen rows that a number counts; None of any other."""
    one = numbers_of(walk, limit)[0].all_of
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


def dealt(walk: Walk, one: Chosen, rows: Value, exactly: bool = True) -> Value:
    """Rows for the chosen places, the first for the first one and so on; NaN where the model fails,
    since there are too few of them, or exactly as many are wanted and there are not."""
    graph, (size, count) = walk.graph, (one.mask.size, rows.shape[0])
    ordinal = graph.op("CumSum", cast(walk, reshaped(walk, one.mask, (size,)), TensorProto.INT64),
                       np.array(0))
    last = graph.like(count, ordinal)
    lacking = None
    if exactly:
        lacking = graph.op("Not", graph.op("Equal", count_of(walk, one), count))
    elif count < size:
        lacking = reshaped(walk, graph.op("Greater", ordinal, last),
                           (size, *[1] * (rows.rank - 1)))
    if lacking is not None and not rows.is_float or exactly and count > size:
        raise one.why
    at = graph.op("Sub", graph.op("Clip", ordinal, graph.like(1, ordinal), last), 1)
    rows = graph.op("Gather", rows, at, axis=0)
    return rows if lacking is None else graph.op("Where", lacking, graph.like(np.nan, rows), rows)


def known_beside(walk: Walk, node: Node, op: str) -> list[Thing | None]:
    """The node's inputs, in which tensors of known extents that are to have as many rows as are
    chosen are such rows: y[mask] = y[mask] + x."""
    inputs = list(node.inputs)
    one = inputs[1] if op == "ScatterND" else next(i for i in inputs if isinstance(i, Chosen))
    if not isinstance(one, Chosen) or one.axis or one.cut:
        return inputs
    for index, item in enumerate(inputs):
        if isinstance(item, Value) and (op == "ScatterND" and index == 2 or (
                op in _KEEP_NAN and item.rank == one.rows.rank and item.shape[0] > 1)):
            inputs[index] = one.but(rows=dealt(walk, one, item), of=None, column=None)
    return inputs


def as_many(walk: Walk, one: Chosen, count: int) -> Value:
    """The chosen rows, which are to be so many; NaN where they are not, and the model fails."""
    front = in_front(walk, one)
    if not one.rows.is_float or count > one.rows.shape[0]:
        raise one.why
    rows = walk.graph.op("Slice", front.rows, np.array([0]), np.array([count]), np.array([0]))
    return walk.graph.op("Where", walk.graph.op("Equal", count_of(walk, one), count), rows,
                         walk.graph.like(np.nan, rows))


def equal_parts(walk: Walk, one: Chosen, parts: int, rest: list[int]) -> Chosen:
    """So many parts of the rows beside each other, as a batch has equally many each; NaN where
    they cannot be, and the model fails.  Such rows lie along the axis behind that of the parts."""
    graph, most = walk.graph, one.rows.shape[0] // parts
    if not one.rows.is_float or not most:
        raise one.why
    front, count = in_front(walk, one), count_of(walk, one)
    length = graph.op("Div", count, parts)
    begins = graph.op("Mul", graph.constant(np.arange(parts)), length)
    at = graph.op("Add", graph.constant(np.arange(most)[:, None]), begins)
    at = graph.op("Clip", at, graph.like(0, at), graph.like(one.rows.shape[0] - 1, at))
    rows = graph.op("Where", graph.op("Equal", graph.op("Mul", length, parts), count),
                    graph.op("Gather", front.rows, at, axis=0), graph.like(np.nan, front.rows))
    return one.but(rows=reshaped(walk, rows, (most, parts, *rest)), along=1, first=True, of=None,
                   mask=first_places(walk, most, length), column=None)


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


def assigned(walk: Walk, node: Node) -> Chosen | None:
    """A ScatterElements or ScatterND of rows to their own places among others; None of any other.
    """
    x, places, updates = node.inputs
    if not isinstance(x, Chosen) or not isinstance(places, Chosen) or not isinstance(
            updates, Chosen) or places.of is None or node.attrs.get("axis", 0) or node.attrs.get(
            "reduction", "none") != "none" or x.axis or x.rows.shape != updates.rows.shape:
        return None
    wanted = x.rows.shape if node.op == "ScatterElements" else (x.rows.shape[0], 1)
    if places.rows.shape != wanted or places.axis or updates.axis or not is_same(
            walk, x, places.of) or not is_same(walk, places, updates) or not _is_own_place(
            walk, places.rows):
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
