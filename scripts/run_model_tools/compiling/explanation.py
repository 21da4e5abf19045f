"""What became of a network, node by node, as the graph of its artifact says it."""

from __future__ import annotations

import json
from typing import Any

from run_model_tools.compiling.graph_file import element_types
from run_model_tools.inside_tvm.devices.placement import ON_CPU
from run_model_tools.inside_tvm.node_names import COPY

_NO_OPERATION = "__nop"
_FUSED = "fused_"
_LAYOUT = ("layout_transform", "transpose", "reshape", "concatenate", "strided_slice", "take",
           "pad", "nn_pad")
"""Operators that compute nothing, as they stand in functions' names."""
_DEVICES = {1: "cpu", 2: "cuda", 4: "opencl", 7: "vulkan"}
"""DLDeviceType's, as run_model calls them."""


def explain(graph_text: str, plain_schedules: list[dict[str, Any]]) -> dict[str, Any]:
    """{"nodes": in the order in which they run, "sums"}.

    A node is {"name", "function" (run_model --profile shows it too), "by", "outputs"}; one of ours
    has its "kernel" with parameters and "multiply_adds"; one of TVM's, the "operators" that were
    fused into it, and where others are ours, why these are not ("left_because").  "by" is "ours",
    "TVM", "layout" (of TVM's, but only moves numbers) or "nothing" (a reshape, which is not run).
    In a graph for several devices each has its "device".
    """
    graph = json.loads(graph_text)
    rows = graph["node_row_ptr"]
    shapes, types = graph["attrs"]["shape"][1], element_types(graph)
    devices = _devices(graph)
    nodes = []
    for index, node in enumerate(graph["nodes"]):
        if node["op"] != "tvm_op":
            continue
        attributes = node["attrs"]
        described: dict[str, Any] = {
            "name": node["name"], "function": attributes["func_name"],
            "outputs": [{"shape": shapes[row], "dtype": types[row]}
                        for row in range(rows[index], rows[index + 1])]}
        if devices:
            described["device"] = devices[rows[index]]
        if "onnx_nodes" in attributes:
            described["onnx_nodes"] = json.loads(attributes["onnx_nodes"])
        if attributes["func_name"] == _NO_OPERATION:
            described["by"] = "nothing"
        elif "kernel" in attributes:
            described["by"] = "ours"
            described["kernel"] = json.loads(attributes["kernel"])
            if "multiply_adds" in attributes:
                described["multiply_adds"] = int(attributes["multiply_adds"])
        else:
            operators = attributes["func_name"].partition(_FUSED)[2]
            described["operators"] = operators
            if "left_because" in attributes:
                described["left_because"] = json.loads(attributes["left_because"])
            moves = attributes["func_name"] == COPY or _only_moves(operators)
            described["by"] = "layout" if moves else "TVM"
        nodes.append(described)
    counts = {by: sum(node["by"] == by for node in nodes)
              for by in ("ours", "TVM", "layout", "nothing")}
    return {"nodes": nodes, "plain_schedules": plain_schedules,
            "sums": {**counts, "multiply_adds_of_ours": sum(node.get("multiply_adds", 0)
                                                            for node in nodes)}}


def _devices(graph: dict[str, Any]) -> list[str]:
    """The device of each tensor; empty where all are on one."""
    types = graph["attrs"].get("device_index", [None, []])[1]
    return [_DEVICES.get(one, str(one)) for one in types] if len(set(types)) > 1 else []


def of_functions(kernels: dict[str, Any]) -> dict[str, Any]:
    """What explain() gives, of a Relax executable, out of metadata.json's "kernels": its functions
    of ours in the order in which they are called first; TVM's are counted by operator."""
    nodes = []
    for name, note in kernels.get("functions", {}).items():
        kernel = dict(note)
        adds = kernel.pop("multiply_adds", None)
        nodes.append({"name": name, "function": name, "by": "ours", "outputs": [],
                      "kernel": kernel, **({} if adds is None else {"multiply_adds": int(adds)})})
    left = kernels.get("left_to_tvm", {})
    return {"nodes": nodes, "plain_schedules": [], "left_to_tvm": left,
            "left_because": kernels.get("left_because", {}),
            "sums": {"ours": kernels.get("layers", 0), "TVM": sum(left.values()),
                     "layout": kernels.get("layout_changes", 0), "nothing": 0,
                     "multiply_adds_of_ours": sum(n.get("multiply_adds", 0) for n in nodes)},
            **({"exact": {one["function"]: of_functions(one) for one in kernels["exact"]}}
               if "exact" in kernels else {})}


def _only_moves(operators: str) -> bool:
    """Whether a fused function's name, as "reshape_transpose_1", has operators of _LAYOUT only."""
    rest = operators
    while rest:
        start = next((name for name in sorted(_LAYOUT, key=len, reverse=True)
                      if rest == name or rest.startswith(f"{name}_")), None)
        if start is None:
            return rest.isdigit()
        rest = rest[len(start) + 1:]
    return bool(operators)


def as_text(explained: dict[str, Any]) -> list[str]:
    """A line for each node and one for the sums."""
    lines = []
    for node in explained["nodes"]:
        if node["by"] == "ours":
            parameters = ", ".join(f"{name} {value}" for name, value in node["kernel"].items()
                                   if name != "kernel")
            words = f"ours: {node['kernel'].get('kernel', '')}"
            words += f" ({parameters})" if parameters else ""
        else:
            words = {"TVM": "TVM's schedule", "layout": "TVM, moves numbers only",
                     "nothing": "costs nothing"}[node["by"]]
        if node["function"] == COPY:
            words = f"a copy to {node.get('device', 'another device')}"
        elif "device" in node:
            words += f", on {node['device']}"
        shape = ", ".join("x".join(map(str, output["shape"])) for output in node["outputs"])
        lines.append(f"{node['name']}{' -> ' if shape else ''}{shape}: {words}")
        if node.get("onnx_nodes"):
            lines.append(f"    computes {', '.join(node['onnx_nodes'])}")
        lines += [f"    {reason}" if reason.startswith(ON_CPU) else f"    not ours: {reason}"
                  for reason in node.get("left_because", ())]
    lines += [f"not ours: {reason}" for reason in explained.get("left_because", {}).values()]
    sums = explained["sums"]
    lines.append(f"{sums['ours']} nodes ours ({sums['multiply_adds_of_ours'] / 1e6:,.1f} million "
                 f"multiply-adds), {sums['TVM']} TVM's, {sums['layout']} that move numbers only, "
                 f"{sums['nothing']} that cost nothing")
    for function, one in explained.get("exact", {}).items():
        lines += [f"{function}:", *(f"    {line}" for line in as_text(one))]
    return lines
