"""What each iteration of a loop makes, with the iterations along a first axis; extents may be
another number in each of them.

Along such an axis a tensor is weighted sums of the elements of another one, whose extent is known:
the weights are a function of places, as many as are asked for.  Resizing gives them, and cutting
off and putting zeros before or behind asks them at other places.  Elements are finite: one that is
not would spread by a weight of 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from onnx import TensorProto, helper

from run_model_tools.onnx_repair.rules.chosen.masks import filled_rows
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.resize import Manner, computed_taps
from run_model_tools.onnx_repair.rules.shapes import concatenated, expanded, transposed
from run_model_tools.onnx_repair.values import Chosen, Value
from run_model_tools.onnx_repair.walk import RELAY, Walk

DOMAIN = "run_model"
LARGEST = "LargestOfResized"
"""An ArgMax over resized planes (inside_tvm/operators/resized_planes.py)."""

Number = Value | int
"""A whole number: [iterations or 1, 1], or the same in all iterations."""


@dataclass
class Axis:
    """One whose extent each iteration computes."""

    extent: Number
    weights: Callable[[Value], Value]
    """Of places, whole numbers [iterations or 1, any], how much each element of the other tensor
    counts there: [iterations or 1, any, extent of that]."""
    resized: Manner | None = None
    """How the other tensor was resized, where nothing else was done."""


@dataclass
class Varying:
    """A tensor in each iteration."""

    rows: Value
    """[iterations or 1, ...]"""
    axes: dict[int, Axis] = field(default_factory=dict)
    """Those along which `rows` has the elements that are summed up."""
    parts: list[Number] | None = None
    """The elements of a list of whole numbers."""
    is_flat: bool = False
    """Whether its last two axes are one."""

    @property
    def rank(self) -> int:
        return self.rows.rank - 1


def _value(walk: Walk, number: Number) -> Value:
    return walk.graph.constant(np.full((1, 1), number)) if isinstance(number, int) else number


def _axis(walk: Walk, one: Varying, axis: int) -> Axis:
    if axis in one.axes:
        return one.axes[axis]
    every = np.arange(one.rows.shape[axis + 1])

    def weights(places: Value) -> Value:
        behind = reshaped(walk, places, (*places.shape, 1))
        return cast(walk, walk.graph.op("Equal", behind, every[None, None]), one.rows.elem_type)

    return Axis(len(every), weights)


def summed(walk: Walk, one: Varying, wanted: tuple[int, ...] | Mapping[int, Value]) -> Varying:
    """The elements at places of axes, or at the first ones of all."""
    graph = walk.graph
    if not isinstance(wanted, Mapping):
        wanted = {axis: graph.constant(np.arange(wanted[axis])[None]) for axis in one.axes}
    rows, axes = one.rows, dict(one.axes)
    for axis, places in sorted(wanted.items()):
        line = axes.pop(axis)
        if places.array is None or (places.array < 0).any():  # It may be counted from the end.
            places = graph.op("Where", graph.op("Less", places, 0),
                              graph.op("Add", places, _value(walk, line.extent)), places)
        weights = cast(walk, line.weights(places), rows.elem_type)
        count = max(rows.shape[0], weights.shape[0])
        rows, weights = (expanded(walk, v, (count, *v.shape[1:])) for v in (rows, weights))
        before, behind = rows.shape[1:axis + 1], rows.shape[axis + 2:]
        ahead, others = int(np.prod(before)), int(np.prod(behind))
        each = reshaped(walk, rows, (count, ahead, rows.shape[axis + 1], others))
        number = weights.shape[1]
        if others == 1:
            made = graph.op("MatMul", reshaped(walk, each, (count, ahead, each.shape[2])),
                            transposed(walk, weights, [0, 2, 1]))
        else:
            each = reshaped(walk, transposed(walk, each, [0, 2, 1, 3]),
                            (count, each.shape[2], ahead * others))
            made = reshaped(walk, graph.op("MatMul", weights, each),
                            (count, number, ahead, others))
            made = transposed(walk, made, [0, 2, 1, 3])
        rows = reshaped(walk, made, (count, *before, number, *behind))
    return Varying(rows, axes)


def constant(walk: Walk, number: np.ndarray, extents: list[Number]) -> Varying:
    """A number everywhere."""
    known = [extent if isinstance(extent, int) else 1 for extent in extents]
    rows = walk.graph.constant(np.full((1, *known), number))

    def ones(places: Value) -> Value:
        return walk.graph.constant(np.ones((1, places.shape[1], 1), number.dtype))

    return Varying(rows, {axis: Axis(extent, ones) for axis, extent in enumerate(extents)
                         if not isinstance(extent, int)})


def resized(walk: Walk, one: Varying, sizes: list[Number], manner: Manner) -> Varying:
    def axis(extent: int, size: Value) -> Axis:
        graph = walk.graph

        def weights(places: Value) -> Value:
            dtype = np.float32 if manner.mode == "nearest" else np.float64
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
            number, out = graph.constant(np.array(extent, dtype)), cast(walk, size, kind)
            taps = computed_taps(walk, cast(walk, places, kind), number, out, graph.op(
                "Div", out, number), manner)
            total: Value | None = None
            for place, weight in taps:
                behind = reshaped(walk, place, (*place.shape, 1))
                here = graph.op("Equal", behind, np.arange(extent, dtype=dtype)[None, None])
                term = cast(walk, here, one.rows.elem_type) if weight is None else graph.op(
                    "Where", here, reshaped(walk, cast(walk, weight, one.rows.elem_type),
                                            behind.shape),
                    graph.constant(0, one.rows.dtype))
                total = term if total is None else graph.op("Add", total, term)
            assert total is not None
            return total

        return Axis(size, weights, manner)

    return Varying(one.rows, {
        a: axis(extent, _value(walk, size))
        for a, (size, extent) in enumerate(zip(sizes, one.rows.shape[1:])) if size != extent})


def cut(walk: Walk, one: Varying, axis: int, start: Number, end: Number) -> Varying:
    """one[start:end] along an axis; both may be counted from the end, and lie beyond it."""
    graph, line = walk.graph, _axis(walk, one, axis)
    extent = _value(walk, line.extent)
    if start == 0 and isinstance(end, int) and end >= np.iinfo(np.int32).max:
        return one
    if axis not in one.axes and isinstance(start, int) and isinstance(end, int):
        return Varying(graph.op("Slice", one.rows, np.array([start]), np.array([end]),
                               np.array([axis + 1])), one.axes)

    def within(number: Number) -> Value:
        value = cast(walk, _value(walk, number), TensorProto.INT64)
        value = graph.op("Where", graph.op("Less", value, 0), graph.op("Add", value, extent), value)
        return graph.op("Min", graph.op("Max", value, graph.like(0, value)), extent)

    first = within(start)
    length = graph.op("Max", graph.op("Sub", within(end), first), graph.like(0, first))
    weights = line.weights if start == 0 else lambda places: line.weights(
        graph.op("Add", places, first))
    return Varying(one.rows, {**one.axes, axis: Axis(length, weights)})


def behind_each_other(walk: Walk, parts: list[Varying], axis: int) -> Varying | None:
    """A Concat of which all parts but one are zeros, or all have extents that are known; None of
    any other."""
    graph = walk.graph
    if not any(part.axes for part in parts):
        count = max(part.rows.shape[0] for part in parts)
        return Varying(concatenated(walk, [expanded(walk, part.rows, (
            count, *part.rows.shape[1:])) for part in parts], axis + 1))
    others = [part for part in parts if part.rows.array is None or part.rows.array.any()]
    if len(others) > 1 or len({part.rows.elem_type for part in parts}) > 1:
        return None
    filled = others[0] if others else parts[0]
    line = _axis(walk, filled, axis)
    begin = total = graph.constant(np.zeros((1, 1), np.int64))
    for part in parts:
        if part is filled:
            begin = total
        total = graph.op("Add", total, _value(walk, _axis(walk, part, axis).extent))
    extent = _value(walk, line.extent)

    def weights(places: Value) -> Value:
        at = graph.op("Sub", places, begin)
        inside = graph.op("And", graph.op("GreaterOrEqual", at, 0), graph.op("Less", at, extent))
        made = line.weights(at)
        return graph.op("Where", reshaped(walk, inside, (*inside.shape, 1)), made,
                        graph.like(0, made))

    return Varying(filled.rows, {**filled.axes, axis: Axis(total, weights)})


def largest_place(walk: Walk, one: Varying, every: Chosen) -> Value | None:
    """[iterations, planes]: where in each resized plane its largest element is, row by row; None
    where it was made otherwise."""
    count, rank = every.rows.shape[0], one.rank
    manner = one.axes[rank - 1].resized
    if manner is None or manner != one.axes[rank - 2].resized or manner.mode not in (
            "linear", "cubic") or manner.coordinates not in (
            "half_pixel", "pytorch_half_pixel") or one.rows.elem_type != TensorProto.FLOAT \
            or walk.importer != RELAY:
        return None
    # Of what is no row nobody knows how large it is.
    sizes = [filled_rows(walk, every.but(rows=expanded(walk, _value(
        walk, one.axes[axis].extent), (count, 1))), 0) for axis in (rank - 2, rank - 1)]
    rows = expanded(walk, one.rows, (count, *one.rows.shape[1:]))
    return walk.graph.foreign(
        DOMAIN, LARGEST, [*sizes, rows], [(count, rows.shape[1])],
        cubic=int(manner.mode == "cubic"), cubic_coeff_a=manner.cubic_a,
        single_first=int(manner.coordinates == "pytorch_half_pixel"))[0]
