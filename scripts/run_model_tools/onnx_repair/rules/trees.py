"""Tree ensembles (ai.onnx.ml): all trees of all rows descend one level at a time.

Where a row stands in each tree is a tensor of places in one table of nodes; a level looks up what
the node compares, compares, and looks up the child.  Leaves are their own children.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto, numpy_helper

from run_model_tools.onnx_repair.refusal import Refused, invalid
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.classical import of_classes, transformed
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.reductions import best_place, reduce
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk

_DOMAIN = "ai.onnx.ml"
_LEAF, _MEMBER = "LEAF", "BRANCH_MEMBER"
_COMPARED = {"BRANCH_LEQ": "LessOrEqual", "BRANCH_LT": "Less", "BRANCH_GTE": "GreaterOrEqual",
             "BRANCH_GT": "Greater", "BRANCH_EQ": "Equal", "BRANCH_NEQ": "Equal"}
# By number, of TreeEnsemble.
_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", _MEMBER)
_AGGREGATIONS = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")

_TABLE_BYTES = 256 << 20
"""What the table of leaves' values may take; it has every target of every node."""


@dataclass
class Forest:
    """Nodes of all trees; children are places in the table."""

    modes: np.ndarray
    features: np.ndarray
    splits: np.ndarray
    missing: np.ndarray
    """Whether a NaN goes to the true child, whatever the comparison says."""
    on_true: np.ndarray
    on_false: np.ndarray
    roots: np.ndarray
    values: np.ndarray
    """[nodes, targets], and `given` says which of them a leaf has."""
    given: np.ndarray

    def depth(self) -> int:
        """How many levels have comparisons."""
        levels, places = 0, np.unique(self.roots)
        while True:
            inner = places[self.modes[places] != _LEAF]
            if not len(inner):
                return levels
            levels += 1
            if levels > len(self.modes):
                raise invalid("its nodes are each other's children")
            places = np.unique(np.concatenate([self.on_true[inner], self.on_false[inner]]))


@rule("TreeEnsembleRegressor", domain=_DOMAIN)
def tree_ensemble_regressor(walk: Walk, node: Node) -> Value:
    forest = _of_nodes(node, "target", int(node.attrs.get("n_targets", 0)) or 1)
    scores = _aggregated(walk, node.tensor(0), forest,
                         node.attrs.get("aggregate_function", "SUM"))
    base = _numbers(node, "base_values")
    if len(base):
        if len(base) != scores.shape[1]:
            raise invalid("it has not as many base values as targets")
        scores = walk.graph.op("Add", scores, base.astype(scores.dtype))
    return transformed(walk, cast(walk, scores, TensorProto.FLOAT),
                       node.attrs.get("post_transform", "NONE"))


@rule("TreeEnsembleClassifier", domain=_DOMAIN)
def tree_ensemble_classifier(walk: Walk, node: Node) -> list[Value | None]:
    labels = node.attrs.get("classlabels_int64s") or node.attrs.get("classlabels_strings") or []
    forest = _of_nodes(node, "class", max(len(labels), 1))
    scores = cast(walk, _aggregated(walk, node.tensor(0), forest, "SUM"), TensorProto.FLOAT)
    base = _numbers(node, "base_values").astype(np.float32)
    ids = set(np.asarray(node.attrs["class_ids"]).tolist())
    # What two classes with one score and two base values mean nobody says.
    if len(labels) == 2 and ids == {0} and len(base) < 2:
        one = walk.graph.op("Gather", scores, np.array([0]), axis=1)
        return _of_two(walk, node, one, base, bool(np.all(forest.values >= 0)))
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
    x = node.tensor(0)
    forest = _of_tensors(node)
    scores = _aggregated(walk, x, forest,
                         _AGGREGATIONS[node.attrs.get("aggregate_function", 1)])
    return transformed(walk, cast(walk, scores, x.elem_type),
                       _TRANSFORMS[node.attrs.get("post_transform", 0)])


def _numbers(node: Node, name: str) -> np.ndarray:
    """An attribute that is a list of floats or, of a longer name, a tensor."""
    tensor = node.attrs.get(f"{name}_as_tensor")
    if tensor is not None:
        return numpy_helper.to_array(tensor)
    return np.array(node.attrs.get(name, []), np.float32)


