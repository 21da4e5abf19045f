"""A network for TVM -> the same network in which layers run our kernels."""

from __future__ import annotations

import json
from dataclasses import dataclass

import tvm

from run_model_tools.kernels.fusion import fuse
from run_model_tools.kernels.int8.quantized_graph import use_bytes
from run_model_tools.kernels.layer import Layer
from run_model_tools.kernels.layers_of_plan import report
from run_model_tools.kernels.relay import operators
from run_model_tools.kernels.relay.emission import write_module
from run_model_tools.kernels.relay.nodes import PREFIX
from run_model_tools.kernels.relay.reading import expect_own_layer, read_plan


@dataclass(frozen=True)
class Rewritten:
    """A module with layers of ours, and what is to be said of it."""

    module: tvm.IRModule
    layers: dict[str, Layer]
    """By the names of their operators."""
    report: dict[str, object]
    """For the artifact's metadata."""


def rewrite(mod: tvm.IRModule, target: tvm.target.Target) -> Rewritten:
    """`mod`, simplified and with its constants folded (faster_folding), on our kernels.

    Raises NotForUs with the reason where the target or the network is not one for them.
    """
    isa, plan = read_plan(mod, target)
    expect_own_layer(plan)
    sources = plan.sources
    plan, of_bytes = use_bytes(plan, isa)
    plan.sources = sources
    fuse(plan, isa)
    module, layers = write_module(plan, isa)
    operators.compile_all(layers.values(), target)
    return Rewritten(module, layers, {**report(plan, isa), **of_bytes})


def annotate(graph: str, layers: dict[str, Layer]) -> str:
    """The graph's JSON with "multiply_adds" and "kernel" among the attributes of our layers' nodes.

    Executors read past attributes that they do not know; profiles want to know how much work a
    node's function is, which its packed weights do not tell.
    """
    described = json.loads(graph)
    names = {f"_fused_{PREFIX}{name}".replace(".", "_"): layer
             for name, layer in layers.items()}
    for node in described["nodes"]:
        function = node.get("attrs", {}).get("func_name", "")
        layer = names.get(function[function.find("_fused_"):])
        if layer is None:
            continue
        note = dict(layer.note)
        if "multiply_adds" in note:
            node["attrs"]["multiply_adds"] = str(note.pop("multiply_adds"))
        node["attrs"]["kernel"] = json.dumps(note, sort_keys=True)
    return json.dumps(described, indent=1)
