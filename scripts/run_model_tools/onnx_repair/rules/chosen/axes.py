"""Chosen rows that lie along another axis than the first: places as NonZero gives them, points at
which a picture is sampled, and what is found there.

An operator that keeps this axis apart works on all rows, in the model's layout.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import not_constant
from run_model_tools.onnx_repair.rules.chosen.among import at_known
from run_model_tools.onnx_repair.rules.chosen.boxes import suppressed
from run_model_tools.onnx_repair.rules.chosen.counts import shape_around_rows
from run_model_tools.onnx_repair.rules.chosen.lengths import behind_each_other
from run_model_tools.onnx_repair.rules.chosen.masks import MOVES, count_of, filled_rows, is_same
from run_model_tools.onnx_repair.rules.chosen.order import in_front
from run_model_tools.onnx_repair.rules.chosen.places import counted, dealt
from run_model_tools.onnx_repair.rules.chosen.rows import ELEMENTWISE_OF_ROWS, chosen, of_inputs
from run_model_tools.onnx_repair.rules.elementwise import reshaped
from run_model_tools.onnx_repair.rules.shapes import expanded, transposed
from run_model_tools.onnx_repair.values import Chosen, Node, Thing, Value
from run_model_tools.onnx_repair.walk import Walk


def of_other_axes(walk: Walk, node: Node, op: str, given: Sequence[Chosen]) -> list[Thing | None]:
    """What a node makes of chosen rows that lie along a later axis than the first, or are to."""
    one, axis = given[0], given[0].axis
    if op == "Gather" and node.inputs[0] is one and not one.cut and (
            found := at_known(walk, node, one)) is not None:
        return [found]
    if op == "NonMaxSuppression":
        return [suppressed(walk, node)]  # type: ignore[list-item]
    if op in ("Squeeze", "Unsqueeze") and (more := in_front_of_rows(node, one)):
        return [one.but(lead=one.lead + (more if op == "Unsqueeze" else -more))]
    if one.along == 1 and op == "Transpose" and node.attrs.get("perm") in (None, [1, 0]):
        return [one.but(along=0)]
    if op == "Concat" and not any(i.cut for i in given) and (
            joined := behind_each_other(walk, node)) is not None:
        return [joined]
    if any(i.axis != axis or i.cut or not is_same(walk, one, i) for i in given):
        raise one.why
    if op == "ScatterND":
        return [_assigned(walk, node)]
    if op == "GridSample":
        node.inputs[1] = one = one.but(rows=filled_rows(walk, one, 0))  # Others lie anywhere.
    inputs = [in_place(walk, i) if isinstance(i, Chosen) else i for i in node.inputs]
    whole = inputs[node.inputs.index(one)]
    assert isinstance(whole, Value)
    if op == "Reshape":
        return [as_rows(walk, one, *_reshaped(walk, node, one, whole))]
    if op == "Expand":
        return [as_rows(walk, one, *_expanded(walk, node, one, whole))]
    behind = _axis_behind(node, op, one, inputs, whole.rank)
    results = of_inputs(walk, node, inputs)
    made = [as_rows(walk, one, result, behind) if isinstance(result, Value) else None
            for result in results]
    if keeps_places(node, op, given) and made[0] is not None:
        made[0].of, made[0].column = given[-1].of, sum(i.rows.shape[-1] for i in given[:-1])
    return [*made]


def in_front_of_rows(node: Node, one: Chosen) -> int:
    """How many axes of one element a Squeeze or Unsqueeze takes from before the rows or puts there,
    if it does nothing else; else 0."""
    axes = node.axes() or []
    rank = one.lead + one.rows.rank + len(axes) * (node.op == "Unsqueeze")
    ahead = sorted(axis % rank for axis in axes) == [*range(len(axes))] and not one.along
    return len(axes) if ahead and (node.op == "Unsqueeze" or len(axes) <= one.lead) else 0


def keeps_places(node: Node, op: str, given: Sequence[Chosen]) -> bool:
    """Whether it is a Concat of columns of which the last are places, or writes rows to these."""
    if len(given) != len(node.inputs) or [i for i in given if i.of and i.lead] != [
            given[1 if op == "ScatterND" else -1]]:
        return False
    last = given[-1]
    return op == "ScatterND" or op == "Concat" and last.column is None and last.rows.shape[1:] == (
        1,) and node.attrs["axis"] in (-1, last.lead + 1)


def _assigned(walk: Walk, node: Node) -> Chosen:
    """A ScatterND of all rows to their own places."""
    x, places, updates = (i if isinstance(i, Chosen) and i.lead else None for i in node.inputs)
    if x is None or places is None or updates is None or places.rows.array is None:
        raise next(i.why for i in node.inputs if isinstance(i, Chosen))
    rows, deep = places.rows.array, places.rows.shape[-1]
    own = places.first if places.of is None else (
        places.column == deep - 1 and is_same(walk, places, places.of))
    if not own or deep != x.lead + 1 or updates.rows.shape != x.rows.shape or node.attrs.get(
            "reduction", "none") != "none" or not np.array_equal(
                rows, np.arange(len(rows))[:, None] * (np.arange(deep) == deep - 1)):
        raise x.why
    return updates


def resized(walk: Walk, node: Node, one: Chosen) -> Chosen:
    """A Resize that leaves the axis of the rows alone: by its scale there, or by their number."""
    axis, rank, inputs = one.axis, one.lead + one.rows.rank, [*node.inputs]
    if node.opset < 11 or node.attrs.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        raise one.why
    if len(inputs) == 3:
        scales = node.constant(2, "the scales")
        along = [i % rank for i in node.attrs.get("axes") or range(rank)]
        if scales is None or dict(zip(along, scales.tolist())).get(axis, 1) != 1:
            raise one.why
    else:
        found = shape_around_rows(walk, node.tensor(3))
        if found is None or found[1] != axis or not is_same(walk, one, found[0]) \
                or "axes" in node.attrs:
            raise one.why
        sizes = [*found[2][:axis], one.rows.shape[0], *found[2][axis:]]
        inputs[3] = walk.graph.constant(sizes, np.int64)
    inputs[0] = in_place(walk, one)
    (made,) = of_inputs(walk, node, inputs)
    if not isinstance(made, Value):
        raise one.why
    return as_rows(walk, one, made, axis)


def in_place(walk: Walk, one: Chosen) -> Value:
    """All rows, along the axis where the model has them."""
    if one.lead:
        return reshaped(walk, one.rows, (*[1] * one.lead, *one.rows.shape))
    order = [*range(1, one.rows.rank)]
    return transposed(walk, one.rows, [*order[:one.along], 0, *order[one.along:]])


def as_rows(walk: Walk, like: Chosen, value: Value, axis: int) -> Chosen:
    """Chosen rows that lie along an axis of such a value."""
    if value.shape[axis] != like.rows.shape[0]:
        raise like.why
    if like.column is not None:
        like = counted(walk, like)
    if set(value.shape[:axis]) <= {1}:
        rows = reshaped(walk, value, value.shape[axis:])
        return like.but(rows=rows, along=0, lead=axis)
    rows = transposed(walk, value, [axis, *(i for i in range(value.rank) if i != axis)])
    return like.but(rows=rows, along=axis, lead=0)


def rows_of_output(walk: Walk, one: Chosen) -> tuple[Value, Value, int]:
    """The rows of an output of the model with 0 behind those that are chosen, how many these are,
    and along which axis they lie."""
    one = in_front(walk, counted(walk, one))
    rows = in_place(walk, one.but(rows=filled_rows(walk, one, 0)))
    return rows, reshaped(walk, count_of(walk, one), (1,)), one.axis


def for_each(walk: Walk, x: Value, shape: Value) -> Chosen | None:
    """x for each of the chosen rows that a shape is of, as Expand and ConstantOfShape make it; None
    of any other shape."""
    found = shape_around_rows(walk, shape)
    if found is None or x.rank > len(found[2]) + 1:
        return None
    one, axis, rest = found
    wanted = (*rest[:axis], one.rows.shape[0], *rest[axis:])
    plain = one.but(of=None, column=None, along=0, cut=False, lead=0)
    if (*[1] * (len(wanted) - x.rank), *x.shape)[axis] != 1:
        if axis:
            return None
        x = dealt(walk, plain, x)
    return as_rows(walk, plain, expanded(walk, x, np.broadcast_shapes(x.shape, wanted)), axis)


def repeated(walk: Walk, node: Node) -> Chosen | None:
    """An Expand to as many rows as a mask has places; None of any other."""
    x, shape = node.tensor(0), node.tensor(1)
    if (made_of_shape := for_each(walk, x, shape)) is not None:
        return made_of_shape
    makers = walk.graph.makers
    ahead, rest = shape, walk.graph.constant(np.zeros(0, np.int64))
    made = makers.get(shape.name)
    if made is not None and made.op_type == "Concat" and len(made.input) == 2:
        ahead, rest = (walk.graph.values[name] for name in made.input)
    for wanted in ("ReduceSum", "Cast"):
        while (made := makers.get(ahead.name)) is not None and made.op_type != wanted:
            if made.op_type not in MOVES:
                return None
            ahead = walk.graph.values[made.input[0]]
        if made is None or wanted == "ReduceSum" and ahead.size != 1:
            return None
        ahead = walk.graph.values[made.input[0]]
    extents = rest.ints()
    if ahead.elem_type != TensorProto.BOOL or extents is None or walk.is_open or x.rank > len(
            extents) + 1:
        return None
    refused = not_constant("the shape", shape.name)
    if x.rank == len(extents) + 1 and x.shape[0] != 1:
        x = dealt(walk, chosen(walk, node, ahead, ahead, refused), x)
    rows = expanded(walk, x, (ahead.size, *np.broadcast_shapes(
        x.shape[max(x.rank - len(extents), 0):], tuple(extents))))
    return chosen(walk, node, rows, ahead, refused)


def _reshaped(walk: Walk, node: Node, one: Chosen, whole: Value) -> tuple[Value, int]:
    """To a shape that leaves the number of rows open, or says that there are all."""
    count, found = one.rows.shape[0], shape_around_rows(walk, node.tensor(1))
    if found is not None and is_same(walk, one, found[0]):
        wanted = [*found[2][:found[1]], count, *found[2][found[1]:]]
    else:
        wanted = [count if extent == -1 else extent for extent in node.tensor(1).ints() or []]
    sides = [np.prod(side) for side in (whole.shape[:one.axis], whole.shape[one.axis + 1:])]
    for behind, extent in enumerate(wanted):
        if extent == count and sides == [np.prod(wanted[:behind]), np.prod(wanted[behind + 1:])]:
            return reshaped(walk, whole, tuple(wanted)), behind
    raise one.why


def _expanded(walk: Walk, node: Node, one: Chosen, whole: Value) -> tuple[Value, int]:
    """To the shape of such rows, or to one that says that there are all, or leaves them alone."""
    count, found = one.rows.shape[0], shape_around_rows(walk, node.tensor(1))
    if found is not None and is_same(walk, one, found[0]):
        wanted = [*found[2][:found[1]], count, *found[2][found[1]:]]
    else:
        wanted = node.tensor(1).ints() or []
    behind = len(wanted) - whole.rank + one.axis
    if behind < 0 or wanted[behind] not in (1, count) or found is not None and found[1] != behind:
        raise one.why
    return expanded(walk, whole, np.broadcast_shapes(whole.shape, tuple(wanted))), behind


def _axis_behind(node: Node, op: str, one: Chosen, inputs: Sequence[Thing | None],
                 rank: int) -> int:
    """Along which axis the rows of a result lie, each of which depends on no other."""
    axis = one.axis
    others = [i for i in node.inputs if isinstance(i, Value)]
    rows = [i for i, given in zip(inputs, node.inputs) if isinstance(given, Chosen)]
    if op in ELEMENTWISE_OF_ROWS and node.opset >= 7:
        most = max([rank, *(i.rank for i in others)])
        behind = axis + most - rank
        if all(isinstance(i, Value) and i.rank == rank for i in rows) and all(
                (*[1] * (most - i.rank), *i.shape)[behind] == 1 for i in others):
            return behind
        raise one.why
    along = node.attrs.get("axis", 0) % rank
    if op == "GridSample" and others and others[0].rank == rank and others[0].shape[0] == 1 \
            and 0 < axis < rank - 1:
        return axis + 1
    if op == "Concat" and not others and along != axis:
        return axis
    if node.inputs[0] is not one or len(rows) > 1 or not all(i.is_constant for i in others):
        raise one.why
    if op == "Transpose":
        return (node.attrs.get("perm") or list(range(rank))[::-1]).index(axis)
    if op == "Gather" and along != axis:
        return axis + (others[0].rank - 1) * (along < axis)
    if op == "Split" and along != axis or op == "Slice" and node.opset >= 10 and axis not in {
            i % rank for i in node.ints(3, "the axes") or [axis]}:
        return axis
    if op in ("Squeeze", "Unsqueeze") or op.startswith("Reduce"):
        given = node.axes() or [axis]
        axes = {i % (rank + len(given) * (op == "Unsqueeze")) for i in given}
        if op == "Unsqueeze":
            return [i for i in range(rank + len(axes)) if i not in axes][axis]
        if axis not in axes:
            gone = op == "Squeeze" or not node.attrs.get("keepdims", 1)
            return axis - gone * sum(i < axis for i in axes)
    raise one.why
