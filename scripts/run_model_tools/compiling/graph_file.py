"""What the tools need to know of a graph executor's JSON: its inputs, outputs and order."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Entry:
    """One tensor of the graph."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Graph:
    """inputs: what the user sets; outputs: the heads; parameters: in the order of the graph."""

    inputs: list[Entry]
    outputs: list[Entry]
    parameters: list[str]


def read_graph(text: str, parameter_names: Collection[str],
               output_names: Collection[str] = ()) -> Graph:
    """Reads model.json; heads are named by `output_names`, or else by their nodes."""
    graph: dict[str, Any] = json.loads(text)
    nodes, rows = graph["nodes"], graph["node_row_ptr"]
    shapes, types = graph["attrs"]["shape"][1], graph["attrs"]["dltype"][1]

    def entry(node: int, index: int, name: str) -> Entry:
        row = rows[node] + index
        return Entry(name, tuple(shapes[row]), types[row])

    arguments = [(node, nodes[node]["name"]) for node in graph["arg_nodes"]]
    names = list(output_names)
    if len(names) != len(graph["heads"]):
        names = [nodes[head[0]]["name"] for head in graph["heads"]]
    return Graph(
        inputs=[entry(node, 0, name) for node, name in arguments if name not in parameter_names],
        outputs=[entry(head[0], head[1], name) for head, name in zip(graph["heads"], names)],
        parameters=[name for _, name in arguments if name in parameter_names])


def device_types(text: str) -> set[int]:
    """The types of devices (DLDeviceType) that model.json's tensors are on; empty where it does
    not say."""
    attributes: dict[str, Any] = json.loads(text)["attrs"]
    return set(attributes["device_index"][1]) if "device_index" in attributes else set()
