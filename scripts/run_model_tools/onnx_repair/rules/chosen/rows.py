"""Rows of which only the run time knows how many there are (x[mask], x[start:end]), up to where
that makes no difference.

They stay among all rows of their tensor, with a mask.  What works on each row for itself works on
all of them; sums leave the others out, and an assignment to the mask's places is a Where.  What
puts them in order is in order.py, what is done at their places in places.py, what makes more or
fewer of them in lengths.py.  Anything else is refused, in the name of the node that chose the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import NodeRefused, Refused, data_dependent, not_constant
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.chosen.masks import (
    MOVES,
    count_of,
    filled_rows,
    is_same,
    mask_of_parts,
)
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.loops.independent_iterations import ELEMENTWISE
from run_model_tools.onnx_repair.rules.shapes import concatenated, expanded
from run_model_tools.onnx_repair.values import Chosen, Node, Thing, Value
from run_model_tools.onnx_repair.walk import Walk

ELEMENTWISE_OF_ROWS = ELEMENTWISE | frozenset(
    "Acos Acosh Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Celu "
    "Clip Cos Cosh Elu Gelu HardSigmoid HardSwish IsInf IsNaN LeakyRelu Mish Mod PRelu Selu "
    "Shrink Sin Sinh Softplus Softsign Swish Tan ThresholdedRelu".split())
_OF_SAMPLES = ("AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "GlobalAveragePool",
               "GlobalMaxPool", "MaxPool")
"""Operators that keep samples apart, which lie along the first axis."""
_TAKE_PLACES = ("Gather", "GatherElements", "GatherND", "RoiAlign", "ScatterElements")
_KEEP_PLACES = ("Expand", "Gather", "GatherND", "Identity", "NonMaxSuppression", "Reshape",
                "ScatterElements", "Shape", "Size", "Slice", "Split", "Squeeze", "Transpose",
                "Unsqueeze")
"""Operators that take places as they are counted in all rows; others see them as the model does."""


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
    made = chosen(walk, node, walk.graph.constant(_places(x.shape)),
                  cast(walk, x, TensorProto.BOOL), refused)
    made.along = 1
    return made


def _places(shape: tuple[int, ...]) -> np.ndarray:
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


def repeated(walk: Walk, node: Node) -> Chosen | None:
    """An Expand to as many rows as a mask has places; None of any other."""
    from run_model_tools.onnx_repair.rules.chosen.axes import for_each
    from run_model_tools.onnx_repair.rules.chosen.places import dealt

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


def of_chosen(walk: Walk, node: Node) -> list[Thing | None]:
    """What a node makes of chosen rows among its inputs."""
    given = [i for i in node.inputs if isinstance(i, Chosen)]
    try:
        return _followed(walk, node, given)
    except (Refused, NodeRefused):
        raise given[0].why from None


def _followed(walk: Walk, node: Node, given: list[Chosen]) -> list[Thing | None]:
    from run_model_tools.onnx_repair.rules.chosen.along import along_rows
    from run_model_tools.onnx_repair.rules.chosen.axes import (
        keeps_places,
        of_other_axes,
        resized,
    )
    from run_model_tools.onnx_repair.rules.chosen.counts import shape_of_rows
    from run_model_tools.onnx_repair.rules.chosen.order import largest
    from run_model_tools.onnx_repair.rules.chosen.places import assigned, counted, known_beside

    op = node.op if not node.domain else f"{node.domain}.{node.op}"
    node.inputs = known_beside(walk, node, op)
    given = [i for i in node.inputs if isinstance(i, Chosen)]
    if op == "ScatterND" and (own := assigned(walk, node)) is not None:
        return [own]
    if any(i.of and (op not in _KEEP_PLACES or i.column is not None and op in (
            "Split", "Unsqueeze")) for i in given) and not keeps_places(node, op, given):
        node.inputs = [counted(walk, i) if isinstance(i, Chosen) else i for i in node.inputs]
        given = [i for i in node.inputs if isinstance(i, Chosen)]
    one = given[0]
    if op == "ScatterElements":
        node.attrs["axis"] = node.attrs.get("axis", 0) % (one.lead + one.rows.rank)
    alone = node.inputs[0] is one and len(given) == 1
    if not any(i.cut for i in given) and (along := along_rows(walk, node, op, given)) is not None:
        return [along]
    if op == "Resize" and alone and not one.cut:
        return [resized(walk, node, one)]
    if any(i.axis for i in given) or not any(i.cut for i in given) and _moves_rows(
            walk, node, op, one):
        if op == "Shape" and not one.cut:
            return [_shape(walk, node, one)]
        return of_other_axes(walk, node, op, given)
    if op == "ScatterND":
        return [_assigned(walk, node)]
    if alone and op == "TopK" and not node.attrs.get("axis", -1) % one.rows.rank and not one.cut:
        return list(largest(walk, node, one))
    for made in _rows_together(walk, node, op, one, alone):
        if made is not None:
            return [made]
    if alone and op in ("Flatten", "Reshape"):
        return [_reshaped(walk, node, one)]
    if alone and op == "Expand" and not one.cut and (
            known := shape_of_rows(walk, node.tensor(1))) is not None:
        if one.rows.rank != len(known[1]) + 1 or not is_same(walk, one, known[0]):
            raise one.why
        rest = np.broadcast_shapes(one.rows.shape[1:], tuple(known[1]))
        return [one.but(rows=expanded(walk, one.rows, (one.rows.shape[0], *rest)))]
    if alone and op in ("Slice", "Expand") and _takes_first(node):
        return [one.but(cut=True, first=one.first and op == "Slice")]
    if any(i.cut for i in given):
        raise one.why
    if alone and op == "Shape":
        return [_shape(walk, node, one)]
    if alone and op == "Size" and one.rows.rank == 1:
        count = walk.graph.op("Identity", count_of(walk, one))
        count.extents_of = one
        return [count]
    if op in ("Gather", "GatherND") and node.inputs[-1] is one:
        return [_gathered(walk, node, counted(walk, one))]
    if any(not is_same(walk, one, other) for other in given[1:]) or not _by_rows(node, op, one):
        raise one.why
    return _of_all(walk, node, given)


def _moves_rows(walk: Walk, node: Node, op: str, one: Chosen) -> bool:
    """Whether it puts another axis before that of the rows."""
    from run_model_tools.onnx_repair.rules.chosen.counts import shape_around_rows

    if op in ELEMENTWISE_OF_ROWS:
        return any(isinstance(i, Value) and i.rank > one.rows.rank for i in node.inputs)
    if node.inputs[0] is not one:
        return False
    if op in ("Expand", "Reshape") and isinstance(node.inputs[1], Value):
        shape = node.inputs[1]
        found = shape_around_rows(walk, shape)
        return found is not None and found[1] > 0 or op == "Reshape" and (
            shape.ints() or [0])[0] == 1
    return op == "Unsqueeze" and in_front_of_rows(node, one) > 0 or op == "Transpose" and (
        node.attrs.get("perm", [1])[0] != 0)


def in_front_of_rows(node: Node, one: Chosen) -> int:
    """How many axes of one element a Squeeze or Unsqueeze takes from before the rows or puts there,
    if it does nothing else; else 0."""
    axes = node.axes() or []
    rank = one.lead + one.rows.rank + len(axes) * (node.op == "Unsqueeze")
    ahead = sorted(axis % rank for axis in axes) == [*range(len(axes))] and not one.along
    return len(axes) if ahead and (node.op == "Unsqueeze" or len(axes) <= one.lead) else 0


def _shape(walk: Walk, node: Node, one: Chosen) -> Value:
    ahead = [1] * one.lead + list(one.rows.shape[1:one.along + 1])
    parts = [walk.graph.constant(ahead, np.int64), reshaped(walk, count_of(walk, one), (1,)),
             walk.graph.constant(one.rows.shape[one.along + 1:], np.int64)]
    extents = concatenated(walk, parts, 0)
    extents.extents_of = one
    walk.counts[extents.name] = one.why
    start, end = node.attrs.get("start", 0), node.attrs.get("end", extents.size)
    if (start, end) != (0, extents.size):
        return walk.graph.op("Slice", extents, np.array([start]), np.array([end]))
    return extents


def _rows_together(walk: Walk, node: Node, op: str, one: Chosen,
              alone: bool) -> Iterator[Thing | None]:
    """What places.py, lengths.py and among.py make of a node, if anything."""
    from run_model_tools.onnx_repair.rules.chosen import among, lengths, places

    last = node.inputs[-1]
    if op == "NonZero" and not one.cut:
        yield places.holding(walk, one)
    if op in ("Gather", "GatherND") and isinstance(last, Chosen):
        yield places.taken(walk, node, last)
    if alone and op in ("Gather", "Slice"):
        yield places.columns(walk, node, one)
    if alone and not one.cut:
        for rule_of_rows in (*lengths.OPERATORS.get(op, ()), *among.OPERATORS.get(op, ())):
            yield rule_of_rows(walk, node, one)
    if op == "Concat":
        yield among.together(walk, node)
        yield lengths.behind_each_other(walk, node)
    if op == "ScatterElements" and not node.attrs.get("axis", 0):
        yield places.assigned(walk, node) or among.written(walk, node)


def _by_rows(node: Node, op: str, one: Chosen) -> bool:
    """Whether what it makes of a row depends on no other."""
    rank = max(i.rows.rank for i in node.inputs if isinstance(i, Chosen))
    others = [i for i in node.inputs if isinstance(i, Value)]
    alike = all(i.rows.rank == rank for i in node.inputs if isinstance(i, Chosen)) and all(
        other.rank < rank or other.rank == rank and other.shape[0] == 1 for other in others)
    if op in ELEMENTWISE_OF_ROWS:
        return alike and node.opset >= 7
    if op == "RoiAlign":
        return all(isinstance(i, Chosen) for i in node.inputs[1:])
    if op == "GatherND":
        return node.attrs.get("batch_dims", 0) > 0 and len(node.inputs) == 2 and not others
    if op in ("GatherElements", "ScatterElements"):
        return node.attrs.get("axis", 0) % rank > 0 and alike and not others
    if node.inputs[0] is not one:
        return False
    if op == "MatMul":
        return rank > 1 and len(others) == 1 and others[0].rank == 2
    if op == "Gemm":
        bias = node.get(2) if len(node.inputs) > 2 else None
        return len(others) == len(node.inputs) - 1 and not node.attrs.get("transA", 0) and (
            bias is None or bias.rank < 2 or bias.shape[0] == 1)
    if op in ("Hardmax", "LayerNormalization", "LogSoftmax", "LpNormalization", "Softmax"):
        return node.attrs.get("axis", -1 if node.opset >= 13 else 1) % rank > 0
    if op in ("ArgMax", "ArgMin"):
        return node.attrs.get("axis", 0) % rank > 0
    if op in ("Squeeze", "Unsqueeze"):
        axes = node.axes() or [0]
        return all(axis % (rank + len(axes) * (op == "Unsqueeze")) > 0 for axis in axes)
    if op == "Concat":
        return node.attrs["axis"] % rank > 0 and alike and not others
    if not all(i is None or i is one or isinstance(i, Value) and i.is_constant
               for i in node.inputs):
        return False
    if op in _OF_SAMPLES:
        return rank > 2 - (op == "BatchNormalization")
    if op in ("Gather", "Split"):
        return node.attrs.get("axis", 0) % rank > 0
    if op in ("OneHot", "TopK"):
        return node.attrs.get("axis", -1) % (rank + (op == "OneHot")) > 0
    if op == "CumSum":
        return (node.ints(1, "the axis") or [0])[0] % rank > 0
    if op == "Tile":
        return node.opset >= 6 and (node.ints(1, "the repeats") or [0])[0] == 1
    if op == "Transpose":
        return node.attrs.get("perm", [rank - 1])[0] == 0
    if op == "Pad":
        pads = node.ints(1, "the pads") if node.opset >= 11 and len(node.inputs) < 4 else None
        return pads is not None and not pads[0] and not pads[rank]
    if op == "Slice":
        along = node.ints(3, "the axes") if node.opset >= 10 and len(node.inputs) > 3 else None
        return along is not None and 0 not in {axis % rank for axis in along}
    return op.startswith("Reduce")  # Along other axes than the rows'.


def _of_all(walk: Walk, node: Node, given: list[Chosen]) -> list[Thing | None]:
    """The node, of all rows, and of its results those that are chosen."""
    one = given[0]
    inputs: list[Thing | None] = [i.rows if isinstance(i, Chosen) else i for i in node.inputs]
    if node.op in _TAKE_PLACES:  # Nobody knows what the others are.
        inputs[1:] = [filled_rows(walk, i, 0) if isinstance(i, Chosen) else i
                      for i in node.inputs[1:]]
    divisor = node.inputs[1] if node.op in ("Div", "Mod") else None
    if isinstance(divisor, Chosen) and not divisor.rows.is_float:
        inputs[1] = filled_rows(walk, divisor, 1)  # A division by 0 ends the program.
    results = of_inputs(walk, node, inputs)
    if not all(result is None or isinstance(result, Value) and result.rank
               and result.shape[0] == one.rows.shape[0] for result in results):
        raise one.why
    return [one.but(rows=result, column=one.column if result.rank > 1 else None)
            if isinstance(result, Value) else None for result in results]


def of_inputs(walk: Walk, node: Node, inputs: Sequence[Thing | None]) -> list[Thing | None]:
    """What the node makes of other inputs than its own."""
    proto = onnx.NodeProto.FromString(node.proto.SerializeToString())
    proto.input[:] = [f"i{n}" if i is not None else "" for n, i in enumerate(inputs)]
    scope: dict[str, Thing | None] = {f"i{n}": i for n, i in enumerate(inputs)}
    walk.run([proto], scope, {node.domain: node.opset})
    return [scope[name] if name else None for name in proto.output]


def _gathered(walk: Walk, node: Node, places: Chosen) -> Chosen:
    """Of a tensor's rows those at chosen places, which may be chosen of the places of all."""
    from run_model_tools.onnx_repair.rules.chosen.axes import as_rows

    x = node.get(0)
    axis = node.attrs.get("axis", 0) % x.rank if x is not None and node.op == "Gather" else 0
    if x is None or node.attrs.get("batch_dims", 0) or axis and places.rows.rank != 1:
        raise places.why
    if axis:
        found = walk.node_in("Gather", 13, [x, filled_rows(walk, places, 0)], axis=axis)
        return as_rows(walk, places, found, axis)
    deep = places.rows.shape[-1] if node.op == "GatherND" else 1
    every = places.rows.array
    if every is not None and deep <= x.rank and np.array_equal(
            every.reshape(-1, deep), _places(x.shape[:deep])):
        return places.but(rows=reshaped(walk, x, (len(every), *x.shape[deep:])))
    node.inputs[-1] = places
    made = _of_all(walk, node, [places])[0]
    assert isinstance(made, Chosen)
    return made


