"""Tree ensembles (ai.onnx.ml): all trees of all rows descend one level at a time.

Where a row stands in each tree is a tensor of places in one table of nodes (forest.py); a level
looks up what the node compares, compares, and goes on to the child.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from onnx import NodeProto, TensorProto

from run_model_tools.onnx_repair.graph import Operand
from run_model_tools.onnx_repair.refusal import Refused, invalid
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.classical import forest
from run_model_tools.onnx_repair.rules.classical.forest import Descent, Forest, numbers
from run_model_tools.onnx_repair.rules.classical.steps import of_classes, transformed
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.reductions import best_place, reduce
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk

_DOMAIN = "ai.onnx.ml"
# By number, of TreeEnsemble.
_AGGREGATIONS = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")

_LEVEL = 1000
"""What a level costs besides its comparisons, in comparisons: a kernel is compiled and called."""


@rule("TreeEnsembleRegressor", domain=_DOMAIN)
def tree_ensemble_regressor(walk: Walk, node: Node) -> Value:
    _, scores = _aggregated(walk, node, node.attrs.get("aggregate_function", "SUM"))
    base = numbers(node, "base_values")
    if len(base):
        if len(base) != scores.shape[1]:
            raise invalid("it has not as many base values as targets")
        scores = walk.graph.op("Add", scores, base.astype(scores.dtype))
    return transformed(walk, cast(walk, scores, TensorProto.FLOAT),
                       node.attrs.get("post_transform", "NONE"))


@rule("TreeEnsembleClassifier", domain=_DOMAIN)
def tree_ensemble_classifier(walk: Walk, node: Node) -> list[Value | None]:
    labels = _labels(node)
    descent, scores = _aggregated(walk, node, "SUM")
    scores = cast(walk, scores, TensorProto.FLOAT)
    base = numbers(node, "base_values").astype(np.float32)
    ids = set(np.asarray(node.attrs["class_ids"]).tolist())
    # What two classes with one score and two base values mean nobody says.
    if len(labels) == 2 and ids == {0} and len(base) < 2:
        one = walk.graph.op("Gather", scores, np.array([0]), axis=1)
        return _of_two(walk, node, one, base, bool(np.all(descent.values >= 0)))
    if len(labels) < 2 or (len(labels) == 2 and (ids != {0, 1} or len(base))):
        raise Refused(f"its trees give scores to class {', '.join(map(str, sorted(ids)))} of "
                      f"{len(labels)}, with {len(base)} base values")
    if len(base):
        if len(base) != len(labels):
            raise invalid("it has not as many base values as classes")
        scores = walk.graph.op("Add", scores, base)
    how = node.attrs.get("post_transform", "NONE")
    if len(labels) == 2:
        best = _is_second(walk, walk.graph.op("Gather", scores, np.array([1]), axis=1), 0.0)
    else:
        best = best_place(walk, scores, 1)
    return [of_classes(walk, node, best), transformed(walk, scores, how)][:node.outputs]


def _of_two(walk: Walk, node: Node, score: Value, base: np.ndarray,
            probabilities: bool) -> list[Value | None]:
    """Two classes by the score of one of them, as ONNX Runtime takes it: a probability where no
    weight is negative, else how far it lies from the border between them."""
    graph = walk.graph
    if len(base):
        score = graph.op("Add", score, float(base[0]))
    how = node.attrs.get("post_transform", "NONE")
    if how == "PROBIT":
        raise Refused("one score of two classes is transformed by PROBIT")
    border = 0.5 if probabilities else 0.0
    if probabilities:
        made = graph.op("Concat", graph.op("Sub", graph.like(1, score), score), score, axis=1)
    else:
        made = graph.op("Concat", graph.op("Neg", score), score, axis=1)
        if how == "LOGISTIC":
            made = graph.op("Sigmoid", made)
    return [of_classes(walk, node, _is_second(walk, score, border)), made][:node.outputs]


def _is_second(walk: Walk, score: Value, border: float) -> Value:
    return reshaped(walk, cast(walk, walk.graph.op("Greater", score, border), TensorProto.INT64),
                    (score.shape[0],))


@rule("TreeEnsemble", domain=_DOMAIN)
def tree_ensemble(walk: Walk, node: Node) -> Value:
    _, scores = _aggregated(walk, node, _AGGREGATIONS[node.attrs.get("aggregate_function", 1)])
    return transformed(walk, cast(walk, scores, node.tensor(0).elem_type),
                       _TRANSFORMS[node.attrs.get("post_transform", 0)])


def _labels(node: Node) -> list[int] | list[str]:
    return node.attrs.get("classlabels_int64s") or node.attrs.get("classlabels_strings") or []


_FORESTS: dict[str, Callable[[Node], Forest]] = {
    "TreeEnsembleRegressor":
        lambda node: forest.of_nodes(node, "target", int(node.attrs.get("n_targets", 0)) or 1),
    "TreeEnsembleClassifier":
        lambda node: forest.of_nodes(node, "class", max(len(_labels(node)), 1)),
    "TreeEnsemble": forest.of_tensors,
}


class _Ensemble(NamedTuple):
    """A node's trees, which compare columns of the tensor `x`."""

    proto: NodeProto
    descent: Descent
    x: Value
    elem_type: int
    """That is compared."""


