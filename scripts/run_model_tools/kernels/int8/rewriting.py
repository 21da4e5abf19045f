"""A network for TVM -> the same network in 8 bits on our kernels."""

from __future__ import annotations

from typing import Callable

import numpy as np
import tvm

from run_model_tools.kernels.int8 import calibration, quantize
from run_model_tools.kernels.int8.quantized import Quantization
from run_model_tools.kernels.layers_of_plan import report as report_of_plan
from run_model_tools.kernels.plan import Plan
from run_model_tools.kernels.relay import operators
from run_model_tools.kernels.relay.emission import write_module
from run_model_tools.kernels.relay.reading import NotForUs, read_plan
from run_model_tools.kernels.relay.rewriting import Rewritten
from run_model_tools.kernels.tensors import Tensor

# How much of its own a channel's scale is (calibration.Observed.quantization): halves what
# activations and what weights lose.
_CHANNEL_SHARE = 0.5


def rewrite(mod: tvm.IRModule, target: tvm.target.Target, pictures: dict[str, np.ndarray],
            host: tvm.target.Target, build: Callable) -> Rewritten:
    """Like rewriting.rewrite.

    `pictures`: of each of the network's inputs, an array with one more axis in front.  They are run
    on this machine, whose target is `host`, with what `build(module, host)` makes.
    """
    isa, plan = read_plan(mod, target, expressions=False)
    if plan.has_batches():
        raise NotForUs("layers of bytes are for one picture at a time, and it takes several")
    count = min(len(array) for array in pictures.values())
    runs = [{name: array[i] for name, array in pictures.items()} for i in range(count)]
    seen, moments = calibration.observe(plan, isa, host, runs, build)
    known = quantize.Quantizations(
        {tensor: one.quantization(_CHANNEL_SHARE) for tensor, one in seen.items()},
        _of_pictures(plan, runs), moments)
    quantized, counts = quantize.quantize(plan, isa, known)
    if not counts["int8_layers"]:
        raise NotForUs("no layer of the network has a kernel of 8 bits")
    module, layers = write_module(quantized, isa)
    operators.compile_all(layers.values(), target)
    report = {**report_of_plan(quantized, isa), **counts, "calibration_pictures": count}
    return Rewritten(module, layers, report)


def _of_pictures(plan: Plan, runs: list[dict[str, np.ndarray]],
                 ) -> dict[Tensor, tuple[Quantization, ...]]:
    result = {}
    for parameter, tensor in zip(plan.parameters, plan.parameter_tensors):
        if len(tensor.shape) == 4 and tensor.dtype == "float32":
            result[tensor] = calibration.observe_channels(
                [run[parameter.name_hint] for run in runs])
    return result
