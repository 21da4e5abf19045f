"""Sampling pictures at computed places."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import Refused
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.shapes import expanded
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import RELAY, Walk

_DOMAIN = "run_model"
_SAMPLES = "WeightedSamples"
_DEFINITION = """(x, places, weights) => (y) {
    one = Constant<value_ints = [1]>()
    two = Constant<value_ints = [2]>()
    planes = Shape<end = 2>(x)
    taps = Shape<start = 1>(places)
    rest = Constant<value_ints = [-1]>()
    line = Concat<axis = 0>(planes, rest)
    lines = Concat<axis = 0>(planes, taps)
    wide = Unsqueeze(places, one)
    each = Expand(wide, lines)
    flat = Reshape(each, line)
    found = GatherElements<axis = 2>(x, flat)
    apart = Reshape(found, lines)
    shares = Unsqueeze(weights, one)
    alike = CastLike(shares, x)
    parts = Mul(apart, alike)
    y = ReduceSum<keepdims = 0>(parts, two)
}"""
"""What sampled() becomes (inside_tvm/operators/weighted_samples.py)."""


@rule("GridSample")
def grid_sample(walk: Walk, node: Node) -> Value:
    """What lies outside is clamped, mirrored or counts nothing."""
    graph = walk.graph
    x, grid = node.tensor(0), node.tensor(1)
    grid = cast(walk, grid, place_type(x))  # It may be of another type.
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
    made = sampled_at(walk, x, [reshaped(walk, a, (x.shape[0], a.size // x.shape[0])) for a in at],
                      mode, padding, aligned)
    return reshaped(walk, made, (*x.shape[:2], *grid.shape[1:-1]))


def sampled_at(walk: Walk, x: Value, at: list[Value], mode: str = "linear", padding: str = "zeros",
               aligned: bool = False, factor: Value | None = None) -> Value:
    """Pictures x [batch, channels, ...] at places [batch, places] along each axis, in elements:
    [batch, channels, places], multiplied by a factor [batch, places]."""
    graph = walk.graph
    spatial = x.shape[2:]
    along = [weighted_places(walk, stored(walk, a), mode) for a in at]
    taps = []
    for choice in np.ndindex(*[len(a) for a in along]):
        place, weight = _tap(walk, spatial, [along[axis][i] for axis, i in enumerate(choice)],
                             padding, aligned)
        if factor is not None:
            weight = factor if weight is None else graph.op("Mul", weight, factor)
        taps.append((place, weight))
    return sampled(walk, reshaped(walk, x, (*x.shape[:2], int(np.prod(spatial)))), taps)


def sampled(walk: Walk, x: Value, taps: list[tuple[Value, Value | None]]) -> Value:
    """Sums of elements of planes.

    x: [batch, channels, elements]; taps: places in a plane (int32) and what an element there is
    multiplied by (None: 1), each [batch, places].  Gives [batch, channels, places].
    """
    graph = walk.graph
    batch, channels = x.shape[:2]
    count = taps[0][0].shape[1]
    if walk.importer == RELAY and x.elem_type in (TensorProto.FLOAT, TensorProto.FLOAT16):
        ones = graph.constant(np.ones((batch, 1, count), np.float32))
        places, weights = (graph.op("Concat", *parts, axis=1) for parts in (
            [reshaped(walk, place, (batch, 1, count)) for place, _ in taps],
            [ones if weight is None else cast(walk, reshaped(
                walk, weight, (batch, 1, count)), TensorProto.FLOAT) for _, weight in taps]))
        return graph.foreign(_DOMAIN, _SAMPLES, [x, places, weights], [(batch, channels, count)],
                             _DEFINITION)[0]
    total: Value | None = None
    for place, weight in taps:
        # In a way that shows that samples are kept apart (samples.py).
        index = expanded(walk, reshaped(walk, place, (batch, 1, count)), (batch, channels, count))
        term = graph.op("GatherElements", x, index, axis=2)
        if weight is not None:
            term = graph.op("Mul", term, cast(walk, reshaped(
                walk, weight, (batch, 1, count)), x.elem_type))
        total = term if total is None else graph.op("Add", total, term)
    assert total is not None
    return total


def place_type(x: Value) -> int:
    """Of the numbers that places in a tensor are computed with: float16 has a few thousand."""
    return TensorProto.DOUBLE if x.elem_type == TensorProto.DOUBLE else TensorProto.FLOAT


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
    if mode == "linear":
        return [*either_side(walk, at)]
    if mode != "cubic":
        raise Refused(f"its mode is '{mode}', and nearest, linear and cubic are known")
    first = graph.op("Floor", at)
    ratio = graph.op("Sub", at, first)
    return [(graph.op("Add", first, float(k)), _cubic(walk, graph.op("Abs", graph.op(
        "Sub", ratio, float(k))), abs(k - 0.5) < 1, cubic_a)) for k in (-1, 0, 1, 2)]


def either_side(walk: Walk, at: Value) -> list[tuple[Value, Value]]:
    """The whole places before and behind one, each with how much its element counts."""
    graph = walk.graph
    first = graph.op("Floor", at)
    ratio = graph.op("Sub", at, first)
    return [(first, graph.op("Add", graph.op("Neg", ratio), 1)), (graph.op("Add", first, 1), ratio)]


def _cubic(walk: Walk, d: Value, near: bool, a: float) -> Value:
    coefficients = (a + 2, -(a + 3), 0.0, 1.0) if near else (a, -5 * a, 8 * a, -4 * a)
    made = walk.graph.like(coefficients[0], d)
    for coefficient in coefficients[1:]:
        made = walk.graph.op("Add", walk.graph.op("Mul", made, d), coefficient)
    return made


def _tap(walk: Walk, spatial: tuple[int, ...], along: list[tuple[Value, Value | None]],
         padding: str, aligned: bool) -> tuple[Value, Value | None]:
    """The place in a plane of the elements at whole places along each axis, and their weight."""
    graph = walk.graph
    flat: Value | None = None
    weight: Value | None = None
    for extent, (place, own) in zip(spatial, along):
        if padding == "reflection":
            place = graph.op("Round", stored(walk, _reflected(walk, place, extent, aligned)))
        clamped = graph.op("Clip", place, graph.like(0, place), graph.like(extent - 1, place))
        if padding == "zeros":
            here = cast(walk, graph.op("Equal", clamped, place), place.elem_type)
            own = here if own is None else graph.op("Mul", own, here)
        index = cast(walk, clamped, TensorProto.INT32)
        flat = index if flat is None else graph.op("Add", graph.op("Mul", flat, extent), index)
        if own is not None:
            weight = own if weight is None else graph.op("Mul", weight, own)
    assert flat is not None
    return flat, weight


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
