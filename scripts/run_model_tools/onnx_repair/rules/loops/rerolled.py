"""What iterations of a loop that was unrolled, or branches that a model has one of for each class,
made of different parts of the same things, as one computation with the iterations along a new first
axis: bags of embeddings are hundreds of iterations, and a detector that chooses boxes class by
class has 90 branches.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

from run_model_tools.onnx_repair.rules.elementwise import reshaped
from run_model_tools.onnx_repair.rules.loops.independent_iterations import (
    ELEMENTWISE,
    REDUCTIONS,
    axes_aligned,
)
from run_model_tools.onnx_repair.values import Value
from run_model_tools.onnx_repair.walk import Walk

_FEWEST = 4


def rerolled(walk: Walk, values: list[Value]) -> Value | None:
    """The values along a new first axis; None where they are not computed alike, but for parts of
    constants."""
    if len(values) < _FEWEST:
        return None
    made = _Reroll(walk, len(values)).of(values)
    return None if made is None or made is values[0] else made


class _Reroll:
    """Of `count` iterations.  A value that is the same in all of them stays as it is."""

    def __init__(self, walk: Walk, count: int) -> None:
        self.walk = walk
        self.count = count
        self.known = walk.rerolled

    def of(self, values: list[Value]) -> Value | None:
        """The one value of all iterations, or [iterations, ...]; None where it is neither."""
        first = values[0]
        if all(value is first for value in values):
            return first
        key = tuple(value.name for value in values)
        if key not in self.known:
            self.known[key] = self._of_different(values)
        return self.known[key]

    def _of_different(self, values: list[Value]) -> Value | None:
        first = values[0]
        if any((v.shape, v.elem_type) != (first.shape, first.elem_type) for v in values):
            return None
        arrays = [value.array for value in values if value.array is not None]
        if arrays:
            if len(arrays) < len(values):
                return None
            if all(np.array_equal(array, arrays[0]) for array in arrays):
                return first
            return self.walk.graph.constant(np.stack(arrays))
        nodes = [n for v in values if (n := self.walk.graph.makers.get(v.name)) is not None]
        if len(nodes) < self.count or not all(_alike(n, nodes[0]) for n in nodes):
            return None
        node = nodes[0]
        which = {list(n.output).index(v.name) for n, v in zip(nodes, values)}
        if len(which) > 1:
            return None
        given = [[self.walk.graph.values[n.input[i]] for n in nodes]
                 for i in range(len(node.input))]
        operands = [self.of(operand) for operand in given]
        if any(operand is None for operand in operands):
            return None
        varying = [o is not g[0] for o, g in zip(operands, given)]
        if not any(varying):
            return first
        if node.op_type == "TopK" and varying == [True, False]:
            attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            attrs["axis"] = attrs.get("axis", -1) % first.rank + 1
            made = self.walk.graph.ops("TopK", operands, 2, **attrs)
            self.known.update((tuple(n.output[i] for n in nodes), made[i]) for i in range(2))
            return made[which.pop()]
        if len(node.output) > 1:
            return None
        return self._at_once(node, operands, varying, first)  # type: ignore[arg-type]

    def _at_once(self, node: onnx.NodeProto, operands: list[Value], varying: list[bool],
                 one: Value) -> Value | None:
        """What one node makes of operands of which some have the iterations along an axis."""
        graph = self.walk.graph
        attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type in ELEMENTWISE:
            return graph.op(node.op_type, *axes_aligned(self.walk, operands, varying), **attrs)
        if node.op_type in ("Reshape", "Squeeze", "Unsqueeze") and varying[0] and not any(
                varying[1:]):
            return reshaped(self.walk, operands[0], (self.count, *one.shape))
        if node.op_type in REDUCTIONS and varying == [True, False]:
            axes = operands[1].ints()
            return None if axes is None else graph.op(
                node.op_type, operands[0], np.array([a + (a >= 0) for a in axes]), **attrs)
        if node.op_type == "Gather" and varying == [False, True]:
            axis = attrs.get("axis", 0) % operands[0].rank
            made = graph.op("Gather", *operands, axis=axis)
            front = [axis, *(i for i in range(made.rank) if i != axis)]
            return made if axis == 0 else graph.op("Transpose", made, perm=front)
        if node.op_type == "Gather" and varying == [True, True] and [
                o.rank for o in operands] == [2, 2]:
            return self.walk.node_in("GatherElements", 13, list(operands), axis=1)
        if node.op_type == "Slice" and varying == [False, True, True, False, False] and [
                o.ints() for o in operands[3:]] == [[0], [1]] and operands[1].array is not None:
            # All of them have the same shape.
            at = operands[1].array.reshape(-1, 1) + np.arange(one.shape[0])
            return graph.op("Gather", operands[0], at, axis=0)
        return None


def _alike(a: onnx.NodeProto, b: onnx.NodeProto) -> bool:
    def form(node: onnx.NodeProto) -> tuple[object, ...]:
        return (node.op_type, node.domain, len(node.input), len(node.output),
                [attribute.SerializeToString() for attribute in node.attribute])

    return form(a) == form(b) and "" not in a.input and "" not in b.input
