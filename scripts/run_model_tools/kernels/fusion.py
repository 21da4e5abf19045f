"""Joins steps of a plan whose intermediate results are better kept in the cache than stored."""

from __future__ import annotations

from collections import defaultdict

from run_model_tools.kernels import inverted_residual, pooled_convolution
from run_model_tools.kernels.inverted_residual import InvertedResidual
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.plan import ConvolutionStep, FusedStep, Plan, PoolingStep, Step
from run_model_tools.kernels.pooled_convolution import PooledConvolution
from run_model_tools.kernels.tensors import Tensor


def fuse(plan: Plan, isa: Isa) -> None:
    """Changes the plan: depthwise convolutions take in the 1x1 convolutions around them where
    inverted_residual.wins says that it pays, and convolutions of pictures the pooling that follows.
    """
    steps = _Steps(plan)
    replaced: dict[Step, FusedStep | None] = {}
    for step in plan.steps:
        if isinstance(step, PoolingStep):
            _fuse_pooling(steps, step, isa, replaced)
        elif isinstance(step, ConvolutionStep) and step.convolution.depthwise:
            _fuse_residual(steps, step, isa, replaced)
    # The fused step stands where its last part stood: all that it reads has been made by then.
    plan.steps = [new for step in plan.steps if (new := replaced.get(step, step)) is not None]


class _Steps:
    """Who makes and who reads a plan's tensors."""

    def __init__(self, plan: Plan):
        self.makers = {step.output: step for step in plan.steps}
        self.readers: dict[Tensor, list[Step]] = defaultdict(list)
        for step in plan.steps:
            for tensor in step.inputs:
                self.readers[tensor].append(step)
        self.kept = set(plan.outputs)

    def only_between(self, maker: Step, reader: Step) -> bool:
        """Whether only the other reads the one's result."""
        return (reader.inputs[0] is maker.output and self.readers[maker.output] == [reader]
                and maker.output not in self.kept)


def _fuse_pooling(steps: _Steps, step: PoolingStep, isa: Isa,
                  replaced: dict[Step, FusedStep | None]) -> None:
    before = steps.makers.get(step.inputs[0])
    if (not isinstance(before, ConvolutionStep) or not before.convolution.planar
            or not steps.only_between(before, step)):
        return
    block = PooledConvolution(before.convolution, step.pooling)
    if pooled_convolution.options(block, isa):
        replaced[before] = None
        replaced[step] = FusedStep(before.inputs, step.output, block)


def _fuse_residual(steps: _Steps, step: ConvolutionStep, isa: Isa,
                   replaced: dict[Step, FusedStep | None]) -> None:
    if len(step.inputs) != 1:
        return
    before = steps.makers.get(step.inputs[0])
    after = steps.readers[step.output][0] if steps.readers[step.output] else None
    if not isinstance(before, ConvolutionStep) or before in replaced or (
            not steps.only_between(before, step)):
        before = None
    if not isinstance(after, ConvolutionStep) or not steps.only_between(step, after):
        return
    for first in (before, None):
        block = InvertedResidual(first.convolution if first else None, step.convolution,
                                 after.convolution)
        if not inverted_residual.options(block, isa) or not inverted_residual.wins(block, isa):
            continue
        parts = [first, step] if first else [step]
        replaced.update(dict.fromkeys(parts, None))
        replaced[after] = FusedStep([*parts[0].inputs, *after.inputs[1:]], after.output, block)
        break
