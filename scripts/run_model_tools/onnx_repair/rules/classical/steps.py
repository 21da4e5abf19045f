"""Operators of ai.onnx.ml that are a step before or after a network, or a network of one layer."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, numpy_helper

from run_model_tools.onnx_repair.refusal import Refused
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.reductions import best_place, reduce
from run_model_tools.onnx_repair.rules.shapes import concatenated
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk

_DOMAIN = "ai.onnx.ml"


@rule("Binarizer", domain=_DOMAIN)
def binarizer(walk: Walk, node: Node) -> Value:
    x = node.tensor(0)
    return cast(walk, walk.graph.op("Greater", x, float(node.attrs.get("threshold", 0.0))),
                x.elem_type)


@rule("ArrayFeatureExtractor", domain=_DOMAIN)
def array_feature_extractor(walk: Walk, node: Node) -> Value:
    x, places = node.tensor(0), node.tensor(1)
    if x.rank == 1:
        x = reshaped(walk, x, (1, x.size))
    return walk.graph.op("Gather", x, reshaped(walk, places, (places.size,)), axis=x.rank - 1)


@rule("Scaler", domain=_DOMAIN)
def scaler(walk: Walk, node: Node) -> Value:
    graph = walk.graph
    x = cast(walk, node.tensor(0), TensorProto.FLOAT)
    offset, scale = (np.array(node.attrs[key], np.float32) for key in ("offset", "scale"))
    return graph.op("Mul", graph.op("Sub", x, offset), scale)


@rule("LinearRegressor", domain=_DOMAIN)
def linear_regressor(walk: Walk, node: Node) -> Value:
    return transformed(walk, _linear(walk, node, node.attrs.get("targets", 1)),
                       node.attrs.get("post_transform", "NONE"))


@rule("LinearClassifier", domain=_DOMAIN)
def linear_classifier(walk: Walk, node: Node) -> list[Value | None]:
    labels = node.attrs.get("classlabels_ints") or node.attrs.get("classlabels_strings") or []
    x = node.tensor(0)
    if len(labels) < 2 or len(node.attrs["coefficients"]) != len(labels) * x.shape[-1]:
        raise Refused("it has not as many rows of coefficients as classes")
    scores = _linear(walk, node, len(labels))
    best = best_place(walk, scores, 1)
    return [of_classes(walk, node, best), transformed(
        walk, scores, node.attrs.get("post_transform", "NONE"))][:node.outputs]


def of_classes(walk: Walk, node: Node, places: Value) -> Value | None:
    """The labels of classes by their places; None where they are texts, or not used."""
    labels = node.attrs.get("classlabels_int64s") or node.attrs.get("classlabels_ints")
    if not labels or not node.wanted[0]:
        return None
    return walk.graph.op("Gather", walk.graph.constant(np.array(labels, np.int64)), places, axis=0)


def _linear(walk: Walk, node: Node, rows: int) -> Value:
    """The products with each row of coefficients, and what is added to them."""
    x = cast(walk, node.tensor(0), TensorProto.FLOAT)
    if x.rank == 1:
        x = reshaped(walk, x, (1, x.size))
    weights = np.array(node.attrs["coefficients"], np.float32).reshape(rows, -1)
    made = walk.graph.op("MatMul", x, np.ascontiguousarray(weights.T))
    bias = np.array(node.attrs.get("intercepts", [0.0] * rows), np.float32)
    return walk.graph.op("Add", made, bias)


def transformed(walk: Walk, scores: Value, how: str) -> Value:
    """Scores after the node's post_transform, as ONNX Runtime computes it."""
    graph = walk.graph
    if how == "SOFTMAX":
        return graph.op("Softmax", scores, axis=-1)
    if how == "LOGISTIC":
        return graph.op("Sigmoid", scores)
    if how == "SOFTMAX_ZERO":
        counts = graph.op("Greater", graph.op("Abs", scores), 1e-7)
        most = reduce(walk, "ReduceMax", scores, [1])
        powers = graph.op("Where", counts, graph.op("Exp", graph.op("Sub", scores, most)),
                          graph.like(0, scores))
        return graph.op("Div", powers, reduce(walk, "ReduceSum", powers, [1]))
    if how == "PROBIT":
        return _probit(walk, scores)
    if how != "NONE":
        raise Refused(f"its results are transformed by {how}")
    return scores


def _probit(walk: Walk, x: Value) -> Value:
    """Winitzki's inverse of the error function, of which ONNX Runtime makes the quantile."""
    graph = walk.graph
    centred = graph.op("Sub", graph.op("Mul", x, 2), 1)
    log = graph.op("Log", graph.op("Mul", graph.op("Sub", graph.like(1, x), centred),
                                   graph.op("Add", centred, 1)))
    half = graph.op("Add", graph.op("Mul", log, 0.5), 2 / (3.14159 * 0.147))
    root = graph.op("Sqrt", graph.op("Sub", graph.op("Mul", half, half),
                                     graph.op("Div", log, 0.147)))
    size = graph.op("Sqrt", graph.op("Sub", root, half))
    return graph.op("Mul", graph.op("Mul", graph.op("Sign", centred), size), 2 ** 0.5)


