"""Resizing along any axes: the importer's own where it is exact, else a few weighted gathers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.open_extents import varies
from run_model_tools.onnx_repair.refusal import Refused
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import cast
from run_model_tools.onnx_repair.rules.sampling import weighted_places
from run_model_tools.onnx_repair.rules.shapes import concatenated, expanded, volume_of
from run_model_tools.onnx_repair.rules.volumes import from_cells, windows
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk

# Beyond so many elements for one, a product with a matrix costs less than gathers.
_MOST_GATHERS = 4
_COMPUTED = ("align_corners", "asymmetric", "half_pixel", "pytorch_half_pixel")
_ROUNDED = {"round_prefer_floor": ("Ceil", -0.5), "round_prefer_ceil": ("Floor", 0.5),
            "floor": ("Floor", 0.0), "ceil": ("Ceil", 0.0)}
_IN_FLOAT32 = ("asymmetric", "half_pixel", "pytorch_half_pixel", "tf_half_pixel_for_nn")


@dataclass
class Manner:
    """How elements of the result are computed."""

    mode: str
    coordinates: str
    nearest: str
    cubic_a: float
    exclude_outside: bool
    extrapolation: float
    antialias: bool
    whole_lengths: bool
    """Whether corners are aligned with the last element there is, as PyTorch and ONNX Runtime do.
    ONNX's reference takes the length as the scale gives it, before it is rounded down."""


@dataclass
class Line:
    """One axis: its extent before and after, and the scale between them."""

    axis: int
    extent: int
    out: int
    scale: float
    by_size: bool
    """Whether the scale is what the extents say."""
    roi: tuple[float, float] | None


@rule("Resize", "Upsample")
def resize(walk: Walk, node: Node) -> Value:
    x = node.tensor(0)
    manner = _manner(walk, node)
    lines = _lines(node, x, manner)
    # At another size, what says that nothing changes may say that something does.
    open_sizes = varies(node.inputs)
    lines = [line for line in lines if line.extent != line.out or line.scale != 1 or line.roi
             or open_sizes and line.axis > 1]
    if not lines:
        return x
    if x.pictures is not None and not (open_sizes or walk.is_open) and all(
            line.axis > 1 and line.roi is None for line in lines):
        return _of_planes(walk, x, x.pictures, manner, lines)
    return _along(walk, x, manner, lines, open_sizes)


def _along(walk: Walk, x: Value, manner: Manner, lines: list[Line], open_sizes: bool) -> Value:
    if _is_exact(x, manner, lines, open_sizes):
        sizes = list(x.shape)
        for line in lines:
            sizes[line.axis] = line.out
        return walk.graph.op(
            "Resize", x, None, None, np.array(sizes, np.int64), mode=manner.mode,
            coordinate_transformation_mode=manner.coordinates, nearest_mode="floor")
    kind = x.elem_type
    if manner.mode != "nearest" and not x.is_float:
        x = cast(walk, x, 1)
    inside: Value | None = None
    for line in lines:
        if _is_computed(walk, x, manner, open_sizes):
            x = _resized_at_run_time(walk, x, line, manner)
            continue
        places, weights, valid = _taps(line, manner)
        x = _resized(walk, x, line.axis, places, weights)
        if not valid.all():
            here = walk.graph.constant(valid.reshape(
                [-1 if i == line.axis else 1 for i in range(x.rank)]))
            inside = here if inside is None else walk.graph.op("And", inside, here)
    if inside is not None:
        x = walk.graph.op("Where", expanded(walk, inside, x.shape), x,
                          walk.graph.like(manner.extrapolation, x))
    if kind != x.elem_type:
        x = walk.graph.op("Round", x)
    return cast(walk, x, kind)


def _of_planes(walk: Walk, x: Value, pictures: Value, manner: Manner, lines: list[Line]) -> Value:
    """A volume: its planes, and then from plane to plane."""
    batch = x.shape[0]
    across = [replace(line, axis=line.axis - 1) for line in lines if line.axis > 2]
    if across:
        pictures = _along(walk, pictures, manner, across, False)
    depth = next((line for line in lines if line.axis == 2), None)
    if depth is None:
        return volume_of(walk, pictures, batch)
    places, weights, _ = _taps(depth, manner)
    made = _of_neighbours(walk, pictures, batch, depth, places, weights)
    return made or _resized(walk, volume_of(walk, pictures, batch), 2, places, weights)


