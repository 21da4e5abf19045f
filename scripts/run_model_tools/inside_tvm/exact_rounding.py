"""ONNX's Round of numbers too large for a fraction: TVM's importer adds a half to them, which makes
odd ones even, and takes a remainder of infinity, which is NaN."""

from contextlib import contextmanager

_WHOLE = {"float16": 2.0 ** 10, "float32": 2.0 ** 23, "float64": 2.0 ** 52}
"""From which on all numbers of a type are whole."""


@contextmanager
def installed():
    """Meanwhile from_onnx gives whole numbers as they are."""
    from tvm import relay
    from tvm.relay.frontend import onnx as importer

    original = importer._get_convert_map

    def convert_map(opset):
        known = original(opset)
        round_small = known["Round"]

        def convert(inputs, attributes, parameters):
            x = inputs[0]
            made = round_small(inputs, attributes, parameters)
            dtype = importer.infer_type(x).checked_type.dtype
            if dtype not in _WHOLE:
                return made
            has_fraction = relay.less(relay.abs(x), relay.const(_WHOLE[dtype], dtype))
            return relay.where(has_fraction, made, x)

        return {**known, "Round": convert}

    importer._get_convert_map = convert_map
    try:
        yield
    finally:
        importer._get_convert_map = original
