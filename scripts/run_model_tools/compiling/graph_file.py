"""What the tools need to know of a graph executor's JSON: its inputs, outputs and order."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Entry:
    """One tensor of the graph."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Graph:
    """inputs: what the user sets; outputs: the heads but those that count the others' rows, which
    are -1 there; parameters: in the order of the graph."""

    inputs: list[Entry]
    outputs: list[Entry]
    parameters: list[str]


def read_graph(text: str, parameter_names: Collection[str],
               output_names: Collection[str] = ()) -> Graph:
    """Reads model.json; heads are named by `output_names`, or else by their nodes."""
    graph: dict[str, Any] = json.loads(text)
    nodes, rows = graph["nodes"], graph["node_row_ptr"]
    shapes, types = graph["attrs"]["shape"][1], element_types(graph)

    def entry(node: int, index: int, name: str) -> Entry:
        row = rows[node] + index
        return Entry(name, tuple(shapes[row]), types[row])

    arguments = [(node, nodes[node]["name"]) for node in graph["arg_nodes"]]
    names, counted = list(output_names), counted_outputs(graph)
    heads = graph["heads"][:len(counted) // 2 or None]
    if len(names) != len(heads):
        names = [nodes[head[0]]["name"] for head in heads]
    outputs = [entry(head[0], head[1], name) for head, name in zip(heads, names)]
    for index, (source, axis) in enumerate(zip(counted[::2], counted[1::2])):
        if source >= 0:
            shape = outputs[index].shape
            outputs[index] = replace(outputs[index], shape=(*shape[:axis], -1, *shape[axis + 1:]))
    return Graph(
        inputs=[entry(node, 0, name) for node, name in arguments if name not in parameter_names],
        outputs=outputs,
        parameters=[name for _, name in arguments if name in parameter_names])


def element_types(graph: dict[str, Any]) -> list[str]:
    """The type of each tensor of model.json, as NumPy and all else here call it; TVM calls a bool
    "uint1" there."""
    return ["bool" if name == "uint1" else name for name in graph["attrs"]["dltype"][1]]


def counted_outputs(graph: dict[str, Any]) -> list[int]:
    """Of model.json: two numbers of each output of the network, the head that says how many rows of
    it are results, -1 if all are, and along which axis these lie; empty if no head does so."""
    return list(graph["attrs"].get("counted_outputs", (None, ()))[1])


def with_rows_counted(heads: Sequence[np.ndarray], counted: Sequence[int]) -> list[np.ndarray]:
    """The network's outputs, out of what all heads of the graph have."""
    if not counted:
        return list(heads)
    outputs = []
    for value, source, axis in zip(heads, counted[::2], counted[1::2]):
        whole = (slice(None),) * axis
        outputs.append(value if source < 0 else value[whole + (slice(heads[source].item()),)])
    return outputs


def device_types(text: str) -> set[int]:
    """The types of devices (DLDeviceType) that model.json's tensors are on; empty where it does
    not say."""
    attributes: dict[str, Any] = json.loads(text)["attrs"]
    return set(attributes["device_index"][1]) if "device_index" in attributes else set()
