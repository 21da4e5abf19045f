"""Averages and maxima over regions of pictures whose places are computed."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import Refused
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import cast, reshaped
from run_model_tools.onnx_repair.rules.onnx_runtime import DOMAIN
from run_model_tools.onnx_repair.rules.reductions import reduce
from run_model_tools.onnx_repair.rules.sampling import either_side, sampled, stored
from run_model_tools.onnx_repair.rules.shapes import concatenated, transposed
from run_model_tools.onnx_repair.values import Node, Value
from run_model_tools.onnx_repair.walk import Walk

_MOST_SAMPLES = 1 << 28
"""Of maxima over regions of known places."""
_NEAR = 6
"""Samples that may lie less than one element from an element, or outside of it at the picture's
edge, within 2 elements; they are more than half an element apart where a bin has several."""


@rule("CropAndResize", domain=DOMAIN)
def crop_and_resize(walk: Walk, node: Node) -> Value:
    """As TensorFlow's: the corners of a region, given in parts of the picture, are places."""
    graph = walk.graph
    x, rois = node.tensor(0), node.tensor(1)
    extents = node.ints(3, "the size of a crop (crop_size)")
    mode = node.attrs.get("mode", "bilinear")
    if extents is None or len(extents) != 2 or mode not in ("bilinear", "nearest"):
        raise Refused(f"its mode is '{mode}', and bilinear and nearest are known")
    at = []
    for axis, (extent, size) in enumerate(zip(x.shape[2:], extents)):
        low, high = (reshaped(walk, graph.op("Gather", rois, np.array([i]), axis=1), (
            rois.shape[0], 1)) for i in (axis, axis + 2))
        first = graph.op("Mul", low, extent - 1)
        if size > 1:
            each = graph.op("Div", graph.op("Mul", graph.op("Sub", high, low), extent - 1),
                            size - 1)
            place = graph.op("Add", first, graph.op("Mul", each, np.arange(
                size, dtype=x.dtype)[None]))
        else:
            place = graph.op("Mul", graph.op("Mul", graph.op("Add", low, high), 0.5), extent - 1)
        if mode == "nearest":
            inside = graph.op("And", graph.op("GreaterOrEqual", place, 0),
                              graph.op("LessOrEqual", place, extent - 1))
            place = graph.op("Where", inside, graph.op("Floor", graph.op("Add", place, 0.5)),
                             graph.like(-9, place))
        at.append(place)
    return _box_samples(walk, x, node.tensor(2), at, False, 0,
                        float(node.attrs.get("extrapolation_value", 0.0)))


@rule("RoiAlign")
def roi_align(walk: Walk, node: Node) -> Value:
    """Averages or maxima of bilinear samples; with sampling_ratio=0 their number is how many
    elements a bin is high and wide."""
    graph = walk.graph
    x, rois, batches = node.tensor(0), node.tensor(1), node.tensor(2)
    bins = node.attrs.get("output_height", 1), node.attrs.get("output_width", 1)
    samples = node.attrs.get("sampling_ratio", 0)
    scale = float(node.attrs.get("spatial_scale", 1.0))
    half = node.opset >= 16 and node.attrs.get(
        "coordinate_transformation_mode", "half_pixel") == "half_pixel"
    # Rounded as in ONNX Runtime, since a number of samples depends on it.
    boxes = stored(walk, graph.op("Mul", rois, scale))
    boxes = stored(walk, graph.op("Sub", boxes, 0.5)) if half else boxes
    count = rois.shape[0]
    edges = [reshaped(walk, graph.op("Gather", boxes, np.array([i]), axis=1), (count, 1))
             for i in range(4)]
    axes = []
    for low, high in ((edges[1], edges[3]), (edges[0], edges[2])):
        length = graph.op("Sub", high, low)
        axes.append((low, length if half else graph.op("Max", length, 1)))
    maximum = node.attrs.get("mode", "avg") == "max"
    if samples <= 0:
        return (_maxima if maximum else _means)(walk, x, batches, axes, bins)
    at = [[graph.op("Add", low, graph.op("Mul", length, (
        (np.arange(i, n * samples, samples) + 0.5) / samples / n)[None].astype(x.dtype)))
           for i in range(samples)] for (low, length), n in zip(axes, bins)]
    if maximum:
        found = [_box_samples(walk, x, batches, [row, column], True)
                 for row in at[0] for column in at[1]]
        return graph.op("Max", *found)
    # A bin's mean is one sum of all elements between which its samples lie.
    sides = [[(place, graph.op("Where", outside, graph.like(0, weight),
                               graph.op("Div", weight, samples)))
              for each in along for outside, pair in [_sides(walk, each, extent, 1)]
              for place, weight in pair] for along, extent in zip(at, x.shape[2:])]
    return _sums(walk, x, batches, sides)


