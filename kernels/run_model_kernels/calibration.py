"""Which numbers activations hold, on some pictures: how bytes shall stand for them.

The float32 plan is run by TVM with its activations as outputs.  Ranges are clipped where that makes
the mean squared error of what is stored smaller: a few large values would cost all others precision.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import tvm
from tvm.contrib import graph_executor

from run_model_kernels.emission import write_module
from run_model_kernels.isa import Isa
from run_model_kernels.plan import ConvolutionStep, DenseStep, Plan, PoolingStep
from run_model_kernels.quantized import Quantization
from run_model_kernels.tensors import Tensor

# Numbers of each activation that are kept of one picture, evenly spread.
_SAMPLES = 8192
# Parts of the range that are tried.
_CLIPS = tuple(np.linspace(0.3, 1.0, 36))


@dataclass
class Observed:
    """What was seen of one activation."""

    low: float = 0.0
    high: float = 0.0
    samples: list[np.ndarray] = field(default_factory=list)

    def add(self, values: np.ndarray) -> None:
        """One picture's."""
        flat = values.reshape(-1)
        self.low = min(self.low, float(flat.min()))
        self.high = max(self.high, float(flat.max()))
        self.samples.append(flat[::max(1, flat.size // _SAMPLES)].copy())

    def quantization(self, clip: bool = True) -> Quantization:
        """Of the whole range, or of the part of it with the least mean squared error."""
        whole = Quantization.of_range(self.low, self.high)
        if not clip:
            return whole
        values = np.concatenate(self.samples).astype(np.float64)

        def error(part: float) -> float:
            tried = Quantization.of_range(self.low * part, self.high * part)
            return float(np.mean((tried.to_numbers(tried.to_bytes(values)) - values) ** 2))
        best = min(_CLIPS, key=error)
        return Quantization.of_range(self.low * best, self.high * best)


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
            pictures: list[dict[str, np.ndarray]], build) -> dict[Tensor, Observed]:
    """Runs the plan on each picture: {input: array}.

    `isa` is that of the plan, whose C code any CPU can run; `host` is this machine's target and
    `build(module, target)` gives the compiled factory.
    """
    inputs = plan.parameter_tensors
    made = [tensor for tensor in activations(plan) if tensor not in inputs]
    module, _ = write_module(plan, isa, made)
    factory = build(module, host)
    executor = graph_executor.GraphModule(factory["default"](tvm.cpu(0)))
    seen = {tensor: Observed() for tensor in made}
    for picture in pictures:
        executor.set_input(**picture)
        executor.run()
        for index, tensor in enumerate(made):
            seen[tensor].add(executor.get_output(index).numpy())
    return seen


def observe_channels(pictures: list[np.ndarray]) -> tuple[Quantization, ...]:
    """Of each channel of the pictures, all (1, channels, height, width)."""
    stacked = np.concatenate(pictures)
    return tuple(Quantization.of_range(float(c.min()), float(c.max()))
                 for c in np.moveaxis(stacked, 1, 0))
