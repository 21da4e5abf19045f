"""Inverses of triangular matrices, and where a network computes one row by row: the delta rule of
linear attention is exported so, with a dozen operators for each of 64 rows."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from run_model_tools.onnx_repair import onnxruntime_process
from run_model_tools.onnx_repair.graph import OPSET, tensor_of
from run_model_tools.onnx_repair.values import Value
from run_model_tools.onnx_repair.walk import Walk

_FEWEST_ROWS = 8
_POLYNOMIAL = frozenset((
    "Add", "Concat", "Expand", "Gather", "GatherElements", "GatherND", "Identity", "MatMul", "Mul",
    "Neg", "ReduceSum", "Reshape", "ScatterElements", "ScatterND", "Slice", "Split", "Squeeze",
    "Sub", "Tile", "Transpose", "Unsqueeze"))
"""Operators that move, add and multiply.  What is made of a tensor by these alone is polynomials of
its numbers, and two polynomials that agree at a point drawn at random are the same."""


def inverse_of_unit_lower(walk: Walk, below: Value) -> Value:
    """Of the unit matrix with these numbers below its diagonal: that of blocks, each time twice as
    large, which is as exact as one row after the other."""
    graph, size = walk.graph, below.shape[-1]
    made = graph.constant(np.eye(size), below.dtype)
    at, block = np.arange(size), 1
    while block < size:
        rows, columns = at[:, None] // block, at // block
        between = graph.constant((rows % 2 == 1) & (columns == rows - 1))
        part = graph.op("Where", between, below, graph.like(0, below))
        made = graph.op("Sub", made, part if block == 1 else graph.op(
            "MatMul", made, graph.op("MatMul", part, made)))
        block *= 2
    return made


def with_another_row(walk: Walk, x: Value, places: Value, made: Value) -> Value:
    """`made` is x with other numbers at constant `places` along the axis of rows, as a scatter has
    them.  After the last of all rows but the first it is (I - x)^-1 - I, where row i was x's plus
    what that makes of the rows before it, and is computed at once then."""
    row = _row(places, made)
    if walk.is_open or row is None or made.elem_type != TensorProto.FLOAT:
        return made
    walk.rows_replaced[made.name] = x, row
    rows = made.shape[-2]
    if row != rows - 1 or made.shape[-1] != rows or rows < _FEWEST_ROWS:
        return made
    first = made
    for expected in range(rows - 1, 0, -1):
        first, row = walk.rows_replaced.get(first.name, (first, 0))
        if row != expected:
            return made
    if not _is_strictly_lower(walk, first) or not _inverts(walk, first, made):
        return made
    graph = walk.graph
    return graph.op("Sub", inverse_of_unit_lower(walk, graph.op("Neg", first)),
                    graph.constant(np.eye(rows), made.dtype))


def _row(places: Value, made: Value) -> int | None:
    """The only row that a scatter reaches; its places are those along the axis of rows."""
    if made.rank < 2 or places.array is None or not places.size:
        return None
    rows = np.unique(places.array)
    return int(rows[0]) if len(rows) == 1 else None


def _is_strictly_lower(walk: Walk, x: Value) -> bool:
    """Whether all is 0 on the diagonal and above it, by constants that say so."""
    upper = ~np.tri(x.shape[-2], x.shape[-1], -1, dtype=np.bool_)

    def is_zero_there(value: Value) -> bool:
        if value.array is not None:
            return not np.broadcast_to(value.array, x.shape)[..., upper].any()
        maker = walk.graph.makers.get(value.name)
        if maker is None or value.shape[-2:] != x.shape[-2:]:
            return False
        inputs = [walk.graph.values[name] for name in maker.input]
        if maker.op_type in ("Identity", "Neg"):
            return is_zero_there(inputs[0])
        if maker.op_type == "Mul":
            return any(map(is_zero_there, inputs))
        if maker.op_type != "Where" or inputs[0].array is None:
            return False
        taken = np.broadcast_to(inputs[0].array, x.shape)[..., upper]
        return bool((not taken.any() or is_zero_there(inputs[1]))
                    and (taken.all() or is_zero_there(inputs[2])))

    return is_zero_there(x)


def _inverts(walk: Walk, first: Value, made: Value) -> bool:
    part = _part(walk, first, made)
    if part is None:
        return False
    rows = first.shape[-1]
    random = np.random.default_rng(rows)
    given = np.tril(random.uniform(-1, 1, first.shape) / np.sqrt(rows), -1).astype(np.float32)
    try:
        (found,) = onnxruntime_process.run(part.SerializeToString(), {first.name: given})
    except onnxruntime_process.OnnxRuntimeFailed:
        return False
    unit = np.eye(rows)
    wanted = np.linalg.inv(unit - given.astype(np.float64)) - unit
    return bool((np.abs(found - wanted) <= 1e-4 * np.abs(wanted).max()).all())


def _part(walk: Walk, first: Value, made: Value) -> onnx.ModelProto | None:
    """What makes one value of another one; None where more than that goes into it, or it is more
    than polynomials."""
    graph = walk.graph
    nodes: dict[str, onnx.NodeProto] = {}
    constants: dict[str, Value] = {}
    open_ = [made.name]
    while open_:
        name = open_.pop()
        maker = graph.makers.get(name)
        if name in ("", first.name) or name in constants or name in nodes:
            continue
        if graph.values[name].is_constant:
            constants[name] = graph.values[name]
        elif maker is None or maker.op_type not in _POLYNOMIAL:
            return None
        else:
            nodes.update(dict.fromkeys(maker.output, maker))
            open_ += maker.input
    used = {id(node) for node in nodes.values()}
    return helper.make_model(helper.make_graph(
        [node for node in graph.nodes if id(node) in used], "part",
        [onnx.ValueInfoProto(name=first.name, type=first.type_proto())],
        [onnx.ValueInfoProto(name=made.name, type=made.type_proto())],
        [tensor_of(value) for value in constants.values()]),
        opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
