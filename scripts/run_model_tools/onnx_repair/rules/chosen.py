"""Rows of which only the run time knows how many there are (x[mask], x[start:end]), up to where
that makes no difference.

They stay among all rows of their tensor, with a mask.  What works on each row for itself works on
all of them; sums leave the others out, and an assignment to the mask's places is a Where.  Anything
else is refused, in the name of the node that chose the rows.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from run_model_tools.onnx_repair.refusal import NodeRefused, Refused, data_dependent, not_constant
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.independent_turns import ELEMENTWISE
from run_model_tools.onnx_repair.rules.reductions import reduce
from run_model_tools.onnx_repair.rules.shapes import concatenated, expanded
from run_model_tools.onnx_repair.values import Chosen, Node, Thing, Value
from run_model_tools.onnx_repair.walk import Walk

_ELEMENTWISE = ELEMENTWISE | frozenset(
    "BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Clip Cos Elu Gelu HardSigmoid HardSwish "
    "IsInf IsNaN LeakyRelu Mish Mod PRelu Selu Sin Softplus Softsign Tan ThresholdedRelu".split())
_MOVES = ("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze")
"""Operators that leave the elements of a mask in their order."""
_DEEPEST = 30
"""Operators by which two masks may be computed alike."""


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
    made.turned = True
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
    x, shape = node.tensor(0), node.tensor(1)
    makers = walk.graph.makers
    ahead, rest = shape, walk.graph.constant(np.zeros(0, np.int64))
    made = makers.get(shape.name)
    if made is not None and made.op_type == "Concat" and len(made.input) == 2:
        ahead, rest = (walk.graph.values[name] for name in made.input)
    for wanted in ("ReduceSum", "Cast"):
        while (made := makers.get(ahead.name)) is not None and made.op_type != wanted:
            if made.op_type not in _MOVES:
                return None
            ahead = walk.graph.values[made.input[0]]
        if made is None or wanted == "ReduceSum" and ahead.size != 1:
            return None
        ahead = walk.graph.values[made.input[0]]
    extents = rest.ints()
    if ahead.elem_type != TensorProto.BOOL or extents is None or walk.is_open or x.rank > len(
            extents) + 1 or x.rank == len(extents) + 1 and x.shape[0] != 1:
        return None
    rows = expanded(walk, x, (ahead.size, *np.broadcast_shapes(
        x.shape[max(x.rank - len(extents), 0):], tuple(extents))))
    return chosen(walk, node, rows, ahead, not_constant("the shape", shape.name))


def of_chosen(walk: Walk, node: Node) -> list[Thing | None]:
    """What a node makes of chosen rows among its inputs."""
    given = [i for i in node.inputs if isinstance(i, Chosen)]
    try:
        return _followed(walk, node, given)
    except (Refused, NodeRefused):
        raise given[0].why from None


def _followed(walk: Walk, node: Node, given: list[Chosen]) -> list[Thing | None]:
    one = given[0]
    op = node.op if not node.domain else f"{node.domain}.{node.op}"
    alone = node.inputs[0] is one and len(given) == 1
    if any(i.turned for i in given):
        if op == "Transpose" and node.attrs.get("perm") in (None, [1, 0]):
            return [one.but(turned=False)]
        raise one.why
    if op == "ScatterND":
        return [_assigned(walk, node)]
    if alone and op == "Reshape":
        return [_reshaped(walk, node, one)]
    if alone and op in ("Slice", "Expand") and _takes_first(node):
        return [one.but(cut=True, first=one.first and op == "Slice")]
    if any(i.cut for i in given):
        raise one.why
    if alone and op == "Shape" and not node.attrs.get("start", 0) and "end" not in node.attrs:
        extents = concatenated(walk, [reshaped(walk, _count(walk, one), (1,)), walk.graph.constant(
            one.rows.shape[1:], np.int64)], 0)
        extents.extents_of = one
        walk.counts[extents.name] = one.why
        return [extents]
    if alone and op == "Size" and one.rows.rank == 1:
        return [_count(walk, one)]
    if alone and op == "Expand":
        other = node.tensor(1).extents_of
        if other is None or one.rows.shape != other.rows.shape or not _is_same(walk, one, other):
            raise one.why
        return [one]
    if alone and op.startswith("Reduce") and 0 in _axes(node, one):
        return [_reduced(walk, node, one)]
    if op in ("Gather", "GatherND") and node.inputs[-1] is one:
        return [_gathered(walk, node, one)]
    if any(not _is_same(walk, one, other) for other in given[1:]) or not _by_rows(node, op, one):
        raise one.why
    return _of_all(walk, node, given)


def _by_rows(node: Node, op: str, one: Chosen) -> bool:
    """Whether what it makes of a row depends on no other."""
    rank = max(i.rows.rank for i in node.inputs if isinstance(i, Chosen))
    others = [i for i in node.inputs if isinstance(i, Value)]
    alike = all(i.rows.rank == rank for i in node.inputs if isinstance(i, Chosen)) and all(
        other.rank < rank or other.rank == rank and other.shape[0] == 1 for other in others)
    if op in _ELEMENTWISE:
        return alike and node.opset >= 7
    if node.inputs[0] is not one:
        return False
    if op == "MatMul":
        return rank > 1 and len(others) == 1 and others[0].rank == 2
    if op == "Gemm":
        bias = node.get(2) if len(node.inputs) > 2 else None
        return len(others) == len(node.inputs) - 1 and not node.attrs.get("transA", 0) and (
            bias is None or bias.rank < 2 or bias.shape[0] == 1)
    if op in ("LayerNormalization", "Softmax", "LogSoftmax"):
        axis = node.attrs.get("axis", -1)
        return node.opset >= 13 and axis % rank > 0
    if op in ("Squeeze", "Unsqueeze") and node.opset >= 13:
        axes = node.ints(1, "the axes") or [0]
        return all(axis % (rank + len(axes) * (op == "Unsqueeze")) > 0 for axis in axes)
    return op.startswith("Reduce")  # Along other axes than the rows'.


def _of_all(walk: Walk, node: Node, given: list[Chosen]) -> list[Thing | None]:
    """The node, of all rows, and of its results those that are chosen."""
    one = given[0]
    inputs: list[Thing | None] = [i.rows if isinstance(i, Chosen) else i for i in node.inputs]
    divisor = node.inputs[1] if node.op in ("Div", "Mod") else None
    if isinstance(divisor, Chosen) and not divisor.rows.is_float:
        inputs[1] = _filled(walk, divisor, 1)  # A division by 0 ends the program.
    proto = onnx.NodeProto.FromString(node.proto.SerializeToString())
    proto.input[:] = [f"i{n}" if i is not None else "" for n, i in enumerate(inputs)]
    scope: dict[str, Thing | None] = {f"i{n}": i for n, i in enumerate(inputs)}
    walk.run([proto], scope, {node.domain: node.opset})
    results = [scope[name] if name else None for name in proto.output]
    if not all(result is None or isinstance(result, Value) and result.rank
               and result.shape[0] == one.rows.shape[0] for result in results):
        raise one.why
    return [None if result is None else one.but(rows=result) for result in results]


def _gathered(walk: Walk, node: Node, places: Chosen) -> Chosen:
    """Of a tensor's rows those at chosen places, which may be chosen of the places of all."""
    x = node.get(0)
    if x is None or node.attrs.get("axis", 0) or node.attrs.get("batch_dims", 0):
        raise places.why
    deep = places.rows.shape[-1] if node.op == "GatherND" else 1
    every = places.rows.array
    if every is not None and deep <= x.rank and np.array_equal(
            every.reshape(-1, deep), _places(x.shape[:deep])):
        return places.but(rows=reshaped(walk, x, (len(every), *x.shape[deep:])))
    # Nobody knows what the other places are.
    made = _of_all(walk, node, [places.but(rows=_filled(walk, places, 0))])[0]
    assert isinstance(made, Chosen)
    return made


