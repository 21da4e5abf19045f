"""Converters of TVM's ONNX importers, exchanged while these work, and those of Round and Expand.

Relay's importer adds a half to what it rounds, which makes odd numbers even where they are too
large for a fraction, and takes a remainder of infinity, which is NaN.  The extents of what it
expands are 64 bits wide beside others of 32, by which Relay says another type of an ArgMax than its
code has.
"""

from contextlib import contextmanager
from functools import cache

_WHOLE = {"float16": 2.0 ** 10, "float32": 2.0 ** 23, "float64": 2.0 ** 52}
"""From which on all numbers of a type are whole."""


@contextmanager
def exchanged(frontend, change):
    """Meanwhile from_onnx of a module of TVM takes the converters, by operators' names, that
    `change` makes of its own."""
    original = frontend._get_convert_map
    # For each node the importer makes all of them anew, in 3 ms.
    frontend._get_convert_map = cache(lambda *opset: change(original(*opset)))
    try:
        yield
    finally:
        frontend._get_convert_map = original


def exact():
    """Meanwhile Relay's from_onnx rounds whole numbers to themselves, and expands to extents as all
    are."""
    from tvm import relay
    from tvm.relay.frontend import onnx as importer

    def change(known):
        def rounded(inputs, attributes, parameters):
            x = inputs[0]
            made = known["Round"](inputs, attributes, parameters)
            dtype = importer.infer_type(x).checked_type.dtype
            if dtype not in _WHOLE:
                return made
            has_fraction = relay.less(relay.abs(x), relay.const(_WHOLE[dtype], dtype))
            return relay.where(has_fraction, made, x)

        def expanded(inputs, attributes, parameters):
            made = known["Expand"](inputs, attributes, parameters)
            if made.op.name != "broadcast_to":
                return made
            return relay.broadcast_to(made.args[0], [int(extent) for extent in made.attrs.shape])

        return {**known, "Round": rounded, "Expand": expanded}

    return exchanged(importer, change)
