"""Slices, gathers, scatters and OneHot, with every constant index counted from the begin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import invalid, not_constant
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.chosen.rows import between, chosen
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.shapes import concatenated
from run_model_tools.onnx_repair.rules.tables import rows_of_table
from run_model_tools.onnx_repair.rules.triangular import with_another_row
from run_model_tools.onnx_repair.values import INTEGERS, Chosen, Node, Value
from run_model_tools.onnx_repair.walk import Walk


@rule("Slice")
def slice_rule(walk: Walk, node: Node) -> Value | Chosen:
    x = node.tensor(0)
    if node.opset < 10:
        starts, ends = node.attrs["starts"], node.attrs["ends"]
        axes, steps = node.attrs.get("axes"), None
    else:
        axes, steps = node.ints(3, "the axes"), node.ints(4, "the steps")
        along = [a % x.rank for a in axes or range(node.tensor(1).size)]
        lengths = _lengths(walk, node.tensor(1), node.tensor(2), [x.shape[a] for a in along])
        if lengths is not None and set(steps or [1]) == {1}:
            return _cut_at(walk, x, node.tensor(1), lengths, along)
        unknown = [not_constant(what, v.name) for v, what in (
            (node.tensor(1), "where it starts"), (node.tensor(2), "where it ends"))
            if _known(v) is None]
        if unknown and along == [0] and set(steps or [1]) == {1} and not walk.is_open:
            return between(walk, node, x, node.tensor(1), node.tensor(2), unknown[0])
        starts, ends = node.ints(1, "where it starts"), node.ints(2, "where it ends")
    axes = [a % x.rank for a in axes] if axes is not None else list(range(len(starts)))
    ranges = {axis: range(*slice(start, end, step).indices(x.shape[axis]))
              for axis, start, end, step in zip(axes, starts, ends, steps or [1] * len(starts))}
    return sliced(walk, x, ranges)


def _cut_at(walk: Walk, x: Value, starts: Value, lengths: Sequence[int],
            axes: Iterable[int]) -> Value:
    """So many elements along each of the axes, from places on that are known at run time only: from
    the nearest one on where fewer would be left, of which ONNX makes a shorter result."""
    graph = walk.graph
    for index, (axis, length) in enumerate(zip(axes, lengths)):
        extent = x.shape[axis]
        if not 0 <= length <= extent:
            raise invalid(f"it takes {length} of {extent} elements along axis {axis}")
        if length == extent:
            continue
        start = from_begin(walk, graph.op("Gather", starts, np.array(index), axis=0), extent)
        start = graph.op("Min", start, extent - length)
        x = graph.op("Gather", x, graph.op("Add", np.arange(length), start), axis=axis)
    return x


def _lengths(walk: Walk, starts: Value, ends: Value, extents: list[int]) -> list[int] | None:
    """How far apart starts and ends are, where one of them is known at run time only and their
    distance is known; None where not, or where both are known.  extents: of the axes."""
    if walk.is_open or _known(starts) is not None and _known(ends) is not None:
        return None
    makers = walk.graph.makers

    def parts(value: Value) -> list[tuple[str, int]]:
        """Of each number, what it is the sum of: something that is not known, and a number."""
        array = _known(value)
        if array is not None:
            return [("", int(number)) for number in array.ravel()]
        node = makers.get(value.name) if value.elem_type in INTEGERS else None
        inputs = [walk.graph.values[name] for name in node.input if name] if node else []
        if node and node.op_type in ("Unsqueeze", "Squeeze", "Reshape", "Cast", "Identity"):
            return parts(inputs[0])
        if node and node.op_type == "Concat":
            return [part for one in inputs for part in parts(one)]
        if node and node.op_type == "Gather" and inputs[0].rank == 1:
            places = _known(inputs[1])
            if places is not None:
                every = parts(inputs[0])
                return [every[int(place)] for place in places.ravel()]
        if node and node.op_type == "Mul":
            # Whether 0 is meant to be the end, which then is the extent.
            which, extent = inputs if _known(inputs[1]) is not None else inputs[::-1]
            asked, number = makers.get(which.name), _known(extent)
            if asked and asked.op_type == "Where" and number is not None and number.size == 1 and (
                    int(number.item()) in extents) and [
                        parts(walk.graph.values[name]) for name in asked.input[1:]] == [
                            [("", 1)], [("", 0)]]:
                return [("", 0)]
        if node and node.op_type in ("Add", "Sub"):
            sign = 1 if node.op_type == "Add" else -1
            left, right = (parts(one) for one in inputs)
            if sign == 1 and any(name for name, _ in right):
                left, right = right, left
            if left and right and not any(name for name, _ in right):
                count = max(len(left), len(right))
                return [(name, number + sign * more) for (name, number), (_, more) in zip(
                    left * (count // len(left)), right * (count // len(right)))]
        return [(f"{value.name}[{index}]", 0) for index in range(value.size)]

    pairs = list(zip(parts(starts), parts(ends)))
    if len(pairs) != len(extents) or any(begin[0] != end[0] for begin, end in pairs):
        return None
    return [end[1] - begin[1] if begin[0] else
            len(range(*slice(begin[1], end[1]).indices(extent)))
            for (begin, end), extent in zip(pairs, extents)]


def _known(value: Value) -> np.ndarray | None:
    return value.known if value.array is None else value.array


def sliced(walk: Walk, x: Value, ranges: dict[int, range]) -> Value:
    """The elements at these places of some axes; backwards, as the importer does not slice."""
    forwards = {}
    for axis, places in ranges.items():
        if places == range(x.shape[axis]) and not walk.graph.kept:
            continue
        if places.step < 0 and len(places) > 1:
            x = walk.graph.op("Gather", x, np.array(places, np.int64), axis=axis)
        elif len(places):
            forwards[axis] = (places[0], places[-1] + 1, max(places.step, 1))
        else:
            forwards[axis] = (0, 0, 1)
    if not forwards:
        return x
    starts, ends, steps = (np.array(v, np.int64) for v in zip(*forwards.values()))
    return walk.graph.op("Slice", x, starts, ends, np.array(list(forwards), np.int64), steps)


def from_begin(walk: Walk, indices: Value, extent: int | np.ndarray) -> Value:
    """Indices of which those below 0 are from the end, for TVM, which reads and writes wherever
    they point: those of the input that lie beyond become the nearest place."""
    graph = walk.graph
    indices = cast(walk, indices, TensorProto.INT64)
    if indices.array is not None:
        places = np.where(indices.array < 0, indices.array + extent, indices.array)
        beyond = (places < 0) | (places >= extent)
        if beyond.any():
            index, most = indices.array[beyond][0], np.broadcast_to(extent, beyond.shape)[beyond][0]
            raise invalid(f"its index {index} lies beyond the {most} places of its tensor")
        return indices if (indices.array >= 0).all() else graph.constant(places)
    forwards = graph.op("Where", graph.op("Less", indices, 0),
                        graph.op("Add", indices, np.asarray(extent, np.int64)), indices)
    if walk.is_open:
        return forwards
    return graph.op("Min", graph.op("Max", forwards, 0), np.asarray(extent, np.int64) - 1)


@rule("Gather")
def gather(walk: Walk, node: Node) -> Value:
    from run_model_tools.onnx_repair.rules.chosen.counts import known_numbers

    x, at = node.tensor(0), node.tensor(1)
    if x.extents_of is not None and x.rank and at.is_constant:
        known = known_numbers(walk, walk.graph.op("Gather", x, at, axis=0))
        if known is not None:
            return walk.graph.constant(np.reshape(known, at.shape), np.int64)
    x, places = _places(walk, node)
    rows = rows_of_table(walk, x, places) if _axis(node) == 0 else None
    return rows or walk.graph.op("Gather", x, places, axis=_axis(node))


@rule("GatherElements")
def gather_elements(walk: Walk, node: Node) -> Value:
    """Other axes than its own may have more elements than the indices; the importer knows no such
    case."""
    x, indices = _places(walk, node)
    axis = _axis(node)
    x = sliced(walk, x, {i: range(extent) for i, extent in enumerate(indices.shape)
                         if i != axis and extent < x.shape[i]})
    return walk.graph.op("GatherElements", x, indices, axis=axis)


def _axis(node: Node) -> int:
    return node.attrs.get("axis", 0) % node.tensor(0).rank


def _places(walk: Walk, node: Node) -> tuple[Value, Value]:
    """The data and the indices of a node that gathers along an axis."""
    x, indices = node.tensor(0), node.tensor(1)
    if indices.array is not None or node.op == "GatherElements" and not walk.is_open:
        indices = from_begin(walk, indices, x.shape[_axis(node)])
    return x, indices


@rule("GatherND")
def gather_nd(walk: Walk, node: Node) -> Value:
    x, indices = node.tensor(0), node.tensor(1)
    batch = node.attrs.get("batch_dims", 0)
    extents = np.array(x.shape[batch:batch + indices.shape[-1]], np.int64)
    indices = from_begin(walk, indices, extents)
    if indices.rank > 1:
        return walk.graph.op("GatherND", x, indices, batch_dims=batch)
    # ONNX infers nothing of a single place.
    made = walk.graph.op("GatherND", x, reshaped(walk, indices, (1, indices.size)))
    return reshaped(walk, made, made.shape[1:])


@rule("Scatter", "ScatterElements")
def scatter_elements(walk: Walk, node: Node) -> Value:
    x, axis = node.tensor(0), _axis(node)
    indices = from_begin(walk, node.tensor(1), x.shape[axis])
    made = _scattered(walk, x, indices, node.tensor(2), axis, _combined(node))
    return with_another_row(walk, x, indices, made) if axis == x.rank - 2 else made


def _scattered(walk: Walk, x: Value, indices: Value, updates: Value, axis: int,
               reduction: str | None) -> Value:
    """Only where the indices reach: TVM takes their extents for those of the data."""
    if not indices.size:
        return x
    for i, extent in enumerate(indices.shape):
        if i != axis and extent < x.shape[i]:
            reached, rest = (sliced(walk, x, {i: places}) for places in (
                range(extent), range(extent, x.shape[i])))
            made = _scattered(walk, reached, indices, updates, axis, reduction)
            return concatenated(walk, [made, rest], i)
    return walk.graph.op("ScatterElements", x, indices, updates, axis=axis, reduction=reduction)


@rule("ScatterND")
def scatter_nd(walk: Walk, node: Node) -> Value:
    x, indices = node.tensor(0), node.tensor(1)
    if not indices.size:
        return x
    extents = np.array(x.shape[:indices.shape[-1]], np.int64)
    indices = from_begin(walk, indices, extents)
    updates, reduction = node.tensor(2), _combined(node)
    box = None if indices.array is None or reduction or walk.is_open else _box(indices.array)
    if box is not None:
        sizes = tuple(len(places) for places in box)
        made = _laid_over(walk, x, reshaped(walk, updates, sizes + x.shape[len(box):]), box)
        if len(box) < x.rank - 1:
            return made
        return with_another_row(walk, x, walk.graph.constant(np.array(box[x.rank - 2])), made)
    return walk.graph.op("ScatterND", x, indices, updates, reduction=reduction)


def _box(indices: np.ndarray) -> list[range] | None:
    """Of each axis, the places in a row that all these indices together are, in their order: what
    an assignment to a slice is exported as."""
    flat = indices.reshape(-1, indices.shape[-1])
    first, sizes = flat[0], flat[-1] - flat[0] + 1
    if (sizes < 1).any() or np.prod(sizes) != len(flat):
        return None
    each = np.stack(np.unravel_index(np.arange(len(flat)), tuple(sizes)), -1) + first
    if not np.array_equal(flat, each):
        return None
    return [range(begin, begin + size) for begin, size in zip(first.tolist(), sizes.tolist())]


def _laid_over(walk: Walk, x: Value, updates: Value, box: list[range], axis: int = 0) -> Value:
    """`x` with `updates` in a box of its first axes, of which those before `axis` are cut already.
    """
    places, extent = box[axis], x.shape[axis]
    before, behind = (sliced(walk, x, {axis: range(*ends)}) for ends in (
        (0, places.start), (places.stop, extent)))
    if axis + 1 < len(box):
        updates = _laid_over(walk, sliced(walk, x, {axis: places}), updates, box, axis + 1)
    return concatenated(walk, [before, updates, behind], axis)


def _combined(node: Node) -> str | None:
    """The importer knows no name for taking updates as they are."""
    name = node.attrs.get("reduction", "none")
    return None if name == "none" else name


@rule("Compress")
def compress(walk: Walk, node: Node) -> Value | Chosen:
    x = node.tensor(0)
    axis = node.attrs.get("axis")
    if axis is None:
        x, axis = reshaped(walk, x, (x.size,)), 0
    holds = node.tensor(1)
    if not holds.is_constant and not walk.is_open and not axis % x.rank \
            and holds.size <= x.shape[0]:
        return chosen(walk, node, sliced(walk, x, {0: range(holds.size)}), holds,
                      not_constant("the condition", holds.name))
    condition = node.constant(1, "the condition")
    assert condition is not None
    return walk.graph.op("Gather", x, np.flatnonzero(condition), axis=axis % x.rank)


@rule("ReverseSequence")
def reverse_sequence(walk: Walk, node: Node) -> Value:
    x, lengths = node.tensor(0), node.tensor(1)
    time, batch = node.attrs.get("time_axis", 0), node.attrs.get("batch_axis", 1)
    return walk.graph.op("GatherElements", x, reversed_places(walk, x, lengths, time, batch),
                         axis=time)


def reversed_places(walk: Walk, x: Value, lengths: Value, time: int, batch: int) -> Value:
    """For each element where it comes from: length-1-t before the sequence's length, t after.
    Longer than the longest, a sequence is that long."""
    graph = walk.graph
    shape = [x.shape[i] if i == batch else 1 for i in range(x.rank)]
    lengths = reshaped(walk, cast(walk, lengths, TensorProto.INT64), tuple(shape))
    lengths = graph.op("Min", lengths, x.shape[time])
    t = graph.constant(np.arange(x.shape[time]).reshape(
        [-1 if i == time else 1 for i in range(x.rank)]))
    places = graph.op("Where", graph.op("Less", t, lengths),
                      graph.op("Sub", graph.op("Sub", lengths, 1), t), t)
    return graph.op("Expand", places, np.array(x.shape, np.int64))


@rule("OneHot")
def one_hot(walk: Walk, node: Node) -> Value:
    graph = walk.graph
    indices, values = node.tensor(0), node.tensor(2)
    depth = (node.ints(1, "the depth") or [0])[0]
    axis = node.attrs.get("axis", -1) % (indices.rank + 1)
    indices = cast(walk, indices, TensorProto.INT64)
    wrapped = graph.op("Where", graph.op("Less", indices, 0), graph.op("Add", indices, depth),
                       indices)
    wrapped = graph.op("Unsqueeze", wrapped, np.array([axis]))
    places = np.arange(depth).reshape([-1 if i == axis else 1 for i in range(wrapped.rank)])
    off, on = (reshaped(walk, graph.op("Gather", values, np.array(i)), ()) for i in (0, 1))
    return graph.op("Where", graph.op("Equal", wrapped, places), on, off)
