"""Relay -> plan: which operators become layers of ours, and where channels lie.

The module is the one that relay.build has before it chooses layouts (faster_folding.simplify):
typed, without batch normalisations, constants folded.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import tvm

from run_model_tools.inside_tvm.node_names import names_in
from run_model_tools.kernels.epilogues import Epilogue, find_epilogues
from run_model_tools.kernels.isa import PLAIN, Isa, isa_of
from run_model_tools.kernels.plan import (
    DequantizeStep,
    LayerStep,
    Plan,
    QuantizeStep,
    RelayStep,
)
from run_model_tools.kernels.programs.fusion import fuse_programs
from run_model_tools.kernels.relay import nodes as relay
from run_model_tools.kernels.relay.declined import why_left
from run_model_tools.kernels.relay.graph import (
    arguments,
    operator,
    post_order,
    shape_of,
    users_of,
)
from run_model_tools.kernels.relay.readers import (
    channels,
    convolutions,
    elementwise,
    made_weights,
    matrices,
    moves,
    places,
    planes,
    pooling,
    programs,
)
from run_model_tools.kernels.relay.readers.network import Network, Value
from run_model_tools.kernels.tensors import Blocked, Tensor
from run_model_tools.kernels.views import View

READERS: dict[str, Callable[[Network, relay.Call], Value]] = {
    **pooling.READERS, **planes.READERS, **channels.READERS, **places.READERS}
"""By operator, of values in blocks.  None from a reader: it is not one for it."""

VIEW_READERS: dict[str, Callable[[Network, relay.Call], Value]] = {
    **moves.READERS, **matrices.READERS, **made_weights.READERS, **programs.READERS}
"""By operator, of all others, which they see as views."""

_OF_PICTURES = ("nn.max_pool2d", "nn.avg_pool2d", "image.resize2d")
"""Those for which values are brought into blocks."""

QUANTIZATION_READERS: dict[str, Callable[[Network, relay.Call], Value]] = (
    import_module(f"{__package__}.readers.quantization").READERS if relay.HAS_RELAY else {})
"""Of the operators that relay/quantization.py puts in."""

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
    return isa, read_plan_for(mod, isa, expressions)


def read_plan_for(mod: tvm.IRModule, isa: Isa, expressions: bool = True) -> Plan:
    """The plan for an instruction set."""
    function = mod["main"]
    net = Network(Plan(list(function.params), [_parameter(p) for p in function.params]), isa,
                  users_of(post_order(function.body)))
    net.values.update(zip(function.params, net.plan.parameter_tensors))
    epilogues = find_epilogues(function.body, expressions)
    _read(net, function, epilogues, elementwise.find_regions(
        function.body, {call for epilogue in epilogues.values() for call in epilogue.calls}))
    _drop_unused(net.plan)
    fuse_programs(net.plan)
    return net.plan


def read_rows(mod: tvm.IRModule, ours: set[relay.Expr]) -> Plan:
    """The plan in which only these expressions of the main function are read, as products of
    matrices, programs and views.  All others, pictures among them, stay Relay's."""
    function = mod["main"]
    net = Network(Plan(list(function.params), [_parameter(p) for p in function.params]), PLAIN,
                  users_of(post_order(function.body)), ours)
    net.values.update(zip(function.params, net.plan.parameter_tensors))
    _read(net, function, {}, {})
    _drop_unused(net.plan)
    fuse_programs(net.plan, copies_last=True)
    return net.plan


def expect_floats(plan: Plan) -> None:
    """Raises NotForUs for a network of bytes, of which --precision would make another one."""
    if any(isinstance(step, (QuantizeStep, DequantizeStep)) for step in plan.steps):
        raise NotForUs("the network is one of whole numbers already: leave --precision out")


def expect_own_layer(plan: Plan) -> None:
    """Raises NotForUs where nothing would be ours."""
    if all(isinstance(step, RelayStep) for step in plan.steps):
        raise NotForUs("no layer of the network is one that they compute: float32 is what they "
                       "are for")


def _parameter(parameter: relay.Var) -> Tensor:
    shape = shape_of(parameter)
    if any(d < 0 for d in shape):
        raise NotForUs(f"the input {parameter.name_hint} has no fixed shape")
    return Tensor(shape, str(parameter.checked_type.dtype))