def _assigned(walk: Walk, node: Node) -> Value:
    """A ScatterND to the places of a mask, of as many updates: the model fails with another number.
    """
    graph = walk.graph
    x, places, updates = node.inputs
    if not isinstance(places, Chosen):
        raise next(i.why for i in node.inputs if isinstance(i, Chosen))
    deep = places.rows.shape[-1]
    if not isinstance(x, Value) or not isinstance(updates, Chosen) or places.cut \
            or node.attrs.get("reduction", "none") != "none" or deep > x.rank \
            or places.rows.array is None or not np.array_equal(
                places.rows.array, _places(x.shape[:deep])):
        raise places.why
    rows = updates.rows
    if not _is_same(walk, places, updates):
        if not updates.first or rows.shape[1:] != x.shape[deep:]:
            raise places.why
        # The first place gets the first one, and so on.
        mask = reshaped(walk, places.mask, (places.mask.size,))
        turn = graph.op("CumSum", cast(walk, mask, TensorProto.INT64), np.array(0))
        last = graph.like(rows.shape[0], turn)
        # Where they are too few, ONNX Runtime fails.
        lacking = graph.op("Greater", turn, last) if rows.shape[0] < mask.size else None
        turn = graph.op("Sub", graph.op("Clip", turn, graph.like(1, turn), last), 1)
        rows = graph.op("Gather", rows, turn, axis=0)
        if lacking is not None:
            if not rows.is_float:
                raise places.why
            lacking = reshaped(walk, lacking, (mask.size, *[1] * (rows.rank - 1)))
            rows = graph.op("Where", lacking, graph.like(np.nan, rows), rows)
    if rows.size != x.size or rows.elem_type != x.elem_type:
        raise places.why
    mask = reshaped(walk, places.mask, (*x.shape[:deep], *[1] * (x.rank - deep)))
    return graph.op("Where", mask, reshaped(walk, rows, x.shape), x)


def _reshaped(walk: Walk, node: Node, one: Chosen) -> Chosen:
    """Each row in another shape, or its elements as rows."""
    count = one.rows.shape[0]
    each = one.rows.size // count
    first, *rest = node.ints(1, "the shape") or [0]
    if rest and first <= 0 and min(rest) > 0 and np.prod(rest) == each:
        return one.but(rows=reshaped(walk, one.rows, (count, *rest)))
    if first != -1 or rest:
        raise one.why
    mask = expanded(walk, reshaped(walk, one.mask, (count, 1)), (count, each))
    return one.but(rows=reshaped(walk, one.rows, (count * each,)), mask=mask)


