"""The trees of an ensemble (ai.onnx.ml) as tables of nodes, whichever way its operator writes them.

All trees descend together, so that one comparison and one way to the children is all they have:
every comparison becomes `x <= split`, and the children of a node are places beside each other.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from onnx import TensorProto, numpy_helper

from run_model_tools.onnx_repair.refusal import Refused, invalid
from run_model_tools.onnx_repair.values import Node

_LEAF, _MEMBER = "LEAF", "BRANCH_MEMBER"
_LEQ, _LT, _GTE, _GT, _EQ, _NEQ = _COMPARED = (
    "BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
_MODES = (*_COMPARED, _MEMBER)
"""By number, of TreeEnsemble."""

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
    values: np.ndarray
    """[nodes, targets], and `given` says which of them a leaf has."""
    given: np.ndarray
    roots: np.ndarray

    @property
    def is_leaf(self) -> np.ndarray:
        return self.modes == _LEAF

    def levels(self) -> list[np.ndarray]:
        """The branches that are so many steps away from a root."""
        levels, places = list[np.ndarray](), np.unique(self.roots)
        while True:
            inner = places[~self.is_leaf[places]]
            if not len(inner):
                return levels
            levels.append(inner)
            if len(levels) > len(self.modes):
                raise invalid("its nodes are each other's children")
            places = np.unique(np.concatenate([self.on_true[inner], self.on_false[inner]]))

    def with_copies(self, places: np.ndarray) -> Forest:
        """Copies of nodes come after all others; nothing that is changed in it changes this."""
        return Forest(**{name: np.concatenate([column, column[places]])
                         for name, column in self._columns()}, roots=self.roots)

    def _columns(self) -> list[tuple[str, np.ndarray]]:
        return [(field.name, getattr(self, field.name)) for field in fields(self)
                if field.name != "roots"]


@dataclass
class Descent:
    """A forest, laid out to be descended: from a place, the next one is `first` where
    `x <= split` does not hold and the one behind it where it does.

    A leaf's split is NaN, with which nothing compares, and `first` the leaf itself.
    """

    features: np.ndarray
    negated: np.ndarray
    """Whether -x is compared."""
    low: np.ndarray
    """Whether a NaN, which compares with nothing, counts as minus infinity, which is below all."""
    splits: np.ndarray
    first: np.ndarray
    values: np.ndarray
    given: np.ndarray
    """What the leaves have, as in Forest."""
    trees: int
    """Their roots are the first places."""
    depth: int

    @property
    def is_leaf(self) -> np.ndarray:
        return np.isnan(self.splits)


def descent_of(forest: Forest) -> Descent:
    unknown = set(forest.modes.tolist()) - {*_COMPARED, _LEAF}
    if unknown:
        raise Refused(f"it has branches of the kind {sorted(unknown)[0]}")
    if np.isnan(forest.splits[~forest.is_leaf]).any():
        raise Refused("it compares with NaN")
    made = _compared_one_way(forest)
    levels, trees = made.levels(), len(made.roots)
    # Those of a level beside each other, and each once.
    inner = np.concatenate([np.zeros(0, np.int64), *levels])
    inner = inner[np.sort(np.unique(inner, return_index=True)[1])]
    children = np.stack([made.on_false[inner], made.on_true[inner]], 1).ravel()
    nodes = np.concatenate([made.roots, children])
    firsts = np.zeros(len(made.modes), np.int64)
    firsts[inner] = trees + 2 * np.arange(len(inner))
    is_leaf = made.is_leaf[nodes]
    return Descent(
        features=made.features[nodes], negated=made.modes[nodes] == _GTE, low=made.missing[nodes],
        splits=np.where(is_leaf, np.nan, made.splits[nodes]).astype(made.splits.dtype),
        first=np.where(is_leaf, np.arange(len(nodes)), firsts[nodes]),
        values=made.values[nodes], given=made.given[nodes], trees=trees, depth=len(levels))


def _compared_one_way(forest: Forest) -> Forest:
    """Branches are LEQ, or GTE, whose splits are negated: -x <= -split.

    GT is LEQ with its children exchanged, and LT is GTE with them: a NaN goes to the true child
    where it went to the false one.  EQ is LEQ, whose true child is GTE.
    """
    equal = np.flatnonzero(np.isin(forest.modes, (_EQ, _NEQ)))
    second = np.arange(len(forest.modes), len(forest.modes) + len(equal))
    made = forest.with_copies(equal)
    exchanged = np.isin(made.modes, (_GT, _LT, _NEQ))
    # A NaN is not equal to anything.
    made.missing = np.where(exchanged, ~(made.missing | (made.modes == _NEQ)),
                            made.missing & ~made.is_leaf)
    made.on_true, made.on_false = (np.where(exchanged, made.on_false, made.on_true),
                                   np.where(exchanged, made.on_true, made.on_false))
    is_least = np.isin(made.modes, (_LT, _GTE))
    is_least[second] = True
    made.on_true[equal] = second
    made.modes = np.where(made.is_leaf, _LEAF, np.where(is_least, _GTE, _LEQ))
    made.splits = np.where(is_least, -made.splits, made.splits)
    return made


def of_nodes(node: Node, kind: str, targets: int) -> Forest:
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
    weights, to = numbers(node, f"{kind}_weights"), np.array(attrs[f"{kind}_ids"], np.int64)
    if targets == 1:
        # A leaf's further weights for the only target are ignored, as ONNX Runtime does and
        # sklearn-onnx relies on where it writes the leaf's number once for each class.
        leaves, first = np.unique(leaves, return_index=True)
        weights, to = weights[first], to[first]
    values, given = _leaf_table(len(modes), targets, leaves, to, weights)
    missing_true = attrs.get("nodes_missing_value_tracks_true") or np.zeros(len(modes))
    return Forest(modes, np.where(inner, attrs["nodes_featureids"], 0),
                  numbers(node, "nodes_values"), np.array(missing_true) != 0,
                  children[0], children[1], values, given, roots)


def numbers(node: Node, name: str) -> np.ndarray:
    """An attribute that is a list of floats or, of a longer name, a tensor."""
    tensor = node.attrs.get(f"{name}_as_tensor")
    if tensor is not None:
        return numpy_helper.to_array(tensor)
    return np.array(node.attrs.get(name, []), np.float32)


def of_tensors(node: Node) -> Forest:
    """TreeEnsemble of version 5: branches and leaves are numbered apart."""
    attrs = node.attrs
    splits = numpy_helper.to_array(attrs["nodes_splits"])
    weights = numpy_helper.to_array(attrs["leaf_weights"])
    mode_numbers = numpy_helper.to_array(attrs["nodes_modes"])
    if mode_numbers.size and int(mode_numbers.max()) >= len(_MODES):
        raise invalid(f"it has a mode {int(mode_numbers.max())}")
    modes = np.array([_MODES[mode] for mode in mode_numbers.tolist()] or [], dtype="U16")
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
                    values, given, _roots(attrs, inner))
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
    flat = numpy_helper.to_array(members)
    sets = [part[~np.isnan(part)] for part in np.split(flat, np.flatnonzero(np.isnan(flat)) + 1)]
    if len(sets[-1]) == 0:
        sets.pop()
    branches = np.flatnonzero(forest.modes == _MEMBER)
    if len(sets) != len(branches) or not all(map(len, sets)):
        raise invalid(f"it has {len(branches)} branches for members of sets and {len(sets)} sets")
    made = forest.with_copies(np.repeat(branches, [len(one) - 1 for one in sets]))
    free = len(forest.modes)
    for place, one in zip(branches, sets):
        chain = np.array([place, *range(free, free + len(one) - 1)])
        free += len(one) - 1
        made.modes[chain], made.splits[chain] = _EQ, one
        made.on_false[chain] = [*chain[1:], forest.on_false[place]]
        made.missing[chain[1:]] = False
    return made


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
