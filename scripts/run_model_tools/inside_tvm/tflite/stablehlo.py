"""Operators of StableHLO, as they stay in files of PyTorch's and JAX's converters where TensorFlow
Lite has none that does the same.
"""

import math
from functools import partial

import numpy as np
from tvm import relay

from run_model_tools.inside_tvm import Refusal

_OWN_MODES = {"STABLEHLO_ADD": "add", "STABLEHLO_MULTIPLY": "mul", "STABLEHLO_MAXIMUM": "max",
              "STABLEHLO_MINIMUM": "min"}
_MODES = {**_OWN_MODES, "ADD": "add", "MUL": "mul", "MAXIMUM": "max", "MINIMUM": "min"}
"""What may be done with two numbers, by the one operator of the graph that says so."""
_COMBINED = {"add": relay.add, "mul": relay.multiply, "max": relay.maximum, "min": relay.minimum}
_AT_ONCE = 8
"""Places of a window that are combined one by one; longer ones of pieces that double."""


class _Options:
    """The options of an operator, with lists of whole numbers."""

    def __init__(self, op, kind):
        import tflite

        self._table = getattr(tflite, kind)()
        table = op.BuiltinOptions2()
        self._table.Init(table.Bytes, table.Pos)

    def number(self, name):
        return int(getattr(self._table, name)())

    def list(self, name):
        if not getattr(self._table, name + "Length")():
            return []
        return [int(n) for n in getattr(self._table, name + "AsNumpy")().ravel()]


def _refuse_bytes(converter, op):
    for index in (*op.InputsAsNumpy(), *op.OutputsAsNumpy()):
        tensor = converter.graph.tensors[int(index)]
        if tensor.is_whole:
            raise Refusal("model", "it has %s of the quantized tensor %s, and is known of floats "
                          "and of whole numbers" % (converter.get_op_code_str(op), tensor.name))


def _mode(converter, op, number):
    """What the graph of this number does with two numbers."""
    operators = [o.name for o in converter.file.graphs[number].operators]
    if not operators:
        return "update"
    if len(operators) > 1 or operators[0] not in _MODES:
        raise Refusal("model", "its %s combines numbers by %s, and one of %s is known" % (
            converter.get_op_code_str(op), ", ".join(operators), ", ".join(sorted(_MODES))))
    return _MODES[operators[0]]


class _Windows:
    """Parts of a tensor that begin at computed places, as rows of the tensor as a matrix.

    A row is as many last axes as each part has whole.
    """

    def __init__(self, converter, index, axes, vector_axis, shape, window):
        """axes: those that the vectors along vector_axis of the tensor `index` are of."""
        self.shape, self.window = shape, window
        rank = len(shape)
        while rank and window[rank - 1] == shape[rank - 1] and rank - 1 not in axes:
            rank -= 1
        self.rows, self.columns = math.prod(shape[:rank]), math.prod(shape[rank:])
        self._axes = axes
        self._strides = [math.prod(shape[axis + 1:rank]) for axis in range(rank)]
        within = np.indices(window[:rank], np.int32).reshape(rank, math.prod(window[:rank]))
        self._within = within[:, None]
        starts, extents = converter.value(index), list(converter.shape_of(index))
        if vector_axis == len(extents):
            extents.append(1)
        others = [axis for axis in range(len(extents)) if axis != vector_axis]
        self.batch = [extents[axis] for axis in others]
        starts = relay.reshape(starts, extents)
        starts = relay.reshape(relay.transpose(starts, [*others, vector_axis]), (-1, len(axes)))
        # What lies far out of the tensor stays so in 32 bits.
        starts = relay.cast(relay.clip(starts, -(1 << 30), 1 << 30), "int32")
        self._starts = [relay.strided_slice(starts, [number], [number + 1], axes=[1])
                        for number in range(len(axes))]

    def clamp(self):
        """Moves parts that reach out of the tensor into it."""
        self._starts = [relay.clip(start, 0, self.shape[axis] - self.window[axis])
                        for axis, start in zip(self._axes, self._starts)]

    def numbers(self):
        """Of the rows: [parts, rows of each]."""
        made = relay.const(sum((within * stride for within, stride in zip(
            self._within, self._strides)), np.zeros((1, 1), np.int32)).astype(np.int32))
        for axis, start in zip(self._axes, self._starts):
            made = relay.add(made, relay.multiply(start, relay.const(self._strides[axis], "int32")))
        return made

    def are_there(self):
        """Which of the rows the tensor has; like numbers(), or with a 1 for rows that are alike."""
        made = relay.const(np.ones((1, 1), np.bool_))
        for axis, start in zip(self._axes, self._starts):
            place = relay.add(start, relay.const(self._within[axis]))
            for inside in (relay.greater_equal(place, relay.const(0, "int32")),
                           relay.less(place, relay.const(self.shape[axis], "int32"))):
                made = relay.logical_and(made, inside)
        return made


