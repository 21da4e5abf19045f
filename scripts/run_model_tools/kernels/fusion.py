"""Joins steps of a plan whose intermediate results are better kept in the cache than stored."""

from __future__ import annotations

from run_model_tools.kernels.convolutions import (
    bfloat16_convolution,
    inverted_residual,
    pooled_convolution,
)
from run_model_tools.kernels.convolutions.inverted_residual import InvertedResidual
from run_model_tools.kernels.convolutions.pooled_convolution import PooledConvolution
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.plan import (
    OF_ANY_SHAPE,
    ConvolutionStep,
    DenseStep,
    FusedStep,
    Links,
    Plan,
    PoolingStep,
    RelayStep,
    Step,
    WindowStep,
)


def fuse(plan: Plan, isa: Isa) -> None:
    """Changes the plan: depthwise convolutions take in the 1x1 convolutions around them where
    inverted_residual.wins says that it pays, and convolutions of pictures the pooling that follows.
    What is joined computes in float32: convolutions of bfloat16 stay alone.  Windows of a batch are
    read where they lie.
    """
    links = Links(plan)
    replaced: dict[Step, FusedStep | None] = {}
    for step in plan.steps:
        if isinstance(step, PoolingStep):
            _fuse_pooling(links, step, isa, replaced)
        elif isinstance(step, ConvolutionStep) and step.convolution.depthwise:
            _fuse_residual(links, step, isa, replaced)
    # The fused step stands where its last part stood: all that it reads has been made by then.
    plan.steps = [new for step in plan.steps if (new := replaced.get(step, step)) is not None]
    _read_windows(plan)


def _read_windows(plan: Plan) -> None:
    """Windows are not copied for steps that compute one picture at a time: their layers are given
    another place for each anyway (Layer)."""
    found = {step.output: step for step in plan.steps if isinstance(step, WindowStep)}
    if not found:
        return
    for step in plan.steps:
        if isinstance(step, (RelayStep, DenseStep, *OF_ANY_SHAPE)):
            continue
        for index, tensor in enumerate(step.inputs):
            if tensor in found:
                step.inputs[index] = found[tensor].inputs[0]
                step.windows[index] = found[tensor].window
    read = {tensor for step in plan.steps for tensor in step.inputs} | set(plan.outputs)
    plan.steps = [step for step in plan.steps
                  if not isinstance(step, WindowStep) or step.output in read]


def _only_between(links: Links, maker: Step, reader: Step) -> bool:
    """Whether only the other reads the one's result, once and before all else."""
    return (reader.inputs[0] is maker.output and reader.inputs.count(maker.output) == 1
            and links.only_reader(maker.output) is reader)


def _fuse_pooling(links: Links, step: PoolingStep, isa: Isa,
                  replaced: dict[Step, FusedStep | None]) -> None:
    before = links.makers.get(step.inputs[0])
    if (not isinstance(before, ConvolutionStep) or not before.convolution.planar
            or not _only_between(links, before, step)
            or bfloat16_convolution.options(before.convolution, isa)):
        return
    block = PooledConvolution(before.convolution, step.pooling)
    if pooled_convolution.options(block, isa):
        replaced[before] = None
        replaced[step] = FusedStep(before.inputs, step.output, block)


def _fuse_residual(links: Links, step: ConvolutionStep, isa: Isa,
                   replaced: dict[Step, FusedStep | None]) -> None:
    if len(step.inputs) != 1:
        return
    before = links.makers.get(step.inputs[0])
    after = links.only_reader(step.output)
    if not isinstance(before, ConvolutionStep) or before in replaced or (
            not _only_between(links, before, step)):
        before = None
    if not isinstance(after, ConvolutionStep) or not _only_between(links, step, after):
        return
    for first in (before, None):
        block = InvertedResidual(first.convolution if first else None, step.convolution,
                                 after.convolution)
        if any(bfloat16_convolution.options(conv, isa) for conv in block.convolutions):
            continue
        if not inverted_residual.options(block, isa) or not inverted_residual.wins(block, isa):
            continue
        parts = [first, step] if first else [step]
        replaced.update(dict.fromkeys(parts, None))
        replaced[after] = FusedStep([*parts[0].inputs, *after.inputs[1:]], after.output, block)
        break
