"""Pictures of a tensor that others read where they lie, instead of a copy of them.

The planes of a volume are pictures of a batch (onnx_repair/rules/volumes.py), and what reaches over
several of them reads windows along the batch.  Kernels that compute one picture at a time are given
another place for each anyway (Layer); all others read a copy, which TVM makes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from run_model_tools.kernels.layer import Window
from run_model_tools.kernels.plan import OF_ANY_SHAPE, DenseStep, Plan, RelayStep


@dataclass(eq=False)
class WindowStep(RelayStep):
    """A window's pictures, copied."""

    window: Window = field(kw_only=True)


def read_where_they_lie(plan: Plan) -> None:
    """Changes the plan: windows are no longer copied for steps that compute one picture at a
    time."""
    found = {step.output: step for step in plan.steps if isinstance(step, WindowStep)}
    if not found:
        return
    for step in plan.steps:
        if isinstance(step, (RelayStep, DenseStep, *OF_ANY_SHAPE)):
            continue
        for index, tensor in enumerate(step.inputs):
            if tensor in found:
                step.inputs[index] = found[tensor].inputs[0]
                step.windows[index] = found[tensor].window
    read = {tensor for step in plan.steps for tensor in step.inputs} | set(plan.outputs)
    plan.steps = [step for step in plan.steps
                  if not isinstance(step, WindowStep) or step.output in read]

