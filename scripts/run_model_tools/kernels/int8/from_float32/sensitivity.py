"""What each layer's bytes alone change at the network's outputs.

Rounding is a small change, so what several layers change together is nearly the sum of what each
changes by itself: which layers may be bytes can be chosen by these differences, without compiling
one network for each choice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tvm import relay
from tvm.contrib import graph_executor

from run_model_tools.kernels.int8.from_float32.calibration import FloatPlan, Host
from run_model_tools.kernels.int8.from_float32.fallback import Sensitivity, grouped
from run_model_tools.kernels.int8.from_float32.quantize import Quantizations, layers_alone
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.plan import ConvolutionStep, Step
from run_model_tools.kernels.tensors import Tensor
from run_model_tools.verifying.judged import Judged

# Numbers of an output that are looked at; of scores of classes all are.
_NUMBERS = 4096
# What measuring may cost, in multiply-adds: the network runs once for each layer and view.
_MEASURING = 8e11
# Of how many views of each fold it is measured at least: a view is one answer of a classifier, and
# many of a network whose outputs are maps, of so many numbers or more.
_VIEWS, _VIEWS_OF_MAPS, _MAP = 7, 2, 256
# Beyond so many times what it may cost, layers that follow each other are measured together.
_BEYOND = 12


Views = list[dict[str, np.ndarray]]
Part = tuple[Quantizations, Views]
_Changes = list[list[np.ndarray]]


def measure(floats: FloatPlan, isa: Isa, host: Host, parts: Sequence[Part],
            judged: list[Judged]) -> Sensitivity:
    """Runs the float32 network, and then each layer's error through it, for each view: how bytes
    stand for activations is said for each part of the views.

    Where that would cost too much, it is done for fewer views, and for several layers at once.
    """
    alone = [layers_alone(floats.plan, isa, known) for known, _ in parts]
    # A layer whose sums are too large for 32 bits in one part stays float32 in all.
    steps = [step for step in alone[0][0] if all(step in found for found, _ in alone)]
    convolutions = [step.convolution for step in floats.plan.steps
                    if isinstance(step, ConvolutionStep)]
    one_run = float(sum(conv.multiply_adds for conv in convolutions))
    are_maps = all((how.axis is None or how.has_places) and one.size >= _MAP
                   for how, one in zip(judged, floats.outputs()))
    least = _VIEWS_OF_MAPS if are_maps else _VIEWS
    most = max(least, int(_MEASURING / (len(convolutions) * one_run + 1) / len(parts)))
    parts = [(known, _spread(views, most)) for known, views in parts]
    count = sum(len(views) for _, views in parts)
    groups = grouped(steps, int(_BEYOND * _MEASURING / (count * one_run + 1)))
    wanted: list[list[np.ndarray]] = []
    changes: list[_Changes] = []
    for (found, plan), (_, views) in zip(alone, parts):
        if not groups:
            return Sensitivity([], [], [], [])
        names = {tensor: f"activation{i}" for i, tensor in enumerate(plan.parameter_tensors)}
        plan.parameters = [relay.var(name, shape=tensor.shape) for tensor, name in names.items()]
        executor = host.executor(plan, isa)
        for view in views:
            values = floats.run(view)
            wanted.append(_numbers(floats.outputs(), judged))
            for tensor, name in names.items():
                executor.set_input(name, values[tensor])
            executor.run()
            changes.append([])
            for number, group in enumerate(groups):
                host.tell(f"what 8 bits change, view {len(wanted)} of {count}, "
                          f"layer {number + 1} of {len(groups)}")
                changes[-1].append(_of_layers(floats, executor, [
                    (step, found.index(step)) for step in group], values, wanted[-1], judged))
    return Sensitivity(
        groups, [_joined(views, how) for views, how in zip(zip(*wanted), judged)],
        [np.stack([_joined([view[group][output] for view in changes], how)
                   for group in range(len(groups))]) for output, how in enumerate(judged)], judged)


def _spread(views: Views, most: int) -> Views:
    """Some of them."""
    return [views[at] for at in np.linspace(0, len(views) - 1, min(most, len(views))).astype(int)]


def _of_layers(floats: FloatPlan, executor: graph_executor.GraphModule,
               layers: list[tuple[Step, int]], values: dict[Tensor, np.ndarray],
               exact: list[np.ndarray], judged: list[Judged]) -> list[np.ndarray]:
    """What some layers, with the numbers of the executor's outputs, change of each output."""
    floats.run_with({step: executor.get_output(at).numpy().reshape(step.output.shape)
                     - values[step.output] for step, at in layers})
    return [(have != want if how.are_names else have - want).astype(np.float32)
            for have, want, how in zip(_numbers(floats.outputs(), judged), exact, judged)]


def _numbers(outputs: list[np.ndarray], judged: list[Judged]) -> list[np.ndarray]:
    """What is compared of each output of a view, float64: of scores of classes (places, classes).
    """
    samples = [how.sample(one, _NUMBERS) for one, how in zip(outputs, judged)]
    return [one.astype(np.float64) if how.axis is None else how.scores(one)
            for one, how in zip(samples, judged)]


def _joined(views: Sequence[np.ndarray], how: Judged) -> np.ndarray:
    """Of all views, along a first axis: of scores of classes their places."""
    return np.stack(views) if how.axis is None else np.concatenate(views)
