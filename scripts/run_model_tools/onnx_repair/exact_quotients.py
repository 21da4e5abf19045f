"""Quotients of which the next whole number is asked: cells of grids, digits, remainders.

TVM and our kernels multiply by the reciprocal of a divisor that is a number, which is within a
rounding of the quotient: 47 times 1/47 lies below 1, and the whole number below that is 0.  Where
it shows, the divisor gets an axis: it is a tensor then, by which both divide.
"""

from __future__ import annotations

import math

import numpy as np
from onnx import NodeProto, TensorProto

from run_model_tools.onnx_repair.graph import Graph

_STEPS = {"Ceil", "Equal", "Floor", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Mod",
          "Round", "Sign"}
"""Operators with other results a rounding away."""
_PASSING = {"Abs", "Add", "Clip", "Concat", "Div", "Expand", "Flatten", "Gather", "Identity", "Max",
            "Min", "Mul", "Neg", "Pad", "Relu", "Reshape", "Slice", "Split", "Squeeze", "Sub",
            "Tile", "Transpose", "Unsqueeze", "Where"}
"""Operators whose results are as near to a step as what they are given."""
_FRACTIONS = {TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE}


def keep_quotients(graph: Graph, is_open: bool = False) -> None:
    """Gives divisors an axis where a rounding of the quotient would show.

    is_open: the divisors may be others at other sizes, and are no powers of two there.
    """
    readers: dict[str, list[NodeProto]] = {}
    for node in graph.nodes:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    shows: dict[str, bool] = {}
    for node in reversed(graph.nodes):
        later = [_is_step(reader, graph) or reader.op_type in _PASSING and any(
            shows[name] for name in reader.output)
            for name in node.output for reader in readers.get(name, ())]
        shows.update(dict.fromkeys(node.output, any(later)))
        if node.op_type != "Div" or node.domain or not any(later):
            continue
        dividend, divisor = (graph.values[name] for name in node.input)
        if divisor.array is None or divisor.array.size != 1 or not dividend.rank or (
                divisor.elem_type not in _FRACTIONS):
            continue
        number = float(divisor.array.item())
        if is_open or number and abs(math.frexp(number)[0]) != 0.5:
            node.input[1] = graph.constant(np.asarray(divisor.array).reshape(1)).name


def _is_step(node: NodeProto, graph: Graph) -> bool:
    return node.op_type in _STEPS or node.op_type == "Cast" and (
        graph.values[node.output[0]].elem_type not in _FRACTIONS)
