"""A network as steps, each of which makes one tensor of others: between Relay and Relay."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Callable

from run_model_tools.kernels.convolutions.convolution import Convolution
from run_model_tools.kernels.int8.grid import Grid
from run_model_tools.kernels.layer import Layer, Window
from run_model_tools.kernels.sources import Sources
from run_model_tools.kernels.tensors import Tensor


@dataclass(eq=False)
class Step:
    """What all steps have."""

    inputs: list[Tensor]
    output: Tensor
    windows: dict[int, Window] = field(default_factory=dict, kw_only=True)
    """Of which pictures of an input it computes, where that is not each in its place."""


@dataclass(eq=False)
class ConvolutionStep(Step):
    """A convolution with its epilogue; the residual, if there is one, is the last input."""

    convolution: Convolution


@dataclass(eq=False)
class PoolingStep(Step):
    """A pooling of blocked tensors (pooling.Pooling)."""

    pooling: Any


@dataclass(eq=False)
class PlaneReductionStep(Step):
    """One number of each channel's plane (plane_reduction.PlaneReduction)."""

    reduction: Any


@dataclass(eq=False)
class DenseStep(Step):
    """A fully connected layer on a vector (dense.Dense)."""

    dense: Any


@dataclass(eq=False)
class ElementwiseStep(Step):
    """An expression of blocked tensors (elementwise.Elementwise)."""

    elementwise: Any


@dataclass(eq=False)
class GatherStep(Step):
    """Channels brought to other places (elementwise.Gather)."""

    gather: Any


@dataclass(eq=False)
class ResamplingStep(Step):
    """Pixels from other places (resampling.Resampling)."""

    resampling: Any


@dataclass(eq=False)
class BlocksToPlanesStep(Step):
    """What leaves its blocks (layouts.py)."""

    value: Any
    """The channels, as tensors.Blocked."""


@dataclass(eq=False)
class FusedStep(Step):
    """Layers that are computed together: inverted_residual.InvertedResidual,
    pooled_convolution.PooledConvolution."""

    block: Any


@dataclass(eq=False)
class ProductStep(Step):
    """A product of matrices (matmul.Product)."""

    product: Any


@dataclass(eq=False)
class ProgramStep(Step):
    """What is done to numbers one by one or row by row (programs.Program)."""

    program: Any


@dataclass(eq=False)
class LayerStep(Step):
    """A layer that has been made already (quantize.py)."""

    layer: Layer


@dataclass(eq=False)
class RelayStep(Step):
    """Operators that TVM's own schedules compute: `build` makes their expression of the inputs'."""

    build: Callable[..., Any]
    what: str
    """The operator's name, for reports."""
    why: str = field(default="", kw_only=True)
    """Why none of our kernels computes it; nothing is said of what brings tensors to a layout."""


@dataclass(eq=False)
class WindowStep(RelayStep):
    """Some pictures of a batch, copied.  The planes of a volume are a batch (onnx_repair/rules/
    volumes.py), and what reaches over several of them reads windows of it."""

    window: Window = field(kw_only=True)


OF_ANY_SHAPE = (ProductStep, ProgramStep, LayerStep)
"""Steps whose layers compute all of their output; those of the others compute one picture of it."""


@dataclass(eq=False)
class QuantizeStep(RelayStep):
    """float32 to the whole numbers of a grid (int8/grid.py)."""

    grid: Grid


@dataclass(eq=False)
class DequantizeStep(RelayStep):
    """The whole numbers of a grid to float32."""

    grid: Grid


@dataclass(eq=False)
class ByteSumStep(RelayStep):
    """The sum of two tensors of whole numbers, on a grid again; `low` of 0 is a ReLU between."""

    grids: tuple[Grid, Grid]
    grid: Grid
    low: float


def is_global_mean(step: Step) -> bool:
    """Whether it is a mean of whole pictures, which a layer of bytes gives as float32."""
    return isinstance(step, PoolingStep) and step.pooling.planar


@dataclass(eq=False)
class Plan:
    """A network.  Steps stand in an order in which they can be run."""

    parameters: list[Any]
    """The network's inputs: relay.Var."""
    parameter_tensors: list[Tensor]
    steps: list[Step] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    output_is_tuple: bool = False
    sources: Sources = field(default_factory=Sources)
    """Which nodes of the network's file the steps compute, where that is known."""

    def has_batches(self) -> bool:
        """Whether a step of ours computes more than one picture."""
        return any(step.output.shape[:1] not in ((), (1,)) for step in self.steps
                   if not isinstance(step, (RelayStep, *OF_ANY_SHAPE)))


class Links:
    """Who makes and who reads a plan's tensors, while steps take in others."""

    def __init__(self, plan: Plan):
        self.makers: dict[Tensor, Step] = {step.output: step for step in plan.steps}
        self._readers: dict[Tensor, set[Tensor]] = defaultdict(set)
        """By what they make."""
        for step in plan.steps:
            self._add(step)
        self._kept = set(plan.outputs)

    def only_reader(self, tensor: Tensor) -> Step | None:
        """The step that alone needs the tensor, if there is one."""
        readers = self._readers[tensor]
        return self.makers[next(iter(readers))] if (
            len(readers) == 1 and tensor not in self._kept) else None

    def take_in(self, maker: Step, merged: Step) -> None:
        """`merged` computes what the maker and its only reader, of the same output, did."""
        reader = self.makers[merged.output]
        for tensor in (*maker.inputs, *reader.inputs):
            self._readers[tensor] -= {maker.output, reader.output}
        del self.makers[maker.output]
        self.makers[merged.output] = merged
        self._add(merged)

    def _add(self, step: Step) -> None:
        for tensor in step.inputs:
            self._readers[tensor].add(step.output)
