"""Operators of ai.onnx.ml that are a step before or after a network."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
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
