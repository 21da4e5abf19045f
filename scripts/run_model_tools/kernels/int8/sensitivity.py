"""What each layer's bytes alone change at the network's outputs.

Rounding is a small change, so what several layers change together is nearly the sum of what each
changes by itself: which layers may be bytes can be chosen by these differences, without compiling
one network for each choice.
"""

from __future__ import annotations

import numpy as np
from tvm import relay
from tvm.contrib import graph_executor

from run_model_tools.kernels.int8.calibration import FloatPlan
from run_model_tools.kernels.int8.fallback import Sensitivity
from run_model_tools.kernels.int8.host import Host
from run_model_tools.kernels.int8.quantize import Quantizations, layers_alone
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.plan import Step
from run_model_tools.kernels.tensors import Tensor
from run_model_tools.verifying.agreement import are_scores, scores_of

# Numbers of an output that are looked at, evenly spread; of scores all are.
_NUMBERS = 4096


Views = list[dict[str, np.ndarray]]
_Changes = dict[Step, list[np.ndarray]]


def measure(floats: FloatPlan, isa: Isa, host: Host,
            parts: list[tuple[Quantizations, Views]]) -> Sensitivity:
    """Runs the float32 network, and then each layer's error through it, for each view: how bytes
    stand for activations is said for each part of the views."""
    wanted: list[list[np.ndarray]] = []
    scores: list[bool] = []
    changes: list[_Changes] = []
    count = sum(len(views) for _, views in parts)
    for known, views in parts:
        steps, alone = layers_alone(floats.plan, isa, known)
        if not steps:
            return Sensitivity([], [], [], [])
        names = {tensor: f"activation{i}" for i, tensor in enumerate(alone.parameter_tensors)}
        alone.parameters = [relay.var(name, shape=tensor.shape) for tensor, name in names.items()]
        executor = host.executor(alone, isa)
        for view in views:
            host.tell(f"what 8 bits change, view {len(wanted) + 1} of {count}")
            values = floats.run(view)
            scores = [are_scores(one) for one in floats.outputs()]
            wanted.append([_numbers(one) for one in floats.outputs()])
            for tensor, name in names.items():
                executor.set_input(name, values[tensor])
            executor.run()
            changes.append(_of_view(floats, executor, steps, values, wanted[-1]))
    # A layer whose sums are too large for 32 bits in one part stays float32 in all.
    steps = [step for step in changes[0] if all(step in each for each in changes)]
    return Sensitivity(
        steps, [np.stack(one) for one in zip(*wanted)],
        [np.stack([np.stack([each[step][output] for each in changes]) for step in steps])
         for output in range(len(scores))], scores)


def _of_view(floats: FloatPlan, executor: graph_executor.GraphModule, steps: list[Step],
             values: dict[Tensor, np.ndarray], exact: list[np.ndarray]) -> _Changes:
    """Of each output, what each layer changes."""
    changes: _Changes = {}
    for index, step in enumerate(steps):
        made = executor.get_output(index).numpy().reshape(step.output.shape)
        floats.run_with(step, made - values[step.output])
        changes[step] = [(_numbers(have) - want).astype(np.float32)
                         for have, want in zip(floats.outputs(), exact)]
    return changes


def _numbers(output: np.ndarray) -> np.ndarray:
    """What is compared of an output, float64."""
    if are_scores(output):
        return scores_of(output)
    flat = output.astype(np.float64).reshape(-1)
    return flat[::max(1, flat.size // _NUMBERS)]
