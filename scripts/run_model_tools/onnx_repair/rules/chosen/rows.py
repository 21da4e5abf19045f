"""Rows of which only the run time knows how many there are (x[mask], x[start:end]), up to where
that makes no difference.

They stay among all rows of their tensor, with a mask.  What works on each row for itself works on
all of them; sums leave the others out, and an assignment to the mask's places is a Where: what any
node makes of them is in following.py.  What puts them in order is in order.py, what is done at
their places in places.py, what makes more or fewer of them in lengths.py.  Anything else is
refused, in the name of the node that chose the rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import NodeRefused, Refused, data_dependent
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.loops.independent_iterations import ELEMENTWISE
from run_model_tools.onnx_repair.values import Chosen, Node, Thing, Value
from run_model_tools.onnx_repair.walk import Walk

ELEMENTWISE_OF_ROWS = ELEMENTWISE | frozenset(
    "Acos Acosh Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Celu "
    "Clip Cos Cosh Elu Gelu HardSigmoid HardSwish IsInf IsNaN LeakyRelu Mish Mod PRelu Selu "
    "Shrink Sin Sinh Softplus Softsign Swish Tan ThresholdedRelu".split())


def chosen(walk: Walk, node: Node, rows: Value, mask: Value, refused: Refused,
           first: bool = False) -> Chosen:
    """The rows at which the mask, of as many elements, holds; refused: what to say where they
    cannot be followed."""
    why = NodeRefused(walk.path, node.op, node.domain, node.opset, node.name, refused)
    return Chosen(rows, mask, why, first=first)


@rule("NonZero")
def non_zero(walk: Walk, node: Node) -> Chosen:
    """The places of a mask are chosen of all places."""
    x = node.tensor(0)
    refused = data_dependent("the shape of its result")
    if walk.is_open or not x.rank or not x.size:
        raise refused
    made = chosen(walk, node, walk.graph.constant(all_places(x.shape)),
                  cast(walk, x, TensorProto.BOOL), refused)
    made.along = 1
    return made


def all_places(shape: tuple[int, ...]) -> np.ndarray:
    return np.indices(shape).reshape(len(shape), -1).T


def between(walk: Walk, node: Node, x: Value, start: Value, end: Value,
            refused: Refused) -> Chosen:
    """x[start:end]; both may be counted from the end, and lie beyond it."""
    graph, extent = walk.graph, x.shape[0]

    def place(value: Value) -> Value:
        value = reshaped(walk, cast(walk, value, TensorProto.INT64), ())
        return graph.op("Where", graph.op("Less", value, 0), graph.op("Add", value, extent), value)

    walk.has_parts = True
    at = graph.constant(np.arange(extent))
    mask = graph.op("And", graph.op("GreaterOrEqual", at, place(start)),
                    graph.op("Less", at, place(end)))
    return chosen(walk, node, x, mask, refused, first=start.array is not None and not start.array)


def of_inputs(walk: Walk, node: Node, inputs: Sequence[Thing | None]) -> list[Thing | None]:
    """What the node makes of other inputs than its own."""
    proto = onnx.NodeProto.FromString(node.proto.SerializeToString())
    proto.input[:] = [f"i{n}" if i is not None else "" for n, i in enumerate(inputs)]
    scope: dict[str, Thing | None] = {f"i{n}": i for n, i in enumerate(inputs)}
    walk.run([proto], scope, {node.domain: node.opset})
    return [scope[name] if name else None for name in proto.output]