def _rows(walk: Walk, x: Value) -> tuple[Value, np.ndarray]:
    """What the columns of x are columns of, and which: the trees of an isolation forest have
    columns of their own."""
    maker = walk.graph.makers.get(x.name)
    if maker is not None and maker.op_type == "Gather" and x.rank == 2:
        whole, chosen = (walk.graph.values[name] for name in maker.input)
        if chosen.array is not None and [a.i for a in maker.attribute] == [1]:
            return whole, chosen.array % whole.shape[1]
    return x, np.arange(x.shape[-1] if x.rank else 0)


def _ensemble(walk: Walk, node: Node) -> _Ensemble:
    given = node.tensor(0)
    if given.rank not in (1, 2):
        raise Refused(f"its input has {given.rank} axes and rows have two")
    x, columns = _rows(walk, given)
    trees = _FORESTS[node.op](node)
    if np.any(trees.features < 0) or np.any(trees.features >= len(columns)):
        raise invalid(f"it compares features that its input, with {len(columns)}, has not")
    in_double = x.elem_type == TensorProto.DOUBLE or trees.splits.dtype == np.float64
    trees.features = columns[trees.features]
    return _Ensemble(node.proto, forest.descent_of(trees), x,
                     TensorProto.DOUBLE if in_double else TensorProto.FLOAT)


def _arrived(walk: Walk, node: Node) -> tuple[Descent, Value]:
    """A node's trees, and at which of their places each row ends: [rows, trees, 1].

    All ensembles of the graph with the same rows descend together where that is less work.
    """
    arrived = node.beside.made
    if id(node.proto) not in arrived:
        first = _ensemble(walk, node)
        others = [one for one in _beside(walk, node, first.x) if one.elem_type == first.elem_type]
        # Open rows must not decide.
        rows = 1 if walk.is_open or first.x.rank == 1 else first.x.shape[0]
        for group in _groups([first, *others], rows):
            for one, places in zip(group, _descend(walk, group)):
                arrived[id(one.proto)] = one.descent, places
    return arrived[id(node.proto)]


def _beside(walk: Walk, node: Node, x: Value) -> Iterator[_Ensemble]:
    """Ensembles of the node's graph that compare columns of x too, and whose turn is still to
    come."""
    for proto in node.beside.nodes:
        if proto.domain != _DOMAIN or proto.op_type not in _FORESTS or proto is node.proto \
                or id(proto) in node.beside.made:
            continue
        given = node.scope.get(proto.input[0])
        if isinstance(given, Value) and _rows(walk, given)[0] is x:
            with suppress(Refused):  # It says so when it is its turn.
                yield _ensemble(walk, walk.node_beside(node, proto))


def _groups(ensembles: list[_Ensemble], rows: int) -> list[list[_Ensemble]]:
    """Those that descend together: all take as many steps as the deepest one."""
    def work(group: list[_Ensemble]) -> int:
        return max(one.descent.depth for one in group) * (
            _LEVEL + rows * sum(one.descent.trees for one in group))

    groups: list[list[_Ensemble]] = []
    for one in sorted(ensembles, key=lambda one: -one.descent.depth):
        if groups and work([*groups[-1], one]) <= work(groups[-1]) + work([one]):
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups


