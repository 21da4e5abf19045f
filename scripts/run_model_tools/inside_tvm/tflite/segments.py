"""TensorFlow Lite's operators on segments of rows and on buckets, which TVM's importer lacks."""

from functools import partial

import numpy as np
from tvm import relay

from run_model_tools.inside_tvm import Refusal
from run_model_tools.inside_tvm.tflite.operators import options_of

_NEUTRAL = {"add": lambda dtype: 0, "mul": lambda dtype: 1,
            "max": lambda dtype: _limits(dtype).min, "min": lambda dtype: _limits(dtype).max}
"""What LiteRT gives a segment without rows."""


def _limits(dtype):
    return np.finfo(dtype) if np.dtype(dtype).kind == "f" else np.iinfo(dtype)


def _segments(converter, op, mode):
    """Rows of the same segment together; those of a negative one nowhere."""
    data, places = (int(index) for index in op.InputsAsNumpy()[:2])
    shape, axes = converter.shape_of(data), len(converter.shape_of(places))
    if op.InputsLength() > 2:
        (count,) = converter.known_numbers(op.Inputs(2))
    else:
        # They are in order, and the last one says how many there are.
        count = converter.known_numbers(places)[-1] + 1
    dtype, rows = converter.graph.tensors[data].dtype, int(np.prod(shape[:axes]))
    if converter.graph.tensors[data].is_whole:
        raise Refusal("model", "it puts segments of the quantized tensor %s together"
                      % converter.graph.tensors[data].name)
    at = relay.reshape(relay.cast(converter.value(places), "int32"), (1, rows))
    outside = relay.logical_or(relay.less(at, relay.const(0, "int32")),
                               relay.greater_equal(at, relay.const(count, "int32")))
    at = relay.where(outside, relay.const(count, "int32"), at)
    empty = relay.full(relay.const(_NEUTRAL[mode](dtype), dtype), (count + 1, *shape[axes:]), dtype)
    made = relay.scatter_nd(empty, at, relay.reshape(converter.value(data), (rows, *shape[axes:])),
                            mode=mode)
    return relay.strided_slice(made, [0], [count], [1], axes=[0])


def _bucket(converter, op):
    """How many of the boundaries are not above a number, which are all of them for a NaN."""
    from tflite.BucketizeOptions import BucketizeOptions

    index = int(op.Inputs(0))
    tensor, x = converter.graph.tensors[index], converter.value(index)
    if tensor.is_whole:
        raise Refusal("model", "it sorts the quantized tensor %s into buckets" % tensor.name)
    options, axis = options_of(op, BucketizeOptions), len(converter.shape_of(index))
    bounds = np.array([options.Boundaries(i) for i in range(options.BoundariesLength())],
                      np.float32)
    if tensor.dtype.startswith("int"):
        # LiteRT compares with the numbers as floats.
        x = relay.cast(x, "float32")
    above = relay.less(relay.expand_dims(x, axis), relay.const(bounds.astype(
        tensor.dtype if tensor.dtype.startswith("float") else "float32")))
    return relay.sum(relay.cast(relay.logical_not(above), "int32"), axis)


CONVERTERS = {
    "BUCKETIZE": _bucket,
    **{name: partial(_segments, mode=mode) for name, mode in (
        ("SEGMENT_SUM", "add"), ("UNSORTED_SEGMENT_SUM", "add"), ("UNSORTED_SEGMENT_PROD", "mul"),
        ("UNSORTED_SEGMENT_MAX", "max"), ("UNSORTED_SEGMENT_MIN", "min"))}}
"""By operators' names, functions of the importer's converter and one operator."""