def _scatter(converter, op):
    """Updates that lie outside of the tensor change nothing."""
    _refuse_bytes(converter, op)
    options = _Options(op, "StablehloScatterOptions")
    data, places, updates = (int(index) for index in op.InputsAsNumpy())
    mode = _mode(converter, op, options.number("UpdateComputationSubgraphIndex"))
    shape, update_shape = converter.shape_of(data), converter.shape_of(updates)
    inserted, kept = options.list("InsertedWindowDims"), options.list("UpdateWindowDims")
    extents = iter([update_shape[axis] for axis in kept])
    window = [1 if axis in inserted else next(extents) for axis in range(len(shape))]
    windows = _Windows(converter, places, options.list("ScatterDimsToOperandDims"),
                       options.number("IndexVectorDim"), shape, window)
    rows, there = windows.numbers(), windows.are_there()
    known = converter.known(there)
    table = relay.reshape(converter.value(data), (windows.rows, windows.columns))
    all_there = known is not None and known.data.numpy().all()
    if not all_there:
        # One more row is for updates of none.
        dtype = converter.graph.tensors[data].dtype
        table = relay.concatenate([table, relay.zeros((1, windows.columns), dtype)], 0)
        rows = relay.where(there, rows, relay.const(windows.rows, "int32"))
    rows = relay.reshape(rows, (1, -1))
    batches = [axis for axis in range(len(update_shape)) if axis not in kept]
    changes = relay.reshape(relay.transpose(converter.value(updates), [*batches, *kept]),
                            (-1, windows.columns))
    made = relay.scatter_nd(table, rows, changes, mode=mode)
    if not all_there:
        made = relay.strided_slice(made, [0], [windows.rows], axes=[0])
    return relay.reshape(made, shape)


def _gather(converter, op):
    _refuse_bytes(converter, op)
    options = _Options(op, "StablehloGatherOptions")
    data, places = (int(index) for index in op.InputsAsNumpy())
    shape, window = converter.shape_of(data), options.list("SliceSizes")
    windows = _Windows(converter, places, options.list("StartIndexMap"),
                       options.number("IndexVectorDim"), shape, window)
    windows.clamp()
    table = relay.reshape(converter.value(data), (windows.rows, windows.columns))
    made = relay.take(table, windows.numbers(), 0, mode="fast")
    collapsed, offsets = options.list("CollapsedSliceDims"), options.list("OffsetDims")
    kept = [extent for axis, extent in enumerate(window) if axis not in collapsed]
    made = relay.reshape(made, (*windows.batch, *kept))
    batch = iter(range(len(windows.batch)))
    order = [len(windows.batch) + offsets.index(axis) if axis in offsets else next(batch)
             for axis in range(len(windows.batch) + len(kept))]
    return relay.transpose(made, order)


