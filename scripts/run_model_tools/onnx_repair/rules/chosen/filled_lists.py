"""Loops that go from one number to another and put some of the numbers on a list, as rows that are
chosen: what PyTorch's exporter writes for bags of embeddings with a number that does not count.

    while at < end:
        if keeps(at):
            list.append(at)
        at += 1
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from run_model_tools.onnx_repair.outputs import reads
from run_model_tools.onnx_repair.refusal import NodeRefused, data_dependent
from run_model_tools.onnx_repair.rules.chosen.rows import chosen
from run_model_tools.onnx_repair.rules.loops.independent_iterations import ELEMENTWISE
from run_model_tools.onnx_repair.values import Node, Thing, Value
from run_model_tools.onnx_repair.walk import Walk


def filled_list(walk: Walk, node: Node, body: onnx.GraphProto) -> list[Thing | None] | None:
    """The list and the number at the end; None of any other loop."""
    state = node.inputs[2:]
    if node.get(0) is not None or walk.is_open or len(state) != 2 or len(body.output) != 3:
        return None
    empty, start = state
    if not (isinstance(empty, Value) and empty.shape == (0,) and empty.array is not None
            and isinstance(start, Value) and start.elem_type == empty.elem_type
            and start.elem_type == TensorProto.INT64 and start.rank == 0):
        return None
    return _Loop(walk, node, body).result(start)


class _Loop:
    """Names are those of the body: of the list and the number as an iteration gets them, and of
    what it makes of them."""

    def __init__(self, walk: Walk, node: Node, body: onnx.GraphProto) -> None:
        self.walk, self.node, self.body = walk, node, body
        self.makers = {name: proto for proto in body.node for name in proto.output}
        self.iteration, self.condition, self.list, self.at = (value.name for value in body.input)
        self.goes, self.filled, self.after = (value.name for value in body.output)
        self.scope: dict[str, Thing | None] = dict(node.scope)
        for tensor in body.initializer:
            self.scope[tensor.name] = walk.graph.initializer(tensor)

    def result(self, start: Value) -> list[Thing | None] | None:
        goes, choice, step = (self.makers.get(name) for name in (
            self.goes, self.filled, self.after))
        if goes is None or choice is None or step is None or goes.op_type != "Less" \
                or choice.op_type != "If" or step.op_type != "Add" or goes.input[0] != self.after:
            return None
        end, keeps = self.scope.get(goes.input[1]), self._keeps(choice)
        extents = [self.scope[proto.input[0]].shape[0]  # type: ignore[union-attr]
                   for proto in self.body.node if self._looks_up(proto)]
        if not isinstance(end, Value) or end.rank or keeps is None or not extents:
            return None
        if not self._begins_as_it_goes_on(start, end):
            return None
        graph, count = self.walk.graph, min(extents)
        every = graph.constant(np.arange(count))
        self.scope[self.at] = every
        others = [proto for proto in self.body.node if proto not in (goes, choice)]
        if not self._computed(others, self.scope):
            return None
        next_one, kept = self.scope[self.after], self.scope[choice.input[0]]
        if not isinstance(next_one, Value) or next_one.ints() != list(range(1, count + 1)) \
                or not isinstance(kept, Value) or kept.shape not in ((count,), ()):
            return None
        within = graph.op("And", graph.op("GreaterOrEqual", every, start),
                          graph.op("Less", every, end))
        mask = graph.op("And", within, kept if keeps else graph.op("Not", kept))
        self.walk.has_parts = True
        return [chosen(self.walk, self.node, every, mask, data_dependent(
            "how many numbers its list has")), graph.op("Max", start, end)]

    def _keeps(self, choice: onnx.NodeProto) -> bool | None:
        """By which condition the number goes on the list; None where it does otherwise."""
        branches = {a.name: a.g for a in choice.attribute}
        ways = [self._appends(branches[name]) for name in ("then_branch", "else_branch")]
        return ways[0] if ways in ([True, False], [False, True]) else None

    def _appends(self, branch: onnx.GraphProto) -> bool | None:
        makers = {name: proto for proto in branch.node for name in proto.output}
        last = makers.get(branch.output[0].name)
        if last is None or len(branch.output) != 1:
            return None
        if last.op_type == "Identity" and last.input[0] == self.list and len(branch.node) == 1:
            return False
        if last.op_type != "Concat" or len(last.input) != 2 or last.input[0] != self.list:
            return None
        added = makers.get(last.input[1])
        is_number = (added is not None and added.op_type in ("Reshape", "Unsqueeze")
                     and added.input[0] == self.at and len(branch.node) == 2)
        return True if is_number else None

    def _looks_up(self, proto: onnx.NodeProto) -> bool:
        """Whether it takes the element of a tensor that the number says."""
        thing = self.scope.get(proto.input[0]) if proto.op_type == "Gather" else None
        return isinstance(thing, Value) and thing.rank == 1 and proto.input[1] == self.at

    def _begins_as_it_goes_on(self, start: Value, end: Value) -> bool:
        graph, condition = self.walk.graph, self.node.get(1)
        if condition is None:
            return False
        if condition.array is not None:
            return start.array is not None and end.array is not None and bool(
                condition.array) == bool(start.array < end.array)
        maker = graph.makers.get(condition.name)
        return maker is not None and maker.op_type == "Less" and [
            graph.values[name] for name in maker.input] == [start, end]

    def _computed(self, nodes: list[onnx.NodeProto], scope: dict[str, Thing | None]) -> bool:
        """Whether the nodes compute single numbers for each iteration, and then do for all."""
        for proto in nodes:
            if reads(proto) & {self.iteration, self.condition, self.list}:
                return False
            if proto.op_type == "If":
                if not self._either(proto, scope):
                    return False
                continue
            if proto.op_type not in ELEMENTWISE | {"CastLike", "Constant"} \
                    and not self._looks_up(proto) or proto.domain not in ("", "ai.onnx"):
                return False
            try:
                self.walk.run([proto], scope, {"": self.node.opset})
            except NodeRefused:
                return False
            made = scope[proto.output[0]]
            if not isinstance(made, Value) or made.rank > 1:
                return False
        return True

    def _either(self, proto: onnx.NodeProto, scope: dict[str, Thing | None]) -> bool:
        branches = {a.name: helper.get_attribute_value(a) for a in proto.attribute}
        made = []
        for name in ("then_branch", "else_branch"):
            inner = dict(scope)
            for tensor in branches[name].initializer:
                inner[tensor.name] = self.walk.graph.initializer(tensor)
            if not self._computed(list(branches[name].node), inner):
                return False
            made.append(inner.get(branches[name].output[0].name))
        condition = scope[proto.input[0]]
        if len(proto.output) != 1 or not all(isinstance(v, Value) for v in (condition, *made)):
            return False
        scope[proto.output[0]] = self.walk.graph.op("Where", condition, *made)  # type: ignore[arg-type]
        return True
