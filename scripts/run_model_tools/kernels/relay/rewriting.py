"""A network for TVM -> the same network in which layers run our kernels."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

import tvm

from run_model_tools.kernels.fusion import fuse
from run_model_tools.kernels.int8.quantized_graph import use_bytes
from run_model_tools.kernels.isa import AVX512_BFLOAT16, Isa, cpu_of, has_bfloat16
from run_model_tools.kernels.layer import Layer
from run_model_tools.kernels.layers_of_plan import make_layer, report
from run_model_tools.kernels.pictures import layouts
from run_model_tools.kernels.plan import Plan, Step
from run_model_tools.kernels.relay.emission import write_module
from run_model_tools.kernels.relay.nodes import PREFIX
from run_model_tools.kernels.relay.reading import (
    NotForUs,
    expect_floats,
    expect_own_layer,
    read_plan,
    read_plan_for,
)


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
    return _written(plan, isa)


def rewrite_in_bfloat16(mod: tvm.IRModule, target: tvm.target.Target, elsewhere: bool) -> Rewritten:
    """rewrite() with products of bfloat16 where they are faster.  Raises NotForUs too where the
    target has no such instructions.

    `elsewhere`: the plan is to run on another machine than the one that it is for, however slowly.
    """
    if not elsewhere and not has_bfloat16(target):
        raise NotForUs(
            f"the target's CPU ({cpu_of(target)}) has no instructions that multiply tiles of "
            "bfloat16: Intel's AMX has them (--target 'llvm -mcpu=sapphirerapids', or native "
            "there)")
    plan = read_plan_for(mod, AVX512_BFLOAT16)
    expect_floats(plan)
    count = 0

    def layer_of(step: Step, isa: Isa) -> Layer:
        nonlocal count
        layer = make_layer(step, isa)
        count += layer.kind.endswith("_bf16")
        return layer

    written = _written(plan, AVX512_BFLOAT16, layer_of)
    if not count:
        raise NotForUs("no layer of the network is faster with products of bfloat16")
    return replace(written, report={**written.report, "precision": "bfloat16",
                                    "bfloat16_layers": count})


def _written(plan: Plan, isa: Isa,
             layer_of: Callable[[Step, Isa], Layer] = make_layer) -> Rewritten:
    expect_own_layer(plan)
    sources = plan.sources
    plan, of_bytes = use_bytes(plan, isa)
    plan.sources = sources
    fuse(plan, isa)
    layouts.use_layers(plan, isa)
    module, layers = write_module(plan, isa, layer_of=layer_of)
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
