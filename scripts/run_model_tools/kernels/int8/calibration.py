"""Which numbers activations hold, on some pictures: how bytes shall stand for them.

The float32 plan is run by TVM with its activations as outputs.  Ranges are clipped where that makes
the mean squared error of what is stored smaller: a few large values would cost all others
precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import tvm
from tvm.contrib import graph_executor

from run_model_tools.kernels.int8.quantized import Quantization
from run_model_tools.kernels.int8.weight_rounding import Moments
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.plan import ConvolutionStep, DenseStep, Plan, PoolingStep
from run_model_tools.kernels.relay import operators
from run_model_tools.kernels.relay.emission import write_module
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


def observe(plan: Plan, isa: Isa, host: tvm.target.Target,
            pictures: list[dict[str, np.ndarray]], build: Callable,
            ) -> tuple[dict[Tensor, Observed], dict[Tensor, Moments]]:
    """Runs the plan on each picture, {input: array}: what was seen of each activation, and of the
    inputs of each convolution, by its output.

    `isa` is that of the plan, whose C code any CPU can run; `host` is this machine's target and
    `build(module, target)` gives the compiled factory.
    """
    inputs = plan.parameter_tensors
    made = [tensor for tensor in activations(plan) if tensor not in inputs]
    module, layers = write_module(plan, isa, made)
    operators.compile_all(layers.values(), host)
    factory = build(module, host)
    executor = graph_executor.GraphModule(factory["default"](tvm.cpu(0)))
    seen = {tensor: Observed() for tensor in made}
    steps = [step for step in plan.steps if isinstance(step, ConvolutionStep)]
    moments = {step.output: Moments(step.convolution, len(pictures)) for step in steps}
    for picture in pictures:
        executor.set_input(**picture)
        executor.run()
        values = {tensor: executor.get_output(i).numpy() for i, tensor in enumerate(made)}
        for tensor, array in values.items():
            seen[tensor].add(array)
        values |= {tensor: np.asarray(picture[parameter.name_hint])
                   for parameter, tensor in zip(plan.parameters, inputs)}
        for step in steps:
            moments[step.output].add([
                values[t] for t in step.inputs[:len(step.convolution.input_shapes)]])
    return seen, moments


def observe_channels(pictures: list[np.ndarray]) -> tuple[Quantization, ...]:
    """Of each channel of the pictures, all (1, channels, height, width)."""
    stacked = np.concatenate(pictures)
    return tuple(Quantization.of_range(float(c.min()), float(c.max()))
                 for c in np.moveaxis(stacked, 1, 0))
