"""More or fewer rows than were chosen, or the last ones first: Concat, Slice, Pad and Tile along
them.
"""

from __future__ import annotations

import numpy as np

from run_model_tools.onnx_repair.rules.chosen.counts import Number, numbers_of
from run_model_tools.onnx_repair.rules.chosen.masks import filled_rows, is_same
from run_model_tools.onnx_repair.rules.chosen.order import in_front
from run_model_tools.onnx_repair.rules.elementwise import reshaped
from run_model_tools.onnx_repair.rules.indexing import sliced
from run_model_tools.onnx_repair.rules.loops.rerolled import rerolled
from run_model_tools.onnx_repair.rules.shapes import concatenated, transposed
from run_model_tools.onnx_repair.values import Chosen, Node, Value
from run_model_tools.onnx_repair.walk import Walk


def behind_each_other(walk: Walk, node: Node) -> Chosen | None:
    """A Concat along the rows, wherever their axis is; None of any other."""
    parts = [i for i in node.inputs if i is not None]
    one = next(i for i in parts if isinstance(i, Chosen))
    rank, axis = one.lead + one.rows.rank, one.axis
    if node.attrs["axis"] % rank != axis:
        return None
    rows: list[Value] = []
    masks: list[Value] = []
    for part in parts:
        if isinstance(part, Chosen):
            if part.axis != axis or part.lead + part.rows.rank != rank:
                return None
            extents = part.rows.shape
            rows.append(reshaped(walk, part.rows, (extents[0], *[1] * part.lead, *extents[1:])))
            masks.append(reshaped(walk, part.mask, (part.mask.size,)))
        elif isinstance(part, Value) and part.rank == rank:
            if part.shape[axis]:
                rows.append(transposed(walk, part, [axis, *(i for i in range(rank) if i != axis)]))
                masks.append(walk.graph.constant(np.ones(part.shape[axis], np.bool_)))
        else:
            return None
    if len(rows) == 1:
        return one
    name = tuple(mask.name for mask in masks)
    if name not in walk.joined:
        walk.joined[name] = _joined(walk, masks)
    return Chosen(_joined(walk, rows), walk.joined[name], one.why, along=axis)


def _joined(walk: Walk, values: list[Value]) -> Value:
    """Behind each other, computed at once where they are computed alike."""
    together = rerolled(walk, values)
    if together is None:
        return concatenated(walk, values, 0)
    first = values[0]
    return reshaped(walk, together, (len(values) * first.shape[0], *first.shape[1:]))


def rows_between(walk: Walk, node: Node, one: Chosen) -> Chosen | None:
    """A Slice of the chosen rows from known places on, which may take known parts of each, too;
    None of any other."""
    if node.opset < 10 or any(v is not None and v.array is None
                              for v in (node.get(n) for n in (1, 3, 4))):
        return None
    starts, axes, steps = (node.ints(n, "the begin and steps") or [] for n in (1, 3, 4))
    axes = [axis % one.rows.rank for axis in axes] or [*range(len(starts))]
    ends = numbers_of(walk, node.tensor(2))
    if 0 not in axes or {*steps} - {1} or not len(starts) == len(axes) == len(ends):
        return None
    parts = {axis: (start, end.most) for axis, start, end in zip(axes, starts, ends) if end.exact}
    if any(axis and axis not in parts for axis in axes):
        return None
    count, start, last = one.rows.shape[0], starts[axes.index(0)], ends[axes.index(0)]
    if last.all_of is not None and is_same(walk, one, last.all_of):
        last = Number(count, exact=True)
    if not last.exact or last.most is None:
        return None
    if len(axes) > 1:
        of_each = {axis: range(*slice(*parts[axis]).indices(one.rows.shape[axis]))
                   for axis in axes if axis}
        one = one.but(rows=sliced(walk, one.rows, of_each))
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


