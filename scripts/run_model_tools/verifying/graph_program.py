"""A graph executor's JSON -> the lines of numbers that run_graph.c reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from run_model_tools.compiling.graph_file import counted_outputs, with_rows_counted
from run_model_tools.params_file import Tensor, dtype_of

_NO_OPERATION = "__nop"
"""A reshape: its output lies where its input does."""


@dataclass(frozen=True)
class GraphProgram:
    """`text`: all but the number of runs; inputs and outputs in the order of the runs' files."""

    text: str
    inputs: list[tuple[str, tuple[int, ...], np.dtype]]
    outputs: list[tuple[tuple[int, ...], np.dtype]]
    counted: list[int]
    """counted_outputs() of the graph."""

    def with_runs(self, count: int) -> str:
        """The program for that many sets of inputs."""
        return f"{self.text}{count}\n"

    def input_bytes(self, values: Mapping[str, np.ndarray]) -> bytes:
        """One set of inputs as it stands in the file."""
        return b"".join(np.ascontiguousarray(values[name], dtype).tobytes()
                        for name, _, dtype in self.inputs)

    def split_outputs(self, data: bytes) -> list[list[np.ndarray]]:
        """The network's outputs in every run that was begun."""
        runs, at = [], 0
        while at < len(data):
            run = []
            for shape, dtype in self.outputs:
                run.append(np.frombuffer(data, dtype, prod(shape), at).reshape(shape))
                at += run[-1].nbytes
            runs.append(with_rows_counted(run, self.counted))
        return runs


def graph_program(graph_json: str, params: Mapping[str, Tensor]) -> GraphProgram:
    """The program of a graph with the parameters of a file, as params_file.read_params has them."""
    graph: dict[str, Any] = json.loads(graph_json)
    rows = graph["node_row_ptr"]
    storage = graph["attrs"]["storage_id"][1]
    shapes = [tuple(shape) for shape in graph["attrs"]["shape"][1]]
    types = [dtype_of(name) for name in graph["attrs"]["dltype"][1]]
    # A bool of TVM's is one bit by name and one byte in memory.
    sizes = [prod(shape) * max(1, bits // 8) for shape, (_, bits, _) in zip(shapes, types)]
    storages = [0] * (max(storage) + 1)
    for place, size in zip(storage, sizes):
        storages[place] = max(storages[place], size)

    lines = [_row(len(storages), *storages), str(len(sizes))]
    for place, size, shape, (code, bits, _) in zip(storage, sizes, shapes, types):
        lines.append(_row(place, size, code, bits, len(shape), *shape))

    arguments = {graph["nodes"][node]["name"]: rows[node] for node in graph["arg_nodes"]}
    loads = [(row, params[name].offset) for name, row in arguments.items() if name in params]
    lines += [str(len(loads)), *(_row(*load) for load in loads)]
    inputs = [(name, row) for name, row in arguments.items() if name not in params]
    outputs = [rows[node] + index for node, index, *_ in graph["heads"]]
    lines += [_row(len(inputs), *(row for _, row in inputs)), _row(len(outputs), *outputs)]

    calls = []
    for index, node in enumerate(graph["nodes"]):
        attributes = node.get("attrs") or {}
        if node["op"] != "tvm_op" or attributes["func_name"] == _NO_OPERATION:
            continue
        given = [rows[source] + at for source, at, *_ in node["inputs"]]
        made = list(range(rows[index], rows[index + 1]))
        calls.append(f"{attributes['func_name']} "
                     f"{_row(len(given), len(given) + len(made), *given, *made)}")
    lines += [str(len(calls)), *calls]
    return GraphProgram(
        "\n".join(lines) + "\n",
        [(name, shapes[row], _numpy_type(types[row])) for name, row in inputs],
        [(shapes[row], _numpy_type(types[row])) for row in outputs], counted_outputs(graph))


def _row(*numbers: int) -> str:
    return " ".join(map(str, numbers))


def _numpy_type(dtype: tuple[int, int, int]) -> np.dtype:
    code, bits, _ = dtype
    if dtype == (1, 1, 1):
        return np.dtype(bool)
    return np.dtype(f"{'iuf'[code]}{bits // 8}")