def _assigned(walk: Walk, node: Node) -> Value:
    """A ScatterND to the places of a mask, of as many updates: the model fails with another number.
    """
    from run_model_tools.onnx_repair.rules.chosen.among import written
    from run_model_tools.onnx_repair.rules.chosen.places import dealt

    graph = walk.graph
    x, places, updates = node.inputs
    if not isinstance(places, Chosen):
        raise next(i.why for i in node.inputs if isinstance(i, Chosen))
    deep = places.rows.shape[-1]
    if not isinstance(x, Value) or not isinstance(updates, Chosen) or places.cut \
            or node.attrs.get("reduction", "none") != "none" or deep > x.rank \
            or places.rows.array is None or not np.array_equal(
                places.rows.array, _places(x.shape[:deep])):
        return written(walk, node)
    rows = updates.rows
    if not is_same(walk, places, updates):
        if not updates.first or rows.shape[1:] != x.shape[deep:]:
            raise places.why
        rows = dealt(walk, places, rows, exactly=False)
    if rows.size != x.size or rows.elem_type != x.elem_type:
        raise places.why
    mask = reshaped(walk, places.mask, (*x.shape[:deep], *[1] * (x.rank - deep)))
    return graph.op("Where", mask, reshaped(walk, rows, x.shape), x)