def _read(net: Network, function: relay.Function, epilogues: dict[relay.Expr, Epilogue],
          regions: dict[relay.Expr, list[relay.Call]]) -> None:
    body = function.body
    inner = {call for epilogue in epilogues.values() for call in epilogue.calls[:-1]}
    inner |= {call for region in regions.values() for call in region[:-1]}
    waiting: dict[relay.Expr, list[str]] = {}
    named: set[str] = set()
    for expr in post_order(body):
        # An operator has no type, and the inside of what goes together is computed at its end.
        if expr in inner or isinstance(expr, tvm.ir.Op) or expr == function:
            continue
        together, made = [expr], len(net.plan.steps)
        if expr in epilogues:
            together = epilogues[expr].calls
            net.values[expr] = _value_of_epilogue(net, epilogues[expr])
        elif expr in regions:
            together = regions[expr]
            net.values[expr] = _value_of_region(net, regions[expr])
        else:
            net.values[expr] = _value(net, expr)
        # What makes no step of its own becomes a part of those that read it.
        names = [name for call in together for name in names_in(call)]
        before = [name for call in together for argument in arguments(call)
                  for name in waiting.get(argument, ()) if name not in named]
        if len(net.plan.steps) > made:
            net.plan.sources.add(net.plan.steps[made:], [*before, *names])
            named.update(names)
        else:
            waiting[expr] = [*before, *names]
    value = net.values[body]
    net.plan.output_is_tuple = isinstance(value, list)
    for one in value if isinstance(value, list) else [value]:
        net.plan.outputs.append(net.result(one))


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
    if name.startswith(relay.PREFIX) and name not in QUANTIZATION_READERS:
        return _made_layer(net, expr)
    if net.ours is not None:
        value = VIEW_READERS[name](net, expr) if expr in net.ours else None
        return net.by_relay(expr, "") if value is None else value
    value = None
    if name in QUANTIZATION_READERS:
        for argument in expr.args:
            if isinstance(net.values[argument], View):
                net.values[argument] = _for_layers(net, net.values[argument])
        value = QUANTIZATION_READERS[name](net, expr)
    if name in _OF_PICTURES and str(expr.attrs.layout) == "NCHW" and (
            shape_of(expr)[1] >= net.isa.lanes and not _in_blocks(net.values[expr.args[0]])):
        net.values[expr.args[0]] = net.blocked(net.values[expr.args[0]]) or (
            net.values[expr.args[0]])
    # The last reshape of a channel shuffle is told by what lies two moves before it.
    if value is None and name in READERS and (
            name == "reshape" or any(_in_blocks(net.values[a]) for a in expr.args)):
        value = READERS[name](net, expr)
        if isinstance(value, Blocked):
            value = elementwise.apart(net, value)
    if value is None and name in VIEW_READERS:
        value = VIEW_READERS[name](net, expr)
    return net.by_relay(expr, why_left(expr, _KNOWN)) if value is None else value


_KNOWN = READERS.keys() | VIEW_READERS.keys() | EPILOGUE_READERS.keys() | (
    QUANTIZATION_READERS.keys())


def _made_layer(net: Network, expr: relay.Call) -> Tensor:
    """A layer that was made while importing, by recurrent_operators.py or relax/recurrent.py of
    inside_tvm."""
    layer = (import_module(f"{__package__}.operators").layer_of(expr) if relay.HAS_RELAY
             else expr.attrs.layer)
    inputs = [net.plain(net.values[a]) for a in expr.args[:len(layer.inputs)]]
    output = Tensor(layer.output_shape)
    net.plan.steps.append(LayerStep(inputs, output, layer))
    return output


def _in_blocks(value: Value) -> bool:
    return any(_in_blocks(v) for v in value) if isinstance(value, list) else (
        isinstance(value, Blocked))


def _value_of_epilogue(net: Network, epilogue: Epilogue) -> Value:
    for argument in (epilogue.call.args[0], epilogue.residual):
        if operator(epilogue.call) == "nn.conv2d" and isinstance(net.values.get(argument), View):
            net.values[argument] = _for_layers(net, net.values[argument])
    value = EPILOGUE_READERS[operator(epilogue.call)](net, epilogue)
    return _one_by_one(net, epilogue.calls) if value is None else value


def _value_of_region(net: Network, region: list[relay.Call]) -> Value:
    leaves = {a: net.values[a] for call in region for a in arguments(call) if a in net.values}
    value = None
    if any(_in_blocks(leaf) for leaf in leaves.values()):
        for argument, leaf in leaves.items():
            if isinstance(leaf, View) and leaf.shape == shape_of(region[-1]):
                net.values[argument] = _for_layers(net, leaf)
        value = elementwise.read_region(net, region)
    return _one_by_one(net, region) if value is None else value


def _one_by_one(net: Network, calls: list[relay.Call]) -> Value:
    """The last of operators that belong together where there is no kernel for them together."""
    for call in calls:
        net.values[call] = _value(net, call)
    return net.values[calls[-1]]


def _for_layers(net: Network, view: View) -> Value:
    """A view as convolutions want it: in blocks, or as it is where it has few channels."""
    blocked = net.blocked(view) if len(view.axes) == 4 and view.shape[1] > 4 else None
    return net.plain(view) if blocked is None else blocked


def _drop_unused(plan: Plan) -> None:
    """Steps for values that nothing reads: what a channel shuffle would have been, for one."""
    needed = set(plan.outputs)
    kept = []
    for step in reversed(plan.steps):
        if step.output in needed:
            needed.update(step.inputs)
            kept.append(step)
    plan.steps = kept[::-1]
