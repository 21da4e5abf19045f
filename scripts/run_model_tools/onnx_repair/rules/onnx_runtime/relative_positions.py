"""What attention adds to its scores by how far two places lie apart: T5's and WavLM's, as ONNX
Runtime's tools write them for GPUs."""

from __future__ import annotations

import numpy as np

from run_model_tools.onnx_repair.refusal import Refused
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import reshaped
from run_model_tools.onnx_repair.rules.matmul import product
from run_model_tools.onnx_repair.rules.onnx_runtime import DOMAIN
from run_model_tools.onnx_repair.rules.reductions import reduce
from run_model_tools.onnx_repair.rules.shapes import transposed
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk


@rule("RelativePositionBias", domain=DOMAIN)
def relative_position_bias(walk: Walk, node: Node) -> Value:
    """A row of the table for each pair of places: one for each short distance, and one for each
    range of longer ones, which grow with the logarithm."""
    table = node.tensor(0)
    queries, keys = (node.ints(i, what) for i, what in ((1, "the number of queries"),
                                                        (2, "the number of keys")))
    most = node.attrs["max_distance"]
    if queries is None or keys is None or queries != keys:
        raise Refused("there are other numbers of keys than of queries, which ONNX Runtime does "
                      "not take either", "optimise the network without it.", "invalid")
    away = np.arange(keys[0])[None, :] - np.arange(queries[0])[:, None]
    count, first = table.shape[0], np.zeros_like(away)
    if node.attrs.get("is_bidirectional", 0):
        count //= 2
        first, away = np.where(away > 0, count, 0), np.abs(away)
    else:
        away = np.maximum(-away, 0)
    exact = count // 2
    ratio = np.log(np.maximum(away, 1).astype(np.float32) / np.float32(exact)) / np.log(
        np.float32(most / exact))
    far = np.minimum(exact + (ratio * np.float32(count - exact)).astype(np.int64), count - 1)
    rows = walk.graph.op("Gather", table, first + np.where(away < exact, away, far), axis=0)
    biases = transposed(walk, rows, [2, 0, 1])
    return reshaped(walk, biases, (1, *biases.shape))


@rule("GatedRelativePositionBias", domain=DOMAIN)
def gated_relative_position_bias(walk: Walk, node: Node) -> Value:
    """Biases by distance, each row of which a gate makes larger or smaller that follows from its
    query."""
    graph = walk.graph
    query, query_bias, biases, weight, bias, constant = (node.tensor(i) for i in range(6))
    if node.get(6) is not None:
        raise Refused("its queries are packed without padding",
                      "optimise the network without removing paddings.")
    heads = node.attrs["num_heads"]
    batch, length, width = query.shape
    query = graph.op("Add", query, query_bias)
    query = transposed(walk, reshaped(walk, query, (batch, length, heads, width // heads)),
                       [0, 2, 1, 3])
    gates = graph.op("Add", product(walk, query, weight), bias)
    halves = reshaped(walk, gates, (batch, heads, length, 2, gates.shape[-1] // 2))
    gates = graph.op("Sigmoid", reduce(walk, "ReduceSum", halves, [4], False))
    update, reset = (graph.op("Gather", gates, np.array([i]), axis=3) for i in (0, 1))
    factor = graph.op("Add", graph.op("Mul", reset, constant), -1)
    factor = graph.op("Add", graph.op("Mul", update, factor), 2)
    return graph.op("Mul", factor, biases)
