"""Tree ensembles of scikit-learn, XGBoost and LightGBM (ai.onnx.ml) against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from repaired_models import check, model_of, operators, repaired, run

from run_model_tools.errors import ToolError

ML = "ai.onnx.ml"
COMPARED = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
FEATURES = 4


def rows(count=40, dtype=np.float32):
    """Numbers that often equal a node's, some of them missing."""
    generator = np.random.default_rng(5)
    x = np.round(generator.normal(size=(count, FEATURES)) * 2) / 2
    x[generator.random(x.shape) < 0.1] = np.nan
    return x.astype(dtype)


def model(op, x, attrs, version=3, outputs=1):
    kinds = [TensorProto.INT64, TensorProto.FLOAT] if outputs == 2 else [
        helper.np_dtype_to_tensor_dtype(x.dtype) if op == "TreeEnsemble" else TensorProto.FLOAT]
    names = [f"y{i}" for i in range(outputs)]
    return model_of([helper.make_node(op, ["x"], names, domain=ML, **attrs)],
                    {"x": (helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)},
                    dict(zip(names, kinds)), 18, imports=[helper.make_opsetid(ML, version)])


def nodes(seed, modes, trees=7, missing=True, doubles=False, deepest=5):
    """Attributes of random trees of differing depths, and the leaves' (tree, node)."""
    generator = np.random.default_rng(seed)
    lists = {f"nodes_{name}": [] for name in (
        "treeids", "nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids",
        "missing_value_tracks_true")}
    leaves = []

    def grow(tree, own, depth):
        branches = depth > 0 and (generator.random() < 0.8 or own == 0)
        place = len(lists["nodes_modes"])
        for name, value in zip(lists, (
                tree, own, str(generator.choice(modes)) if branches else "LEAF",
                int(generator.integers(FEATURES)), float(np.round(generator.normal() * 2) / 2),
                0, 0, int(generator.random() < 0.5))):
            lists[name].append(value)
        if not branches:
            leaves.append((tree, own))
            return own + 1
        lists["nodes_truenodeids"][place] = own + 1
        after = grow(tree, own + 1, depth - 1)
        lists["nodes_falsenodeids"][place] = after
        return grow(tree, after, depth - 1)

    for tree in range(trees):
        grow(tree, 0, 1 + tree % deepest)
    if not missing:
        del lists["nodes_missing_value_tracks_true"]
    if doubles:
        values = np.array(lists.pop("nodes_values"), np.float64)
        lists["nodes_values_as_tensor"] = numpy_helper.from_array(values)
    return lists, leaves


def weights(kind, leaves, targets, seed=1, positive=False, per_leaf=None):
    """One value of a target for each leaf, or one of each target."""
    generator = np.random.default_rng(seed)
    ids = [(at, target) for at in range(len(leaves)) for target in (
        range(targets) if per_leaf is None else [at % per_leaf])]
    values = generator.random(len(ids)) / 20 + 0.01 if positive else generator.normal(size=len(ids))
    return {f"{kind}_treeids": [leaves[at][0] for at, _ in ids],
            f"{kind}_nodeids": [leaves[at][1] for at, _ in ids],
            f"{kind}_ids": [target for _, target in ids],
            f"{kind}_weights": [float(value) for value in values]}


@pytest.mark.parametrize("modes", [[mode] for mode in COMPARED] + [COMPARED])
@pytest.mark.parametrize("missing", [False, True])
def test_comparisons_and_missing_numbers(modes, missing):
    attrs, leaves = nodes(2, modes, missing=missing)
    x = rows()
    check(model("TreeEnsembleRegressor", x, {
        **attrs, **weights("target", leaves, 1), "n_targets": 1, "base_values": [0.5]}), {"x": x})


