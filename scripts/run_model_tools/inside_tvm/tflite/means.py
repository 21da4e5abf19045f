"""MEAN of quantized numbers, as LiteRT rounds it: the sum of whole numbers is multiplied by one of
31 bits and rounded, shifted and rounded again, up to three quarters of a step beside the mean.

In a LayerNorm, which subtracts it, that is as much as the network computes with.  The sum itself
is exact: where the result's steps are small, what floats round would be many of them.
"""

import math

import numpy as np
from tvm import relay

from run_model_tools.inside_tvm.tflite.operators import options_of

_BITS = 31
_EXACT = 1 << 24
"""Of whole numbers in float32."""


def _mean(converter, op):
    from tflite.ReducerOptions import ReducerOptions

    index = int(op.Inputs(0))
    source, target = (converter.graph.tensors[int(i)] for i in (index, op.Outputs(0)))
    if not (source.is_whole and target.is_whole):
        return converter._convert_reduce(relay.mean, op)
    shape = converter.shape_of(index)
    axes = sorted({int(axis) % len(shape) for axis in converter.known_numbers(op.Inputs(1))})
    scales = [np.float32(t.quantized.scales[0]) for t in (source, target)]
    zeros = [int(t.quantized.zero_points[0]) for t in (source, target)]
    # What LiteRT computes otherwise: means of pictures, and those that keep the scale.
    if (len(shape) == 4 and axes == [1, 2]) or (scales[0] == scales[1] and zeros[0] == zeros[1]):
        return converter._convert_reduce(relay.mean, op)
    count = math.prod(shape[axis] for axis in axes)
    dtype = "float32" if count << (8 * np.dtype(source.dtype).itemsize) < _EXACT else "int32"
    whole = relay.subtract(relay.cast(converter.output(index), dtype),
                           relay.const(zeros[0], dtype))
    total = relay.sum(whole, axes, bool(options_of(op, ReducerOptions).KeepDims()))
    steps = _multiplied(relay.cast(total, "int64"), float(scales[0]) / float(scales[1]), count)
    return relay.multiply(relay.cast(steps, "float32"), relay.const(scales[1]))


def _multiplied(total, factor, count):
    """total * factor / count, in whole numbers."""
    part, exponent = math.frexp(factor)
    multiplier = math.floor(part * (1 << _BITS) + 0.5)
    if multiplier == 1 << _BITS:
        multiplier, exponent = multiplier // 2, exponent + 1
    shift = min(count.bit_length() - 1, 32, _BITS + exponent)
    multiplier, exponent = (multiplier << shift) // count, exponent - shift
    if exponent > 0:
        total = relay.multiply(total, _long(1 << exponent))
    product = relay.add(relay.multiply(total, _long(multiplier)), _long(1 << (_BITS - 1)))
    made = relay.right_shift(product, _long(_BITS))
    if exponent < 0:
        # Halves go away from zero.
        half = relay.subtract(_long(1 << (-exponent - 1)),
                              relay.cast(relay.less(made, _long(0)), "int64"))
        made = relay.right_shift(relay.add(made, half), _long(-exponent))
    return made


def _long(number):
    return relay.const(number, "int64")


CONVERTERS = {"MEAN": _mean}
"""By operators' names, functions of the importer's converter and one operator."""
