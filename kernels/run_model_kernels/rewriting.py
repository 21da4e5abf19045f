"""A network for TVM -> the same network in which layers run our kernels."""

from __future__ import annotations

from collections import Counter

import tvm

from run_model_kernels.emission import write_module
from run_model_kernels.isa import Isa, isa_of
from run_model_kernels.plan import Plan, RelayStep
from run_model_kernels.reading import NotForUs, read_plan

# Moving numbers to another layout is no work of the network's own.
_LAYOUT = ("to_planar", "to_blocked", "constant", "reshape")


def rewrite(mod: tvm.IRModule, target: tvm.target.Target) -> tuple[tvm.IRModule, dict[str, object]]:
    """The rewritten module, and a report for the artifact's metadata.

    `mod` is simplified (faster_folding.simplify).  Raises NotForUs with the reason where the target
    or the network is not one for these kernels.
    """
    isa = isa_of(target)
    if isa is None:
        raise NotForUs(f"the target {target} has no vector instructions that they use")
    plan = read_plan(mod, isa)
    return write_module(plan, isa), report(plan, isa)


def report(plan: Plan, isa: Isa) -> dict[str, object]:
    """How many layers run our kernels and which operators are left to TVM's schedules."""
    left = Counter(step.what for step in plan.steps
                   if isinstance(step, RelayStep) and step.what not in _LAYOUT)
    moved = sum(isinstance(step, RelayStep) and step.what in ("to_planar", "to_blocked")
                for step in plan.steps)
    ours = sum(not isinstance(step, RelayStep) for step in plan.steps)
    return {"instruction_set": isa.name, "layers": ours, "left_to_tvm": dict(sorted(left.items())),
            "layout_changes": moved}
