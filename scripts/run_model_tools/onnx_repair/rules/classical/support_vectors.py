"""Support vector machines of ai.onnx.ml, as ONNX Runtime computes them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import Refused
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.classical.steps import of_classes, transformed
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.reductions import best_place, reduce
from run_model_tools.onnx_repair.rules.shapes import concatenated
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk

_DOMAIN = "ai.onnx.ml"


@rule("SVMRegressor", domain=_DOMAIN)
def svm_regressor(walk: Walk, node: Node) -> Value:
    graph = walk.graph
    x, supports = _rows(walk, node), node.attrs.get("n_supports", 0)
    weights = np.array(node.attrs["coefficients"], np.float32).reshape(-1, 1)
    made = _kernel(walk, node, x, supports) if supports else x
    made = graph.op("Add", graph.op("MatMul", made, weights), float(node.attrs["rho"][0]))
    if node.attrs.get("one_class", 0):
        return graph.op("Where", graph.op("Greater", made, 0), graph.like(1, made),
                        graph.like(-1, made))
    return transformed(walk, made, node.attrs.get("post_transform", "NONE"))


@rule("SVMClassifier", domain=_DOMAIN)
def svm_classifier(walk: Walk, node: Node) -> list[Value | None]:
    """Each two classes have a machine between them, and the class that wins most often is best."""
    graph = walk.graph
    labels = node.attrs.get("classlabels_ints") or node.attrs.get("classlabels_strings") or []
    owned = node.attrs.get("vectors_per_class") or []
    x = _rows(walk, node)
    if not owned:
        return _of_linear_machines(walk, node, x, len(labels))
    if len(owned) != len(labels) or len(labels) < 2:
        raise Refused("it has not as many groups of support vectors as classes")
    pairs = list(combinations(range(len(labels)), 2))
    ends = np.cumsum([0, *owned])
    given = np.array(node.attrs["coefficients"], np.float32).reshape(len(labels) - 1, -1)
    weights = np.zeros((ends[-1], len(pairs)), np.float32)
    wins, least = (np.zeros((len(pairs), len(labels)), np.float32) for _ in range(2))
    for number, (first, second) in enumerate(pairs):
        for own, row in ((first, second - 1), (second, first)):
            place = slice(ends[own], ends[own + 1])
            weights[place, number] = given[row, place]
        wins[number, [first, second]] = 1, -1
        least[number, second] = 1
    scores = graph.op("Add", graph.op("MatMul", _kernel(walk, node, x, int(ends[-1])), weights),
                      np.array(node.attrs["rho"], np.float32))
    won = cast(walk, graph.op("Greater", scores, 0), TensorProto.FLOAT)
    votes = graph.op("Add", graph.op("MatMul", won, wins), least.sum(0))
    how = node.attrs.get("post_transform", "NONE")
    made = (transformed(walk, _probabilities(walk, node, scores, pairs), how)
            if node.attrs.get("prob_a") else _of_pairs(walk, scores, how))
    return [of_classes(walk, node, best_place(walk, votes, 1)), made][:node.outputs]


_ROUNDS = 8
"""Of 5400 random rows of 2 to 20 classes none took more than 5; ONNX Runtime ends after 100."""


def _probabilities(walk: Walk, node: Node, scores: Value, pairs: list[tuple[int, int]]) -> Value:
    """[rows, classes]: Wu, Lin and Weng (2004), "Probability estimates for multi-class
    classification by pairwise coupling", section 4, as LIBSVM has it.

    The p that makes p'Qp least is found class by class; a row is left when each class of its Qp is
    within 0.005 / classes of p'Qp.
    """
    graph, classes = walk.graph, pairs[-1][1] + 1
    a, b = (np.array(node.attrs[f"prob_{name}"], np.float32) for name in "ab")
    if len(a) != len(pairs) or len(b) != len(pairs):
        raise Refused(f"it has {len(a)} and {len(b)} numbers for the probabilities of {len(pairs)} "
                      "pairs of classes", "the model is not valid.", "invalid")
    first = graph.op("Sigmoid", graph.op("Neg", graph.op("Add", graph.op("Mul", scores, a), b)))
    first = graph.op("Min", graph.op("Max", first, 1e-7), 1 - 1e-7)
    second = graph.op("Sub", graph.like(1, first), first)
    # Columns of Q's numbers beside its diagonal, and of those on it.
    beside = graph.op("Neg", graph.op("Mul", first, second))
    owns = np.zeros((2, len(pairs), classes), np.float32)
    places = np.diag(np.arange(classes) + len(pairs))
    for number, pair in enumerate(pairs):
        owns[[0, 1], number, pair] = 1
        places[pair] = places[pair[::-1]] = number
    of_first, of_second = (graph.op("MatMul", graph.op("Mul", one, one), own)
                           for one, own in zip((second, first), owns))
    on = graph.op("Add", of_first, of_second)
    rows = scores.shape[0]
    q = reshaped(walk, graph.op("Gather", concatenated(walk, [beside, on], 1), places.ravel(),
                                axis=1), (rows, classes, classes))
    p = graph.constant(np.full((rows, classes), 1 / classes, np.float32))
    for _ in range(_ROUNDS):
        before, apart = p, _beyond(walk, q, p)
        error = reduce(walk, "ReduceMax", graph.op("Abs", apart), [1])
        for one in range(classes):
            # Divided by Q[one, one]; p keeps a sum of 1.
            column, units = np.array([one]), np.eye(classes, dtype=np.float32)[[one]]
            step = graph.op("Div", *(graph.op("Gather", x, column, axis=1)
                                     for x in (apart if not one else _beyond(walk, q, p), on)))
            p = graph.op("Div", graph.op("Add", p, graph.op("Mul", step, units)),
                         graph.op("Add", step, 1))
        p = graph.op("Where", graph.op("Less", error, 0.005 / classes), before, p)
    return p


def _beyond(walk: Walk, q: Value, p: Value) -> Value:
    """[rows, classes]: p'Qp less Qp."""
    graph, (rows, classes) = walk.graph, p.shape
    products = graph.op("Mul", q, reshaped(walk, p, (rows, 1, classes)))
    q_p = reduce(walk, "ReduceSum", products, [2], keepdims=False)
    return graph.op("Sub", reduce(walk, "ReduceSum", graph.op("Mul", p, q_p), [1]), q_p)