def _of_nodes(node: Node, kind: str, targets: int) -> Forest:
    """The form with a list of nodes that have numbers of their own, up to version 3."""
    attrs = node.attrs
    trees, own = np.array(attrs["nodes_treeids"]), np.array(attrs["nodes_nodeids"])
    modes = np.array(attrs["nodes_modes"])
    places = {key: place for place, key in enumerate(zip(trees.tolist(), own.tolist()))}
    inner = modes != _LEAF
    stay = np.arange(len(modes))
    children = []
    try:
        for name in ("nodes_truenodeids", "nodes_falsenodeids"):
            children.append(np.array([
                places[tree, child] if branches else at for at, tree, child, branches in zip(
                    stay.tolist(), trees.tolist(), attrs[name], inner.tolist())]))
        leaves = np.array([places[key] for key in zip(attrs[f"{kind}_treeids"],
                                                      attrs[f"{kind}_nodeids"])], np.int64)
    except KeyError as missing:
        raise invalid(f"it has no node {missing.args[0]}") from None
    roots = np.setdiff1d(stay, np.concatenate([child[inner] for child in children]))
    if len(set(trees[roots].tolist())) != len(roots) or len(roots) != len(set(trees.tolist())):
        raise invalid("not every tree has one root")
    weights, to = _numbers(node, f"{kind}_weights"), np.array(attrs[f"{kind}_ids"], np.int64)
    values, given = _leaf_table(len(modes), targets, leaves, to, weights)
    missing_true = attrs.get("nodes_missing_value_tracks_true") or np.zeros(len(modes))
    return Forest(modes, np.where(inner, attrs["nodes_featureids"], 0),
                  _numbers(node, "nodes_values"), np.array(missing_true) != 0,
                  children[0], children[1], roots, values, given)


def _of_tensors(node: Node) -> Forest:
    """TreeEnsemble of version 5: branches and leaves are numbered apart."""
    attrs = node.attrs
    splits = numpy_helper.to_array(attrs["nodes_splits"])
    weights = numpy_helper.to_array(attrs["leaf_weights"])
    numbers = numpy_helper.to_array(attrs["nodes_modes"])
    if numbers.size and int(numbers.max()) >= len(_MODES):
        raise invalid(f"it has a mode {int(numbers.max())}")
    modes = np.array([_MODES[mode] for mode in numbers.tolist()] or [], dtype="U16")
    inner, leaves = len(modes), len(weights)
    missing = np.array(attrs.get("nodes_missing_value_tracks_true") or [0] * inner) != 0
    children = []
    for side in ("true", "false"):
        at = np.array(attrs[f"nodes_{side}nodeids"], np.int64)
        at = at + inner * (np.array(attrs[f"nodes_{side}leafs"]) != 0)
        if np.any(at < 0) or np.any(at >= inner + leaves):
            raise invalid("a child is none of its nodes")
        children.append(np.concatenate([at, np.arange(inner, inner + leaves)]))
    values, given = _leaf_table(inner + leaves, int(attrs["n_targets"]),
                                np.arange(inner, inner + leaves),
                                np.array(attrs["leaf_targetids"], np.int64), weights)
    of_leaves = np.zeros(leaves)
    forest = Forest(np.concatenate([modes, np.full(leaves, _LEAF)]),
                    np.concatenate([attrs["nodes_featureids"], of_leaves]).astype(np.int64),
                    np.concatenate([splits, of_leaves.astype(splits.dtype)]),
                    np.concatenate([missing, of_leaves != 0]), children[0], children[1],
                    _roots(attrs, inner), values, given)
    members = attrs.get("membership_values")
    return _without_sets(forest, members) if _MEMBER in modes else forest


def _roots(attrs: dict[str, Any], inner: int) -> np.ndarray:
    """A tree that is a leaf only is a branch whose children are that leaf."""
    roots = np.array(attrs["tree_roots"], np.int64)
    if np.any(roots < 0) or np.any(roots >= inner):
        raise invalid("a root is none of its nodes")
    return roots


def _without_sets(forest: Forest, members: TensorProto | None) -> Forest:
    """A branch for members of a set becomes a chain of branches for one number each."""
    if members is None:
        raise invalid("it has branches for members of sets and no sets")
    sets, current = list[list[float]](), list[float]()
    for number in numpy_helper.to_array(members).tolist():
        if number != number:
            sets.append(current)
            current = []
        else:
            current.append(number)
    if current:
        sets.append(current)
    branches = np.flatnonzero(forest.modes == _MEMBER)
    if len(sets) != len(branches) or not all(sets):
        raise invalid(f"it has {len(branches)} branches for members of sets and {len(sets)} sets")
    columns = {name: getattr(forest, name).tolist() for name in (
        "modes", "features", "splits", "missing", "on_true", "on_false")}
    for place, numbers in zip(branches.tolist(), sets):
        columns["modes"][place], columns["splits"][place] = "BRANCH_EQ", numbers[0]
        otherwise, last = columns["on_false"][place], place
        for number in numbers[1:]:
            columns["on_false"][last] = last = len(columns["modes"])
            for column in columns.values():
                column.append(column[place])
            columns["splits"][last], columns["missing"][last] = number, False
        columns["on_false"][last] = otherwise
    arrays = {name: np.array(column) for name, column in columns.items()}
    arrays["splits"] = arrays["splits"].astype(forest.splits.dtype)
    more = ((0, len(arrays["modes"]) - len(forest.modes)), (0, 0))
    return Forest(**arrays, roots=forest.roots, values=np.pad(forest.values, more),
                  given=np.pad(forest.given, more))