def _of_neighbours(walk: Walk, pictures: Value, batch: int, line: Line, places: np.ndarray,
                   weights: np.ndarray) -> Value | None:
    """Planes by a whole factor more, where those between two are made alike anywhere: each of a
    few weighted neighbours."""
    extent, factor = line.extent, line.out // line.extent
    if line.out != factor * extent:
        return None
    wanted = np.zeros((line.out, extent))
    np.add.at(wanted, (np.arange(line.out)[:, None], places), weights)
    middle = extent // 2
    taps: list[dict[int, float]] = []
    for phase in range(factor):
        row = middle * factor + phase
        offsets = {int(p) - middle: float(w) for p, w in zip(places[row], weights[row]) if w}
        made = np.zeros((extent, extent))
        for offset, weight in offsets.items():
            made[np.arange(extent), (np.arange(extent) + offset).clip(0, extent - 1)] += weight
        if not np.allclose(made, wanted[phase::factor], rtol=0, atol=1e-7):
            return None
        taps.append(offsets)
    used = sorted({offset for one in taps for offset in one})
    before, after = max(-used[0], 0), max(used[-1], 0)
    seen = dict(zip(used, windows(walk, pictures, batch, (before, after),
                                  [before + offset for offset in used], 1, extent, "edge")))
    planes = []
    for offsets in taps:
        total: Value | None = None
        for offset, weight in offsets.items():
            term = seen[offset] if weight == 1 else walk.graph.op("Mul", seen[offset], weight)
            total = term if total is None else walk.graph.op("Add", total, term)
        if total is None:
            return None
        planes.append(total)
    return from_cells(walk, concatenated(walk, planes, 1), batch, factor, line.out)


def _manner(walk: Walk, node: Node) -> Manner:
    mode = node.attrs.get("mode", "nearest")
    mode = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    if mode not in ("nearest", "linear", "cubic"):
        raise Refused(f"its mode is '{mode}', and nearest, linear and cubic are known")
    old = node.op == "Upsample" or node.opset < 11
    return Manner(
        mode, node.attrs.get("coordinate_transformation_mode",
                             "asymmetric" if old else "half_pixel"),
        # Before opset 11, what is enlarged is rounded down and what is reduced is rounded up.
        node.attrs.get("nearest_mode", "simple" if old else "round_prefer_floor"),
        float(node.attrs.get("cubic_coeff_a", -0.75)),
        bool(node.attrs.get("exclude_outside", 0)),
        float(node.attrs.get("extrapolation_value", 0.0)),
        bool(node.attrs.get("antialias", 0)),
        walk.producer == "pytorch")


