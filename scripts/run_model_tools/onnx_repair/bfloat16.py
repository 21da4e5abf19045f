"""A model in bfloat16 -> the same in float32, which NumPy and every CPU have.

A number of bfloat16 is one of float32 whose last 16 bits are 0, so that weights and inputs stay
what they are; sums and what lies between layers are rounded less than the model asks for.  A Cast
to bfloat16 from which casts go on to other types is there to round, and stays.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from google.protobuf.message import Message
from onnx import AttributeProto, TensorProto, TypeProto

from run_model_tools.onnx_repair.half_precision import TYPES, widened
from run_model_tools.onnx_repair.outputs import reads
from run_model_tools.onnx_repair.stored_tensors import parts_of

_BFLOAT16, _SINGLE = TensorProto.BFLOAT16, TensorProto.FLOAT


def note(model: onnx.ModelProto) -> str | None:
    """What users are told of a model that has bfloat16 anywhere; its weights need not be loaded."""
    if not any(_to_change(model)):
        return None
    names = [f"'{value.name}'" for value in (*model.graph.input, *model.graph.output)
             if value.type.tensor_type.elem_type == _BFLOAT16]
    return ("what is bfloat16 in the model is float32 here, which is rounded less"
            + (f"; so are {', '.join(names)}" if names else ""))


def as_float32(model: onnx.ModelProto) -> bool:
    """Changes the model, subgraphs and functions too, and says whether it had any bfloat16."""
    found = list(_to_change(model))
    for part in found:
        if isinstance(part, TensorProto):
            part.CopyFrom(widened(part))
        elif isinstance(part, AttributeProto):
            part.i = _SINGLE
        else:
            part.elem_type = _SINGLE
    return bool(found)


def _to_change(model: onnx.ModelProto) -> Iterator[Message]:
    """All that is of the type, but for roundings and what they give."""
    kept = [part for body in parts_of(model)
            if isinstance(body, (onnx.GraphProto, onnx.FunctionProto))
            for part in _of_roundings(body)]
    by_id = {id(part): part for part in kept}
    return (part for part in _parts(model) if _is_bfloat16(part) and id(part) not in by_id)


def _of_roundings(body: onnx.GraphProto | onnx.FunctionProto) -> Iterator[Message]:
    """The attributes of casts to the type whose results are cast on at once, and what is said of
    these results."""
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in body.node:
        for name in reads(node):
            readers.setdefault(name, []).append(node)
    ends = {value if isinstance(value, str) else value.name for value in body.output}
    rounded: set[str] = set()
    for node in body.node:
        to = next((a for a in node.attribute if a.name == "to"), None)
        if node.op_type == "Cast" and to is not None and to.i == _BFLOAT16 \
                and node.output[0] in readers.keys() - ends \
                and all(_casts_on(reader) for reader in readers[node.output[0]]):
            rounded.add(node.output[0])
            yield to
    for value in body.value_info:
        if value.name in rounded:
            yield value.type.tensor_type


def _casts_on(node: onnx.NodeProto) -> bool:
    return node.op_type == "Cast" and all(a.i != _BFLOAT16 for a in node.attribute
                                          if a.name == "to")


def _is_bfloat16(part: Message) -> bool:
    if isinstance(part, TensorProto):
        return part.data_type == _BFLOAT16
    if isinstance(part, AttributeProto):
        return part.name in TYPES and part.i == _BFLOAT16
    return part.elem_type == _BFLOAT16


def _parts(message: Message) -> Iterator[Message]:
    """All that has an element type: tensors, types, and attributes that may name one."""
    return (part for part in parts_of(message) if isinstance(
        part, (TensorProto, TypeProto.Tensor, TypeProto.SparseTensor, AttributeProto)))
