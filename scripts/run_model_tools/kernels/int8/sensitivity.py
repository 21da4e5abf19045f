"""What each layer's bytes alone change at the network's outputs.

Rounding is a small change, so what several layers change together is nearly the sum of what each
changes by itself: which layers may be bytes can be chosen by these differences, without compiling
one network for each choice.
"""

from __future__ import annotations

import numpy as np
from tvm import relay

from run_model_tools.kernels.int8.calibration import FloatPlan
from run_model_tools.kernels.int8.fallback import Sensitivity
from run_model_tools.kernels.int8.host import Host
from run_model_tools.kernels.int8.quantize import Quantizations, layers_alone
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.plan import Plan
from run_model_tools.verifying.agreement import are_scores, scores_of

# Numbers of an output that are looked at, evenly spread; of scores all are.
_NUMBERS = 4096


def measure(floats: FloatPlan, plan: Plan, isa: Isa, known: Quantizations,
            host: Host, views: list[dict[str, np.ndarray]]) -> Sensitivity:
    """Runs the float32 network, and then each layer's error through it, for each view."""
    steps, alone = layers_alone(plan, isa, known)
    if not steps:
        return Sensitivity([], [], [], [])
    names = {tensor: f"activation{i}" for i, tensor in enumerate(alone.parameter_tensors)}
    alone.parameters = [relay.var(name, shape=tensor.shape) for tensor, name in names.items()]
    executor = host.executor(alone, isa)
    wanted: list[list[np.ndarray]] = []
    changes: list[list[list[np.ndarray]]] = []
    shapes: list[np.ndarray] = []
    for number, view in enumerate(views):
        host.tell(f"what 8 bits change, view {number + 1} of {len(views)}")
        values = floats.run(view)
        shapes = floats.outputs()
        exact = [_numbers(one) for one in shapes]
        wanted.append(exact)
        for tensor, name in names.items():
            executor.set_input(name, values[tensor])
        executor.run()
        changes.append([])
        for index, step in enumerate(steps):
            made = executor.get_output(index).numpy().reshape(step.output.shape)
            floats.run_with(step, made - values[step.output])
            changes[-1].append([
                _numbers(have) - want for have, want in zip(floats.outputs(), exact)])
    return Sensitivity(
        steps, [np.stack(one) for one in zip(*wanted)],
        [np.stack([np.stack([each[k][output] for each in changes]) for k in range(len(steps))]
                  ).astype(np.float32) for output in range(len(shapes))],
        [are_scores(one) for one in shapes])


def _numbers(output: np.ndarray) -> np.ndarray:
    """What is compared of an output, float64."""
    if are_scores(output):
        return scores_of(output)
    flat = output.astype(np.float64).reshape(-1)
    return flat[::max(1, flat.size // _NUMBERS)]