def _takes_first(node: Node) -> bool:
    """Whether it takes as many rows as something says, which may be all, or not: what is assigned
    to the places of a mask has to be as many as these."""
    if node.op == "Expand":
        return node.tensor(1).array is None and node.tensor(1).extents_of is None
    start, end, axes, steps = (node.get(index) for index in range(1, 5))
    return node.opset >= 10 and end is not None and end.array is None and all(
        value is None or value.ints() == wanted
        for value, wanted in ((start, [0]), (axes, [0]), (steps, [1])))


def _axes(node: Node, one: Chosen) -> list[int]:
    axes = node.attrs.get("axes")
    if axes is None:
        axes = node.ints(1, "the axes")
    if not axes:
        axes = [] if node.attrs.get("noop_with_empty_axes", 0) else range(one.rows.rank)
    return sorted({axis % one.rows.rank for axis in axes})


_NEUTRAL = {"ReduceSum": 0, "ReduceL1": 0, "ReduceL2": 0, "ReduceSumSquare": 0, "ReduceMean": 0,
            "ReduceProd": 1, "ReduceMax": -np.inf, "ReduceMin": np.inf}
_OF_ALL_NUMBERS = ("ReduceSum", "ReduceProd")


def _reduced(walk: Walk, node: Node, one: Chosen) -> Value:
    """Over the rows: the others get a number that changes nothing."""
    if node.op not in _NEUTRAL or not one.rows.is_float and node.op not in _OF_ALL_NUMBERS:
        raise one.why
    axes, keepdims = _axes(node, one), bool(node.attrs.get("keepdims", 1))
    neutral, count = _NEUTRAL[node.op], _count(walk, one)
    rows = _filled(walk, one, neutral)
    if node.op == "ReduceMean":
        # The mean of nothing is 0 in ONNX Runtime.
        each = int(np.prod([one.rows.shape[axis] for axis in axes[1:]], dtype=np.int64))
        count = walk.graph.op("Mul", walk.graph.op("Max", count, 1), each)
        return walk.graph.op("Div", reduce(walk, "ReduceSum", rows, axes, keepdims),
                             cast(walk, count, rows.elem_type))
    made = walk.node_in(node.op, 18, [rows, walk.graph.constant(axes, np.int64)],
                        keepdims=int(keepdims))
    if np.isfinite(neutral):
        return made
    # TVM begins with the least finite number.
    return walk.graph.op("Where", walk.graph.op("Greater", count, 0), made,
                         walk.graph.like(neutral, made))


def _filled(walk: Walk, one: Chosen, number: float) -> Value:
    """All rows, with a number in those that are not chosen."""
    mask = reshaped(walk, one.mask, (one.rows.shape[0], *[1] * (one.rows.rank - 1)))
    return walk.graph.op("Where", mask, one.rows, walk.graph.like(number, one.rows))


def _count(walk: Walk, one: Chosen) -> Value:
    return reduce(walk, "ReduceSum", cast(walk, one.mask, TensorProto.INT64), None, False)


def _is_same(walk: Walk, one: Chosen, other: Chosen | None) -> bool:
    """Whether both are chosen by masks that hold at the same places."""
    if other is None or one.mask.size != other.mask.size:
        return False
    if one.mask is other.mask:
        return True
    makers, values = walk.graph.makers, walk.graph.values

    def plain(value: Value) -> tuple[Value, int]:
        """What the mask repeats, and how often each element of it."""
        times = value.size
        while (node := makers.get(value.name)) is not None:
            before = values[node.input[0]]
            if node.op_type == "Expand":
                lead = before.shape[:max((i + 1 for i, d in enumerate(before.shape) if d > 1),
                                         default=0)]
                if value.shape[:len(lead)] != lead or before.rank != value.rank:
                    break
            elif node.op_type not in _MOVES:
                break
            value = before
        return value, times // max(value.size, 1)

    def alike(a: Value, b: Value, depth: int = 0) -> bool:
        if a is b:
            return True
        if a.shape != b.shape or a.elem_type != b.elem_type or depth > _DEEPEST:
            return False
        if a.array is not None or b.array is not None:
            return a.array is not None and b.array is not None and np.array_equal(a.array, b.array)
        first, second = makers.get(a.name), makers.get(b.name)
        if first is None or second is None or first.op_type != second.op_type \
                or len(first.input) != len(second.input) or first.domain != second.domain \
                or list(first.output).index(a.name) != list(second.output).index(b.name):
            return False
        attributes = [{x.name: helper.get_attribute_value(x) for x in node.attribute}
                      for node in (first, second)]
        return attributes[0] == attributes[1] and all(
            left == right or bool(left and right) and alike(values[left], values[right], depth + 1)
            for left, right in zip(first.input, second.input))

    (a, times), (b, others) = plain(one.mask), plain(other.mask)
    return times == others and alike(a, b)
