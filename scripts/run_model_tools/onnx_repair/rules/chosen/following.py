"""What a node makes of chosen rows (rows.py): of each row for itself, of their places, of all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from run_model_tools.onnx_repair.refusal import NodeRefused, Refused
from run_model_tools.onnx_repair.rules.chosen import among, lengths
from run_model_tools.onnx_repair.rules.chosen.along import along_rows
from run_model_tools.onnx_repair.rules.chosen.axes import (
    as_rows,
    in_front_of_rows,
    keeps_places,
    of_other_axes,
    resized,
)
from run_model_tools.onnx_repair.rules.chosen.counts import shape_around_rows, shape_of_rows
from run_model_tools.onnx_repair.rules.chosen.masks import (
    count_of,
    filled_rows,
    is_same,
    mask_of_parts,
)
from run_model_tools.onnx_repair.rules.chosen.order import largest
from run_model_tools.onnx_repair.rules.chosen.places import (
    as_many,
    assigned,
    columns,
    counted,
    dealt,
    equal_parts,
    holding,
    known_beside,
    taken,
)
from run_model_tools.onnx_repair.rules.chosen.rows import (
    ELEMENTWISE_OF_ROWS,
    all_places,
    of_inputs,
)
from run_model_tools.onnx_repair.rules.elementwise import reshaped
from run_model_tools.onnx_repair.rules.shapes import concatenated, expanded
from run_model_tools.onnx_repair.values import Chosen, Node, Thing, Value
from run_model_tools.onnx_repair.walk import Walk

_OF_SAMPLES = ("AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "GlobalAveragePool",
               "GlobalMaxPool", "MaxPool")
"""Operators that keep samples apart, which lie along the first axis."""
_TAKE_PLACES = ("Gather", "GatherElements", "GatherND", "RoiAlign", "ScatterElements")
_KEEP_PLACES = ("Expand", "Gather", "GatherND", "Identity", "NonMaxSuppression", "Reshape",
                "ScatterElements", "Shape", "Size", "Slice", "Split", "Squeeze", "Transpose",
                "Unsqueeze")
"""Operators that take places as they are counted in all rows; others see them as the model does."""


def of_chosen(walk: Walk, node: Node) -> list[Thing | None]:
    """What a node makes of chosen rows among its inputs."""
    why = _chosen_among(node)[0].why
    try:
        return _followed(walk, node)
    except (Refused, NodeRefused):
        raise why from None


def _chosen_among(node: Node) -> list[Chosen]:
    return [i for i in node.inputs if isinstance(i, Chosen)]


def _followed(walk: Walk, node: Node) -> list[Thing | None]:
    op = node.op if not node.domain else f"{node.domain}.{node.op}"
    node.inputs = known_beside(walk, node, op)
    if op == "ScatterND" and (own := assigned(walk, node)) is not None:
        return [own]
    if not _keeps_places(node, op):
        node.inputs = [counted(walk, i) if isinstance(i, Chosen) else i for i in node.inputs]
    given = _chosen_among(node)
    one = given[0]
    if op == "ScatterElements":
        node.attrs["axis"] = node.attrs.get("axis", 0) % (one.lead + one.rows.rank)
    alone = node.inputs[0] is one and len(given) == 1
    if not any(i.cut for i in given) and (along := along_rows(walk, node, op, given)) is not None:
        return [along]
    if op == "Resize" and alone and not one.cut:
        return [resized(walk, node, one)]
    if any(i.axis for i in given) or not any(i.cut for i in given) and _moves_rows(
            walk, node, op, one):
        if op == "Shape" and not one.cut:
            return [_shape(walk, node, one)]
        return of_other_axes(walk, node, op, given)
    if op == "ScatterND":
        return [_assigned(walk, node)]
    if alone and op == "TopK" and not node.attrs.get("axis", -1) % one.rows.rank and not one.cut:
        return list(largest(walk, node, one))
    for made in _rows_together(walk, node, op, one, alone):
        if made is not None:
            return [made]
    if alone and op in ("Flatten", "Reshape"):
        return [_reshaped(walk, node, one)]
    if alone and op == "Expand" and not one.cut and (
            known := shape_of_rows(walk, node.tensor(1))) is not None:
        return [_expanded(walk, one, *known)]
    if alone and op in ("Slice", "Expand") and _takes_first(node):
        return [one.but(cut=True, first=one.first and op == "Slice")]
    if any(i.cut for i in given):
        raise one.why
    if alone and op == "Shape":
        return [_shape(walk, node, one)]
    if alone and op == "Size" and one.rows.rank == 1:
        count = walk.graph.op("Identity", count_of(walk, one))
        count.extents_of = one
        return [count]
    if op in ("Gather", "GatherND") and node.inputs[-1] is one:
        return [_gathered(walk, node, counted(walk, one))]
    if any(not is_same(walk, one, other) for other in given[1:]) or not _by_rows(node, op, one):
        raise one.why
    return _of_all(walk, node, given)


def _keeps_places(node: Node, op: str) -> bool:
    """Whether places may stay as they are counted in all rows."""
    given = _chosen_among(node)
    return all(not i.of or op in _KEEP_PLACES and (
        i.column is None or op not in ("Split", "Unsqueeze"))
        for i in given) or keeps_places(node, op, given)


def _moves_rows(walk: Walk, node: Node, op: str, one: Chosen) -> bool:
    """Whether it puts another axis before that of the rows."""
    if op in ELEMENTWISE_OF_ROWS:
        return any(isinstance(i, Value) and i.rank > one.rows.rank for i in node.inputs)
    if node.inputs[0] is not one:
        return False
    if op in ("Expand", "Reshape") and isinstance(node.inputs[1], Value):
        shape = node.inputs[1]
        found = shape_around_rows(walk, shape)
        return found is not None and found[1] > 0 or op == "Reshape" and (
            shape.ints() or [0])[0] == 1
    return op == "Unsqueeze" and in_front_of_rows(node, one) > 0 or op == "Transpose" and (
        node.attrs.get("perm", [1])[0] != 0)


def _shape(walk: Walk, node: Node, one: Chosen) -> Value:
    ahead = [1] * one.lead + list(one.rows.shape[1:one.along + 1])
    parts = [walk.graph.constant(ahead, np.int64), reshaped(walk, count_of(walk, one), (1,)),
             walk.graph.constant(one.rows.shape[one.along + 1:], np.int64)]
    extents = concatenated(walk, parts, 0)
    extents.extents_of = one
    walk.counts[extents.name] = one.why
    start, end = node.attrs.get("start", 0), node.attrs.get("end", extents.size)
    if (start, end) != (0, extents.size):
        return walk.graph.op("Slice", extents, np.array([start]), np.array([end]))
    return extents


def _rows_together(walk: Walk, node: Node, op: str, one: Chosen,
              alone: bool) -> Iterator[Thing | None]:
    """What places.py, lengths.py and among.py make of a node, if anything."""
    last = node.inputs[-1]
    if op == "NonZero" and not one.cut:
        yield holding(walk, one)
    if op in ("Gather", "GatherND") and isinstance(last, Chosen):
        yield taken(walk, node, last)
    if alone and op in ("Gather", "Slice"):
        yield columns(walk, node, one)
    if alone and not one.cut:
        for rule_of_rows in (*lengths.OPERATORS.get(op, ()), *among.OPERATORS.get(op, ())):
            yield rule_of_rows(walk, node, one)
    if op == "Concat":
        yield among.together(walk, node)
        yield lengths.behind_each_other(walk, node)
    if op == "ScatterElements" and not node.attrs.get("axis", 0):
        yield assigned(walk, node) or among.written(walk, node)


def _by_rows(node: Node, op: str, one: Chosen) -> bool:
    """Whether what it makes of a row depends on no other."""
    rank = max(i.rows.rank for i in node.inputs if isinstance(i, Chosen))
    others = [i for i in node.inputs if isinstance(i, Value)]
    alike = all(i.rows.rank == rank for i in node.inputs if isinstance(i, Chosen)) and all(
        other.rank < rank or other.rank == rank and other.shape[0] == 1 for other in others)
    if op in ELEMENTWISE_OF_ROWS:
        return alike and node.opset >= 7
    if op == "RoiAlign":
        return all(isinstance(i, Chosen) for i in node.inputs[1:])
    if op == "GatherND":
        return node.attrs.get("batch_dims", 0) > 0 and len(node.inputs) == 2 and not others
    if op in ("GatherElements", "ScatterElements"):
        return node.attrs.get("axis", 0) % rank > 0 and alike and not others
    if node.inputs[0] is not one:
        return False
    if op == "MatMul":
        return rank > 1 and len(others) == 1 and others[0].rank == 2
    if op == "Gemm":
        bias = node.get(2) if len(node.inputs) > 2 else None
        return len(others) == len(node.inputs) - 1 and not node.attrs.get("transA", 0) and (
            bias is None or bias.rank < 2 or bias.shape[0] == 1)
    if op in ("Hardmax", "LayerNormalization", "LogSoftmax", "LpNormalization", "Softmax"):
        return node.attrs.get("axis", -1 if node.opset >= 13 else 1) % rank > 0
    if op in ("ArgMax", "ArgMin"):
        return node.attrs.get("axis", 0) % rank > 0
    if op in ("Squeeze", "Unsqueeze"):
        axes = node.axes() or [0]
        return all(axis % (rank + len(axes) * (op == "Unsqueeze")) > 0 for axis in axes)
    if op == "Concat":
        return node.attrs["axis"] % rank > 0 and alike and not others
    if not all(i is None or i is one or isinstance(i, Value) and i.is_constant
               for i in node.inputs):
        return False
    if op in _OF_SAMPLES:
        return rank > 2 - (op == "BatchNormalization")
    if op in ("Gather", "Split"):
        return node.attrs.get("axis", 0) % rank > 0
    if op in ("OneHot", "TopK"):
        return node.attrs.get("axis", -1) % (rank + (op == "OneHot")) > 0
    if op == "CumSum":
        return (node.ints(1, "the axis") or [0])[0] % rank > 0
    if op == "Tile":
        return node.opset >= 6 and (node.ints(1, "the repeats") or [0])[0] == 1
    if op == "Transpose":
        return node.attrs.get("perm", [rank - 1])[0] == 0
    if op == "Pad":
        pads = node.ints(1, "the pads") if node.opset >= 11 and len(node.inputs) < 4 else None
        return pads is not None and not pads[0] and not pads[rank]
    if op == "Slice":
        along = node.ints(3, "the axes") if node.opset >= 10 and len(node.inputs) > 3 else None
        return along is not None and 0 not in {axis % rank for axis in along}
    return op.startswith("Reduce")  # Along other axes than the rows'.


def _of_all(walk: Walk, node: Node, given: list[Chosen]) -> list[Thing | None]:
    """The node, of all rows, and of its results those that are chosen."""
    one = given[0]
    inputs: list[Thing | None] = [i.rows if isinstance(i, Chosen) else i for i in node.inputs]
    if node.op in _TAKE_PLACES:  # Nobody knows what the others are.
        inputs[1:] = [filled_rows(walk, i, 0) if isinstance(i, Chosen) else i
                      for i in node.inputs[1:]]
    divisor = node.inputs[1] if node.op in ("Div", "Mod") else None
    if isinstance(divisor, Chosen) and not divisor.rows.is_float:
        inputs[1] = filled_rows(walk, divisor, 1)  # A division by 0 ends the program.
    results = of_inputs(walk, node, inputs)
    if not all(result is None or isinstance(result, Value) and result.rank
               and result.shape[0] == one.rows.shape[0] for result in results):
        raise one.why
    return [one.but(rows=result, column=one.column if result.rank > 1 else None)
            if isinstance(result, Value) else None for result in results]


def _gathered(walk: Walk, node: Node, places: Chosen) -> Chosen:
    """Of a tensor's rows those at chosen places, which may be chosen of the places of all."""
    x = node.get(0)
    axis = node.attrs.get("axis", 0) % x.rank if x is not None and node.op == "Gather" else 0
    if x is None or node.attrs.get("batch_dims", 0) or axis and places.rows.rank != 1:
        raise places.why
    if axis:
        found = walk.node_in("Gather", 13, [x, filled_rows(walk, places, 0)], axis=axis)
        return as_rows(walk, places, found, axis)
    deep = places.rows.shape[-1] if node.op == "GatherND" else 1
    every = places.rows.array
    if every is not None and deep <= x.rank and np.array_equal(
            every.reshape(-1, deep), all_places(x.shape[:deep])):
        return places.but(rows=reshaped(walk, x, (len(every), *x.shape[deep:])))
    node.inputs[-1] = places
    made = _of_all(walk, node, [places])[0]
    assert isinstance(made, Chosen)
    return made


