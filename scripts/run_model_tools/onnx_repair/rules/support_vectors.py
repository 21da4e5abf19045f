"""Support vector machines of ai.onnx.ml, as ONNX Runtime computes them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import Refused
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.classical import of_classes, transformed
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
    if node.attrs.get("prob_a"):
        raise Refused("it makes probabilities of classes by steps that end when they settle",
                      "export the classifier without probabilities.")
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
    return [of_classes(walk, node, best_place(walk, votes, 1)),
            _of_pairs(walk, scores, node.attrs.get("post_transform", "NONE"))][:node.outputs]


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
