"""Compiles a network with TVM and records what TVM's own graph executor makes of it."""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path

import numpy as np
import tvm
from tvm import relay
from tvm.contrib import graph_executor
from tvm.contrib.debugger import debug_executor

from run_model_tools.compiling.c_target import OWN_HEADERS

from .registry import Built, Network

INPUT_SETS = 2


def write_case(name: str, network: Network, folder: Path) -> None:
    """Writes the artifact, case.json, and for each input set k inputs_k.npz and expected_k.npz
    (and nodes_k.npz, keys "<index of executable node>_<output>")."""
    graph, library, params = _compile(network)
    if network.edit_graph:
        graph = json.dumps(network.edit_graph(json.loads(graph)))
    case = {"name": name, "library": "model.so", "inputs": list(network.inputs),
            "module_name": network.module_name}
    if network.refused:
        case["refused"] = network.refused
    _export(library, folder / "model.so")
    if network.package != "single_file":
        case["params"] = "model.params"
        (folder / "model.params").write_bytes(tvm.runtime.save_param_dict(params))
    if network.package == "triple":
        case["graph"] = "model.json"
        (folder / "model.json").write_text(graph)

    rng = np.random.default_rng(zlib.crc32(name.encode()) + 1)
    for index in range(INPUT_SETS):
        values = network.draw(rng) if network.draw else {
            key: _draw(rng, example) for key, example in network.inputs.items()}
        np.savez(folder / f"inputs_{index}.npz", **values)
        expected = _run(folder, case, graph, values)
        np.savez(folder / f"expected_{index}.npz", **expected)
        if network.record_nodes:
            np.savez(folder / f"nodes_{index}.npz", **_run_nodes(folder, graph, values))
    case["input_sets"] = INPUT_SETS
    case["nodes"] = network.record_nodes
    case["writable_outputs"] = _writable_outputs(graph)
    (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")


def _compile(network: Network) -> Built:
    if network.build:
        return network.build()
    executor = relay.backend.Executor("graph", {"link-params": network.link_params})
    params = {key: tvm.nd.array(value) for key, value in network.params.items()}
    with tvm.transform.PassContext(opt_level=network.opt_level, config=network.config):
        factory = relay.build(network.module, target=network.target, params=params,
                              executor=executor, mod_name=network.module_name)
    library = {"triple": factory.get_lib, "single_file": lambda: factory.module,
               "single_file_without_params": lambda: factory["remove_params"]()}[network.package]()
    return factory.get_graph_json(), library, factory.get_params()


def _export(library: tvm.runtime.Module, path: Path) -> None:
    # Where TVM looks for the headers that C sources include; the packaged compiler has none.
    os.environ["TVM_HOME"] = str(OWN_HEADERS.parent)
    try:
        library.export_library(str(path))
    finally:
        del os.environ["TVM_HOME"]


def _draw(rng: np.random.Generator, example: np.ndarray) -> np.ndarray:
    if example.dtype == np.bool_:
        return rng.random(example.shape) < 0.5
    if np.issubdtype(example.dtype, np.integer):
        limits = np.iinfo(example.dtype)
        return rng.integers(max(limits.min, -1000), min(limits.max, 1000), example.shape,
                            dtype=example.dtype, endpoint=True)
    return np.asarray(rng.standard_normal(example.shape), dtype=example.dtype)


def _run(folder: Path, case: dict, graph: str, values: dict[str, np.ndarray]) -> dict:
    library = tvm.runtime.load_module(str(folder / "model.so"))
    if "graph" in case:
        module = graph_executor.create(graph, library, tvm.cpu())
    else:
        module = graph_executor.GraphModule(library[case["module_name"]](tvm.cpu()))
    if "params" in case:
        module.load_params((folder / case["params"]).read_bytes())
    for key, value in values.items():
        module.set_input(key, tvm.nd.array(value))
    module.run()
    shapes = _output_shapes(graph)
    # TVM hands out tensors of nodes with flatten_data as flat ones.
    return {f"output_{i}": module.get_output(i).numpy().reshape(shapes[i])
            for i in range(module.get_num_outputs())}


def _output_shapes(graph_json: str) -> list[list[int]]:
    graph = json.loads(graph_json)
    shapes = graph["attrs"]["shape"][1]
    return [shapes[graph["node_row_ptr"][node] + output] for node, output, *_ in graph["heads"]]


def _writable_outputs(graph_json: str) -> list[bool]:
    """Of each output: whether a node writes it, rather than it being (a view of) an input."""
    graph = json.loads(graph_json)
    writable = []
    for head in graph["heads"]:
        node = graph["nodes"][head[0]]
        while node.get("attrs", {}).get("func_name") == "__nop":
            node = graph["nodes"][node["inputs"][0][0]]
        writable.append(node["op"] != "null")
    return writable


def _run_nodes(folder: Path, graph: str, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What each node wrote, copied before later nodes reuse its storage."""
    library = tvm.runtime.load_module(str(folder / "model.so"))
    module = debug_executor.create(graph, library, tvm.cpu(), dump_root=str(folder / "debug"))
    module.load_params((folder / "model.params").read_bytes())
    for key, value in values.items():
        module.set_input(key, tvm.nd.array(value))
    results = {}
    executable = 0
    for index, node in enumerate(json.loads(graph)["nodes"]):
        module._execute_node(index)  # pylint: disable=protected-access
        if node["op"] != "tvm_op":
            continue
        for output in range(int(node["attrs"]["num_outputs"])):
            array = module._get_node_output(index, output)  # pylint: disable=protected-access
            results[f"{executable}_{output}"] = array.numpy()
        executable += 1
    return results