@pytest.mark.parametrize("how", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("per_leaf", [None, 2])
def test_trees_are_put_together(how, per_leaf):
    attrs, leaves = nodes(3, ["BRANCH_LEQ"])
    x = rows()
    check(model("TreeEnsembleRegressor", x, {
        **attrs, **weights("target", leaves, 3, per_leaf=per_leaf), "n_targets": 3,
        "aggregate_function": how}), {"x": x})


def test_a_leaf_with_several_weights_of_the_only_target_has_the_first():
    attrs, leaves = nodes(3, ["BRANCH_LEQ"])
    x, more = rows(), weights("target", leaves, 3)
    more["target_ids"] = [0] * len(more["target_ids"])
    check(model("TreeEnsembleRegressor", x, {**attrs, **more, "n_targets": 1}), {"x": x})


def test_other_types_of_rows():
    attrs, leaves = nodes(4, ["BRANCH_LT"], doubles=True)
    x = rows(dtype=np.float64)
    more = weights("target", leaves, 1)
    more["target_weights_as_tensor"] = numpy_helper.from_array(
        np.array(more.pop("target_weights")))
    check(model("TreeEnsembleRegressor", x, {**attrs, **more, "n_targets": 1}), {"x": x})
    attrs, leaves = nodes(4, ["BRANCH_LT"])
    x = np.nan_to_num(x).astype(np.int64)
    check(model("TreeEnsembleClassifier", x, {
        **attrs, **weights("class", leaves, 3), "classlabels_int64s": [0, 1, 2]}, outputs=2),
        {"x": x})


@pytest.mark.parametrize("how", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("base", [[], [0.1, -0.2, 0.3]])
def test_classes(how, base):
    attrs, leaves = nodes(5, ["BRANCH_LEQ"])
    x = rows()
    check(model("TreeEnsembleClassifier", x, {
        **attrs, **weights("class", leaves, 3), "classlabels_int64s": [4, 9, 2],
        "post_transform": how, **({"base_values": base} if base else {})}, outputs=2), {"x": x})


@pytest.mark.parametrize("how", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("base", [[], [0.2]])
def test_two_classes_of_one_score(how, positive, base):
    attrs, leaves = nodes(6, ["BRANCH_LEQ"], trees=9)
    x = rows()
    check(model("TreeEnsembleClassifier", x, {
        **attrs, **weights("class", leaves, 1, positive=positive), "classlabels_int64s": [3, 1],
        "post_transform": how, **({"base_values": base} if base else {})}, outputs=2), {"x": x})


@pytest.mark.parametrize("positive", [False, True])
def test_two_classes_of_two_scores(positive):
    attrs, leaves = nodes(7, ["BRANCH_LEQ"])
    x = rows()
    check(model("TreeEnsembleClassifier", x, {
        **attrs, **weights("class", leaves, 2, positive=positive),
        "classlabels_int64s": [0, 1]}, outputs=2), {"x": x})


def test_probits():
    attrs, leaves = nodes(8, ["BRANCH_LEQ"], trees=4)
    x = rows()
    check(model("TreeEnsembleRegressor", x, {
        **attrs, **weights("target", leaves, 1, positive=True), "n_targets": 1,
        "post_transform": "PROBIT"}), {"x": x})


@pytest.mark.parametrize("modes", [[mode] for mode in COMPARED])
def test_infinity(modes):
    """Which a NaN that goes to the true child must not be taken for."""
    attrs, leaves = nodes(2, modes)
    generator = np.random.default_rng(6)
    infinite = generator.choice([-np.inf, 0.0, np.inf], len(attrs["nodes_values"]))
    attrs["nodes_values"] = [float(value) for value in infinite]
    x = generator.choice([-np.inf, 0.0, np.inf, np.nan], (40, FEATURES)).astype(np.float32)
    check(model("TreeEnsembleRegressor", x, {
        **attrs, **weights("target", leaves, 1), "n_targets": 1}), {"x": x})


def test_tables_of_nodes_are_shared_by_all_levels():
    attrs, leaves = nodes(3, ["BRANCH_LEQ"])
    x = rows()
    made = check(model("TreeEnsembleRegressor", x, {
        **attrs, **weights("target", leaves, 1), "n_targets": 1}), {"x": x})
    tables = [table for table in made.graph.initializer
              if np.prod(table.dims) >= len(attrs["nodes_modes"])]
    assert len(tables) == 4


def beside(x, ensembles, inputs=None, constants=None, before=()):
    """Nodes of the same input, if `inputs` do not say another; (operator, attributes) of each."""
    made, outputs = list(before), {}
    for number, (op, attrs) in enumerate(ensembles):
        names = [f"label{number}", f"y{number}"][op != "TreeEnsembleClassifier":]
        made.append(helper.make_node(op, [(inputs or {}).get(number, "x")], names, domain=ML,
                                     **attrs))
        outputs |= {name: TensorProto.INT64 if name.startswith("label") else TensorProto.FLOAT
                    for name in names}
    return model_of(made, {"x": (helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)}, outputs, 18,
                    constants, imports=[helper.make_opsetid(ML, 3)])


def regressor(seed, modes, trees=7, targets=1, deepest=5, **more):
    attrs, leaves = nodes(seed, modes, trees, deepest=deepest)
    return "TreeEnsembleRegressor", {**attrs, **weights("target", leaves, targets),
                                     "n_targets": targets, **more}


def levels(made):
    """Below the roots, of what descends together."""
    return operators(made).count("GatherElements")


def test_ensembles_of_one_input_descend_together():
    attrs, leaves = nodes(6, ["BRANCH_LT"], trees=3)
    classifier = "TreeEnsembleClassifier", {
        **attrs, **weights("class", leaves, 3), "classlabels_int64s": [4, 9, 2]}
    x = rows()
    assert levels(check(beside(x, [
        regressor(2, ["BRANCH_LEQ"], 2), regressor(3, COMPARED, 5, 3, aggregate_function="MIN"),
        classifier, regressor(4, ["BRANCH_LEQ"], 1, 2, aggregate_function="AVERAGE"),
    ]), {"x": x})) == 6  # "Equal" is two.


def test_ensembles_of_columns_of_one_input_descend_together():
    x = rows()
    chosen = [helper.make_node("Gather", ["x", "first"], ["x0"], axis=1),
              helper.make_node("ArrayFeatureExtractor", ["x", "second"], ["x1"], domain=ML)]
    assert levels(check(beside(
        x, [regressor(2, ["BRANCH_LEQ"]), regressor(3, ["BRANCH_LT"]), regressor(4, ["BRANCH_GT"])],
        {0: "x0", 1: "x1"}, {"first": np.array([3, 1, 0, -2]), "second": np.array([[2, 2, 0, 1]])},
        chosen), {"x": x})) == 4


def test_ensembles_that_do_not_fit_together_descend_apart():
    few, many = regressor(2, ["BRANCH_LEQ"], 5), regressor(3, ["BRANCH_LEQ"], 300, deepest=1)
    x = rows()
    assert levels(check(beside(x, [few, many]), {"x": x})) == 4
    in_double, leaves = nodes(4, ["BRANCH_LEQ"], 5, doubles=True)
    values = weights("target", leaves, 1)
    values["target_weights_as_tensor"] = numpy_helper.from_array(
        np.array(values.pop("target_weights")))
    x = x.astype(np.float64)
    single = helper.make_node("Cast", ["x"], ["single"], to=TensorProto.FLOAT)
    assert levels(check(beside(
        x, [few, ("TreeEnsembleRegressor", {**in_double, **values, "n_targets": 1})],
        {0: "single"}, before=[single]), {"x": x})) == 8


def test_an_ensemble_that_cannot_be_is_named_itself():
    good, wrong = regressor(2, ["BRANCH_LEQ"]), regressor(3, ["BRANCH_WHY"])
    x = rows(2)
    with pytest.raises(ToolError, match="label_it.*branches of the kind BRANCH_WHY"):
        made = beside(x, [good, wrong])
        made.graph.node[1].name = "label_it"
        repaired(made, {"x": x})


def newest(dtype, mode_numbers, members=None):
    """TreeEnsemble of version 5: a leaf shared by branches, and a tree that is a leaf."""
    count = len(mode_numbers)
    more = {} if members is None else {
        "membership_values": numpy_helper.from_array(np.array(members, dtype))}
    return dict(
        n_targets=2, tree_roots=[0, count - 1], nodes_featureids=[1, 0, 2, 0],
        nodes_modes=numpy_helper.from_array(np.array(mode_numbers, np.uint8)),
        nodes_splits=numpy_helper.from_array(np.array([0.5, -0.5, 1.0, 0.0], dtype)),
        nodes_truenodeids=[1, 0, 1, 4], nodes_trueleafs=[0, 1, 1, 1],
        nodes_falsenodeids=[2, 2, 3, 4], nodes_falseleafs=[0, 1, 1, 1],
        leaf_targetids=[0, 1, 0, 1, 0],
        leaf_weights=numpy_helper.from_array(np.array([5.0, 12.0, -3.0, 1.5, 0.25], dtype)), **more)


def descended(x, attrs):
    """TreeEnsemble row by row; ONNX Runtime 1.20 does not know it, and onnx 1.16's evaluator takes
    another leaf for a tree that is one."""
    arrays = {name: numpy_helper.to_array(value) for name, value in attrs.items()
              if not isinstance(value, (int, list))}
    sets, at = {}, 0
    for place in np.flatnonzero(arrays["nodes_modes"] == 6):
        numbers = arrays["membership_values"][at:]
        count = int(np.argmax(np.isnan(numbers)))
        sets[place], at = set(numbers[:count].tolist()), at + count + 1
    compare = [np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal]
    put = {0: np.sum, 1: np.sum, 2: np.min, 3: np.max}[attrs.get("aggregate_function", 1)]
    result = np.zeros((len(x), attrs["n_targets"]), x.dtype)
    for number, row in enumerate(x):
        reached = [[] for _ in range(attrs["n_targets"])]
        for root in attrs["tree_roots"]:
            node, is_leaf = root, 0
            while not is_leaf:
                value, mode = row[attrs["nodes_featureids"][node]], arrays["nodes_modes"][node]
                true = (value in sets[node] if mode == 6 else
                        compare[mode](value, arrays["nodes_splits"][node]))
                side = "true" if true else "false"
                node, is_leaf = (attrs[f"nodes_{side}nodeids"][node],
                                 attrs[f"nodes_{side}leafs"][node])
            reached[attrs["leaf_targetids"][node]].append(arrays["leaf_weights"][node])
        result[number] = [put(values) if values else 0 for values in reached]
    return result / (len(attrs["tree_roots"]) if attrs.get("aggregate_function", 1) == 0 else 1)


def evaluated(dtype, attrs):
    x = np.nan_to_num(rows(dtype=dtype))
    (have,) = run(repaired(model("TreeEnsemble", x, attrs, version=5), {"x": x}), {"x": x})
    assert have.dtype == dtype
    np.testing.assert_allclose(have, descended(x, attrs), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("how", [0, 1, 2, 3])
def test_newest_form(dtype, how):
    evaluated(dtype, {**newest(dtype, [0, 3, 1, 0]), "aggregate_function": how})


def test_branches_for_members_of_a_set():
    evaluated(np.float32, newest(
        np.float32, [6, 0, 6, 0], [0.5, -0.5, 1.0, np.nan, 2.0, 0.0, np.nan]))


def test_trees_that_cannot_be(monkeypatch):
    attrs, leaves = nodes(9, ["BRANCH_LEQ"])
    attrs |= {**weights("target", leaves, 1), "n_targets": 1}
    x = rows(2)
    first = attrs["nodes_modes"].index("BRANCH_LEQ")
    for name, value, said in (("nodes_truenodeids", 999, "no node .0, 999."),
                              ("nodes_featureids", 7, "features that its input, with 4, has not"),
                              ("nodes_truenodeids", attrs["nodes_falsenodeids"][first],
                               "not every tree has one root"),
                              ("nodes_values", float("nan"), "compares with NaN"),
                              ("nodes_modes", "BRANCH_WHY", "branches of the kind BRANCH_WHY")):
        changed = list(attrs[name])
        changed[first] = value
        with pytest.raises(ToolError, match=said):
            repaired(model("TreeEnsembleRegressor", x, {**attrs, name: changed}), {"x": x})
    monkeypatch.setattr("run_model_tools.onnx_repair.rules.classical.forest._TABLE_BYTES", 10)
    with pytest.raises(ToolError, match="nodes with 1 values each"):
        repaired(model("TreeEnsembleRegressor", x, attrs), {"x": x})
