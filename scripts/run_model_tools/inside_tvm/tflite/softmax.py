"""SOFTMAX of TensorFlow Lite.

Of 16-bit numbers LiteRT takes the exponential from a table that ends at exp(-10), with two steps of
2**-15 there: of a thousand classes those that are far behind have 6 % together.  Networks were
quantized with this, so it is done here too, to a step or two of the result.
"""

import numpy as np
from tvm import relay

from run_model_tools.inside_tvm.tflite.operators import options_of

_FARTHEST = 10.0
"""Behind the largest number, what the table's first entry is for."""
_PLACES = 1 << 16
_ONE = 1 << 15
_PARTS = 512
"""Of the table, between which LiteRT interpolates."""


def _softmax(converter, op):
    from tflite.SoftmaxOptions import SoftmaxOptions

    index = int(op.Inputs(0))
    x, beta = converter.value(index), np.float32(options_of(op, SoftmaxOptions).Beta())
    tensor = converter.graph.tensors[index]
    if tensor.is_whole and tensor.dtype == "int16":
        return _by_table(x, float(beta))
    return relay.nn.softmax(x if beta == 1 else relay.multiply(x, relay.const(beta)))


def _by_table(x, beta):
    behind = relay.subtract(x, relay.max(x, axis=-1, keepdims=True))
    steps = relay.multiply(behind, relay.const(np.float32(beta * (_PLACES - 1) / _FARTHEST)))
    places = relay.clip(relay.add(relay.round(steps), relay.const(np.float32(_PLACES - 1))),
                        0, _PLACES - 1)
    powers = relay.take(relay.const(exponentials().astype(np.float32)),
                        relay.cast(places, "int32"), mode="fast")
    return relay.divide(powers, relay.sum(powers, axis=-1, keepdims=True))


def exponentials():
    """(65536,) int32: exp of -10 to 0 in steps of 2**-15, as LiteRT's 513 entries with straight
    lines between them have it.

    An entry is half of what the line would be off by in its middle beside the exponential.
    """
    ends = np.exp(np.linspace(-_FARTHEST, 0, 2 * _PARTS + 1)) * _ONE
    at, middle, behind = ends[:-1:2], ends[1::2], ends[2::2]
    line = _rounded((behind + _rounded(at)) / 2)
    entries = np.append(_rounded(at) - _rounded((line - _rounded(middle)) / 2), _rounded(ends[-1]))
    entries = np.clip(entries, -_ONE, _ONE - 1).astype(np.int32)
    each = _PLACES // _PARTS
    offsets = np.arange(each, dtype=np.int32)
    lines = entries[:-1, None] + ((np.diff(entries)[:, None] * offsets + each // 2) // each)
    return lines.reshape(-1)


def _rounded(numbers):
    """To the nearest whole number, halves away from zero."""
    return np.trunc(numbers + np.copysign(0.5, numbers))


CONVERTERS = {"SOFTMAX": _softmax}
"""By operators' names, functions of the importer's converter and one operator."""