def _of_pairs(walk: Walk, scores: Value, how: str) -> Value:
    """The scores of each two classes; of two alone a column for each."""
    if scores.shape[1] > 1:
        return transformed(walk, scores, how)
    if how not in ("NONE", "LOGISTIC", "SOFTMAX"):
        raise Refused(f"it transforms the scores of two classes by {how}")
    other = walk.graph.op("Sub", walk.graph.like(0 if how == "NONE" else 1, scores), scores)
    return concatenated(walk, [other, scores], 1)


def _of_linear_machines(walk: Walk, node: Node, x: Value, classes: int) -> list[Value | None]:
    """Without support vectors: a row of coefficients for each class."""
    graph = walk.graph
    if classes < 3:
        raise Refused("it has two classes and no support vectors",
                      "export it as a LinearClassifier.")
    weights = np.array(node.attrs["coefficients"], np.float32).reshape(classes, -1)
    scores = graph.op("Add", graph.op("MatMul", x, np.ascontiguousarray(weights.T)),
                      float(node.attrs["rho"][0]))
    return [of_classes(walk, node, best_place(walk, scores, 1)),
            transformed(walk, scores, node.attrs.get("post_transform", "NONE"))][:node.outputs]


def _rows(walk: Walk, node: Node) -> Value:
    x = cast(walk, node.tensor(0), TensorProto.FLOAT)
    return reshaped(walk, x, (1, x.size)) if x.rank == 1 else x


def _kernel(walk: Walk, node: Node, x: Value, count: int) -> Value:
    """[rows, support vectors]."""
    graph = walk.graph
    supports = np.array(node.attrs["support_vectors"], np.float32).reshape(count, -1)
    kind = node.attrs.get("kernel_type", "LINEAR")
    gamma, shift, degree = (node.attrs.get("kernel_params") or [0.0, 0.0, 0.0])[:3]
    if kind == "RBF":
        # Not by products, which cancel where a row is near a vector.
        apart = graph.op("Sub", reshaped(walk, x, (x.shape[0], 1, x.shape[1])), supports[None])
        far = reduce(walk, "ReduceSum", graph.op("Mul", apart, apart), [2], keepdims=False)
        return graph.op("Exp", graph.op("Mul", far, -gamma))
    made = graph.op("MatMul", x, np.ascontiguousarray(supports.T))
    if kind == "LINEAR":
        return made
    made = graph.op("Add", graph.op("Mul", made, gamma), shift)
    if kind == "POLY":
        return graph.op("Pow", made, degree)
    if kind == "SIGMOID":
        return graph.op("Tanh", made)
    raise Refused(f"it has a kernel of the kind {kind}")
