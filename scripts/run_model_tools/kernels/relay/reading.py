"""Relay -> plan: which operators become layers of ours, and where channels lie.

The module is the one that relay.build has before it chooses layouts (faster_folding.simplify):
typed, without batch normalisations, constants folded.
"""

from __future__ import annotations

from collections.abc import Callable

import tvm
from tvm import relay

from run_model_tools.kernels.epilogues import Epilogue, find_epilogues
from run_model_tools.kernels.isa import Isa, isa_of
from run_model_tools.kernels.plan import Plan
from run_model_tools.kernels.relay.graph import operator, post_order, shape_of
from run_model_tools.kernels.relay.readers import (
    channels,
    convolutions,
    elementwise,
    places,
    pooling,
    quantization,
)
from run_model_tools.kernels.relay.readers.network import Network, Value
from run_model_tools.kernels.tensors import Tensor

READERS: dict[str, Callable[[Network, relay.Call], Value]] = {
    **pooling.READERS, **channels.READERS, **places.READERS, **quantization.READERS}
"""By operator.  None from a reader: TVM's own schedules are to compute it."""

EPILOGUE_READERS: dict[str, Callable[[Network, Epilogue], Value]] = {
    **convolutions.EPILOGUES}
"""Of operators that take in what is done to their result (epilogues.py)."""


class NotForUs(Exception):
    """Why a network is not for our kernels: it then goes through TVM's own schedules."""


def read_plan(mod: tvm.IRModule, target: tvm.target.Target,
              expressions: bool = True) -> tuple[Isa, Plan]:
    """The target's instruction set and, for that, the plan of a module's main function.

    `expressions`: whether layers take in more than bias, residual and clamp.  Raises NotForUs with
    the reason where the target or the network is not one for our kernels.
    """
    isa = isa_of(target)
    if isa is None:
        raise NotForUs("the target has no vector instructions that the kernels use")
    function = mod["main"]
    net = Network(Plan(list(function.params), [_parameter(p) for p in function.params]), isa)
    net.values.update(zip(function.params, net.plan.parameter_tensors))
    _read(net, function, expressions)
    _drop_unused(net.plan)
    return isa, net.plan


def _parameter(parameter: relay.Var) -> Tensor:
    shape = shape_of(parameter)
    if any(d < 0 for d in shape):
        raise NotForUs(f"the input {parameter.name_hint} has no fixed shape")
    return Tensor(shape, str(parameter.checked_type.dtype))


def _read(net: Network, function: relay.Function, expressions: bool) -> None:
    body = function.body
    epilogues = find_epilogues(body, expressions)
    regions = elementwise.find_regions(
        body, {call for epilogue in epilogues.values() for call in epilogue.calls})
    inner = {call for epilogue in epilogues.values() for call in epilogue.calls[:-1]}
    inner |= {call for region in regions.values() for call in region[:-1]}
    for expr in post_order(body):
        # An operator has no type, and the inside of what goes together is computed at its end.
        if expr in inner or isinstance(expr, tvm.ir.Op) or expr == function:
            continue
        if expr in epilogues:
            net.values[expr] = _value_of_epilogue(net, epilogues[expr])
        elif expr in regions:
            net.values[expr] = _value_of_region(net, regions[expr])
        else:
            net.values[expr] = _value(net, expr)
    value = net.values[body]
    net.plan.output_is_tuple = isinstance(value, list)
    for one in value if isinstance(value, list) else [value]:
        net.plan.outputs.append(net.plain(one))


def _value(net: Network, expr: relay.Expr) -> Value:
    if isinstance(expr, relay.Var):
        return net.values[expr]
    if isinstance(expr, relay.Constant):
        return expr
    if isinstance(expr, relay.Tuple):
        return [net.values[f] for f in expr.fields]
    if isinstance(expr, relay.TupleGetItem):
        return net.values[expr.tuple_value][int(expr.index)]
    name = operator(expr)
    if not name:
        raise NotForUs(f"it has a {type(expr).__name__}")
    value = READERS[name](net, expr) if name in READERS else None
    return net.by_relay(expr) if value is None else value


def _value_of_epilogue(net: Network, epilogue: Epilogue) -> Value:
    value = EPILOGUE_READERS[operator(epilogue.call)](net, epilogue)
    return net.original(epilogue.calls) if value is None else value


def _value_of_region(net: Network, region: list[relay.Call]) -> Value:
    value = elementwise.read_region(net, region)
    return net.original(region) if value is None else value


def _drop_unused(plan: Plan) -> None:
    """Steps for values that nothing reads: what a channel shuffle would have been, for one."""
    needed = set(plan.outputs)
    kept = []
    for step in reversed(plan.steps):
        if step.output in needed:
            needed.update(step.inputs)
            kept.append(step)
    plan.steps = kept[::-1]
