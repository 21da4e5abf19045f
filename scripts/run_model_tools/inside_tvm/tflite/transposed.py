"""Transposed convolutions of TensorFlow Lite, of pictures and of volumes.

A file names the extents of the result.  What the filters reach beyond them is cut off, first half
of it before the result (SAME) or all behind it (VALID); where they reach less, zeros are behind it.
"""

import numpy as np
from tvm import relay

from run_model_tools.inside_tvm import Refusal
from run_model_tools.inside_tvm.tflite.operators import options_of
from run_model_tools.tflite.as_compiled import TRANSPOSED, transposed_options


def _of_pictures(converter, op):
    from tflite.Padding import Padding
    from tflite.TransposeConvOptions import TransposeConvOptions

    options, bias = options_of(op, TransposeConvOptions), None
    if op.InputsLength() > 3 and op.Inputs(3) >= 0:
        bias = converter.value(op.Inputs(3))
    wanted = converter.known_numbers(op.Inputs(0))[1:3]
    made = _picture(converter, op.Inputs(2), op.Inputs(1), wanted, bias,
                    options.Padding() == Padding.SAME, (options.StrideH(), options.StrideW()))
    return converter.convert_fused_activation_function(made, options.FusedActivationFunction())


def _with_bias(converter, op):
    """MediaPipe's own."""
    data, weight, bias = op.InputsAsNumpy()
    is_same, stride_x, stride_y = transposed_options(
        np.asarray(op.CustomOptionsAsNumpy(), np.uint8).tobytes())
    wanted = converter.graph.tensors[op.Outputs(0)].shape[1:3]
    return _picture(converter, data, weight, wanted, converter.value(bias), is_same,
                    (stride_y, stride_x))


def _picture(converter, data, weight, wanted, bias, is_same, strides):
    size, (channels, *kernel, _) = converter.shape_of(data), converter.shape_of(weight)
    before, after, missing = _edges(size[1:3], kernel, strides, [1, 1], wanted, is_same)
    made = relay.nn.conv2d_transpose(
        converter.value(data), relay.transpose(converter.value(weight), (3, 0, 1, 2)),
        strides=strides, padding=before + after, channels=channels, kernel_size=kernel,
        data_layout="NHWC", kernel_layout="IOHW", out_dtype="float32")
    made = _with_zeros(made, missing)
    return made if bias is None else relay.nn.bias_add(made, bias, axis=3)


def _of_volumes(converter, op):
    from tflite.Conv3DOptions import Conv3DOptions
    from tflite.Padding import Padding

    options = options_of(op, Conv3DOptions)
    wanted = converter.known_numbers(op.Inputs(0))[1:4]
    kernel, size = (converter.shape_of(op.Inputs(number)) for number in (1, 2))
    strides = [options.StrideD(), options.StrideH(), options.StrideW()]
    dilation = [options.DilationDFactor(), options.DilationHFactor(), options.DilationWFactor()]
    if dilation != [1, 1, 1]:
        raise Refusal("model", "a transposed convolution of volumes (CONV_3D_TRANSPOSE) has gaps")
    before, after, missing = _edges(size[1:4], kernel[:3], strides, dilation, wanted,
                                    options.Padding() == Padding.SAME)
    made = relay.nn.conv3d_transpose(
        relay.transpose(converter.value(op.Inputs(2)), (0, 4, 1, 2, 3)),
        relay.transpose(converter.value(op.Inputs(1)), (4, 3, 0, 1, 2)), strides=strides,
        padding=before + after, kernel_size=kernel[:3], channels=kernel[3])
    made = _with_zeros(relay.transpose(made, (0, 2, 3, 4, 1)), missing)
    if op.InputsLength() > 3 and op.Inputs(3) >= 0:
        made = relay.add(made, converter.value(op.Inputs(3)))
    return converter.convert_fused_activation_function(made, options.FusedActivationFunction())


def _with_zeros(made, missing):
    """The channels are last."""
    return relay.nn.pad(made, [(0, 0), *((0, n) for n in missing), (0, 0)]) if any(
        missing) else made


def _edges(size, kernel, strides, dilation, wanted, is_same):
    """How much to cut off before and behind the whole result along each axis, and what is missing
    behind it."""
    reaches = [(extent - 1) * stride + (k - 1) * gap + 1
               for extent, k, gap, stride in zip(size, kernel, dilation, strides)]
    before = [0] * len(size)
    if is_same:
        # As the convolution would pad whose input the result is.
        before = [max((-(-extent // stride) - 1) * stride + (k - 1) * gap + 1 - extent, 0) // 2
                  for extent, k, gap, stride in zip(wanted, kernel, dilation, strides)]
    left = [extent - (reach - first) for extent, reach, first in zip(wanted, reaches, before)]
    return before, [max(-n, 0) for n in left], [max(n, 0) for n in left]


CONVERTERS = {"TRANSPOSE_CONV": _of_pictures, TRANSPOSED: _with_bias,
              "CONV_3D_TRANSPOSE": _of_volumes}
"""By operators' names, functions of the importer's converter and one operator."""
