"""Pad and CenterCropPad: more elements at the ends of axes, or fewer."""

from __future__ import annotations

import numpy as np

from run_model_tools.onnx_repair.refusal import Refused
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.indexing import sliced
from run_model_tools.onnx_repair.rules.shapes import concatenated, volume_of
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk


@rule("Pad")
def pad(walk: Walk, node: Node) -> Value:
    """Constant, edge and reflect are the importer's; wrap is made of slices.  What is written
    may be known at run time only."""
    x = node.tensor(0)
    value: np.ndarray | None
    filling: Value | None = None
    if node.opset < 11:
        pads = list(node.attrs.get("pads", node.attrs.get("paddings", [])))
        value = np.asarray(node.attrs.get("value", 0), x.dtype)
    else:
        pads = node.ints(1, "the pads") or []
        given = node.get(2)
        if given is not None and given.array is None and given.known is None:
            filling = given
        value = None if filling else node.constant(2, "the value")
    axes = [a % x.rank for a in node.ints(3, "the axes") or range(x.rank)]
    half = len(pads) // 2
    begin, end = dict(zip(axes, pads[:half])), dict(zip(axes, pads[half:]))
    widths = {a: (begin[a], end[a]) for a in axes}
    mode = node.attrs.get("mode", "constant")
    if x.pictures is not None and filling is None and x.shape[0] == 1 and not any(
            widths.get(0, ())):
        # One volume, whose planes are the batch.
        places = {1: 1, 2: 0, 3: 2, 4: 3}
        return volume_of(walk, padded(walk, x.pictures, {
            places[axis]: width for axis, width in widths.items() if axis}, mode,
            0 if value is None else value.item()), 1)
    result = padded(walk, x, widths, mode, 0 if value is None else value.item())
    if filling is None or mode != "constant":
        return result
    inside = np.ones([1] * x.rank, bool)
    for axis, (before, after) in widths.items():
        extent = result.shape[axis]
        along = np.zeros([extent if i == axis else 1 for i in range(x.rank)], bool)
        along.ravel()[max(before, 0):extent - max(after, 0)] = True
        inside = inside & along
    return walk.graph.op("Where", inside, result, filling)


def padded(walk: Walk, x: Value, pads: dict[int, tuple[int, int]], mode: str = "constant",
           value: float = 0) -> Value:
    """More elements before and after along some axes; less where a number is below 0."""
    def widths() -> np.ndarray:
        return np.array([pads.get(a, (0, 0))[side] for side in (0, 1) for a in range(x.rank)],
                        np.int64)

    def fits() -> bool:
        return all(max(p) < x.shape[a] for a, p in pads.items() if max(p) > 0)

    if walk.is_open and mode not in ("constant", "edge") and not fits():
        raise Refused("what it pads with is shorter than the pads", "use larger inputs.")
    if walk.graph.kept and mode != "wrap" and all(min(p) >= 0 for p in pads.values()):
        # Also where nothing is missing at this size.
        return walk.graph.op("Pad", x, widths(), *(
            [walk.graph.like(value, x)] if mode == "constant" else []), mode=mode)
    x = sliced(walk, x, {a: range(max(-b, 0), x.shape[a] - max(-e, 0))
                         for a, (b, e) in pads.items() if b < 0 or e < 0})
    pads = {a: (max(b, 0), max(e, 0)) for a, (b, e) in pads.items() if b > 0 or e > 0}
    if not pads:
        return x
    if mode == "constant":
        return walk.graph.op("Pad", x, widths(), walk.graph.like(value, x))
    # The importer's loops over these are as large as the example is.
    if not walk.is_open and (mode == "edge" or mode == "reflect" and fits()):
        return walk.graph.op("Pad", x, widths(), mode=mode)
    for axis, (before, after) in pads.items():
        extent = x.shape[axis]
        places = np.arange(-before, extent + after)
        if mode == "edge":
            places = places.clip(0, extent - 1)
        elif mode == "wrap" or extent == 1:
            places = places % extent
        else:
            period = 2 * (extent - 1)
            places = (extent - 1) - np.abs((places % period) - (extent - 1))
        x = _taken(walk, x, axis, places, before, after, turned=mode == "wrap")
    return x


def _taken(walk: Walk, x: Value, axis: int, places: np.ndarray, before: int, after: int,
           turned: bool) -> Value:
    """The places of an axis; the middle is x itself, which is not moved element by element.
    turned: what comes before is of the other end."""
    extent = x.shape[axis]

    def taken(some: np.ndarray, of_end: bool) -> Value:
        # Of an open extent, such places are counted from where a slice begins.
        if not (walk.is_open and of_end):
            return walk.graph.op("Gather", x, some, axis=axis)
        first = int(some.min())
        end = sliced(walk, x, {axis: range(first, extent)})
        return walk.graph.op("Gather", end, some - first, axis=axis)

    parts = [taken(places[:before], turned)] if before else []
    parts.append(x)
    if after:
        parts.append(taken(places[before + extent:], not turned))
    return concatenated(walk, parts, axis)


@rule("CenterCropPad")
def center_crop_pad(walk: Walk, node: Node) -> Value:
    x = node.tensor(0)
    extents = node.ints(1, "the shape") or []
    axes = [a % x.rank for a in node.attrs.get("axes", range(x.rank))]
    begin, end = [0] * x.rank, [0] * x.rank
    for axis, extent in zip(axes, extents):
        more = extent - x.shape[axis]
        # Both halves are rounded towards the begin.
        begin[axis] = more // 2 if more > 0 else -(-more // 2)
        end[axis] = more - begin[axis]
    return walk.node_in("Pad", 13, [x, walk.graph.constant(begin + end, np.int64)])
