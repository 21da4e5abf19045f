"""Whether a network computes each sample of a batch by itself, so that its code for one sample
serves batches of any size.

The network is repaired for two sizes of batch.  Where both graphs are equal but for extents, and
each operator keeps samples apart, the size decides nothing else, and sample i of every output is
what the network makes of sample i of its inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
import onnx
from onnx import helper

from run_model_tools.errors import ToolError
from run_model_tools.onnx_repair.repair import repair
from run_model_tools.onnx_repair.values import array_of
from run_model_tools.onnx_repair.walk import RELAX

SIZES = (7, 11)
"""Of the batches that are compared: primes, which extents of one sample rarely have."""


class NotApart(Exception):
    """Why it is not, or not known to be."""


@dataclass(frozen=True)
class Axes:
    """Along which axis samples lie in each input and output; the extents before it are 1."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def sample_axes(model: onnx.ModelProto, one: Mapping[str, tuple[int, ...]],
                path: str = "the model") -> Axes:
    """The axes of a network that keeps samples apart.

    one: the shape of every input, with a sample along its first axis.  Raises NotApart.
    """
    found = []
    graphs = []
    for size in SIZES:
        shapes = {name: (size, *shape[1:]) for name, shape in one.items()}
        try:
            graphs.append(_Graph(repair(model, shapes, path=path, importer=RELAX), size))
        except ToolError as error:
            raise NotApart(f"for a batch of {size}: {error}") from None
    _expect_equal(*graphs)
    for graph in graphs:
        found.append(graph.follow())
    if found[0] != found[1]:
        raise NotApart("where samples lie depends on how many there are")
    return found[0]


class _Graph:
    """A repaired network for a batch of `size`, and where samples lie in its values."""

    def __init__(self, model: onnx.ModelProto, size: int) -> None:
        self.size = size
        self.graph = model.graph
        try:
            inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph
        except (ValueError, onnx.shape_inference.InferenceError) as error:
            raise NotApart(f"its extents cannot be computed ({error})") from None
        self.shapes = {value.name: tuple(d.dim_value for d in value.type.tensor_type.shape.dim)
                       for value in (*inferred.value_info, *inferred.input, *inferred.output)}
        self.constants = {t.name: t for t in self.graph.initializer}
        self.shapes.update({name: tuple(t.dims) for name, t in self.constants.items()})
        self.axes: dict[str, int | None] = dict.fromkeys(self.constants)
        self.axes[""] = None

    def constant(self, name: str) -> np.ndarray | None:
        tensor = self.constants.get(name)
        return None if tensor is None else array_of(tensor)

    def follow(self) -> Axes:
        """Raises NotApart."""
        inputs = [value.name for value in self.graph.input if value.name not in self.constants]
        self.axes.update(dict.fromkeys(inputs, 0))
        for node in self.graph.node:
            rule = _RULES.get(node.op_type)
            if rule is None or any(name not in self.shapes for name in node.output if name):
                raise NotApart(f"of {_told(node)} it is not known whether it keeps samples apart")
            at = [self.axes[name] for name in node.input]
            where = None if all(axis is None for axis in at) else rule(self, node)
            for name in node.output:
                if name:
                    self.axes[name] = where
                    shape = self.shapes[name]
                    if where is not None and (where >= len(shape) or shape[where] % self.size):
                        raise NotApart(f"{_told(node)} mixes samples")
        outputs = []
        for value in self.graph.output:
            axis = self.axes[value.name]
            if axis is None or prod(self.shapes[value.name][:axis]) != 1:
                raise NotApart(f"in the output '{value.name}' samples do not lie one after the "
                               "other")
            outputs.append(axis)
        return Axes((0,) * len(inputs), tuple(outputs))


def _expect_equal(one: _Graph, other: _Graph) -> None:
    """Raises NotApart where two sizes of batch make other networks; tells constants that have a
    part for each sample from those that have none."""
    if [n.op_type for n in one.graph.node] != [n.op_type for n in other.graph.node]:
        raise NotApart("which operators it has depends on how many samples there are")
    same: dict[str, str] = {}
    for a, b in zip(one.graph.node, other.graph.node):
        attributes = [{x.name: x.SerializeToString() for x in n.attribute} for n in (a, b)]
        if attributes[0] != attributes[1] or len(a.input) != len(b.input):
            raise NotApart(f"what {_told(a)} does depends on how many samples there are")
        for index, (x, y) in enumerate(zip(a.input, b.input)):
            if same.setdefault(x, y) != y:
                raise NotApart(f"what {_told(a)} reads depends on how many samples there are")
            if x in one.constants and index not in _EXTENTS.get(a.op_type, ()):
                _compare(one, other, x, y, a)
        same.update(zip(a.output, b.output))


