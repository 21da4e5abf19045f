"""Sampling pictures at computed places."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import Refused
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.shapes import expanded
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import RELAX, Walk


@rule("GridSample")
def grid_sample(walk: Walk, node: Node) -> Value:
    """Bilinear and nearest of pictures; what lies outside is clamped, mirrored or masked."""
    graph = walk.graph
    x, grid = node.tensor(0), node.tensor(1)
    grid = cast(walk, grid, x.elem_type) if x.is_float else grid  # It may be of another type.
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(
        m := node.attrs.get("mode", "linear"), m)
    padding = node.attrs.get("padding_mode", "zeros")
    aligned = bool(node.attrs.get("align_corners", 0))
    spatial = x.shape[2:]
    n = len(spatial)
    # The grid's last axis has x first.
    at = []
    for axis, extent in enumerate(spatial):
        place = graph.op("Gather", grid, np.array(n - 1 - axis), axis=grid.rank - 1)
        scaled = graph.op("Mul", graph.op("Add", place, 1), (extent - (1 if aligned else 0)) / 2)
        at.append(scaled if aligned else graph.op("Sub", scaled, 0.5))
    if padding == "reflection" and mode != "cubic":
        at = [_reflected(walk, a, e, aligned) for a, e in zip(at, spatial)]
    elif padding == "border" and mode != "cubic":
        at = [graph.op("Clip", a, graph.like(0, a), graph.like(e - 1, a))
              for a, e in zip(at, spatial)]
    taps: list[list[tuple[Value, Value | None]]] = [
        weighted_places(walk, stored(walk, a), mode) for a in at]
    total: Value | None = None
    for choice in np.ndindex(*[len(t) for t in taps]):
        chosen = [taps[axis][i] for axis, i in enumerate(choice)]
        term = _picked(walk, x, [p for p, _ in chosen], padding, aligned)
        for _, weight in chosen:
            if weight is not None:
                term = graph.op("Mul", term, graph.op("Unsqueeze", weight, np.array([1])))
        total = term if total is None else graph.op("Add", total, term)
    assert total is not None
    return total


def stored(walk: Walk, x: Value) -> Value:
    """The value, computed once: TVM would repeat what leads to it for each use, and uses of uses.

    A pooling of windows of one element is what it does not take into other loops.
    """
    first = x.shape[0] if x.rank > 1 and x.size else 1  # samples stay apart
    flat = reshaped(walk, x, (first, 1, x.size // first))
    return reshaped(walk, walk.graph.op("MaxPool", flat, kernel_shape=[1]), x.shape)


def _reflected(walk: Walk, at: Value, extent: int, aligned: bool) -> Value:
    """Mirrored at the middles of the outermost elements, or at their edges."""
    graph = walk.graph
    low, high = (0.0, extent - 1.0) if aligned else (-0.5, extent - 0.5)
    length = high - low
    if not length:
        return graph.op("Mul", at, 0)
    offset = graph.op("Abs", graph.op("Sub", at, low))
    periods = graph.op("Floor", graph.op("Div", offset, length))
    rest = graph.op("Sub", offset, graph.op("Mul", periods, length))
    pairs = graph.op("Floor", graph.op("Mul", periods, 0.5))
    odd = graph.op("Sub", periods, graph.op("Mul", pairs, 2))
    back = graph.op("Sub", graph.like(length, at), rest)
    mirrored = graph.op("Add", graph.op("Where", graph.op("Greater", odd, 0.5), back, rest), low)
    return graph.op("Clip", mirrored, graph.like(0, at), graph.like(extent - 1, at))


def weighted_places(walk: Walk, at: Value, mode: str, cubic_a: float = -0.75
                    ) -> list[tuple[Value, Value | None]]:
    """(place, weight) along one axis; places are floats, a weight of None is 1."""
    graph = walk.graph
    if mode == "nearest":
        return [(graph.op("Round", at), None)]
    first = graph.op("Floor", at)
    ratio = graph.op("Sub", at, first)
    if mode == "linear":
        return [(first, graph.op("Add", graph.op("Neg", ratio), 1)),
                (graph.op("Add", first, 1), ratio)]
    if mode != "cubic":
        raise Refused(f"its mode is '{mode}', and nearest, linear and cubic are known")
    return [(graph.op("Add", first, float(k)), _cubic(walk, graph.op("Abs", graph.op(
        "Sub", ratio, float(k))), abs(k - 0.5) < 1, cubic_a)) for k in (-1, 0, 1, 2)]


def _cubic(walk: Walk, d: Value, near: bool, a: float) -> Value:
    coefficients = (a + 2, -(a + 3), 0.0, 1.0) if near else (a, -5 * a, 8 * a, -4 * a)
    made = walk.graph.like(coefficients[0], d)
    for coefficient in coefficients[1:]:
        made = walk.graph.op("Add", walk.graph.op("Mul", made, d), coefficient)
    return made


def _picked(walk: Walk, x: Value, places: list[Value], padding: str, aligned: bool) -> Value:
    """The elements at whole places [N, ...], in all channels."""
    graph = walk.graph
    spatial = x.shape[2:]
    inside: Value | None = None
    flat: Value | None = None
    for place, extent in zip(places, spatial):
        if padding == "reflection":
            place = graph.op("Round", stored(walk, _reflected(walk, place, extent, aligned)))
        clamped = graph.op("Clip", place, graph.like(0, place), graph.like(extent - 1, place))
        if padding == "zeros":
            here = graph.op("Equal", clamped, place)
            inside = here if inside is None else graph.op("And", inside, here)
        index = cast(walk, clamped, TensorProto.INT64)
        flat = index if flat is None else graph.op(
            "Add", graph.op("Mul", flat, extent), index)
    assert flat is not None
    size = int(np.prod(spatial))
    batch, channels = x.shape[:2]
    if walk.importer == RELAX and batch > 1:
        # In a way that shows that samples are kept apart (samples.py).
        rows = reshaped(walk, x, (batch, channels, size))
        count = flat.size // batch
        index = expanded(walk, reshaped(walk, flat, (batch, 1, count)), (batch, channels, count))
        found = reshaped(walk, graph.op("GatherElements", rows, index, axis=2),
                         (batch, channels, *flat.shape[1:]))
    else:
        # One gather for all channels: elements of a batch and a channel lie together.
        first = np.arange(batch * channels).reshape(
            batch, channels, *[1] * len(flat.shape[1:])) * size
        index = graph.op("Add", graph.op("Unsqueeze", flat, np.array([1])), first)
        found = graph.op("Gather", reshaped(walk, x, (x.size,)), index, axis=0)
    if inside is not None:
        found = graph.op("Where", graph.op("Unsqueeze", inside, np.array([1])), found,
                         graph.like(0, found))
    return found


@rule("AffineGrid")
def affine_grid(walk: Walk, node: Node) -> Value:
    """A constant grid of the picture's places, mapped."""
    theta = node.tensor(0)
    extents = (node.ints(1, "the size") or [])[2:]
    aligned = bool(node.attrs.get("align_corners", 0))
    places = [np.linspace(-1, 1, e) if aligned and e > 1 else
              (2 * np.arange(e) + 1) / e - 1 if not aligned else np.full(e, -1.0) for e in extents]
    # Of a place, x comes first.
    grid = np.stack([*np.meshgrid(*places, indexing="ij")[::-1], np.ones(extents)], -1)
    flat = walk.graph.constant(grid.reshape(-1, len(extents) + 1), theta.dtype)
    mapped = walk.graph.op("MatMul", flat, walk.graph.op("Transpose", theta, perm=[0, 2, 1]))
    return reshaped(walk, mapped, (theta.shape[0], *extents, len(extents)))