def _means(walk: Walk, x: Value, batches: Value, axes: list[tuple[Value, Value]],
           bins: tuple[int, int]) -> Value:
    """Of any number of samples: a bin's mean is a product of the picture, whose numbers are finite,
    with how much its rows count, and its columns."""
    graph = walk.graph
    batch, channels, height, width = x.shape
    rows, columns = (stored(walk, _shares(walk, *axis, n, extent)) for axis, n, extent in zip(
        axes, bins, (height, width)))
    count = rows.shape[0]
    if batch > 1:
        mine = graph.op("Equal", reshaped(walk, cast(walk, batches, TensorProto.INT64), (
            count, 1, 1, 1)), np.arange(batch).reshape(1, 1, batch, 1))
        rows = graph.op("Where", mine, reshaped(walk, rows, (count, bins[0], 1, height)),
                        graph.like(0, rows))
    rows = reshaped(walk, rows, (count * bins[0], batch * height))
    picture = reshaped(walk, transposed(walk, x, [0, 2, 1, 3]), (batch * height, channels * width))
    made = reshaped(walk, graph.op("MatMul", rows, picture), (count, bins[0] * channels, width))
    made = graph.op("MatMul", made, transposed(walk, columns, [0, 2, 1]))
    return transposed(walk, reshaped(walk, made, (count, bins[0], channels, bins[1])), [0, 2, 1, 3])


def _shares(walk: Walk, low: Value, length: Value, bins: int, extent: int) -> Value:
    """[boxes, bins, extent]: how much the elements along an axis count in the means of bins."""
    graph = walk.graph
    boxes = low.shape[0]
    size, low = (reshaped(walk, t, (boxes, 1, 1, 1)) for t in (
        graph.op("Div", length, bins), low))
    number = graph.op("Ceil", size)
    divisor = graph.op("Max", number, 1)
    start = graph.op("Add", low, graph.op("Mul", size, np.arange(bins, dtype=low.dtype).reshape(
        1, bins, 1, 1)))
    element = graph.constant(np.arange(extent).reshape(1, 1, extent, 1), low.dtype)
    # The last sample before those near an element, among those that there are.
    step = graph.op("Where", graph.op("Greater", size, 0), graph.op("Div", size, divisor),
                    graph.like(1, size))
    before = graph.op("Div", graph.op("Sub", graph.op("Sub", element, 1), start), step)
    before = graph.op("Floor", graph.op("Sub", before, 0.5))
    before = graph.op("Max", graph.op("Min", before, graph.op("Sub", number, 1)), 0)
    sample = graph.op("Add", before, np.arange(_NEAR, dtype=low.dtype).reshape(1, 1, 1, _NEAR))
    place = graph.op("Add", start, graph.op("Div", graph.op(
        "Mul", graph.op("Add", sample, 0.5), size), divisor))
    counts = graph.op("And", graph.op("Less", sample, number), graph.op(
        "And", graph.op("GreaterOrEqual", place, -1), graph.op("LessOrEqual", place, extent)))
    place = graph.op("Clip", place, graph.like(0, place), graph.like(extent - 1, place))
    distance = graph.op("Abs", graph.op("Sub", place, element))
    share = graph.op("Max", graph.op("Sub", graph.like(1, distance), distance), 0)
    total = reduce(walk, "ReduceSum", graph.op("Where", counts, share, graph.like(0, share)), [3],
                   False)
    return graph.op("Div", total, reshaped(walk, divisor, (boxes, 1, 1)))


