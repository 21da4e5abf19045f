"""The layers of a plan's steps, and what there is to say of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from run_model_tools.kernels import registry
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, batched
from run_model_tools.kernels.pictures import elementwise, layouts, plane_reduction, resampling
from run_model_tools.kernels.plan import (
    OF_ANY_SHAPE,
    BlocksToPlanesStep,
    ConvolutionStep,
    DenseStep,
    ElementwiseStep,
    FusedStep,
    GatherStep,
    LayerStep,
    Plan,
    PlaneReductionStep,
    PoolingStep,
    ProductStep,
    ProgramStep,
    RelayStep,
    ResamplingStep,
    Step,
)
from run_model_tools.kernels.products import dense

# Moving numbers to another layout is no work of the network's own.
_LAYOUT = ("to_planar", "to_blocked", "constant", "reshape")


def make_layer(step: Step, isa: Isa) -> Layer:
    """The layer of a step that is ours, for all of the pictures in its batch."""
    if isinstance(step, DenseStep):
        product = dense.of_rows(step.dense, *step.inputs)
        if step.output.shape[0] > 1:
            return replace(registry.make_product(product, isa), output_shape=step.output.shape)
        if product.compact_weights(isa) is not None:
            return replace(registry.make_product(product, isa), kind="dense",
                           output_shape=step.output.shape)
    layer = of_one(step, isa)
    return layer if isinstance(step, OF_ANY_SHAPE) else batched(
        layer, step.output.shape[0], step.windows)


def of_one(step: Step, isa: Isa) -> Layer:
    """The layer of a step that is ours, for one picture of its batch."""
    if isinstance(step, LayerStep):
        return step.layer
    if isinstance(step, ConvolutionStep):
        return registry.make_convolution(step.convolution, isa)
    if isinstance(step, FusedStep):
        return registry.make_convolution(step.block, isa)
    if isinstance(step, PoolingStep):
        return registry.make_pooling(step.pooling, isa)
    if isinstance(step, PlaneReductionStep):
        return plane_reduction.make(step.reduction, isa)
    if isinstance(step, DenseStep):
        return registry.make_dense(step.dense, isa)
    if isinstance(step, ElementwiseStep):
        return elementwise.make(step.elementwise, isa)
    if isinstance(step, GatherStep):
        return elementwise.make_gather(step.gather, isa)
    if isinstance(step, ResamplingStep):
        return resampling.make(step.resampling, isa)
    if isinstance(step, BlocksToPlanesStep):
        return layouts.to_planes(step.value, isa)
    if isinstance(step, ProductStep):
        return registry.make_product(step.product, isa)
    if isinstance(step, ProgramStep):
        return registry.make_program(step.program, isa)
    raise TypeError(f"{type(step).__name__} is no layer")


def report(plan: Plan, isa: Isa) -> dict[str, object]:
    """How many layers run our kernels and which operators are left to TVM's schedules, with why the
    first of each is."""
    left = Counter(step.what for step in plan.steps
                   if isinstance(step, RelayStep) and step.what not in _LAYOUT)
    moved = sum(isinstance(step, BlocksToPlanesStep)
                or isinstance(step, LayerStep) and step.layer.kind == "planes_to_blocks"
                or isinstance(step, RelayStep) and step.what in ("to_planar", "to_blocked")
                for step in plan.steps)
    why: dict[str, str] = {}
    for step in plan.steps:
        if isinstance(step, RelayStep) and step.why:
            why.setdefault(step.what, step.why)
    ours = sum(not isinstance(step, RelayStep) for step in plan.steps)
    return {"instruction_set": isa.name, "lanes": isa.lanes, "layers": ours,
            "left_to_tvm": dict(sorted(left.items())), "left_because": why,
            "layout_changes": moved}
