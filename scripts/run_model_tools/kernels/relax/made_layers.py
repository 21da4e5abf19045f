"""Layers that are made while a network is imported, as calls in Relax that importing.py reads."""

from __future__ import annotations

from typing import Any

from tvm import relax

from run_model_tools.kernels.layer import Layer
from run_model_tools.kernels.relay.nodes import PREFIX

# TVM's calls name functions and hold no objects of Python's own.
_layers: dict[str, Layer] = {}


def call(layer: Layer, inputs: list[Any]) -> Any:
    """Relax's expression of the layer's output."""
    name = f"{PREFIX}{layer.kind}_{len(_layers)}"
    _layers[name] = layer
    return relax.op.call_dps_packed(name, relax.Tuple(inputs),
                                    relax.TensorType(layer.output_shape, layer.output_dtype))


def layer_of(expr: Any) -> Layer | None:
    """The layer of such a call, None of any other of Relax's."""
    if str(getattr(expr.op, "name", "")) != "relax.call_dps_packed":
        return None
    return _layers.get(str(expr.args[0].global_symbol))
