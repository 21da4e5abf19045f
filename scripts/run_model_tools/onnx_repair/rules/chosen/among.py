"""Chosen rows beside what is at known places: one of them, a tensor that they are written into,
sums that run along them, and parts of a tensor that are all of its rows together.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import not_constant
from run_model_tools.onnx_repair.rules.chosen.masks import count_of, filled_rows, is_same
from run_model_tools.onnx_repair.rules.chosen.order import in_front
from run_model_tools.onnx_repair.rules.chosen.places import counted
from run_model_tools.onnx_repair.rules.chosen.rows import chosen
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.shapes import concatenated, expanded, transposed
from run_model_tools.onnx_repair.values import Chosen, Node, Value
from run_model_tools.onnx_repair.walk import Walk


def running_sum(walk: Walk, node: Node, one: Chosen) -> Chosen | None:
    """A CumSum along the rows; None of any other."""
    (axis,) = node.ints(1, "the axis") or [0]
    if axis % one.rows.rank or one.lead:
        return None
    rows = walk.node_in("CumSum", 14, [filled_rows(walk, one, 0), node.get(1)],
                        exclusive=node.attrs.get("exclusive", 0),
                        reverse=node.attrs.get("reverse", 0))
    return one.but(rows=rows)


def at_known(walk: Walk, node: Node, one: Chosen) -> Value | None:
    """A Gather of some of the rows at places that are no rows themselves; None of any other."""
    places = node.inputs[1]
    axis = node.attrs.get("axis", 0) % one.rows.rank
    if not isinstance(places, Value) or axis != one.along or one.lead:
        return None
    graph, one = walk.graph, in_front(walk, counted(walk, one))
    count = cast(walk, count_of(walk, one), places.elem_type)
    places = graph.op("Where", graph.op("Less", places, graph.like(0, places)),
                      graph.op("Add", places, count), places)
    zero, last = graph.like(0, places), graph.like(one.rows.shape[0] - 1, places)
    made = walk.node_in("Gather", 13, [one.rows, graph.op("Clip", places, zero, last)])
    if one.rows.is_float:
        # Where there are too few rows, ONNX Runtime fails.
        there = graph.op("And", graph.op("Less", places, count),
                         graph.op("GreaterOrEqual", places, zero))
        there = reshaped(walk, there, (*places.shape, *[1] * (one.rows.rank - 1)))
        made = graph.op("Where", there, made, graph.like(np.nan, made))
    order = [*range(made.rank)]
    behind = order[places.rank:]
    return transposed(walk, made, [*behind[:axis], *order[:places.rank], *behind[axis:]])


def widened(walk: Walk, node: Node, one: Chosen) -> Chosen | None:
    """An Expand to known extents that leaves the rows as many as they are; None of any other."""
    extents = node.tensor(1).ints()
    rank = one.rows.rank
    if extents is None or one.lead or one.column is not None or len(extents) > rank or len(
            extents) == rank and extents[0] != 1:
        return None
    rest = np.broadcast_shapes(one.rows.shape[1:], tuple(extents[max(len(extents) - rank + 1, 0):]))
    return one.but(rows=expanded(walk, one.rows, (one.rows.shape[0], *rest)))


def written(walk: Walk, node: Node) -> Value:
    """A ScatterND of chosen rows to computed places, or a ScatterElements along the first axis: the
    others go to a row that is cut off."""
    graph = walk.graph
    x, places, updates = node.inputs
    one = next(i for i in node.inputs if isinstance(i, Chosen))
    if not isinstance(x, Value) or not isinstance(places, Chosen) or not isinstance(
            updates, Chosen) or any(i.axis or i.cut for i in (places, updates)) \
            or not is_same(walk, places, updates) or node.attrs.get("axis", 0):
        raise one.why
    at = counted(walk, places).rows
    outside, extents = np.array(x.shape[0]), graph.like(x.shape[0], at)
    if node.op == "ScatterND":
        if at.rank != 2:
            raise one.why
        extents = graph.constant(x.shape[:at.shape[1]], at.dtype)
        outside = np.array([x.shape[0], *[0] * (at.shape[1] - 1)])
    at = graph.op("Where", graph.op("Less", at, graph.like(0, at)), graph.op("Add", at, extents),
                  at)
    mask = reshaped(walk, places.mask, (at.shape[0], *[1] * (at.rank - 1)))
    at = graph.op("Where", mask, at, graph.constant(outside, at.dtype))
    row = expanded(walk, graph.like(0, x), (1, *x.shape[1:]))
    made = walk.node_in(node.op, 18, [concatenated(walk, [x, row], 0), at, updates.rows],
                        **{name: value for name in ("reduction",)
                           if (value := node.attrs.get(name)) is not None})
    return graph.op("Slice", made, np.array([0]), np.array([x.shape[0]]), np.array([0]))


def parts_of_rows(walk: Walk, node: Node, x: Value) -> list[Chosen] | None:
    """A Split of rows into as many as a computed number each, as experts get those of their tokens;
    None of any other."""
    graph, sizes = walk.graph, node.get(1) if node.opset >= 13 else None
    if sizes is None or sizes.array is not None or walk.is_open or sizes.size != node.outputs:
        return None
    refused = not_constant("the sizes of the parts", sizes.name)
    ends = graph.op("CumSum", reshaped(walk, cast(walk, sizes, TensorProto.INT64), (sizes.size,)),
                    np.array(0))
    at = graph.constant(np.arange(x.shape[0])[:, None])
    before = graph.op("Less", at, ends)
    parts: list[Chosen] = []
    last: Value | None = None
    for n in range(sizes.size):
        mask = reshaped(walk, graph.op("Slice", before, np.array([n]), np.array([n + 1]),
                                       np.array([1])), (x.shape[0],))
        here = mask if last is None else graph.op("And", mask, graph.op("Not", last))
        parts.append(chosen(walk, node, x, here, refused, first=last is None))
        last = mask
    walk.partitions.add(tuple(part.mask.name for part in parts))
    return parts


def together(walk: Walk, node: Node) -> Value | None:
    """A Concat of all parts of such a Split behind each other, which are as many rows as it was of;
    None of any other."""
    parts = [i for i in node.inputs if isinstance(i, Chosen)]
    made = parts[0].rows
    if tuple(part.mask.name for part in parts) not in walk.partitions or len(parts) < len(
            node.inputs) or node.attrs["axis"] % made.rank or any(
                part.cut or part.axis or part.rows.shape != made.shape for part in parts):
        return None
    for part in parts[1:]:
        mask = reshaped(walk, part.mask, (made.shape[0], *[1] * (made.rank - 1)))
        made = walk.graph.op("Where", mask, part.rows, made)
    return made


OPERATORS = {"CumSum": (running_sum,), "Expand": (widened,), "Gather": (at_known,)}
"""What may become of nodes with chosen rows as their first input."""