def _descend(walk: Walk, group: Sequence[_Ensemble]) -> list[Value]:
    """Of each ensemble, at which of its places each row ends."""
    graph, descents = walk.graph, [one.descent for one in group]
    sizes = [len(d.first) for d in descents]
    starts = np.cumsum([0, *sizes[:-1]])
    x, features = _comparable(walk, group)
    splits, firsts = (np.concatenate([getattr(d, name) for d in descents])
                      for name in ("splits", "first"))
    tables = [features.astype(np.int32), splits.astype(x.dtype),
              (firsts + np.repeat(starts, sizes)).astype(np.int32)]
    roots = np.concatenate([np.arange(d.trees) + start for d, start in zip(descents, starts)])

    def onward(value: Value, split: Operand, first: Operand) -> Value:
        step = cast(walk, graph.op("LessOrEqual", value, split), TensorProto.INT32)
        # A sum, though of one number, so that TVM makes a kernel of each level: of one expression
        # for all of them, every level would compute the one before for each of its operands.
        return reduce(walk, "ReduceSum", graph.op("Add", step, first), [2])

    # At its root is each row, and a tree that is one leaf stays there.
    feature, split, first = (table[roots] for table in tables)
    at = onward(graph.op("Gather", x, feature, axis=1), split[:, None], first[:, None])
    shared = [graph.constant(table) for table in tables]
    for _ in range(1, max(d.depth for d in descents)):
        feature, split, first = (graph.op("Gather", table, at, axis=0) for table in shared)
        at = onward(graph.op("GatherElements", x, feature, axis=1), split, first)
    if len(group) == 1:
        return [at]
    trees = np.array([d.trees for d in descents])
    at = graph.op("Sub", at, np.repeat(starts, trees)[:, None].astype(np.int32))
    return graph.ops("Split", [at, trees], len(group), axis=1)


def _comparable(walk: Walk, group: Sequence[_Ensemble]) -> tuple[Value, np.ndarray]:
    """[rows, columns, 1] with all that the trees compare, and which column each place does."""
    graph = walk.graph
    x = cast(walk, group[0].x, group[0].elem_type)
    if x.rank == 1:
        x = reshaped(walk, x, (1, x.size))
    descents = [one.descent for one in group]
    forms, features, is_leaf = (np.concatenate(columns) for columns in zip(*(
        (2 * d.negated + d.low, d.features, d.is_leaf) for d in descents)))
    kinds = np.unique(forms[~is_leaf]) if not is_leaf.all() else np.array([0])
    made = []
    for kind in kinds.tolist():
        form = graph.op("Neg", x) if kind >= 2 else x
        made.append(graph.op("Where", graph.op("IsNaN", form), graph.like(-np.inf, x), form)
                    if kind % 2 else form)
    together = made[0] if len(made) == 1 else graph.op("Concat", *made, axis=1)
    # Leaves, whose form is 0, compare whatever is first.
    features = features + np.searchsorted(kinds, forms) * x.shape[1]
    return graph.op("Unsqueeze", together, np.array([2])), features


def _aggregated(walk: Walk, node: Node, how: str) -> tuple[Descent, Value]:
    """A node's trees and, [rows, targets], what the leaves where a row ends have together."""
    graph = walk.graph
    descent, at = _arrived(walk, node)
    if how in ("SUM", "AVERAGE"):
        made = reduce(walk, "ReduceSum", graph.op("Gather", descent.values, at, axis=0), [1, 2],
                      keepdims=False)
        return descent, made if how == "SUM" else graph.op("Div", made, float(descent.trees))
    if how not in ("MIN", "MAX"):
        raise Refused(f"its trees are put together by {how}")
    # A target that no leaf has a value for gets zero.
    nothing = np.inf if how == "MIN" else -np.inf
    table = np.where(descent.given, descent.values, nothing).astype(descent.values.dtype)
    made = reduce(walk, f"Reduce{how.title()}", graph.op("Gather", graph.constant(table), at,
                                                         axis=0), [1, 2], keepdims=False)
    if descent.given[descent.is_leaf].all():
        return descent, made
    return descent, graph.op("Where", graph.op("Equal", made, graph.like(nothing, made)),
                             graph.like(0, made), made)