def _assigned(walk: Walk, node: Node) -> Value:
    """A ScatterND to the places of a mask, of as many updates: the model fails with another number.
    """
    graph = walk.graph
    x, places, updates = node.inputs
    if not isinstance(places, Chosen):
        raise next(i.why for i in node.inputs if isinstance(i, Chosen))
    deep = places.rows.shape[-1]
    if not isinstance(x, Value) or not isinstance(updates, Chosen) or places.cut \
            or node.attrs.get("reduction", "none") != "none" or deep > x.rank \
            or places.rows.array is None or not np.array_equal(
                places.rows.array, all_places(x.shape[:deep])):
        return among.written(walk, node)
    rows = updates.rows
    if not is_same(walk, places, updates):
        if not updates.first or rows.shape[1:] != x.shape[deep:]:
            raise places.why
        rows = dealt(walk, places, rows, exactly=False)
    if rows.size != x.size or rows.elem_type != x.elem_type:
        raise places.why
    mask = reshaped(walk, places.mask, (*x.shape[:deep], *[1] * (x.rank - deep)))
    return graph.op("Where", mask, reshaped(walk, rows, x.shape), x)


def _reshaped(walk: Walk, node: Node, one: Chosen) -> Chosen | Value:
    """Each row in another shape, or its elements as rows, or as many rows as a shape needs."""
    if one.column is not None and one.rows.shape[1:] != (1,):
        one = counted(walk, one)
    one = one.but(column=None)
    count = one.rows.shape[0]
    each = one.rows.size // count
    if node.op == "Flatten":
        axis = node.attrs.get("axis", 1) % (one.rows.rank + 1)
        if not axis:
            raise one.why
        return _in_parts(walk, one, [int(np.prod(one.rows.shape[axis:]))])
    if (known := shape_of_rows(walk, node.tensor(1))) is not None:
        if not is_same(walk, one, known[0]):
            raise one.why
        rest = known[1]
        rest = [extent if extent >= 0 else each // -int(np.prod(rest)) for extent in rest]
        return one.but(rows=reshaped(walk, one.rows, (count, *rest)))
    first, *rest = node.ints(1, "the shape") or [0]
    if rest and first == 0 and rest.count(-1) == 1:
        rest = [extent if extent >= 0 else each // -int(np.prod(rest)) for extent in rest]
    parts = int(np.prod(rest))
    if first > 0 and min(rest, default=1) > 0 and not one.cut and first * parts % each == 0:
        return reshaped(walk, as_many(walk, one, first * parts // each), (first, *rest))
    if first > 1 and rest[:1] == [-1] and parts == -each and not one.cut:
        return equal_parts(walk, one, first, rest[1:])
    if first > 0 or rest and min(rest) <= 0 or each % parts or first == 0 and each != parts:
        raise one.why
    return _in_parts(walk, one, rest)


def _expanded(walk: Walk, one: Chosen, as_these: Chosen, extents: list[int]) -> Chosen:
    """To the shape of as many rows, each of these extents."""
    if one.rows.rank != len(extents) + 1 or not is_same(walk, one, as_these):
        raise one.why
    rest = np.broadcast_shapes(one.rows.shape[1:], tuple(extents))
    return one.but(rows=expanded(walk, one.rows, (one.rows.shape[0], *rest)))


def _in_parts(walk: Walk, one: Chosen, rest: list[int]) -> Chosen:
    """Each row as one row, or several behind each other, of these extents."""
    count = one.rows.shape[0]
    times = one.rows.size // count // int(np.prod(rest))
    rows = reshaped(walk, one.rows, (count * times, *rest))
    if times == 1:
        return one.but(rows=rows)
    return one.but(rows=rows, mask=mask_of_parts(walk, one, times))


def _takes_first(node: Node) -> bool:
    """Whether it takes as many rows as something says, which may be all, or not: what is assigned
    to the places of a mask has to be as many as these."""
    if node.op == "Expand":
        return node.tensor(1).array is None and node.tensor(1).extents_of is None
    start, end, axes, steps = (node.get(index) for index in range(1, 5))
    return node.opset >= 10 and end is not None and end.array is None and all(
        value is None or value.ints() == wanted
        for value, wanted in ((start, [0]), (axes, [0]), (steps, [1])))
