"""Operators that TVM lacks, computes otherwise than ONNX, or takes long for.

A family of them has install(tvm), which changes Relay for the rest of the process, and
converters(known), by operators' names those of Relay's ONNX importer that differ from the ones it
knows; or one of the two.
"""

from run_model_tools.inside_tvm.operators import (
    chosen_boxes,
    nan_operators,
    onnx_converters,
    quantized_lstm,
    resized_planes,
    scatter_and_scan,
    sorted_rows,
    weighted_samples,
    whole_division,
)

_FAMILIES = (chosen_boxes, nan_operators, onnx_converters, quantized_lstm, resized_planes,
             scatter_and_scan, sorted_rows, weighted_samples, whole_division)


def install(tvm):
    """Lets Relay's operators be computed so in this process."""
    for family in _FAMILIES:
        if hasattr(family, "install"):
            family.install(tvm)


def imported(tvm):
    """While it is open, Relay's from_onnx takes what repairs leave to these operators."""
    from tvm.relay.frontend import onnx as importer

    install(tvm)

    def change(known):
        made = dict(known)
        for family in _FAMILIES:
            if hasattr(family, "converters"):
                made.update(family.converters(known))
        return made

    return onnx_converters.exchanged(importer, change)