def _reshaped(walk: Walk, node: Node, one: Chosen) -> Chosen | Value:
    """Each row in another shape, or its elements as rows, or as many rows as a shape needs."""
    from run_model_tools.onnx_repair.rules.chosen.counts import shape_of_rows
    from run_model_tools.onnx_repair.rules.chosen.places import as_many, counted, equal_parts

    if one.column is not None and one.rows.shape[1:] != (1,):
        one = counted(walk, one)
    one = one.but(column=None)
    count = one.rows.shape[0]
    each = one.rows.size // count
    if node.op == "Flatten":
        axis = node.attrs.get("axis", 1) % (one.rows.rank + 1)
        if not axis:
            raise one.why
        return _in_parts(walk, one, [int(np.prod(one.rows.shape[axis:]))])
    if (known := shape_of_rows(walk, node.tensor(1))) is not None:
        if not is_same(walk, one, known[0]):
            raise one.why
        rest = known[1]
        rest = [extent if extent >= 0 else each // -int(np.prod(rest)) for extent in rest]
        return one.but(rows=reshaped(walk, one.rows, (count, *rest)))
    first, *rest = node.ints(1, "the shape") or [0]
    if rest and first == 0 and rest.count(-1) == 1:
        rest = [extent if extent >= 0 else each // -int(np.prod(rest)) for extent in rest]
    parts = int(np.prod(rest))
    if first > 0 and min(rest, default=1) > 0 and not one.cut and first * parts % each == 0:
        return reshaped(walk, as_many(walk, one, first * parts // each), (first, *rest))
    if first > 1 and rest[:1] == [-1] and parts == -each and not one.cut:
        return equal_parts(walk, one, first, rest[1:])
    if first > 0 or rest and min(rest) <= 0 or each % parts or first == 0 and each != parts:
        raise one.why
    return _in_parts(walk, one, rest)


def _in_parts(walk: Walk, one: Chosen, rest: list[int]) -> Chosen:
    """Each row as one row, or several behind each other, of these extents."""
    count = one.rows.shape[0]
    times = one.rows.size // count // int(np.prod(rest))
    rows = reshaped(walk, one.rows, (count * times, *rest))
    if times == 1:
        return one.but(rows=rows)
    return one.but(rows=rows, mask=mask_of_parts(walk, one, times))


def _takes_first(node: Node) -> bool:
    """Whether it takes as many rows as something says, which may be all, or not: what is assigned
    to the places of a mask has to be as many as these."""
    if node.op == "Expand":
        return node.tensor(1).array is None and node.tensor(1).extents_of is None
    start, end, axes, steps = (node.get(index) for index in range(1, 5))
    return node.opset >= 10 and end is not None and end.array is None and all(
        value is None or value.ints() == wanted
        for value, wanted in ((start, [0]), (axes, [0]), (steps, [1])))