@rule("Normalizer", domain=_DOMAIN)
def normalizer(walk: Walk, node: Node) -> Value:
    """Rows of nothing but zeros stay so."""
    graph = walk.graph
    x = cast(walk, node.tensor(0), TensorProto.FLOAT)
    axes = [x.rank - 1]
    norm = node.attrs.get("norm", "MAX")
    if norm == "MAX":
        size = reduce(walk, "ReduceMax", x, axes)
    elif norm == "L1":
        size = reduce(walk, "ReduceSum", graph.op("Abs", x), axes)
    else:
        size = graph.op("Sqrt", reduce(walk, "ReduceSum", graph.op("Mul", x, x), axes))
    return graph.op("Div", x, graph.op("Where", graph.op("Equal", size, 0), graph.like(1, x), size))


@rule("Imputer", domain=_DOMAIN)
def imputer(walk: Walk, node: Node) -> Value:
    x = node.tensor(0)
    kind = "float" if x.is_float else "int64"
    value = np.array(node.attrs[f"imputed_value_{kind}s"], x.dtype)
    missing = node.attrs.get(f"replaced_value_{kind}", 0)
    found = (walk.graph.op("IsNaN", x) if missing != missing
             else walk.graph.op("Equal", x, walk.graph.like(missing, x)))
    return walk.graph.op("Where", found, walk.graph.constant(value), x)


@rule("FeatureVectorizer", domain=_DOMAIN)
def feature_vectorizer(walk: Walk, node: Node) -> Value:
    rows = [x if x.rank > 1 else reshaped(walk, x, (1, x.size)) for x in node.tensors()]
    return concatenated(walk, [cast(walk, row, TensorProto.FLOAT) for row in rows], 1)


@rule("OneHotEncoder", domain=_DOMAIN)
def one_hot_encoder(walk: Walk, node: Node) -> Value:
    """A number that is none of the categories is all zeros."""
    graph = walk.graph
    categories = node.attrs.get("cats_int64s")
    if not categories:
        raise Refused("its categories are texts, and compiled code has numbers only")
    x = cast(walk, node.tensor(0), TensorProto.INT64)
    found = graph.op("Equal", reshaped(walk, x, (*x.shape, 1)),
                     graph.constant(np.array(categories, np.int64)))
    return cast(walk, found, TensorProto.FLOAT)


@rule("LabelEncoder", domain=_DOMAIN)
def label_encoder(walk: Walk, node: Node) -> Value:
    """What is none of the keys has the default; NaN is equal to itself from version 4 on."""
    graph = walk.graph
    x = node.tensor(0)
    keys, values = _column(node, "keys"), _column(node, "values")
    if keys is None or values is None or keys.dtype != x.dtype or keys.size != values.size:
        raise Refused("it translates from or to texts, and compiled code has numbers only")
    default = node.attrs.get("default_tensor")
    other = np.asarray(numpy_helper.to_array(default) if default is not None else node.attrs.get(
        "default_float", -0.0) if values.dtype.kind == "f" else node.attrs.get("default_int64", -1),
        values.dtype).reshape(1)
    keys, first = np.unique(keys, return_index=True)  # Of equal ones the first counts.
    table = graph.constant(np.concatenate([values[first], other]))
    count = len(keys)
    if keys.dtype.kind == "i" and count and int(keys[-1]) - int(keys[0]) < _MOST_PLACES:
        rows = np.full(int(keys[-1] - keys[0]) + 1, count, np.int64)
        rows[keys - keys[0]] = np.arange(count)
        within = graph.op("And", graph.op("GreaterOrEqual", x, int(keys[0])),
                          graph.op("LessOrEqual", x, int(keys[-1])))
        at = graph.op("Sub", graph.op("Where", within, x, graph.like(int(keys[0]), x)),
                      int(keys[0]))
        found = graph.op("Where", within, graph.op("Gather", rows, at, axis=0),
                         graph.constant(count, np.int64))
        return graph.op("Gather", table, found, axis=0)
    column = reshaped(walk, x, (*x.shape, 1))
    equal = graph.op("Equal", column, graph.constant(keys))
    if node.opset >= 4 and keys.dtype.kind == "f" and np.isnan(keys).any():
        equal = graph.op("Or", equal, graph.op("And", graph.op("IsNaN", column),
                                               graph.constant(np.isnan(keys))))
    places = graph.op("Where", equal, graph.constant(np.arange(count)),
                      graph.constant(count, np.int64))
    return graph.op("Gather", table, reduce(walk, "ReduceMin", places, [x.rank], False), axis=0)


_MOST_PLACES = 1 << 16
"""Of a table with a place for each whole number from the smallest key to the largest."""


def _column(node: Node, which: str) -> np.ndarray | None:
    """A LabelEncoder's keys or values; None where they are texts."""
    tensor = node.attrs.get(f"{which}_tensor")
    if tensor is not None:
        array = numpy_helper.to_array(tensor).ravel()
        return array if array.dtype.kind in "if" else None
    for kind, dtype in (("int64s", np.int64), ("floats", np.float32)):
        if node.attrs.get(f"{which}_{kind}"):
            return np.array(node.attrs[f"{which}_{kind}"], dtype)
    return None
