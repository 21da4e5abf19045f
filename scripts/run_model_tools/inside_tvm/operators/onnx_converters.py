"""Converters of TVM's ONNX importers, exchanged while these work, and those of Round, Expand and of
casts to bfloat16.

Relay's importer adds a half to what it rounds, which makes odd numbers even where they are too
large for a fraction, and takes a remainder of infinity, which is NaN.  The extents of what it
expands are 64 bits wide beside others of 32, by which Relay says another type of an ArgMax than its
code has.  What is cast to bfloat16 to be rounded stays float32: its bits are rounded.
"""

from contextlib import contextmanager
from functools import lru_cache

_WHOLE = {"float16": 2.0 ** 10, "float32": 2.0 ** 23, "float64": 2.0 ** 52}
"""From which on all numbers of a type are whole."""
BFLOAT16 = 16
"""What ONNX calls it."""
_KEPT, _ALMOST_HALF = -1 << 16, (1 << 15) - 1
"""Which bits of float32 bfloat16 has, and what rounds the others, with 1 of an odd number."""


@contextmanager
def exchanged(frontend, change):
    """While it is open, from_onnx of a module of TVM takes the converters, by operators' names,
    that `change` makes of its own."""
    original = frontend._get_convert_map
    # For each node the importer makes all of them anew, in 3 ms.
    frontend._get_convert_map = lru_cache(maxsize=None)(lambda *opset: change(original(*opset)))
    try:
        yield
    finally:
        frontend._get_convert_map = original


def converters(known):
    """Of what Relay's importer rounds, expands and casts to bfloat16."""
    from tvm import relay
    from tvm.relay.frontend import onnx as importer

    def rounded(inputs, attributes, parameters):
        x = inputs[0]
        dtype = importer.infer_type(x).checked_type.dtype
        if dtype not in _WHOLE:
            return known["Round"](inputs, attributes, parameters)
        size = relay.abs(x)
        if dtype == "float32":
            # Such a sum has no bits for a fraction, and is rounded as Round is.
            made = size
            for number in (_WHOLE[dtype], -_WHOLE[dtype]):
                made = relay.add(made, relay.const(number, dtype))
            is_below = relay.less(x, relay.const(0.0, dtype))
            made = relay.where(is_below, relay.negative(made), made)
        else:
            made = known["Round"](inputs, attributes, parameters)
        return relay.where(relay.less(size, relay.const(_WHOLE[dtype], dtype)), made, x)

    def expanded(inputs, attributes, parameters):
        made = known["Expand"](inputs, attributes, parameters)
        if made.op.name != "broadcast_to":
            return made
        return relay.broadcast_to(made.args[0], [int(extent) for extent in made.attrs.shape])

    def cast(inputs, attributes, parameters):
        if attributes["to"] != BFLOAT16:
            return known["Cast"](inputs, attributes, parameters)
        x = inputs[0]
        bits = relay.reinterpret(x, "int32")
        odd = relay.bitwise_and(relay.right_shift(bits, relay.const(16)), relay.const(1))
        bits = relay.bitwise_and(bits + odd + relay.const(_ALMOST_HALF), relay.const(_KEPT))
        return relay.where(relay.isnan(x), x, relay.reinterpret(bits, "float32"))

    return {"Round": rounded, "Expand": expanded, "Cast": cast}


def to_bfloat16(tvm):
    """Meanwhile Relax's from_onnx rounds so."""
    from tvm import te
    from tvm import tirx as tir
    from tvm.relax.frontend.onnx import onnx_frontend

    def rounded(x):
        def number(*at):
            bits = tir.reinterpret("int32", x(*at))
            odd = (bits >> 16) & 1
            made = tir.reinterpret("float32", (bits + odd + _ALMOST_HALF) & _KEPT)
            return tir.Select(tir.isnan(x(*at)), x(*at), made)

        return te.compute(x.shape, number, name="bfloat16")

    def change(known):
        class Cast(known["Cast"]):
            @classmethod
            def _impl_v13(cls, bb, inputs, attr, params):
                if attr["to"] != BFLOAT16:
                    return super()._impl_v13(bb, inputs, attr, params)
                return bb.emit_te(rounded, inputs[0])

        return {**known, "Cast": Cast}

    return exchanged(onnx_frontend, change)
