"""Plan -> Relay: every step becomes a call, ours of a layer's operator."""

from __future__ import annotations

from collections.abc import Callable

import tvm
from tvm import relay

from run_model_tools.inside_tvm.node_names import WHY, place_of
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer
from run_model_tools.kernels.layers_of_plan import make_layer
from run_model_tools.kernels.plan import Plan, RelayStep, Step
from run_model_tools.kernels.relay import operators
from run_model_tools.kernels.tensors import Tensor


def write_module(plan: Plan, isa: Isa, outputs: list[Tensor] | None = None,
                 layer_of: Callable[[Step, Isa], Layer] = make_layer
                 ) -> tuple[tvm.IRModule, dict[str, Layer]]:
    """The module that computes the plan's outputs, or other tensors of it.

    Gives also the layers by the names of their operators; equal code has one name.  `layer_of`:
    what a step of ours becomes.
    """
    known: dict[Tensor, relay.Expr] = dict(zip(plan.parameter_tensors, plan.parameters))
    names: dict[str, str] = {}
    layers: dict[str, Layer] = {}
    sources = plan.sources.of(plan.steps)
    for step in plan.steps:
        names_of = sources.get(step.output, [])
        inputs = [known[tensor] for tensor in step.inputs]
        if isinstance(step, RelayStep):
            result = step.build(*inputs)
            if step.why:
                names_of = [*names_of, WHY + step.why]
        else:
            layer = layer_of(step, isa)
            if layer.symbol(0) not in names:
                names[layer.symbol(0)] = operators.operator_name(
                    layer, f"{layer.kind}_{len(names)}")
            name = names[layer.symbol(0)]
            layers.setdefault(name, layer)
            result = operators.call(layer, inputs, name)
            if layer.output_shape != step.output.shape:
                # What was fused goes over the same numbers in another shape.
                result = relay.reshape(_made_of(result, names_of),
                                       step.output.shape)
        known[step.output] = _made_of(result, names_of)
    wanted = [known[tensor] for tensor in (plan.outputs if outputs is None else outputs)]
    many = plan.output_is_tuple if outputs is None else True
    body = relay.Tuple(wanted) if many else wanted[0]
    module = tvm.IRModule.from_expr(relay.Function(plan.parameters, body))
    return relay.transform.InferType()(module), layers


def _made_of(expr: relay.Expr, names: list[str]) -> relay.Expr:
    """A call that says of which nodes it was made; anything else as it is."""
    if not names or not isinstance(expr, relay.Call):
        return expr
    return relay.Call(expr.op, expr.args, expr.attrs, expr.type_args, place_of(relay, names))