def _leaf_table(nodes: int, targets: int, leaves: np.ndarray, to: np.ndarray,
                weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if len(to) and (to.min() < 0 or to.max() >= targets):
        raise invalid(f"it has values for targets other than its {targets}")
    if nodes * targets * weights.itemsize > _TABLE_BYTES:
        raise Refused(f"it has {nodes} nodes with {targets} values each",
                      "compile a smaller ensemble.", "size")
    values, given = np.zeros((nodes, targets), weights.dtype), np.zeros((nodes, targets), np.bool_)
    np.add.at(values, (leaves, to), weights)
    given[leaves, to] = True
    return values, given


def _aggregated(walk: Walk, x: Value, forest: Forest, how: str) -> Value:
    """[rows, targets]: what the leaves that each row arrives at have, of all trees."""
    graph = walk.graph
    if x.rank == 1:
        x = reshaped(walk, x, (1, x.size))
    if x.rank != 2:
        raise Refused(f"its input has {x.rank} axes and rows have two")
    unknown = set(forest.modes.tolist()) - {*_COMPARED, _LEAF}
    if unknown:
        raise Refused(f"it has branches of the kind {sorted(unknown)[0]}")
    if np.any(forest.features < 0) or np.any(forest.features >= x.shape[1]):
        raise invalid(f"it compares features that its input, with {x.shape[1]}, has not")
    in_double = TensorProto.DOUBLE in (x.elem_type, graph.constant(forest.splits[:1]).elem_type)
    x = cast(walk, x, TensorProto.DOUBLE if in_double else TensorProto.FLOAT)
    rows, trees = x.shape[0], len(forest.roots)
    at = graph.constant(np.broadcast_to(forest.roots.astype(np.int32), (rows, trees)).copy())
    children = np.stack([forest.on_true, forest.on_false], 1).astype(np.int32)
    for _ in range(forest.depth()):
        chosen = cast(walk, _goes_to_true(walk, x, forest, at), TensorProto.INT32)
        # A sum, so that TVM makes a kernel of each level: of one expression for all of them, every
        # level would compute the one before for each of its operands.
        either = graph.op("Equal", reshaped(walk, chosen, (rows, trees, 1)),
                          graph.constant(np.array([1, 0], np.int32)))
        pair = graph.op("Gather", graph.constant(children), at, axis=0)
        at = reduce(walk, "ReduceSum", graph.op(
            "Mul", pair, cast(walk, either, TensorProto.INT32)), [2], keepdims=False)
    return _of_leaves(walk, forest, at, how)


def _of_leaves(walk: Walk, forest: Forest, at: Value, how: str) -> Value:
    graph = walk.graph
    values = forest.values
    if how in ("SUM", "AVERAGE"):
        made = reduce(walk, "ReduceSum", graph.op("Gather", graph.constant(values), at, axis=0),
                      [1], keepdims=False)
        return made if how == "SUM" else graph.op("Div", made, float(len(forest.roots)))
    if how not in ("MIN", "MAX"):
        raise Refused(f"its trees are put together by {how}")
    # A target that no leaf has a value for gets zero.
    nothing = np.inf if how == "MIN" else -np.inf
    table = np.where(forest.given, values, nothing).astype(values.dtype)
    made = reduce(walk, f"Reduce{how.title()}",
                  graph.op("Gather", graph.constant(table), at, axis=0), [1], keepdims=False)
    if forest.given[forest.modes == _LEAF].all():
        return made
    return graph.op("Where", graph.op("Equal", made, graph.like(nothing, made)),
                    graph.like(0, made), made)


def _goes_to_true(walk: Walk, x: Value, forest: Forest, at: Value) -> Value:
    """Of each row and tree, whether the comparison of the node it is at holds."""
    graph = walk.graph

    def of_node(table: np.ndarray) -> Value:
        return graph.op("Gather", graph.constant(table), at, axis=0)

    value = graph.op("GatherElements", x, of_node(forest.features.astype(np.int32)), axis=1)
    split = of_node(forest.splits.astype(x.dtype))
    modes = sorted(set(forest.modes.tolist()) - {_LEAF})
    holds = []
    for mode in modes:
        one = graph.op(_COMPARED[mode], value, split)
        if mode == "BRANCH_NEQ":
            one = graph.op("Not", one)
        holds.append(one if len(modes) == 1 else
                     graph.op("And", one, of_node(forest.modes == mode)))
    made = holds[0]
    for one in holds[1:]:
        made = graph.op("Or", made, one)
    if forest.missing.any():
        made = graph.op("Or", made, graph.op("And", graph.op("IsNaN", value),
                                             of_node(forest.missing)))
    return made