def padded(walk: Walk, node: Node, one: Chosen) -> Value | None:
    """A Pad that makes any number of chosen rows as many as it says; None of any other."""
    if node.opset < 11 or node.attrs.get("mode", "constant") != "constant" or len(
            node.inputs) > 3 or one.lead:
        return None
    pads = numbers_of(walk, node.tensor(1))
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


def surrounded(walk: Walk, node: Node, one: Chosen) -> Chosen | None:
    """A Pad by known numbers of rows of one value; None of any other."""
    pads = node.tensor(1).ints() if node.opset >= 11 and len(node.inputs) < 4 else None
    if pads is None or node.attrs.get("mode", "constant") != "constant" or one.lead \
            or min(pads) < 0 or sum(pads) != pads[0] + pads[one.rows.rank]:
        return None
    value = node.constant(2, "the number") if len(node.inputs) > 2 else None
    every, rows, masks = (pads[0], pads[one.rows.rank]), [], []
    for count in every:
        shape = (count, *one.rows.shape[1:])
        rows.append(walk.graph.constant(np.full(shape, 0 if value is None else value.item(),
                                                one.rows.dtype)))
        masks.append(walk.graph.constant(np.ones(count, np.bool_)))
    rows.insert(1, one.rows)
    masks.insert(1, reshaped(walk, one.mask, (one.mask.size,)))
    there = [n for n, count in enumerate((every[0], 1, every[1])) if count]
    return one.but(rows=concatenated(walk, [rows[n] for n in there], 0),
                   mask=concatenated(walk, [masks[n] for n in there], 0),
                   first=one.first and not every[1], along=0)


def reversed_rows(walk: Walk, node: Node, one: Chosen) -> Chosen | None:
    """A Slice that takes all rows backwards; None of any other."""
    last = -one.rows.shape[0]
    if node.opset < 10 or one.lead or len(node.inputs) < 5 or node.ints(4, "the steps") != [-1] \
            or node.ints(3, "the axes") != [0] or node.ints(1, "the begin") != [-1] \
            or (node.ints(2, "the end") or [0])[0] >= last:
        return None

    def backwards(value: Value) -> Value:
        return walk.graph.op("Slice", value, np.array([-1]), np.array([last - 1]), np.array([0]),
                             np.array([-1]))

    mask = reshaped(walk, one.mask, (one.rows.shape[0],))
    return one.but(rows=backwards(one.rows), mask=backwards(mask), first=False)


def last_ones(walk: Walk, node: Node, one: Chosen) -> Chosen | None:
    """A Slice of so many rows from the end; None of any other."""
    begin, end, axes, steps = (node.get(n) for n in range(1, 5))
    rows, (start, *_) = one.rows.shape[0], (begin.ints() if begin is not None else None) or [0]
    if node.opset < 10 or one.lead or start >= 0 or end is None or (end.ints() or [0])[0] < rows \
            or axes is not None and axes.ints() != [0] or steps is not None and steps.ints() != [1]:
        return None
    one, count = in_front(walk, one), min(-start, rows)
    mask = reshaped(walk, one.mask, (rows,))
    # Those behind which there are fewer.
    behind = concatenated(walk, [sliced(walk, mask, {0: range(count, rows)}),
                                 walk.graph.constant(np.zeros(count, np.bool_))], 0)
    return one.but(mask=walk.graph.op("And", mask, walk.graph.op("Not", behind)), first=False)


def again(walk: Walk, node: Node, one: Chosen) -> Chosen | None:
    """A Tile along the rows; None of any other."""
    times, *rest = node.tensor(1).ints() or [0]
    if times < 2 or one.lead or one.column is not None:
        return None
    rows = walk.node_in("Tile", 13, [one.rows, walk.graph.constant([1, *rest], np.int64)])
    mask = reshaped(walk, one.mask, (one.mask.size,))
    return one.but(rows=concatenated(walk, [rows] * times, 0),
                   mask=concatenated(walk, [mask] * times, 0), first=False)


OPERATORS = {"Pad": (padded, surrounded), "Slice": (rows_between, reversed_rows, last_ones),
             "Tile": (again,)}
"""What may become of nodes with chosen rows as their first input."""
