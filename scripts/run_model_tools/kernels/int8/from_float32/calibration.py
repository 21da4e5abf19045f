"""Which numbers activations hold, on some pictures.

Plans are run by TVM on this machine, for whatever target the network is made: the float32 plan with
its activations as outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import tvm
from tvm import relay
from tvm.contrib import graph_executor

from run_model_tools.kernels.int8.from_float32.ranges import Observed
from run_model_tools.kernels.int8.quantized import Quantization
from run_model_tools.kernels.int8.weight_rounding import Moments
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.plan import (
    ConvolutionStep,
    DenseStep,
    Plan,
    PoolingStep,
    RelayStep,
    Step,
    is_global_mean,
)
from run_model_tools.kernels.relay import operators
from run_model_tools.kernels.relay.emission import write_module
from run_model_tools.kernels.tensors import Tensor
from run_model_tools.verifying.judged import Judged


@dataclass(frozen=True)
class Host:
    """This machine, where plans are run."""

    target: tvm.target.Target
    build: Callable
    """(module, target) -> the compiled factory."""
    tell: Callable[[str], None]
    """Told of what is at work."""

    def executor(self, plan: Plan, isa: Isa,
                 outputs: list[Tensor] | None = None) -> graph_executor.GraphModule:
        """What runs the plan, of whose instruction set any CPU can run the C code."""
        # Threads that wait for each other at every layer make a busy machine crawl.
        tvm.get_global_func("runtime.config_threadpool")(1, 1)
        module, layers = write_module(plan, isa, outputs)
        with operators.loaded(layers.values(), self.target):
            factory = self.build(module, self.target)
        return graph_executor.GraphModule(factory["default"](tvm.cpu(0)))


def activations(plan: Plan) -> list[Tensor]:
    """The tensors that quantizing the plan can need to know about."""
    wanted: list[Tensor] = []
    for step in plan.steps:
        if isinstance(step, (ConvolutionStep, PoolingStep, DenseStep)):
            for tensor in (*step.inputs, step.output):
                if tensor not in wanted and tensor.dtype == "float32":
                    wanted.append(tensor)
    return wanted


class FloatPlan:
    """The plan in float32 on this machine, all of whose activations can be seen, and to whose
    layers' and global means' outputs something can be added."""

    def __init__(self, plan: Plan, isa: Isa, host: Host):
        self.plan = plan
        self.made = [tensor for tensor in activations(plan) if tensor not in plan.parameter_tensors]
        self._added = {step.output: f"run_model_added_{i}" for i, step in enumerate(plan.steps)
                       if isinstance(step, (ConvolutionStep, DenseStep))
                       or is_global_mean(step)}
        addends = {tensor: Tensor(tensor.shape) for tensor in self._added}
        steps: list[Step] = []
        for step in plan.steps:
            if step.output in addends:
                alone = Tensor(step.output.shape)
                steps.append(replace(step, output=alone))
                step = RelayStep([alone, addends[step.output]], step.output, lambda x, y: x + y,
                                 "add")
            steps.append(step)
        parameters = [relay.var(name, shape=tensor.shape) for tensor, name in self._added.items()]
        changed = Plan([*plan.parameters, *parameters],
                       [*plan.parameter_tensors, *addends.values()], steps, plan.outputs)
        self._executor = host.executor(changed, isa, [*plan.outputs, *self.made])

    def run(self, picture: dict[str, np.ndarray]) -> dict[Tensor, np.ndarray]:
        """All activations, and the inputs."""
        for tensor, name in self._added.items():
            self._executor.set_input(name, np.zeros(tensor.shape, np.float32))
        self._executor.set_input(**picture)
        self._executor.run()
        first = len(self.plan.outputs)
        values = {tensor: self._executor.get_output(first + i).numpy()
                  for i, tensor in enumerate(self.made)}
        return values | {tensor: np.asarray(picture[parameter.name_hint]) for parameter, tensor
                         in zip(self.plan.parameters, self.plan.parameter_tensors)}

    def run_with(self, added: dict[Step, np.ndarray]) -> None:
        """The same picture once more, with something added to what steps make."""
        for step, numbers in added.items():
            self._executor.set_input(self._added[step.output], numbers)
        self._executor.run()
        for step, numbers in added.items():
            self._executor.set_input(self._added[step.output], np.zeros_like(numbers))

    def outputs(self) -> list[np.ndarray]:
        """The network's, of the last run."""
        return [self._executor.get_output(i).numpy() for i in range(len(self.plan.outputs))]


@dataclass(frozen=True)
class Seen:
    """What the float32 network made of some views."""

    tensors: dict[Tensor, Observed]
    moments: dict[Tensor, Moments]
    """Of the inputs of each convolution, by its output."""
    outputs: list[list[np.ndarray]]
    """Of each view, samples of the network's."""
    judged: list[Judged]
    """How each output is."""


def observe(floats: FloatPlan, views: list[dict[str, np.ndarray]], stated: list[str | None],
            most: int, tell: Callable[[str], None]) -> Seen:
    """Runs the plan on each view, {input: array}.

    stated: what is said of the outputs (judged.stated); `most` numbers of each are kept.
    """
    seen = {tensor: Observed() for tensor in floats.made}
    steps = [step for step in floats.plan.steps if isinstance(step, ConvolutionStep)]
    moments = {step.output: Moments(step.convolution, len(views)) for step in steps}
    outputs: list[list[np.ndarray]] = []
    for view in views:
        tell(f"ranges of activations, view {len(outputs) + 1} of {len(views)}")
        values = floats.run(view)
        judged = [Judged.of(*one) for one in zip(floats.outputs(), stated)]
        outputs.append([how.sample(one, most) for one, how in zip(floats.outputs(), judged)])
        for tensor in floats.made:
            seen[tensor].add(values[tensor])
        for step in steps:
            moments[step.output].add([
                values[t] for t in step.inputs[:len(step.convolution.input_shapes)]])
    return Seen(seen, moments, outputs, judged)


def observe_channels(pictures: list[np.ndarray]) -> tuple[Quantization, ...]:
    """Of each channel of the pictures, all (1, channels, height, width)."""
    stacked = np.concatenate(pictures)
    return tuple(Quantization.of_range(float(c.min()), float(c.max()))
                 for c in np.moveaxis(stacked, 1, 0))
