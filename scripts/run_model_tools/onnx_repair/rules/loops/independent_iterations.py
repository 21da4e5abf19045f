"""Loops whose iterations know nothing of each other, as one computation with the iterations along
an axis.

scikit-learn's converter writes distances to all points of a training set so: an iteration for each
point, hundreds or thousands of them.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

from run_model_tools.onnx_repair.rules.elementwise import reshaped
from run_model_tools.onnx_repair.values import Node, Thing, Value
from run_model_tools.onnx_repair.walk import Walk

ELEMENTWISE = frozenset(
    "Abs Add And Cast Ceil Div Equal Erf Exp Floor Greater GreaterOrEqual Identity Less "
    "LessOrEqual Log Max Mean Min Mul Neg Not Or Pow Reciprocal Relu Round Sigmoid Sign Sqrt Sub "
    "Sum Tanh Where Xor".split())
REDUCTIONS = frozenset(
    f"Reduce{what}"
    for what in "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split())


def at_once(walk: Walk, node: Node, body: onnx.GraphProto, state: list[Thing | None],
            items: list[Value]) -> list[Value] | None:
    """What each iteration gives, with the iterations along a new first axis; None where they depend
    on each other, or compute what is not known here.

    state: what iterations hand on.  items: what they take, one part of the first axis each.
    """
    scope: dict[str, Thing | None] = dict(node.scope)
    for tensor in body.initializer:
        scope[tensor.name] = walk.graph.initializer(tensor)
    names = [value.name for value in body.input]
    scope.update(zip(names, state))
    varying = dict(zip(names[len(state):], items))
    for proto in body.node:
        if any(name in varying for name in proto.input):
            made = _of_iterations(walk, proto, node.opset, scope, varying)
            if made is None:
                return None
            varying[proto.output[0]] = made
        elif any(a.HasField("g") for a in proto.attribute):
            return None  # It may look at what differs between iterations.
        else:
            walk.run([proto], scope, {"": node.opset})
    ends = [value.name for value in body.output]
    handed_on = ends[:len(state)]
    if any(name in varying or scope.get(name) is not before
           for name, before in zip(handed_on, state)):
        return None
    found = [varying.get(name) for name in ends[len(state):]]
    return None if None in found else found  # type: ignore[return-value]


def axes_aligned(walk: Walk, values: list[Value], varying: list[bool]) -> list[Value]:
    """Operands of an operator of single elements, of which some have the iterations along a first
    axis, with their other axes below each other."""
    rank = max(v.rank - varies for v, varies in zip(values, varying))
    return [reshaped(walk, v, (v.shape[0], *[1] * (rank + 1 - v.rank), *v.shape[1:]))
            if varies else v for v, varies in zip(values, varying)]


def _of_iterations(walk: Walk, proto: onnx.NodeProto, opset: int, scope: dict[str, Thing | None],
              varying: dict[str, Value]) -> Value | None:
    attrs = {a.name: helper.get_attribute_value(a) for a in proto.attribute}
    operands = [varying.get(name, scope.get(name)) for name in proto.input]
    if proto.domain not in ("", "ai.onnx") or len(proto.output) != 1 or not all(
            isinstance(operand, Value) for operand in operands):
        return None
    values: list[Value] = operands  # type: ignore[assignment]
    if proto.op_type in ELEMENTWISE:
        values = axes_aligned(walk, values, [name in varying for name in proto.input])
        return walk.node_in(proto.op_type, opset, list(values), **attrs)
    if proto.op_type not in REDUCTIONS or attrs.get("noop_with_empty_axes"):
        return None
    axes = attrs.get("axes")
    if len(values) > 1:
        given = values[1].array
        if given is None:
            return None
        axes = given.tolist()
    inner = range(1, values[0].rank)
    places = [a + 1 if a >= 0 else a for a in axes] if axes else list(inner)
    if not inner:
        return values[0] if proto.op_type in ("ReduceSum", "ReduceMax", "ReduceMin") else None
    return walk.node_in(proto.op_type, 18, [values[0], walk.graph.constant(
        np.array(places, np.int64))], keepdims=attrs.get("keepdims", 1))
