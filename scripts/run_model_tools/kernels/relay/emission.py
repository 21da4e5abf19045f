"""Plan -> Relay: every step becomes a call, ours of a layer's operator."""

from __future__ import annotations

import tvm
from tvm import relay

from run_model_tools.kernels import elementwise, registry, resampling
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, batched
from run_model_tools.kernels.plan import (
    OF_ANY_SHAPE,
    ConvolutionStep,
    DenseStep,
    ElementwiseStep,
    FusedStep,
    GatherStep,
    LayerStep,
    Plan,
    PoolingStep,
    ProductStep,
    ProgramStep,
    RelayStep,
    ResamplingStep,
    Step,
)
from run_model_tools.kernels.relay import operators
from run_model_tools.kernels.tensors import Tensor


def write_module(plan: Plan, isa: Isa,
                 outputs: list[Tensor] | None = None) -> tuple[tvm.IRModule, dict[str, Layer]]:
    """The module that computes the plan's outputs, or other tensors of it.

    Gives also the layers by the names of their operators; equal code has one name.
    """
    known: dict[Tensor, relay.Expr] = dict(zip(plan.parameter_tensors, plan.parameters))
    names: dict[str, str] = {}
    layers: dict[str, Layer] = {}
    for step in plan.steps:
        inputs = [known[tensor] for tensor in step.inputs]
        if isinstance(step, RelayStep):
            known[step.output] = step.build(*inputs)
        else:
            layer = make_layer(step, isa)
            if not isinstance(step, OF_ANY_SHAPE):
                layer = batched(layer, step.output.shape[0])
            if layer.symbol(0) not in names:
                names[layer.symbol(0)] = operators.operator_name(
                    layer, f"{layer.kind}_{len(names)}")
            name = names[layer.symbol(0)]
            layers.setdefault(name, layer)
            result = operators.call(layer, inputs, name)
            if layer.output_shape != step.output.shape:
                # What was fused goes over the same numbers in another shape.
                result = relay.reshape(result, step.output.shape)
            known[step.output] = result
    wanted = [known[tensor] for tensor in (plan.outputs if outputs is None else outputs)]
    many = plan.output_is_tuple if outputs is None else True
    body = relay.Tuple(wanted) if many else wanted[0]
    module = tvm.IRModule.from_expr(relay.Function(plan.parameters, body))
    return relay.transform.InferType()(module), layers


def make_layer(step: Step, isa: Isa) -> Layer:
    """The layer of a step that is ours."""
    if isinstance(step, LayerStep):
        return step.layer
    if isinstance(step, ConvolutionStep):
        return registry.make_convolution(step.convolution, isa)
    if isinstance(step, FusedStep):
        return registry.make_convolution(step.block, isa)
    if isinstance(step, PoolingStep):
        return registry.make_pooling(step.pooling, isa)
    if isinstance(step, DenseStep):
        return registry.make_dense(step.dense, isa)
    if isinstance(step, ElementwiseStep):
        return elementwise.make(step.elementwise, isa)
    if isinstance(step, GatherStep):
        return elementwise.make_gather(step.gather, isa)
    if isinstance(step, ResamplingStep):
        return resampling.make(step.resampling, isa)
    if isinstance(step, ProductStep):
        return registry.make_product(step.product, isa)
    if isinstance(step, ProgramStep):
        return registry.make_program(step.program, isa)
    raise TypeError(f"{type(step).__name__} is no layer")