def _reduce_window(converter, op):
    _refuse_bytes(converter, op)
    options = _Options(op, "StablehloReduceWindowOptions")
    mode = _mode(converter, op, options.number("BodySubgraphIndex"))
    if mode == "update":
        raise Refusal("model", "its STABLEHLO_REDUCE_WINDOW combines no numbers")
    index, first = (int(i) for i in op.InputsAsNumpy())
    x, start = converter.value(index), converter.known_value(first).ravel()[0]
    shape, combined = converter.shape_of(index), _COMBINED[mode]
    ones = [1] * len(shape)
    sizes = options.list("WindowDimensions")
    strides, spread, dilation = (options.list(name) or ones for name in (
        "WindowStrides", "BaseDilations", "WindowDilations"))
    pads = options.list("Padding") or [0] * (2 * len(shape))
    x, shape = _padded(x, shape, pads[::2], pads[1::2], [n - 1 for n in spread], start)
    for axis, extent in enumerate(shape):
        reach = (sizes[axis] - 1) * dilation[axis] + 1
        count = max(0, (extent - reach) // strides[axis] + 1)
        x = _along(x, axis, sizes[axis], dilation[axis], strides[axis], count, combined)
    neutral = {"add": 0, "mul": 1}.get(mode)
    if start == neutral:
        return x
    return combined(x, relay.const(start, converter.graph.tensors[index].dtype))


def _along(x, axis, size, dilation, stride, count, combined):
    """Windows along one axis: of `size` places, `count` of them."""
    def part(source, first, step, length):
        return relay.strided_slice(source, [first], [first + (length - 1) * step + 1], [step],
                                   axes=[axis])

    if (size, stride) == (1, 1):
        return x
    if size <= _AT_ONCE:
        made = part(x, 0, stride, count)
        for place in range(1, size):
            made = combined(made, part(x, place * dilation, stride, count))
        return made
    # pieces: windows of a power of two, at each place; made: those of the first places of all.
    places, made, done, length = (count - 1) * stride + 1, None, 0, 1
    pieces, reach = x, places + (size - 1) * dilation
    while True:
        if size & length:
            taken = part(pieces, done * dilation, stride, count)
            made = taken if made is None else combined(made, taken)
            done += length
        if done == size:
            return made
        reach -= length * dilation
        pieces = combined(part(pieces, 0, 1, reach), part(pieces, length * dilation, 1, reach))
        length *= 2


def _padded(x, shape, low, high, between, value):
    """(x, its shape) with `value` before, behind and between its numbers; less than 0 cuts."""
    dtype_value = float(value)
    if any(between):
        x = relay.nn.dilate(x, [n + 1 for n in between], dtype_value)
        shape = [(extent - 1) * (n + 1) + 1 for extent, n in zip(shape, between)]
    cut = [(max(0, -a), extent - max(0, -b)) for a, b, extent in zip(low, high, shape)]
    if any(c != (0, extent) for c, extent in zip(cut, shape)):
        x = relay.strided_slice(x, [a for a, _ in cut], [b for _, b in cut])
    widths = [(max(0, a), max(0, b)) for a, b in zip(low, high)]
    if any(any(pair) for pair in widths):
        x = relay.nn.pad(x, widths, dtype_value)
    return x, [b - a + sum(pair) for (a, b), pair in zip(cut, widths)]


def _pad(converter, op):
    _refuse_bytes(converter, op)
    options = _Options(op, "StablehloPadOptions")
    index = int(op.Inputs(0))
    value = converter.known_value(op.Inputs(1)).ravel()[0]
    return _padded(converter.value(index), converter.shape_of(index), *(
        options.list(name) for name in ("EdgePaddingLow", "EdgePaddingHigh", "InteriorPadding")),
        value)[0]


def _dilate(converter, op):
    _refuse_bytes(converter, op)
    index = int(op.Inputs(0))
    shape, factors = converter.shape_of(index), converter.known_numbers(op.Inputs(1))
    value, none = converter.known_value(op.Inputs(2)).ravel()[0], [0] * len(shape)
    return _padded(converter.value(index), shape, none, none, [n - 1 for n in factors], value)[0]


def _compared(converter, op):
    """By the number that the schema has for a direction."""
    _refuse_bytes(converter, op)
    direction = _Options(op, "StablehloCompareOptions").number("ComparisonDirection")
    make = (relay.equal, relay.not_equal, relay.greater_equal, relay.greater, relay.less_equal,
            relay.less)[direction]
    return make(*(converter.value(index) for index in op.InputsAsNumpy()))


def _sorted(converter, op):
    """Several tensors, in the order of one of them."""
    _refuse_bytes(converter, op)
    options = _Options(op, "StablehloSortOptions")
    axis, given = options.number("Dimension"), [int(index) for index in op.InputsAsNumpy()]
    graph = converter.file.graphs[options.number("ComparatorSubgraphIndex")]
    key, ascending = _order(converter, graph, len(given))
    shape = converter.shape_of(given[key])
    last = len(shape) - 1
    swapped = [last if i == axis else axis if i == last else i for i in range(len(shape))]
    values = [relay.transpose(converter.value(index), swapped) for index in given]
    # An argsort would be a function of TVM's own runtime.
    order = relay.topk(values[key], shape[axis], last, "indices", ascending, "int32")
    made = [relay.transpose(relay.gather(value, last, order), swapped) for value in values]
    return made[0] if len(made) == 1 else relay.Tuple(made)


def _order(converter, graph, count):
    """(number of the tensor that decides, whether its least number comes first), by what a graph
    answers for many pairs."""
    random, kinds = np.random.RandomState(1), [graph.tensors[i].dtype for i in graph.inputs]
    pairs = [(random.permutation(np.repeat(np.arange(-8, 8), 8))
              / (2 if kind.startswith("float") else 1)).astype(kind) for kind in kinds]
    answer = converter.known(converter.called(graph, [relay.const(p, str(p.dtype))
                                                      for p in pairs])[0])
    for key in range(count):
        for ascending, compare in ((True, np.less), (False, np.greater)):
            if answer is not None and np.array_equal(
                    answer.data.numpy(), compare(*pairs[2 * key:2 * key + 2])):
                return key, ascending
    raise Refusal("model", "it sorts (STABLEHLO_SORT) by more than whether a number of one tensor "
                  "is less or greater than another")


def _elementwise(make, converter, op):
    _refuse_bytes(converter, op)
    return make(*(converter.value(index) for index in op.InputsAsNumpy()))


CONVERTERS = {
    "STABLEHLO_SCATTER": _scatter, "STABLEHLO_GATHER": _gather,
    "STABLEHLO_REDUCE_WINDOW": _reduce_window, "STABLEHLO_PAD": _pad, "DILATE": _dilate,
    "STABLEHLO_SORT": _sorted, "STABLEHLO_COMPARE": _compared,
    **{name: partial(_elementwise, _COMBINED[mode]) for name, mode in _OWN_MODES.items()},
    "STABLEHLO_SHIFT_LEFT": partial(_elementwise, relay.left_shift)}
"""By operators' names, functions of the importer's converter and one operator."""