def _compare(one: _Graph, other: _Graph, x: str, y: str, node: onnx.NodeProto) -> None:
    a, b = one.constant(x), other.constant(y)
    if a is None or b is None or a.dtype != b.dtype:
        raise NotApart(f"{_told(node)} has a constant for some sizes of batch only")
    if np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
        return
    # One that has the same numbers for every sample, such as a recurrent layer's first state.
    different = [i for i, extents in enumerate(zip(a.shape, b.shape)) if extents[0] != extents[1]]
    if a.ndim == b.ndim and len(different) == 1:
        axis = different[0]
        first = np.take(a, [0], axis)
        if (a.shape[axis], b.shape[axis]) == SIZES and np.array_equal(
                np.broadcast_to(first, a.shape), a) and np.array_equal(
                np.broadcast_to(first, b.shape), b):
            one.axes[x] = other.axes[y] = axis
            return
    raise NotApart(f"a constant of {_told(node)} depends on how many samples there are")


def _told(node: onnx.NodeProto) -> str:
    return f"{node.op_type} '{node.doc_string or node.name}'"


# A rule says where samples lie in a node's outputs, if they lie somewhere in its inputs.
_Rule = Callable[[_Graph, onnx.NodeProto], int | None]


def _mixed(node: onnx.NodeProto) -> NotApart:
    return NotApart(f"{_told(node)} mixes samples")


def _attribute(node: onnx.NodeProto, name: str, default: object) -> object:
    for attribute in node.attribute:
        if attribute.name == name:
            return helper.get_attribute_value(attribute)
    return default


def _integer(node: onnx.NodeProto, name: str, default: int) -> int:
    value = _attribute(node, name, default)
    assert isinstance(value, int)
    return value


def _expect_none(graph: _Graph, node: onnx.NodeProto, names: Iterable[str]) -> None:
    if any(graph.axes[name] is not None for name in names):
        raise _mixed(node)


def _aligned(graph: _Graph, node: onnx.NodeProto, names: Iterable[str], rank: int) -> int:
    """Of operands that are broadcast to `rank` axes: where samples lie in all of them."""
    found = None
    names = list(names)
    for name in names:
        axis = graph.axes[name]
        if axis is not None:
            axis += rank - len(graph.shapes[name])
            if found not in (None, axis):
                raise _mixed(node)
            found = axis
    assert found is not None
    for name in names:
        if graph.axes[name] is None and name:
            shape = graph.shapes[name]
            axis = found - (rank - len(shape))
            # Else it would have to have as many parts as there are samples.
            if axis >= 0 and shape[axis] != 1:
                raise _mixed(node)
    extents = {graph.shapes[name][found - (rank - len(graph.shapes[name]))] for name in names
               if graph.axes[name] is not None}
    if len(extents) != 1:
        raise _mixed(node)
    return found


def _elementwise(graph: _Graph, node: onnx.NodeProto) -> int:
    return _aligned(graph, node, node.input, len(graph.shapes[node.output[0]]))


def _first_operand(graph: _Graph, node: onnx.NodeProto) -> int:
    """The others say how, such as the slope of a PRelu."""
    _expect_none(graph, node, node.input[1:])
    axis = graph.axes[node.input[0]]
    assert axis is not None
    return axis


def _along_first_axis(graph: _Graph, node: onnx.NodeProto) -> int:
    """Convolutions, poolings, normalisations of each sample: their first axis is the batch."""
    extents = {graph.shapes[name][0] for name in (node.input[0], node.output[0])}
    if _first_operand(graph, node) != 0 or len(extents) != 1:
        raise _mixed(node)
    return 0


def _resized(graph: _Graph, node: onnx.NodeProto) -> int:
    if len(node.input) > 1 and node.input[1] and prod(graph.shapes[node.input[1]]):
        raise _mixed(node)  # a region of the whole batch
    return _along_first_axis(graph, node)


