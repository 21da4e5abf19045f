"""Which numbers activations hold, on some pictures: how bytes shall stand for them.

The float32 plan is run by TVM with its activations as outputs.  Ranges are clipped where that makes
the mean squared error of what is stored smaller: a few large values would cost all others
precision.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tvm import relay

from run_model_tools.kernels.int8.host import Host
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
)
from run_model_tools.kernels.tensors import Tensor

# Numbers of each activation that are kept of one picture, evenly spread.
_SAMPLES = 8192
# Parts of the range that are tried.
_CLIPS = tuple(np.linspace(0.3, 1.0, 15))


class Observed:
    """What was seen of one activation, lane by lane if it is blocked."""

    def __init__(self) -> None:
        self.lows = np.zeros(1)
        self.highs = np.zeros(1)
        self.samples: list[np.ndarray] = []

    def add(self, values: np.ndarray) -> None:
        """One picture's."""
        if values.ndim == 5:
            rows = np.moveaxis(values[0], 0, 2).reshape(-1, values.shape[1] * values.shape[4])
        else:
            rows = values.reshape(-1, 1)
        self.lows = np.minimum(self.lows, rows.min(0))
        self.highs = np.maximum(self.highs, rows.max(0))
        step = max(1, rows.size // _SAMPLES)
        # A step that shares no factor with usual widths, so that all columns are seen.
        self.samples.append(rows[::step + (step % 2 == 0)].copy())

    def quantization(self, share: float = 0.0) -> Quantization:
        """Clipped to the part of the range with the least mean squared error.

        `share`: how much of its own a channel's scale is.  1 gives every channel all bytes, but
        leaves the next layer weights of very different sizes; 0 is one scale for all.
        """
        sizes = np.maximum(np.abs(self.lows), self.highs)
        factors = np.maximum(sizes / (sizes.max() or 1.0), 1e-3) ** share
        low, high = float((self.lows / factors).min()), float((self.highs / factors).max())
        values = np.concatenate(self.samples).astype(np.float64) / factors

        def error(part: float) -> float:
            tried = Quantization.of_range(low * part, high * part)
            squares = ((tried.to_numbers(tried.to_bytes(values)) - values) * factors) ** 2
            return float(squares.mean())
        part = min(_CLIPS, key=error)
        best = Quantization.of_range(low * part, high * part)
        if len(factors) == 1 or share == 0:
            return best
        return replace(best, channels=tuple(float(f) for f in factors))


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
    layers' outputs something can be added."""

    def __init__(self, plan: Plan, isa: Isa, host: Host):
        self.plan = plan
        self.made = [tensor for tensor in activations(plan) if tensor not in plan.parameter_tensors]
        self._added = {step.output: f"run_model_added_{i}" for i, step in enumerate(plan.steps)
                       if isinstance(step, (ConvolutionStep, DenseStep))}
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

    def run_with(self, step: Step, added: np.ndarray) -> None:
        """The same picture once more, with something added to what a step makes."""
        name = self._added[step.output]
        self._executor.set_input(name, added)
        self._executor.run()
        self._executor.set_input(name, np.zeros_like(added))

    def outputs(self) -> list[np.ndarray]:
        """The network's, of the last run."""
        return [self._executor.get_output(i).numpy() for i in range(len(self.plan.outputs))]


def observe(floats: FloatPlan, pictures: list[dict[str, np.ndarray]],
            ) -> tuple[dict[Tensor, Observed], dict[Tensor, Moments]]:
    """Runs the plan on each picture, {input: array}: what was seen of each activation, and of the
    inputs of each convolution, by its output."""
    seen = {tensor: Observed() for tensor in floats.made}
    steps = [step for step in floats.plan.steps if isinstance(step, ConvolutionStep)]
    moments = {step.output: Moments(step.convolution, len(pictures)) for step in steps}
    for picture in pictures:
        values = floats.run(picture)
        for tensor in floats.made:
            seen[tensor].add(values[tensor])
        for step in steps:
            moments[step.output].add([
                values[t] for t in step.inputs[:len(step.convolution.input_shapes)]])
    return seen, moments


def observe_channels(pictures: list[np.ndarray]) -> tuple[Quantization, ...]:
    """Of each channel of the pictures, all (1, channels, height, width)."""
    stacked = np.concatenate(pictures)
    return tuple(Quantization.of_range(float(c.min()), float(c.max()))
                 for c in np.moveaxis(stacked, 1, 0))
