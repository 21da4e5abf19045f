"""TensorFlow Lite's operators on segments of rows, on buckets, and on volumes that grow, which
TVM's importer lacks."""

import numpy as np

from run_model_tools.inside_tvm import Refusal

_NEUTRAL = {"add": lambda dtype: 0, "mul": lambda dtype: 1,
            "max": lambda dtype: _limits(dtype).min, "min": lambda dtype: _limits(dtype).max}
"""What LiteRT gives a segment without rows."""


def converters(relay):
    """By operators' names, functions of the importer's converter and one operator."""
    def segments(mode):
        return lambda converter, op: _segments(relay, converter, op, mode)

    return {"BUCKETIZE": lambda converter, op: _bucket(relay, converter, op),
            "SEGMENT_SUM": segments("add"), "UNSORTED_SEGMENT_SUM": segments("add"),
            "UNSORTED_SEGMENT_PROD": segments("mul"), "UNSORTED_SEGMENT_MAX": segments("max"),
            "UNSORTED_SEGMENT_MIN": segments("min"),
            "CONV_3D_TRANSPOSE": lambda converter, op: _transposed_conv3d(relay, converter, op)}


def _limits(dtype):
    return np.finfo(dtype) if np.dtype(dtype).kind == "f" else np.iinfo(dtype)


def _segments(relay, converter, op, mode):
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


def _bucket(relay, converter, op):
    """How many of the boundaries are not above a number, which are all of them for a NaN."""
    from tflite.BucketizeOptions import BucketizeOptions

    from run_model_tools.inside_tvm.tflite_operators import options_of

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


def _transposed_conv3d(relay, converter, op):
    from tflite.Conv3DOptions import Conv3DOptions
    from tflite.Padding import Padding

    from run_model_tools.inside_tvm.tflite_operators import options_of

    options = options_of(op, Conv3DOptions)
    wanted = converter.known_numbers(op.Inputs(0))
    kernel, size = (converter.shape_of(op.Inputs(number)) for number in (1, 2))
    strides = [options.StrideD(), options.StrideH(), options.StrideW()]
    dilation = [options.DilationDFactor(), options.DilationHFactor(), options.DilationWFactor()]
    reaches = [(extent - 1) * stride + (k - 1) * d + 1
               for extent, k, d, stride in zip(size[1:4], kernel[:3], dilation, strides)]
    beyond = [reach - extent if options.Padding() == Padding.SAME else 0
              for reach, extent in zip(reaches, wanted[1:4])]
    before = [max(n, 0) // 2 for n in beyond]
    after = [max(n, 0) - first for n, first in zip(beyond, before)]
    if dilation != [1, 1, 1]:
        raise Refusal("model", "a transposed convolution of volumes (CONV_3D_TRANSPOSE) has gaps")
    made = relay.nn.conv3d_transpose(
        relay.transpose(converter.value(op.Inputs(2)), (0, 4, 1, 2, 3)),
        relay.transpose(converter.value(op.Inputs(1)), (4, 3, 0, 1, 2)), strides=strides,
        padding=before + after, kernel_size=kernel[:3], channels=kernel[3],
        output_padding=[extent - (reach - a - b) for extent, reach, a, b in zip(
            wanted[1:4], reaches, before, after)])
    made = relay.transpose(made, (0, 2, 3, 4, 1))
    if op.InputsLength() > 3 and op.Inputs(3) >= 0:
        made = relay.add(made, converter.value(op.Inputs(3)))
    return converter.convert_fused_activation_function(made, options.FusedActivationFunction())