def _same_numbers(graph: _Graph, node: onnx.NodeProto) -> int:
    """The numbers stay where they are, the extents become others: samples stay if the numbers
    before each of them end where an axis does."""
    _expect_none(graph, node, node.input[1:])
    shape, axis = graph.shapes[node.input[0]], graph.axes[node.input[0]]
    made = graph.shapes[node.output[0]]
    before = prod(shape[:axis])
    for other, extent in enumerate(made):
        if prod(made[:other]) == before and extent % graph.size == 0:
            return other
    raise _mixed(node)


def _expanded(graph: _Graph, node: onnx.NodeProto) -> int | None:
    return _aligned(graph, node, node.input[:1], len(graph.shapes[node.output[0]]))


def _transposed(graph: _Graph, node: onnx.NodeProto) -> int:
    rank = len(graph.shapes[node.input[0]])
    order = _attribute(node, "perm", list(range(rank))[::-1])
    assert isinstance(order, list)
    axis = graph.axes[node.input[0]]
    assert axis is not None
    return order.index(axis)


def _not_along(graph: _Graph, node: onnx.NodeProto, axes: Iterable[int]) -> int:
    """The first operand's axis, which is none of those along which the node works."""
    axis = _first_operand(graph, node)
    rank = len(graph.shapes[node.input[0]])
    if axis in {a % rank for a in axes}:
        raise _mixed(node)
    return axis


def _along_axis(default: int) -> _Rule:
    def rule(graph: _Graph, node: onnx.NodeProto) -> int:
        return _not_along(graph, node, [_integer(node, "axis", default)])
    return rule


def _from_axis_on(graph: _Graph, node: onnx.NodeProto) -> int:
    rank = len(graph.shapes[node.input[0]])
    return _not_along(graph, node, range(_integer(node, "axis", -1) % rank, rank))


def _along_input(graph: _Graph, node: onnx.NodeProto) -> int:
    """CumSum: the second operand is the axis."""
    axis = graph.constant(node.input[1])
    if axis is None:
        raise _mixed(node)
    return _not_along(graph, node, [int(axis.ravel()[0])])


def _reduced(graph: _Graph, node: onnx.NodeProto) -> int:
    rank = len(graph.shapes[node.input[0]])
    axes = _attribute(node, "axes", None)
    if node.op_type in ("ArgMax", "ArgMin"):
        axes = [_integer(node, "axis", 0)]
    elif len(node.input) > 1 and node.input[1]:
        given = graph.constant(node.input[1])
        axes = None if given is None else given.tolist()
    if not axes:
        raise _mixed(node)
    assert isinstance(axes, list)
    axis = _not_along(graph, node, axes)
    gone = sum(a % rank < axis for a in axes)
    return axis if _integer(node, "keepdims", 1) else axis - gone


def _concatenated(graph: _Graph, node: onnx.NodeProto) -> int:
    rank = len(graph.shapes[node.output[0]])
    found = {graph.axes[name] for name in node.input}
    axis = next(iter(found))
    if len(found) != 1 or axis is None or axis == _integer(node, "axis", 0) % rank:
        raise _mixed(node)
    return axis


def _sliced(graph: _Graph, node: onnx.NodeProto) -> int:
    given = [graph.constant(name) for name in node.input[1:]]
    if given[0] is None:
        raise _mixed(node)
    axes = given[2].tolist() if len(given) > 2 and given[2] is not None else range(len(given[0]))
    return _not_along(graph, node, axes)


def _padded(graph: _Graph, node: onnx.NodeProto) -> int:
    pads = graph.constant(node.input[1])
    rank = len(graph.shapes[node.input[0]])
    if pads is None or len(pads) != 2 * rank:
        raise _mixed(node)
    return _not_along(graph, node, [i for i in range(rank) if pads[i] or pads[i + rank]])


def _gathered(graph: _Graph, node: onnx.NodeProto) -> int:
    data, indices = node.input
    rank, more = len(graph.shapes[data]), len(graph.shapes[indices])
    along = _integer(node, "axis", 0) % rank
    axis, place = graph.axes[data], graph.axes[indices]
    if place is not None:
        if axis is not None:
            raise _mixed(node)
        return along + place
    assert axis is not None
    if axis == along:
        raise _mixed(node)
    return axis if axis < along else axis + more - 1


