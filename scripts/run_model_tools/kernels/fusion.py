"""Joins steps of a plan whose intermediate results are better kept in the cache than stored."""

from __future__ import annotations

from collections import defaultdict

from run_model_tools.kernels import inverted_residual
from run_model_tools.kernels.inverted_residual import InvertedResidual
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.plan import ConvolutionStep, FusedStep, Plan, Step
from run_model_tools.kernels.tensors import Tensor


def fuse(plan: Plan, isa: Isa) -> None:
    """Changes the plan: depthwise convolutions take in the 1x1 convolutions around them where
    inverted_residual.wins says that it pays."""
    makers = {step.output: step for step in plan.steps}
    readers: dict[Tensor, list[Step]] = defaultdict(list)
    for step in plan.steps:
        for tensor in step.inputs:
            readers[tensor].append(step)
    kept = set(plan.outputs)

    def only_between(maker: ConvolutionStep, reader: ConvolutionStep) -> bool:
        """Whether only the other reads the one's result."""
        return (reader.inputs[0] is maker.output and readers[maker.output] == [reader]
                and maker.output not in kept)

    replaced: dict[Step, FusedStep | None] = {}
    for step in plan.steps:
        if (not isinstance(step, ConvolutionStep) or not step.convolution.depthwise
                or len(step.inputs) != 1):
            continue
        before = makers.get(step.inputs[0])
        after = readers[step.output][0] if readers[step.output] else None
        if not isinstance(before, ConvolutionStep) or before in replaced or (
                not only_between(before, step)):
            before = None
        if not isinstance(after, ConvolutionStep) or not only_between(step, after):
            continue
        for first in (before, None):
            block = InvertedResidual(first.convolution if first else None, step.convolution,
                                     after.convolution)
            if not inverted_residual.options(block, isa) or not inverted_residual.wins(block, isa):
                continue
            parts = [first, step] if first else [step]
            replaced.update(dict.fromkeys(parts, None))
            replaced[after] = FusedStep([*parts[0].inputs, *after.inputs[1:]], after.output, block)
            break
    # The fused step stands where its last part stood: all that it reads has been made by then.
    plan.steps = [new for step in plan.steps if (new := replaced.get(step, step)) is not None]
