"""A network while it is read: the plan so far, and where the values of expressions are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from run_model_tools.kernels.convolutions.convolution import plain_lanes
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.pictures import layouts
from run_model_tools.kernels.plan import (
    BlocksToPlanesStep,
    Plan,
    ProgramStep,
    RelayStep,
    WindowStep,
)
from run_model_tools.kernels.programs import rows
from run_model_tools.kernels.programs.program import Program, copy_of
from run_model_tools.kernels.relay import nodes as relay
from run_model_tools.kernels.relay.graph import operator, shape_of, shape_of_type
from run_model_tools.kernels.relay.nodes import writing
from run_model_tools.kernels.tensors import Blocked, Tensor, plain
from run_model_tools.kernels.views import View

# A Tensor, a View of one, a Blocked, a relay.Constant, or a list of these; None where TVM's
# schedules are to compute it.
Value = Any


class Network:
    """What a reader of operators, (Network, relay.Call) -> Value, works on."""

    def __init__(self, plan: Plan, isa: Isa, users: dict[relay.Expr, list[relay.Expr]],
                 ours: set[relay.Expr] | None = None):
        self.plan = plan
        self.isa = isa
        self.users = users
        """Which expressions read each."""
        self.ours = ours
        """The only ones that are not to stay Relay's, as views; None where all are read."""
        self.values: dict[relay.Expr, Value] = {}
        """Of every expression that has been read."""
        self.windows: dict[Tensor, WindowStep] = {}
        """By what they make."""
        self._blocked: dict[Tensor, Blocked] = {}
        self._copies: dict[View, Tensor] = {}
        self._blocked_views: dict[View, Blocked] = {}

    # What TVM computes.

    def by_relay(self, call: relay.Call, why: str) -> Value:
        """The operator as it is, on tensors of the network's own layout."""
        arguments = [self.values[a] for a in call.args]
        flat: list[Tensor] = []
        for argument in arguments:
            for one in argument if isinstance(argument, list) else [argument]:
                if not isinstance(one, relay.Constant):
                    flat.append(self.plain(one))

        def build(*given: relay.Expr) -> relay.Expr:
            rest = iter(given)
            built: list[Any] = []
            for argument in arguments:
                if isinstance(argument, list):
                    built.append([f if isinstance(f, relay.Constant) else next(rest)
                                  for f in argument])
                else:
                    built.append(argument if isinstance(argument, relay.Constant) else next(rest))
            return writing.again(call, built)

        kind = call.checked_type
        if isinstance(kind, relay.TupleType):
            # Each part is a step of its own; TVM computes equal expressions once.
            return [self.add_relay(flat, shape_of_type(part), str(part.dtype),
                                   lambda *given, i=i: writing.part(build(*given), i),
                                   operator(call), why) for i, part in enumerate(kind.fields)]
        return self.add_relay(flat, shape_of(call), str(kind.dtype), build, operator(call), why)

    def add_relay(self, inputs: Iterable[Tensor], shape: Iterable[int], dtype: str,
                  build: Callable[..., relay.Expr], what: str, why: str = "") -> Tensor:
        output = Tensor(tuple(shape), dtype)
        self.plan.steps.append(RelayStep(list(inputs), output, build, what, why=why))
        return output

    def reshaped(self, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
        """Costs nothing when run, unlike operators such as batch_flatten."""
        if tensor.shape == shape:
            return tensor
        return self.add_relay([tensor], shape, tensor.dtype, lambda x: writing.reshape(x, shape),
                              "reshape")

    def run(self, program: Program) -> Tensor:
        """What a program makes, which rows.can_run()."""
        output = Tensor(rows.output_shape(program))
        self.plan.steps.append(ProgramStep(rows.inputs_of(program), output, program))
        return output

    # Between the layouts.

    def plain(self, value: Value) -> Tensor:
        """The value as one tensor of the network's own layout."""
        if isinstance(value, relay.Constant):
            return self.add_relay([], value.data.shape, str(value.data.dtype),
                                  lambda: writing.constant(value), "constant")
        if isinstance(value, Tensor):
            return value
        if isinstance(value, View):
            return self._copied(value)
        shape = (value.batch, value.channels, *value.size)
        return self.add_relay(value.tensors, shape, value.tensors[0].dtype,
                              lambda *given: writing.to_planar(value, given), "to_planar")

    def result(self, value: Value) -> Tensor:
        """A value that the network gives, as one tensor of its own layout: nothing else is joined
        with how it leaves blocks."""
        if not isinstance(value, Blocked) or not value.is_float:
            return self.plain(value)
        output = Tensor((value.batch, value.channels, *value.size))
        if not layouts.is_large(output.shape):
            return self.plain(value)
        self.plan.steps.append(BlocksToPlanesStep(list(value.tensors), output, value))
        return output

    def blocked(self, value: Value) -> Blocked | None:
        """The value in blocks, or None where it is no float32 picture."""
        if isinstance(value, View):
            return self._blocked_of_view(value)
        if not isinstance(value, Tensor):
            return value if isinstance(value, Blocked) else None
        shape = value.shape
        if len(shape) != 4 or min(shape) < 1 or value.dtype != "float32":
            return None
        if value in self._blocked:
            return self._blocked[value]
        lanes = self.isa.lanes
        blocked = (shape[0], len(plain_lanes(shape[1], lanes)), *shape[2:], lanes)
        output = self.add_relay([value], blocked, "float32",
                                lambda x: writing.to_blocked(x, shape, lanes), "to_blocked")
        self._blocked[value] = plain(output, shape[1])
        return self._blocked[value]

    def _copied(self, view: View) -> Tensor:
        """The view's numbers in their order."""
        if view.is_whole:
            return self.reshaped(view.tensor, view.shape)
        if view not in self._copies:
            # Of a number without axes, a row of one.
            copied = self.run(copy_of(view if view.axes else replace(view, axes=((),))))
            self._copies[view] = self.reshaped(copied, view.shape)
        return self._copies[view]

    def _blocked_of_view(self, view: View) -> Blocked | None:
        lanes = self.isa.lanes
        if len(view.axes) != 4:
            return None
        batch, channels, height, width = view.shape
        cut = view.reshape((batch, channels // lanes, lanes, height, width))
        if channels % lanes or cut is None:
            return self.blocked(self.plain(view))
        if view not in self._blocked_views:
            output = self.run(copy_of(cut.transpose([0, 1, 3, 4, 2])))
            self._blocked_views[view] = plain(output, channels)
        return self._blocked_views[view]


def integers(values: Iterable[Any]) -> tuple[Any, ...]:
    """Of an attribute of Relay's."""
    return tuple(int(v) for v in values)
