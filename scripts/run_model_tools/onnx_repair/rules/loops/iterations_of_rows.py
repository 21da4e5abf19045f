"""Loops with an iteration for each of some chosen rows, of which only the run time knows how many
there are, as one computation with the iterations along an axis.

torchvision's detectors end so: each thing's mask is resized to the size of its box, cut off at the
picture's edges and put into it, and the largest element of each resized map is found.  What
iterations need nothing of each other for, all do at once; a tensor whose extents each iteration
computes is kept as weighted sums of elements of one of known extents (sums_of_iterations.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from run_model_tools.onnx_repair.node_order import in_order
from run_model_tools.onnx_repair.outputs import reads
from run_model_tools.onnx_repair.rules.chosen.counts import known_numbers
from run_model_tools.onnx_repair.rules.chosen.masks import filled_rows, is_same
from run_model_tools.onnx_repair.rules.chosen.places import counted, every_place
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.loops.independent_iterations import (
    ELEMENTWISE,
    REDUCTIONS,
    axes_aligned,
)
from run_model_tools.onnx_repair.rules.loops.sums_of_iterations import (
    Number,
    Varying,
    behind_each_other,
    constant,
    cut,
    largest_place,
    resized,
    summed,
)
from run_model_tools.onnx_repair.rules.resize import as_resized
from run_model_tools.onnx_repair.rules.shapes import expanded
from run_model_tools.onnx_repair.values import Chosen, Node, Thing, Value
from run_model_tools.onnx_repair.walk import Walk

_MOST_KNOWN = 64
"""Elements of a tensor from outside that are looked at for being known."""


class _Unknown(Exception):
    """Something that an iteration makes cannot be said for all of them at once."""


def iterations_of_rows(walk: Walk, node: Node, body: onnx.GraphProto) -> list[Thing | None] | None:
    """What the loop gives; None of any other."""
    limit, goes_on = node.get(0), node.get(1)
    if limit is None or limit.array is not None or walk.is_open or node.opset < 11 \
            or goes_on is not None and (goes_on.array is None or not goes_on.array.item()):
        return None
    every = every_place(walk, limit)
    try:
        return None if every is None else _Loop(walk, node, body, every).result()
    except _Unknown:
        return None


class _Loop:
    def __init__(self, walk: Walk, node: Node, body: onnx.GraphProto, every: Chosen) -> None:
        self.walk, self.node, self.body, self.every = walk, node, body, every
        self.count = every.rows.shape[0]
        self.makers = {name: proto for proto in body.node for name in proto.output}
        self.iteration, self.condition, *self.state = (value.name for value in body.input)
        self.scope: dict[str, Any] = {}
        for name in set[str]().union(*map(reads, body.node)) & node.scope.keys():
            self.scope[name] = self._known(node.scope[name])
        self.scope[""] = None
        for tensor in body.initializer:
            self.scope[tensor.name] = walk.graph.initializer(tensor)
        self.scope[self.condition] = walk.graph.constant(True)

    def _known(self, thing: Thing | None) -> Thing | None:
        """The extents of rows as constants, where they are known."""
        if isinstance(thing, Value) and thing.array is None and thing.elem_type in (
                TensorProto.INT32, TensorProto.INT64) and thing.size <= _MOST_KNOWN:
            numbers = known_numbers(self.walk, thing)
            if numbers is not None:
                return self.walk.graph.constant(np.array(numbers, thing.dtype).reshape(thing.shape))
        return thing

    def result(self) -> list[Thing | None]:
        ends = [value.name for value in self.body.output]
        lists = self._lists(ends[1:1 + len(self.state)])
        skipped = {name for _, names in lists for name in names}
        nodes = [proto for proto in in_order(self.body.node) if proto.output[0] not in skipped]
        if (skipped | set(self.state)) & set[str]().union(*map(reads, nodes)):
            raise _Unknown
        for proto in nodes:
            self._run(proto)
        goes_on = self.scope.get(ends[0])
        if not isinstance(goes_on, Value) or goes_on.array is None or not goes_on.array.item():
            raise _Unknown
        made = [self._listed(start, self.scope.get(name))
                for start, (name, _) in zip(self.node.inputs[2:], lists)]
        return [*made, *(self._rows(self._varying(self.scope.get(name)), None)
                         for name in ends[1 + len(self.state):])]

    def _lists(self, ends: list[str]) -> list[tuple[str, list[str]]]:
        """Of each list that iterations append to, what they append, and the results on the way."""
        found = []
        for name, end in zip(self.state, ends):
            last = self.makers.get(end)
            if last is None or last.op_type != "Concat" or len(last.input) != 2 or any(
                    a.name != "axis" or a.i for a in last.attribute):
                raise _Unknown
            before, names = last.input[0], [end]
            while before != name:
                maker = self.makers.get(before)
                if maker is None or maker.op_type not in ("Cast", "Identity"):
                    raise _Unknown
                names.append(before)
                before = maker.input[0]
            found.append((last.input[1], names))
        return found

    def _listed(self, start: Thing | None, piece: Any) -> Chosen:
        """What is appended to an empty list, a row for each iteration."""
        if not isinstance(start, Value) or not start.rank or start.shape[0]:
            raise _Unknown
        piece = self._varying(piece)
        if piece.rank != start.rank or piece.rows.elem_type != start.elem_type \
                or 0 in piece.axes or piece.rows.shape[1] != 1:
            raise _Unknown
        return self._rows(self._index(piece, 0, self.walk.graph.constant(0, np.int64)),
                          start.shape[1:])

    def _rows(self, piece: Varying, extents: tuple[int, ...] | None) -> Chosen:
        if piece.axes or piece.is_flat:
            if extents is None or piece.is_flat:
                raise _Unknown
            piece = summed(self.walk, piece, extents)
        if extents is not None and piece.rows.shape[1:] != extents:
            raise _Unknown
        rows = expanded(self.walk, piece.rows, (self.count, *piece.rows.shape[1:]))
        return self.every.but(rows=rows, of=None)

    def _run(self, proto: onnx.NodeProto) -> None:
        given = [self.scope.get(name) for name in proto.input]
        if self.iteration in proto.input:
            made = self._looked_up(proto, given)
        elif any(isinstance(thing, Varying) for thing in given):
            node = self.walk.node_beside(replace(self.node, scope=self.scope), proto)
            rule = _RULES.get(node.op)
            if len(proto.output) != 1 or node.domain:
                raise _Unknown
            if node.op in ELEMENTWISE or node.op == "Mod":
                made = self._elementwise(node)
            elif rule is not None:
                made = rule(self, node)
            else:
                made = self._by_shape(node)
        elif any(name in self.scope and isinstance(self.scope[name], Varying)
                 or name == self.iteration for name in reads(proto)):
            raise _Unknown
        else:
            self.walk.run([proto], self.scope, {"": self.node.opset})
            for name in filter(None, proto.output):
                self.scope[name] = self._known(self.scope[name])
            return
        array = made.rows.array
        self.scope[proto.output[0]] = made
        if array is not None and len(array) == 1 and not made.axes:
            self.scope[proto.output[0]] = self.walk.graph.constant(array[0])

    def _looked_up(self, proto: onnx.NodeProto, given: list[Any]) -> Varying:
        """The row of an iteration."""
        if proto.op_type != "Gather" or proto.input[0] == self.iteration or any(
                a.name != "axis" or a.i for a in proto.attribute):
            raise _Unknown
        thing, walk = given[0], self.walk
        if isinstance(thing, Chosen):
            if thing.cut or thing.axis or not is_same(walk, thing, self.every):
                raise _Unknown
            return Varying(counted(walk, thing).rows)
        if not isinstance(thing, Value) or not thing.rank or thing.shape[0] < self.count \
                or not self.every.first:
            raise _Unknown
        return Varying(walk.graph.op("Slice", thing, np.array([0]), np.array([self.count])))

    def _varying(self, thing: Any) -> Varying:
        """Something, as each iteration has it."""
        if isinstance(thing, Varying):
            return thing
        if not isinstance(thing, Value):
            raise _Unknown
        is_list = thing.rank < 2 and thing.elem_type == TensorProto.INT64
        numbers: list[Number] | None = list(thing.ints() or []) if (
            is_list and thing.array is not None) else None
        return Varying(reshaped(self.walk, thing, (1, *thing.shape)), parts=numbers)

    def _plain(self, thing: Any) -> Varying:
        """The same of something whose extents are known."""
        made = self._varying(thing)
        if made.axes or made.is_flat:
            raise _Unknown
        return made

    def _parts(self, thing: Any) -> list[Number]:
        """The elements of a list of whole numbers."""
        made = self._plain(thing)
        if made.parts is not None:
            return made.parts
        if made.rank > 1 or made.rows.elem_type not in (TensorProto.INT32, TensorProto.INT64):
            raise _Unknown
        if made.rows.array is not None and len(made.rows.array) == 1:
            return list(made.rows.ints() or [])
        if not made.rank:
            return [reshaped(self.walk, made.rows, (made.rows.shape[0], 1))]
        return [self.walk.graph.op("Gather", made.rows, np.array([i]), axis=1)
                for i in range(made.rows.shape[1])]

    def _listing(self, parts: list[Number]) -> Varying:
        """A list of whole numbers."""
        graph = self.walk.graph
        columns = [graph.constant(np.full((1, 1), p)) if isinstance(p, int) else p for p in parts]
        if not columns:
            return Varying(graph.constant(np.zeros((1, 0), np.int64)), parts=[])
        count = max(c.shape[0] for c in columns)
        columns = [expanded(self.walk, cast(self.walk, c, TensorProto.INT64), (count, 1))
                   for c in columns]
        rows = columns[0] if len(columns) == 1 else graph.op("Concat", *columns, axis=1)
        return Varying(rows, parts=parts)

    def _ints(self, node: Node, index: int) -> list[int] | None:
        """Of an input, where all iterations have the same."""
        if index >= len(node.inputs) or node.inputs[index] is None:
            return None
        parts = self._parts(node.inputs[index])
        known = [p for p in parts if isinstance(p, int)]
        if len(known) != len(parts):
            raise _Unknown
        return known

    def _axes(self, node: Node) -> list[int] | None:
        """As an attribute or an input, whatever its opset has."""
        axes = node.attrs.get("axes")
        return self._ints(node, 1) if axes is None else axes

    def _elementwise(self, node: Node) -> Varying:
        walk, things = self.walk, list[Any](node.inputs)
        if node.op in ("Cast", "Identity") and isinstance(things[0], Varying):
            one = things[0]
            made = walk.node_in(node.op, node.opset, [one.rows], **node.attrs)
            if node.op == "Cast" and (one.axes or one.is_flat) and not (
                    made.is_float and one.rows.is_float):
                raise _Unknown
            return replace(one, rows=made, parts=one.parts if (
                made.elem_type == TensorProto.INT64) else None)
        plain = [self._plain(thing) for thing in things]
        if node.op in ("Div", "Mod") and not plain[1].rows.is_float:
            # Whole numbers that are divided by 0 end the program.
            divisor = expanded(walk, plain[1].rows, (self.count, *plain[1].rows.shape[1:]))
            plain[1] = Varying(filled_rows(walk, self.every.but(rows=divisor), 1))
        rows = axes_aligned(walk, [one.rows for one in plain], [True] * len(plain))
        return Varying(walk.node_in(node.op, node.opset, list(rows), **node.attrs))

    def _by_shape(self, node: Node) -> Varying:
        """What can be said of all iterations where they have the same extents."""
        walk, one = self.walk, self._plain(node.inputs[0])
        if node.op in REDUCTIONS:
            axes = self._axes(node)
            if node.attrs.get("noop_with_empty_axes") or not one.rank:
                raise _Unknown
            places = [a % one.rank + 1 for a in axes or range(one.rank)]
            return Varying(walk.node_in(node.op, 18, [one.rows, walk.graph.constant(
                places, np.int64)], keepdims=node.attrs.get("keepdims", 1)))
        if node.op == "Expand":
            extents = np.broadcast_shapes(one.rows.shape[1:], tuple(self._ints(node, 1) or ()))
            behind = (1,) * (len(extents) - one.rank)
            rows = reshaped(walk, one.rows, (one.rows.shape[0], *behind, *one.rows.shape[1:]))
            return Varying(expanded(walk, rows, (one.rows.shape[0], *extents)))
        raise _Unknown

    def _gathered(self, node: Node) -> Varying:
        one, at = self._varying(node.inputs[0]), node.inputs[1]
        return self._index(one, node.attrs.get("axis", 0), at)

    def _index(self, one: Varying, axis: int, at: Any) -> Varying:
        walk = self.walk
        if one.is_flat or not one.rank:
            raise _Unknown
        axis %= one.rank
        if one.parts is not None and isinstance(at, Value) and (places := at.ints()) is not None:
            if any(not -len(one.parts) <= place < len(one.parts) for place in places):
                raise _Unknown
            chosen = self._listing([one.parts[place] for place in places])
            return chosen if at.rank == 1 else Varying(
                reshaped(walk, chosen.rows, (*chosen.rows.shape[:1], *at.shape)), parts=(
                    chosen.parts if not at.rank else None))
        if axis in one.axes:
            # Elements of an axis whose extent an iteration computes.
            wanted = self._plain(at)
            if wanted.rank != 1:
                raise _Unknown
            return summed(walk, one, {axis: wanted.rows})
        if not isinstance(at, Value) or at.rank > 1:
            raise _Unknown
        rows = walk.node_in("Gather", 13, [one.rows, at], axis=axis + 1)
        less = 1 - at.rank
        return Varying(rows, {a - less * (a > axis): line for a, line in one.axes.items()})

    def _shape(self, node: Node) -> Varying:
        one = self._varying(node.inputs[0])
        if one.is_flat:
            raise _Unknown
        extents: list[Number] = [
            one.axes[a].extent if a in one.axes else one.rows.shape[a + 1]
            for a in range(one.rank)]
        start, end = node.attrs.get("start", 0), node.attrs.get("end")
        return self._listing(extents[start:end])

    def _unsqueezed(self, node: Node) -> Varying:
        one, axes = self._varying(node.inputs[0]), self._axes(node)
        if one.is_flat or not axes:
            raise _Unknown
        rank = one.rank + len(axes)
        new = {axis % rank for axis in axes}
        old = [a for a in range(rank) if a not in new]
        extents = [1 if a in new else one.rows.shape[old.index(a) + 1] for a in range(rank)]
        rows = reshaped(self.walk, one.rows, (one.rows.shape[0], *extents))
        return Varying(rows, {old[a]: line for a, line in one.axes.items()},
                      parts=one.parts if rank == 1 else None)

    def _squeezed(self, node: Node) -> Varying:
        made = self._varying(node.inputs[0])
        axes = {axis % made.rank for axis in self._axes(node) or [
            a for a in range(made.rank) if a not in made.axes and made.rows.shape[a + 1] == 1]}
        if any(axis in made.axes or made.rows.shape[axis + 1] != 1 for axis in axes):
            raise _Unknown
        for axis in sorted(axes, reverse=True):
            made = self._index(made, axis, self.walk.graph.constant(0, np.int64))
        return made

    def _joined(self, node: Node) -> Varying:
        things = [self._varying(thing) for thing in node.inputs]
        axis = node.attrs["axis"] % max(things[0].rank, 1)
        if all(t.rank == 1 and not t.axes and t.rows.elem_type == TensorProto.INT64
               for t in things):
            return self._listing([part for t in things for part in self._parts(t)])
        if any(t.is_flat or t.rank != things[0].rank for t in things):
            raise _Unknown
        made = behind_each_other(self.walk, things, axis)
        if made is None:
            raise _Unknown
        return made

    def _sliced(self, node: Node) -> Varying:
        one = self._varying(node.inputs[0])
        if one.is_flat or any(s != 1 for s in self._ints(node, 4) or []):
            raise _Unknown
        starts, ends = self._parts(node.inputs[1]), self._parts(node.inputs[2])
        axes = self._ints(node, 3) or list(range(len(starts)))
        if one.parts is not None and len(starts) == len(ends) == 1 and isinstance(
                starts[0], int) and isinstance(ends[0], int):
            return self._listing(one.parts[starts[0]:ends[0]])
        for axis, start, end in zip(axes, starts, ends):
            one = cut(self.walk, one, axis % one.rank, start, end)
        return one

    def _filled(self, node: Node) -> Varying:
        parts = self._parts(node.inputs[0])
        number = node.attrs.get("value")
        array = np.zeros(1, np.float32) if number is None else onnx.numpy_helper.to_array(number)
        return constant(self.walk, array, parts)

    def _reshaped(self, node: Node) -> Varying:
        walk, one = self.walk, self._varying(node.inputs[0])
        shape = self._ints(node, 1) or []
        if 0 in shape or one.is_flat:
            raise _Unknown
        if not one.axes:
            if shape.count(-1) == 1:
                shape[shape.index(-1)] = one.rows.size // one.rows.shape[0] // -int(np.prod(shape))
            return Varying(reshaped(walk, one.rows, (one.rows.shape[0], *shape)))
        if one.rank != 3 or sorted(one.axes) != [1, 2] or shape != [one.rows.shape[1], -1]:
            raise _Unknown
        return replace(one, is_flat=True)

    def _resized(self, node: Node) -> Varying:
        one = self._plain(node.inputs[0])
        scales = node.get(2)
        if len(node.inputs) != 4 or scales is not None and scales.size:
            raise _Unknown
        manner, sizes = as_resized(self.walk, node), self._parts(node.inputs[3])
        if manner is None or len(sizes) != one.rank or not one.rows.is_float:
            raise _Unknown
        return resized(self.walk, one, sizes, manner)

    def _largest(self, node: Node) -> Varying:
        one, axis = self._varying(node.inputs[0]), node.attrs.get("axis", 0)
        last = bool(node.attrs.get("select_last_index", 0))
        keepdims = node.attrs.get("keepdims", 1)
        if not one.is_flat:
            if one.axes:
                raise _Unknown
            return Varying(self.walk.node_in(
                "ArgMax", 13, [one.rows], axis=axis % one.rank + 1, keepdims=keepdims,
                select_last_index=int(last)))
        made = None if last or axis % 2 != 1 else largest_place(self.walk, one, self.every)
        if made is None:
            raise _Unknown
        return Varying(reshaped(self.walk, made, (*made.shape, 1)) if keepdims else made)


_RULES: dict[str, Callable[[_Loop, Node], Varying]] = {
    "ArgMax": _Loop._largest, "Concat": _Loop._joined, "ConstantOfShape": _Loop._filled,
    "Gather": _Loop._gathered, "Reshape": _Loop._reshaped, "Resize": _Loop._resized,
    "Shape": _Loop._shape, "Slice": _Loop._sliced, "Squeeze": _Loop._squeezed,
    "Unsqueeze": _Loop._unsqueezed}
