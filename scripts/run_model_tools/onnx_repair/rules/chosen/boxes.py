"""Boxes that no better one overlaps (NonMaxSuppression), chosen of all boxes."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import data_dependent
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.chosen.counts import numbers_of
from run_model_tools.onnx_repair.rules.chosen.masks import is_same
from run_model_tools.onnx_repair.rules.chosen.order import sort_keys
from run_model_tools.onnx_repair.rules.chosen.rows import chosen
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.values import Chosen, Node, Value
from run_model_tools.onnx_repair.walk import Walk

_DOMAIN = "run_model"
_SUPPRESSION = "SuppressedBoxes"
"""What a NonMaxSuppression becomes (inside_tvm/operators/chosen_boxes.py)."""


@rule("NonMaxSuppression")
def suppressed(walk: Walk, node: Node) -> Chosen | Value:
    """Boxes that no better one of their class overlaps by more than a threshold, the best first."""
    graph = walk.graph
    refused = data_dependent("the shape of its result")
    if walk.is_open:
        raise refused
    given = [i for i in node.inputs[:2] if isinstance(i, Chosen)]
    candidates: Value | None = None
    if given:
        places, best = given[0], given[-1]
        if len(given) != 2 or places.lead != 1 or best.lead != 2 or not is_same(
                walk, places, best):
            raise places.why
        count = places.rows.shape[0]
        candidates = reshaped(walk, places.mask, (1, 1, count))
        boxes = reshaped(walk, places.rows, (1, count, 4))
        scores = reshaped(walk, best.rows, (1, 1, count))
    else:
        boxes, scores = node.tensor(0), node.tensor(1)
    boxes, scores = cast(walk, boxes, TensorProto.FLOAT), cast(walk, scores, TensorProto.FLOAT)
    batch, classes, count = scores.shape
    wanted = node.get(2)
    most = 0 if wanted is None else numbers_of(walk, wanted)[0].most
    most = count if most is None else min(most, count)
    if most <= 0 or not batch * classes:
        return graph.constant(np.zeros((0, 3), np.int64))
    least = node.get(4)
    if least is not None:
        above = graph.op("Greater", scores, reshaped(walk, least, ()))
        candidates = above if candidates is None else graph.op("And", candidates, above)
    if candidates is None:
        counts = graph.constant(np.full((batch, classes), count, np.int64))
    else:
        scores = sort_keys(walk, scores, candidates, True)
        counts = graph.op("ReduceSum", cast(walk, candidates, TensorProto.INT64), np.array([2]),
                          keepdims=0)
    order = walk.node_in("TopK", 11, [scores, graph.constant([count], np.int64)], 2)[1]
    threshold = node.get(3)
    threshold = graph.constant(np.zeros(1, np.float32)) if threshold is None else reshaped(
        walk, threshold, (1,))
    kept = graph.foreign(_DOMAIN, _SUPPRESSION, [order, boxes, counts, threshold],
                         [(batch, classes, most + 1)], most=most,
                         center_point_box=node.attrs.get("center_point_box", 0))[0]
    found, which = graph.ops("Split", [kept, np.array([1, most])], 2, axis=2)
    if wanted is not None and wanted.array is None:
        found = graph.op("Min", found, reshaped(walk, wanted, ()))
    mask = graph.op("Less", graph.constant(np.arange(most)), found)
    of = graph.constant(np.indices((batch, classes, most))[:2].transpose(1, 2, 3, 0))
    rows = graph.op("Concat", of, graph.op("Unsqueeze", which, np.array([3])), axis=3)
    total = batch * classes * most
    made = chosen(walk, node, reshaped(walk, rows, (total, 3)), reshaped(walk, mask, (total,)),
                  refused, first=batch * classes == 1)
    return made.but(of=given[0].but(lead=0), column=2) if given else made
