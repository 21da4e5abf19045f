"""Why an operator is left to TVM's schedules, for a person who wonders."""

from __future__ import annotations

from collections.abc import Container

import tvm

from run_model_tools.kernels.relay import nodes as relay
from run_model_tools.kernels.relay.graph import operator


def why_left(call: relay.Call, known: Container[str]) -> str:
    """What stands in the way of our kernels; `known`: operators that some of them are for."""
    name = operator(call)
    if name not in known:
        return f"there is no kernel of ours for {name}"
    parts = [part for argument in (*call.args, call) for part in _tensors(argument.checked_type)]
    others = sorted({dtype for _, dtype in parts} - {"float32"})
    if others:
        return f"our kernels for {name} compute in float32, and this one has {', '.join(others)}"
    shapes = " x ".join(str(list(shape)) for shape, _ in parts[:-1])
    return (f"our kernels for {name} do not take this one, of {shapes}"
            + (f", with {settings}" if (settings := _settings(call)) else ""))


def _tensors(kind: tvm.ir.Type) -> list[tuple[tuple[int, ...], str]]:
    if isinstance(kind, relay.TupleType):
        return [part for one in kind.fields for part in _tensors(one)]
    shape = getattr(kind.shape, "values", kind.shape)
    return [(tuple(int(extent) for extent in shape), str(kind.dtype))]


def _settings(call: relay.Call) -> str:
    """Attributes that say something: "strides [2, 2], groups 4"."""
    if call.attrs is None or not hasattr(call.attrs, "keys"):
        return ""
    names = list(call.attrs.keys())
    return ", ".join(f"{name} {call.attrs[name]}" for name in names
                     if str(call.attrs[name]) not in ("", "None"))
