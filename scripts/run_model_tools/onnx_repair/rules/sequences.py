"""Sequences and optionals of known length, which are lists here and nothing in the result."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from run_model_tools.onnx_repair.refusal import Refused
from run_model_tools.onnx_repair.rules import rule
from run_model_tools.onnx_repair.rules.elementwise import reshaped
from run_model_tools.onnx_repair.rules.loops.control_flow import stacked
from run_model_tools.onnx_repair.rules.loops.rerolled import rerolled
from run_model_tools.onnx_repair.rules.shapes import concatenated, split_into
from run_model_tools.onnx_repair.values import Chosen, Node, Option, Sequence, Thing, Value
from run_model_tools.onnx_repair.walk import Walk


def _sequence(node: Node, index: int = 0) -> Sequence:
    thing = node.inputs[index] if index < len(node.inputs) else None
    if isinstance(thing, Option):
        thing = thing.held
    if not isinstance(thing, Sequence):
        raise Refused(f"its input {index} is no sequence", "the model is not valid.", "invalid")
    return thing


def _position(node: Node, index: int, default: int) -> int:
    found = node.ints(index, "the position")
    return found[0] if found else default


@rule("SequenceEmpty")
def sequence_empty(walk: Walk, node: Node) -> list[Thing | None]:
    return [Sequence([], node.attrs.get("dtype", TensorProto.FLOAT))]


@rule("SequenceConstruct")
def sequence_construct(walk: Walk, node: Node) -> list[Thing | None]:
    return [Sequence(node.tensors())]


@rule("SequenceInsert")
def sequence_insert(walk: Walk, node: Node) -> list[Thing | None]:
    items = _sequence(node)
    position = _position(node, 2, len(items))
    position += len(items) if position < 0 else 0
    return [Sequence([*items[:position], node.tensor(1), *items[position:]])]


@rule("SequenceErase")
def sequence_erase(walk: Walk, node: Node) -> list[Thing | None]:
    items = _sequence(node)
    position = _position(node, 1, -1) % max(len(items), 1)
    return [Sequence([*items[:position], *items[position + 1:]], items.elem_type)]


@rule("SequenceAt")
def sequence_at(walk: Walk, node: Node) -> list[Thing | None]:
    items = _sequence(node)
    position = _position(node, 1, 0)
    if not -len(items) <= position < len(items):
        raise Refused(f"it takes element {position} of {len(items)}", "the model is not valid.",
                      "invalid")
    return [items[position]]


@rule("SequenceLength")
def sequence_length(walk: Walk, node: Node) -> Value:
    return walk.graph.constant(len(_sequence(node)), np.int64)


@rule("SplitToSequence")
def split_to_sequence(walk: Walk, node: Node) -> list[Thing | None]:
    x = node.tensor(0)
    axis = node.attrs.get("axis", 0) % x.rank
    split = node.constant(1, "the sizes of the parts")
    extent = x.shape[axis]
    keeps = node.attrs.get("keepdims", 1) or split is not None
    if split is None:
        parts = [1] * extent
    elif split.ndim == 0:
        size = int(split)
        parts = [min(size, extent - at) for at in range(0, extent, size)]
    else:
        parts = [int(p) for p in split]
    items = split_into(walk, x, axis, parts)
    if not keeps:
        items = [walk.graph.op("Squeeze", i, np.array([axis])) for i in items]
    return [Sequence(items)]


@rule("ConcatFromSequence")
def concat_from_sequence(walk: Walk, node: Node) -> Value:
    items = _sequence(node)
    if not items:
        raise Refused("its sequence is empty", "the model is not valid.", "invalid")
    axis = node.attrs["axis"]
    if node.attrs.get("new_axis", 0):
        return stacked(walk, items, axis)
    axis %= items[0].rank
    # PyTorch exports bags of embeddings so, and has the last one computed otherwise.
    for last in range(2 if walk.has_parts and not axis else 0):
        alike, others = (items[:-1], items[-1:]) if last else (items, [])
        together = rerolled(walk, alike)
        if together is not None:
            flat = (len(alike) * items[0].shape[0], *items[0].shape[1:])
            return concatenated(walk, [reshaped(walk, together, flat), *others], 0)
    return concatenated(walk, items, axis)


@rule("Optional")
def optional(walk: Walk, node: Node) -> list[Thing | None]:
    held = node.inputs[0] if node.inputs else None
    assert not isinstance(held, (Option, Chosen))
    return [Option(held)]


@rule("OptionalHasElement")
def optional_has_element(walk: Walk, node: Node) -> Value:
    thing = node.inputs[0] if node.inputs else None
    held = thing.held if isinstance(thing, Option) else thing
    return walk.graph.constant(held is not None)


@rule("OptionalGetElement")
def optional_get_element(walk: Walk, node: Node) -> list[Thing | None]:
    thing = node.inputs[0]
    held = thing.held if isinstance(thing, Option) else thing
    if held is None:
        raise Refused("its optional is empty", "the model is not valid.", "invalid")
    return [held]

