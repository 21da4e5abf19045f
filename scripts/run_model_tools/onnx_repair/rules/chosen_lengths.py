"""More or fewer rows than were chosen: Concat, Slice and Pad along them."""

from __future__ import annotations

import numpy as np

from run_model_tools.onnx_repair.rules.chosen import filled_rows, is_same
from run_model_tools.onnx_repair.rules.chosen_counts import Number, numbers_of
from run_model_tools.onnx_repair.rules.chosen_order import in_front
from run_model_tools.onnx_repair.rules.elementwise import reshaped
from run_model_tools.onnx_repair.rules.rerolled import rerolled
from run_model_tools.onnx_repair.rules.shapes import concatenated
from run_model_tools.onnx_repair.values import Chosen, Node, Value
from run_model_tools.onnx_repair.walk import Walk


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
    together = rerolled(walk, values)
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
    (last,) = numbers_of(walk, node.tensor(2))
    if last.all_of is not None and is_same(walk, one, last.all_of):
        last = Number(count, exact=True)
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
