"""SOFTMAX of TensorFlow Lite.

Of 16-bit numbers LiteRT takes the exponential from a table that ends at exp(-10), with two steps of
2**-15 there: of a thousand classes those that are far behind have 6 % together.  Networks were
quantized with this, so it is done here too, to a step or two of the result.
"""

import numpy as np
from tvm import relay

from run_model_tools.inside_tvm.tflite.operators import options_of
from run_model_tools.inside_tvm.tflite.tables import PARTS, lines

_FARTHEST = 10.0
"""Behind the largest number, what the table's first entry is for."""
_PLACES = 1 << 16
_ONE = 1 << 15


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
    """(65536,) int32: exp of -10 to 0 in steps of 2**-15, as LiteRT's table has it."""
    ends = np.exp(np.linspace(-_FARTHEST, 0, 2 * PARTS + 1)) * _ONE
    return lines(ends[:-1:2], ends[1::2], ends[2::2])


CONVERTERS = {"SOFTMAX": _softmax}
"""By operators' names, functions of the importer's converter and one operator."""