def _maxima(walk: Walk, x: Value, batches: Value, axes: list[tuple[Value, Value]],
            bins: tuple[int, int]) -> Value:
    """Of regions that are known: those with fewer samples than others take their last ones again.
    """
    graph = walk.graph
    at, most, some = [], [], np.array(True)
    for (low, length), n in zip(axes, bins):
        size, first = graph.op("Div", length, n).array, low.array
        if size is None or first is None:
            raise Refused("the number of its samples depends on the boxes (sampling_ratio=0), and "
                          "of these it takes the maximum",
                          "export the network with a fixed sampling_ratio, such as 2.",
                          "data-dependent shape")
        number = np.ceil(size)
        most.append(max(int(number.max()), 1))
        sample = np.minimum(np.arange(most[-1]), np.maximum(number - 1, 0))[:, None]
        bin_of, size = np.arange(n, dtype=x.dtype)[:, None], size[:, None]
        place = first[:, None] + bin_of * size + (sample + x.dtype.type(0.5)) * size / np.maximum(
            number, 1)[:, None]
        at.append(graph.constant(place.reshape(len(size), -1), x.dtype))
        some = some & (number > 0)
    if x.shape[1] * at[0].size * at[1].shape[1] > _MOST_SAMPLES:
        raise Refused(f"its regions have up to {most[0]} x {most[1]} samples in each bin",
                      "export the network with a fixed sampling_ratio, such as 2.")
    sampled = reshaped(walk, _box_samples(walk, x, batches, at, True), (
        at[0].shape[0], x.shape[1], bins[0], most[0], bins[1], most[1]))
    made = reduce(walk, "ReduceMax", sampled, [3, 5], False)
    return graph.op("Where", graph.constant(some.reshape(-1, 1, 1, 1)), made, graph.like(0, made))


@rule("MaxRoiPool")
def max_roi_pool(walk: Walk, node: Node) -> Value:
    """Maxima of whole elements: a bin's is the largest of four, at its corners, over as many rows
    and columns as the largest powers of two that fit into it, which hold all of it together."""
    graph = walk.graph
    x, rois = node.tensor(0), node.tensor(1)
    pictures, channels, *extents = x.shape

    def in_float64(op: str, a: Value, b: np.ndarray) -> Value:
        made = graph.op(op, cast(walk, a, TensorProto.DOUBLE), b)
        return stored(walk, cast(walk, made, x.elem_type))

    batches, *corners = (reshaped(walk, graph.op("Gather", rois, np.array([i]), axis=1), (
        rois.shape[0], 1, 1, 1)) for i in range(5))
    maxima, plane, empty, places = x, cast(walk, batches, TensorProto.INT64), [], []
    scale, planes = float(node.attrs.get("spatial_scale", 1.0)), pictures
    for axis, (extent, bins) in enumerate(zip(extents, node.attrs["pooled_shape"])):
        first, last = (_rounded(walk, graph.op("Mul", corners[i], scale))
                       for i in (1 - axis, 3 - axis))
        length = graph.op("Max", graph.op("Add", graph.op("Sub", last, first), 1), 1)
        # Each rounded as in ONNX Runtime, whatever compilers make of a division: a row more or less
        # depends on it.
        size = in_float64("Div", length, np.array(bins, np.float64))
        bin_ = np.arange(bins, dtype=np.float64).reshape((-1, 1) if axis == 0 else (-1,))
        begin, end = (cast(walk, graph.op("Max", graph.op("Min", graph.op("Add", first, graph.op(
            how, in_float64("Mul", size, edges))), extent), 0), TensorProto.INT64)
            for how, edges in (("Floor", bin_), ("Ceil", bin_ + 1)))
        count = graph.op("Sub", end, begin)
        empty.append(graph.op("LessOrEqual", count, 0))
        powers = np.frexp(np.maximum(np.arange(extent + 1), 1))[1].astype(np.int64) - 1
        power = graph.op("Gather", graph.constant(powers), graph.op("Max", count, 0), axis=0)
        start = graph.op("Sub", end, graph.op("Gather", graph.constant(1 << powers), graph.op(
            "Max", count, 0), axis=0))
        places.append([graph.op("Max", graph.op("Min", place, extent - 1), 0)
                       for place in (begin, start)])
        plane = graph.op("Add", plane, graph.op("Mul", power, planes))
        maxima = _maxima_of_powers(walk, maxima, axis - 2, int(powers[-1]))
        planes = maxima.shape[0]
    start = graph.op("Mul", graph.op("Add", graph.op("Mul", plane, channels), np.arange(
        channels).reshape(-1, 1, 1)), extents[0] * extents[1])
    flat = reshaped(walk, maxima, (maxima.size,))
    found = [graph.op("Gather", flat, graph.op("Add", start, graph.op("Add", graph.op(
        "Mul", row, extents[1]), column)), axis=0) for row in places[0] for column in places[1]]
    largest = graph.op("Max", *found)
    return graph.op("Where", graph.op("Or", *empty), graph.like(0, largest), largest)