def _by_indices(default: int) -> _Rule:
    """Indices of a shape like the data's, and along one axis."""
    def rule(graph: _Graph, node: onnx.NodeProto) -> int:
        found = {graph.axes[name] for name in node.input}
        rank = len(graph.shapes[node.input[0]])
        axis = next(iter(found))
        extents = {graph.shapes[name][axis] for name in node.input} if (
            len(found) == 1 and axis is not None) else set()
        if axis is None or len(extents) != 1 or axis == _integer(node, "axis", default) % rank:
            raise _mixed(node)
        return axis
    return rule


def _multiplied(graph: _Graph, node: onnx.NodeProto) -> int:
    left, right = (graph.shapes[name] for name in node.input[:2])
    axes = [graph.axes[name] for name in node.input[:2]]
    rank = len(graph.shapes[node.output[0]])
    if min(len(left), len(right)) < 2:
        raise _mixed(node)
    if axes[1] is None and axes[0] == len(left) - 2:
        return rank - 2
    if axes[0] is None and axes[1] == len(right) - 1:
        return rank - 1
    if any(axis is not None and axis >= len(shape) - 2
           for axis, shape in zip(axes, (left, right))):
        raise _mixed(node)
    return _aligned(graph, node, node.input[:2], rank)


def _gemm(graph: _Graph, node: onnx.NodeProto) -> int:
    a, b, *c = node.input
    if graph.axes[b] is not None or graph.axes[a] != _integer(node, "transA", 0):
        raise _mixed(node)
    for name in filter(None, c):
        shape = graph.shapes[name]
        if graph.axes[name] is not None or len(shape) > 1 and shape[0] != 1:
            raise _mixed(node)
    return 0


def _tiled(graph: _Graph, node: onnx.NodeProto) -> int:
    repeats = graph.constant(node.input[1])
    if repeats is None:
        raise _mixed(node)
    return _not_along(graph, node, np.flatnonzero(repeats.ravel() != 1).tolist())


def _einsum(graph: _Graph, node: onnx.NodeProto) -> int:
    """Samples have one letter, which stays in the result."""
    equation = _attribute(node, "equation", b"")
    assert isinstance(equation, bytes)
    terms, arrow, result = equation.decode().replace(" ", "").partition("->")
    letters = terms.split(",")
    if not arrow or "." in terms or len(letters) != len(node.input):
        raise _mixed(node)
    found = {term[axis] for term, name in zip(letters, node.input)
             if (axis := graph.axes[name]) is not None}
    letter = found.pop()
    if found or result.count(letter) != 1 or any(
            term.count(letter) != (graph.axes[name] is not None)
            for term, name in zip(letters, node.input)):
        raise _mixed(node)
    return result.index(letter)


_ELEMENTWISE = (
    "Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr "
    "BitwiseXor Cast Ceil Cos Cosh Div Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual "
    "HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Less LessOrEqual Log Max Mean Min Mish "
    "Mod Mul Neg Not Or Pow PRelu Reciprocal Relu Round Selu Sigmoid Sign Sin Sinh Softplus "
    "Softsign Sqrt Sub Sum Tan Tanh ThresholdedRelu Where Xor Celu").split()

_RULES: dict[str, _Rule] = {
    **dict.fromkeys(_ELEMENTWISE, _elementwise),
    **dict.fromkeys(("Clip", "QuantizeLinear", "DequantizeLinear"), _first_operand),
    **dict.fromkeys(("Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool",
                     "GlobalAveragePool", "GlobalMaxPool", "BatchNormalization",
                     "InstanceNormalization", "LRN", "DepthToSpace", "SpaceToDepth"),
                    _along_first_axis),
    "Resize": _resized,
    **dict.fromkeys(("Reshape", "Flatten", "Squeeze", "Unsqueeze"), _same_numbers),
    "Expand": _expanded, "Transpose": _transposed, "Concat": _concatenated, "Slice": _sliced,
    "Pad": _padded,
    "Gather": _gathered, "GatherElements": _by_indices(0), "ScatterElements": _by_indices(0),
    "Tile": _tiled, "Einsum": _einsum, "MatMul": _multiplied, "Gemm": _gemm,
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax", "TopK"), _along_axis(-1)),
    "Split": _along_axis(0), "LayerNormalization": _from_axis_on, "CumSum": _along_input,
    **dict.fromkeys(("ArgMax", "ArgMin", "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin",
                     "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
                     "ReduceSumSquare"), _reduced)}

_EXTENTS = {"Reshape": (1,), "Expand": (1,), "Resize": (3,)}
"""Operands that only say what shape results have, which rules look at themselves."""