def _lines(node: Node, x: Value, manner: Manner) -> list[Line]:
    axes = [a % x.rank for a in node.attrs.get("axes", range(x.rank))]
    sizes, roi, scales = None, None, None
    if node.op == "Upsample" and node.opset < 7:
        scales = [1.0, 1.0, float(node.attrs["height_scale"]), float(node.attrs["width_scale"])]
    elif node.op == "Upsample" and node.opset < 9:
        scales = list(node.attrs["scales"])
    else:
        old = node.op == "Upsample" or node.opset < 11
        array = node.constant(1 if old else 2, "the scales")
        scales = [float(s) for s in array.ravel()] if array is not None and array.size else None
        if not old:
            sizes = node.ints(3, "the sizes") or None
            if manner.coordinates == "tf_crop_and_resize":
                found = node.constant(1, "the region")
                roi = None if found is None else [float(r) for r in found.ravel()]
    if scales is None and sizes is None:
        raise Refused("it has neither scales nor sizes", "the model is not valid.", "invalid")
    extents = [x.shape[a] for a in axes]
    by_size = bool(sizes)
    if sizes:
        scales = [s / e for s, e in zip(sizes, extents)]
        policy = node.attrs.get("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            by_size = False
            one = (min if policy == "not_larger" else max)(scales)
            scales = [one] * len(axes)
            sizes = [int(np.floor(one * e + 0.5)) for e in extents]
    else:
        assert scales is not None
        # In float32, as the scales are: 3 * 0.6666667 is 2.
        sizes = [int(np.floor(np.float32(e) * np.float32(s))) for e, s in zip(extents, scales)]
    n = len(axes)
    return [Line(axis, extent, out, scale, by_size, (roi[i], roi[n + i]) if roi else None)
            for i, (axis, extent, out, scale) in enumerate(zip(axes, extents, sizes, scales))]


def _is_exact(x: Value, manner: Manner, lines: list[Line], open_sizes: bool) -> bool:
    """Whether the importer's resize computes the same: whole factors, or linear by sizes."""
    if not x.is_float or x.rank != 4 or any(line.axis < 2 for line in lines) or manner.antialias:
        return False
    if any(line.scale != line.out / line.extent for line in lines):
        return False
    if manner.mode == "nearest":
        # Rounding hits nothing that lies between two elements.
        return (manner.coordinates == "asymmetric" and manner.nearest in ("floor", "simple")
                and not (open_sizes and any(line.by_size for line in lines))
                and all(line.out % line.extent == 0 for line in lines))
    return manner.mode == "linear" and manner.coordinates in (
        "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric") and all(
            line.out > 1 for line in lines)


def _positions(line: Line, manner: Manner) -> np.ndarray:
    """Where each element of the result lies among those of the input.

    Of the nearest ones as float32 has it, in ONNX Runtime's order: 17 / float32(1 / 3) is 51, and a
    little less in numbers of more bits.
    """
    is_short = manner.mode == "nearest" and manner.coordinates in _IN_FLOAT32
    number: Any = np.float32 if is_short else np.float64
    at, scale = np.arange(line.out, dtype=number), number(line.scale)
    mode, length = manner.coordinates, line.scale * line.extent
    if mode == "align_corners":
        length = line.out if manner.whole_lengths else length
        return at * (line.extent - 1) / (length - 1) if length != 1 else at * 0
    if mode == "asymmetric":
        return at / scale
    if mode == "tf_crop_and_resize":
        begin, end = line.roi or (0.0, 1.0)
        if line.out == 1:
            return at + 0.5 * (begin + end) * (line.extent - 1)
        return (at * (end - begin) / (line.out - 1) + begin) * (line.extent - 1)
    if mode == "pytorch_half_pixel" and line.out == 1:
        return at * 0
    if mode in ("half_pixel", "pytorch_half_pixel"):
        return (at + number(0.5)) / scale - number(0.5)
    if mode == "half_pixel_symmetric":
        offset = line.extent / 2 * (1 - line.out / length)
        return offset + (at + 0.5) / scale - 0.5
    if mode == "tf_half_pixel_for_nn":
        return (at + number(0.5)) / scale
    raise Refused(f"its coordinate_transformation_mode '{mode}' is not known")


def _taps(line: Line, manner: Manner) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(places, weights), both [out, taps], and whether each element lies inside the input."""
    at = _positions(line, manner)
    inside = np.ones(line.out, np.bool_)
    if manner.coordinates == "tf_crop_and_resize":
        inside = (at >= 0) & (at <= line.extent - 1)
    if manner.mode == "nearest":
        # The others are of float32 in the definition's implementations, too: a half stays one.
        near = at if at.dtype == np.float32 else np.round(at, 6)
        kind = manner.nearest
        if kind == "simple":
            kind = "floor" if line.scale >= 1 else "ceil"
        places = {"round_prefer_floor": np.ceil(near - 0.5),
                  "round_prefer_ceil": np.floor(near + 0.5),
                  "floor": np.floor(near), "ceil": np.ceil(near)}[kind].astype(np.int64)
        return (np.clip(places, 0, line.extent - 1)[:, None], np.ones((line.out, 1)), inside)
    scale = min(line.scale, 1.0) if manner.antialias else 1.0
    radius = 1.0 if manner.mode == "linear" else 2.0
    first = np.floor(at).astype(np.int64)
    reach = int(np.ceil(radius / scale))
    places = first[:, None] + np.arange(1 - reach, reach + 1)
    distance = np.abs(places - at[:, None]) * scale
    weights = _kernel(distance, manner)
    if manner.exclude_outside or manner.antialias:
        out_of_it = (places < 0) | (places >= line.extent)
        if manner.exclude_outside:
            weights = np.where(out_of_it, 0, weights)
        weights = weights / weights.sum(1, keepdims=True)
    return np.clip(places, 0, line.extent - 1), weights, inside


def _kernel(d: np.ndarray, manner: Manner) -> np.ndarray:
    if manner.mode == "linear":
        return np.clip(1 - d, 0, 1)
    a = manner.cubic_a
    near = (a + 2) * d ** 3 - (a + 3) * d ** 2 + 1
    far = a * d ** 3 - 5 * a * d ** 2 + 8 * a * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


def _is_computed(walk: Walk, x: Value, manner: Manner, open_sizes: bool) -> bool:
    """Whether places and weights, which may depend on open extents, are computed with the network.
    """
    return (open_sizes or walk.is_open and not x.is_constant) and _has_taps(manner)


def _has_taps(manner: Manner) -> bool:
    """Whether computed_taps() has its places and weights."""
    return (not manner.antialias and not manner.exclude_outside
            and manner.coordinates in _COMPUTED
            and (manner.mode != "nearest" or manner.nearest in _ROUNDED))


def as_resized(walk: Walk, node: Node) -> Manner | None:
    """How a Resize to computed sizes makes its elements; None where computed_taps() has no way."""
    manner = _manner(walk, node)
    stretches = node.attrs.get("keep_aspect_ratio_policy", "stretch") == "stretch"
    return manner if _has_taps(manner) and stretches and "axes" not in node.attrs else None


def _resized_at_run_time(walk: Walk, x: Value, line: Line, manner: Manner) -> Value:
    """Along an axis whose extents are open: of which elements and with what weights, is computed
    with the network."""
    graph = walk.graph
    dtype = np.float32 if manner.mode == "nearest" else np.float64

    def number(value: int) -> Value:
        return graph.behind_input(graph.constant(np.array(value, dtype)))

    extent, out = number(line.extent), number(line.out)
    scale = graph.op("Div", out, extent) if line.by_size else graph.like(line.scale, out)
    at = cast(walk, graph.counting(line.out), out.elem_type)
    total: Value | None = None
    for place, weight in computed_taps(walk, at, extent, out, scale, manner, line.by_size):
        term = graph.op("Gather", x, cast(walk, place, TensorProto.INT64), axis=line.axis)
        if weight is not None:
            behind = np.arange(1, x.rank - line.axis)
            weight = cast(walk, weight, x.elem_type)
            term = graph.op("Mul", term, graph.op("Unsqueeze", weight, behind)
                            if len(behind) else weight)
        total = term if total is None else graph.op("Add", total, term)
    assert total is not None
    return total


def computed_taps(walk: Walk, at: Value, extent: Value, out: Value, scale: Value, manner: Manner,
                  by_size: bool = True) -> list[tuple[Value, Value | None]]:
    """(place, weight) of what the elements at some places of the result are sums of, all computed
    with the network; places are floats, a weight of None is 1."""
    graph = walk.graph
    if manner.coordinates == "align_corners":
        length = out if by_size or manner.whole_lengths else graph.op("Mul", extent, scale)
        steps = graph.op("Max", graph.op("Sub", length, 1), graph.like(1, out))
        at = graph.op("Div", graph.op("Mul", at, graph.op("Sub", extent, 1)), steps)
    elif manner.coordinates == "asymmetric":
        at = graph.op("Div", at, scale)
    else:
        at = graph.op("Sub", graph.op("Div", graph.op("Add", at, 0.5), scale), 0.5)
    if manner.coordinates == "pytorch_half_pixel":  # A single element is the first one.
        at = graph.op("Mul", at, graph.op("Min", graph.op("Sub", out, 1), graph.like(1, out)))
    places: list[tuple[Value, Value | None]]
    if manner.mode == "nearest":
        operator, offset = _ROUNDED[manner.nearest]
        places = [(graph.op(operator, graph.op("Add", at, offset) if offset else at), None)]
    else:
        places = weighted_places(walk, at, manner.mode, manner.cubic_a)
    last = graph.op("Sub", extent, 1)
    return [(graph.op("Min", graph.op("Max", place, graph.like(0, place)), last), weight)
            for place, weight in places]


def _resized(walk: Walk, x: Value, axis: int, places: np.ndarray, weights: np.ndarray) -> Value:
    graph = walk.graph
    if places.shape[1] == 1:
        if np.array_equal(places[:, 0], np.arange(x.shape[axis])):
            return x
        return graph.op("Gather", x, places[:, 0], axis=axis)
    used = np.abs(weights).max(0) > 0
    places, weights = places[:, used], weights[:, used]
    if places.shape[1] > _MOST_GATHERS:
        matrix = np.zeros((x.shape[axis], places.shape[0]))
        np.add.at(matrix, (places, np.arange(places.shape[0])[:, None]), weights)
        perm = [i for i in range(x.rank) if i != axis] + [axis]
        moved = walk.node_in("Transpose", 18, [x], perm=perm)
        made = graph.op("MatMul", moved, matrix.astype(x.dtype))
        return walk.node_in("Transpose", 18, [made], perm=list(np.argsort(perm)))
    shape = [-1 if i == axis else 1 for i in range(x.rank)]
    total: Value | None = None
    for place, weight in zip(places.T, weights.T):
        term = graph.op("Mul", graph.op("Gather", x, place, axis=axis),
                        weight.astype(x.dtype).reshape(shape))
        total = term if total is None else graph.op("Add", total, term)
    assert total is not None
    return total