def _rounded(walk: Walk, x: Value) -> Value:
    """To the nearest whole number, of two the one farther from zero."""
    graph = walk.graph
    x = stored(walk, x)
    size = graph.op("Abs", x)
    whole = graph.op("Floor", size)
    more = graph.op("GreaterOrEqual", graph.op("Sub", size, whole), 0.5)
    whole = graph.op("Where", more, graph.op("Add", whole, 1), whole)
    return graph.op("Where", graph.op("Less", x, 0), graph.op("Neg", whole), whole)


def _maxima_of_powers(walk: Walk, x: Value, axis: int, most: int) -> Value:
    """One behind the other, the largest of 1, 2, 4 ... up to 2^most elements along an axis, from
    each element on."""
    made, extent = [x], x.shape[axis]
    for power in range(most):
        later = np.minimum(np.arange(extent) + (1 << power), extent - 1)
        made.append(walk.graph.op("Max", made[-1], walk.graph.op(
            "Gather", made[-1], later, axis=x.rank + axis)))
    return concatenated(walk, made, 0)


def _box_samples(walk: Walk, x: Value, batches: Value, at: list[Value],
                 maximum: bool, beyond: int = 1, outside_value: float = 0) -> Value:
    """[boxes, channels, rows, columns]; the value for outside holds so many elements beyond the
    picture's outermost ones."""
    graph = walk.graph
    (beside, rows), (above, columns) = (_sides(walk, place, extent, beyond)
                                        for place, extent in zip(at, x.shape[2:]))
    total = graph.op("Max", *(_sums(walk, x, batches, [[row], [column]]) for row in rows
                              for column in columns)) if maximum else _sums(
        walk, x, batches, [rows, columns])
    outside = graph.op("Or", graph.op("Unsqueeze", beside, np.array([1, 3])),
                       graph.op("Unsqueeze", above, np.array([1, 2])))
    return graph.op("Where", outside, graph.like(outside_value, total), total)


def _sides(walk: Walk, place: Value, extent: int, beyond: int
           ) -> tuple[Value, list[tuple[Value, Value]]]:
    """Of places along an axis: which lie farther outside than so many elements, and the two
    elements between which the others lie, with their weights."""
    graph = walk.graph
    outside = graph.op("Or", graph.op("Less", place, -beyond),
                       graph.op("Greater", place, extent - 1 + beyond))
    place = stored(walk, graph.op("Clip", place, graph.like(0, place),
                                  graph.like(extent - 1, place)))
    first, (second, share) = either_side(walk, place)
    return outside, [first, (graph.op("Min", second, extent - 1), share)]


def _sums(walk: Walk, x: Value, batches: Value, sides: list[list[tuple[Value, Value]]]) -> Value:
    """[boxes, channels, rows, columns]: sums of elements of the boxes' pictures; sides: along each
    axis, places [boxes, rows or columns] and weights."""
    graph = walk.graph
    batch, channels, height, width = x.shape
    count, rows = sides[0][0][0].shape
    columns = sides[1][0][0].shape[1]
    picture = graph.op("Mul", reshaped(walk, cast(walk, batches, TensorProto.INT32), (
        count, 1, 1)), height * width)
    ys, xs = ([(reshaped(walk, cast(walk, place, TensorProto.INT32), shape),
                reshaped(walk, weight, shape)) for place, weight in along]
              for along, shape in zip(sides, ((count, rows, 1), (count, 1, columns))))
    every = (1, count * rows * columns)
    taps: list[tuple[Value, Value | None]] = [
        (reshaped(walk, graph.op("Add", graph.op("Add", graph.op("Mul", y, width), column),
                                 picture), every),
         reshaped(walk, graph.op("Mul", weight, column_weight), every))
        for y, weight in ys for column, column_weight in xs]
    planes = reshaped(walk, transposed(walk, x, [1, 0, 2, 3]), (
        1, channels, batch * height * width))
    made = reshaped(walk, sampled(walk, planes, taps), (channels, count, rows, columns))
    return transposed(walk, made, [1, 0, 2, 3])
