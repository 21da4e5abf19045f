"""Relay -> plan: which operators become layers of ours, and where channels lie.

The module is the one that relay.build has before it chooses layouts (faster_folding.simplify):
typed, without batch normalisations, constants folded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import tvm
from tvm import relay

from run_model_tools.kernels.convolution import Convolution, plain_lanes
from run_model_tools.kernels.dense import Dense
from run_model_tools.kernels.epilogues import (
    Epilogue,
    find_epilogues,
    operator,
    post_order,
    shape_of,
)
from run_model_tools.kernels.isa import Isa, isa_of
from run_model_tools.kernels.plan import ConvolutionStep, DenseStep, Plan, PoolingStep, RelayStep
from run_model_tools.kernels.pooling import Pooling
from run_model_tools.kernels.registry import can_convolve, can_multiply, can_pool
from run_model_tools.kernels.relay import operators
from run_model_tools.kernels.tensors import Blocked, Tensor, concatenate, plain

# Work on each number alone, so they may run on the blocked form, whatever unused lanes hold.
_ELEMENTWISE = {"nn.relu", "clip", "sigmoid", "tanh", "exp", "nn.leaky_relu", "erf", "abs",
                "negative", "sqrt", "copy"}
_ELEMENTWISE_PAIRS = {"add", "multiply", "subtract", "maximum", "minimum"}


# A Tensor, a Blocked, a relay.Constant, or a list of these; None where TVM's schedules are to
# compute it.
Value = Any


class NotForUs(Exception):
    """Why a network is not for our kernels: it then goes through TVM's own schedules."""


def read_plan(mod: tvm.IRModule, target: tvm.target.Target) -> tuple[Isa, Plan]:
    """The target's instruction set and, for that, the plan of a module's main function.

    Raises NotForUs with the reason where the target or the network is not one for our kernels.
    """
    isa = isa_of(target)
    if isa is None:
        raise NotForUs("the target has no vector instructions that the kernels use")
    return isa, _Reader(mod["main"], isa).read()


class _Reader:
    def __init__(self, function: relay.Function, isa: Isa):
        self.function = function
        self.isa = isa
        self.values: dict[relay.Expr, Value] = {}
        self.blocked: dict[Tensor, Blocked] = {}
        parameters = list(function.params)
        tensors = []
        for parameter in parameters:
            shape = shape_of(parameter)
            if any(d < 0 for d in shape):
                raise NotForUs(f"the input {parameter.name_hint} has no fixed shape")
            tensors.append(Tensor(shape, str(parameter.checked_type.dtype)))
        self.plan = Plan(parameters, tensors)
        self.values.update(zip(parameters, tensors))

    def read(self) -> Plan:
        body = self.function.body
        self.epilogues = find_epilogues(body)
        inner = {call for epilogue in self.epilogues.values() for call in epilogue.calls[:-1]}
        for expr in post_order(body):
            # An operator has no type, and the inside of an epilogue is computed at its end.
            if expr not in inner and not isinstance(expr, tvm.ir.Op) and expr != self.function:
                self.values[expr] = self._value(expr)
        value = self.values[body]
        self.plan.output_is_tuple = isinstance(value, list)
        for one in value if isinstance(value, list) else [value]:
            self.plan.outputs.append(self._plain(one))
        self._drop_unused()
        return self.plan

    def _drop_unused(self) -> None:
        """Steps for values that nothing reads: what a channel shuffle would have been, for one."""
        needed = set(self.plan.outputs)
        kept = []
        for step in reversed(self.plan.steps):
            if step.output in needed:
                needed.update(step.inputs)
                kept.append(step)
        self.plan.steps = kept[::-1]

    def _value(self, expr: relay.Expr) -> Value:
        if isinstance(expr, relay.Var):
            return self.values[expr]
        if isinstance(expr, relay.Constant):
            return expr
        if isinstance(expr, relay.Tuple):
            return [self.values[f] for f in expr.fields]
        if isinstance(expr, relay.TupleGetItem):
            return self.values[expr.tuple_value][int(expr.index)]
        name = operator(expr)
        if not name:
            raise NotForUs(f"it has a {type(expr).__name__}")
        if expr in self.epilogues:
            return self._with_epilogue(self.epilogues[expr])
        special = getattr(self, "_read_" + name.replace("nn.", "").replace(".", "_"), None)
        value = special(expr) if special else None
        if value is None and name in _ELEMENTWISE:
            value = self._elementwise(expr)
        if value is None and name in _ELEMENTWISE_PAIRS:
            value = self._elementwise_pair(expr)
        return self._by_relay(expr) if value is None else value

    # Layers of ours.

    def _with_epilogue(self, epilogue: Epilogue) -> Value:
        if operator(epilogue.call) == "nn.dense":
            return self._dense(epilogue)
        value = self._convolution(epilogue)
        return self._original(epilogue) if value is None else value

    def _convolution(self, epilogue: Epilogue) -> Value:
        call, attrs = epilogue.call, epilogue.call.attrs
        weight = call.args[1]
        if (str(attrs.data_layout) != "NCHW" or str(attrs.kernel_layout) != "OIHW"
                or not isinstance(weight, relay.Constant) or shape_of(call)[0] != 1
                or str(call.checked_type.dtype) != "float32"
                or str(attrs.out_dtype) not in ("", "float32") or len(shape_of(call)) != 4
                or min(shape_of(call)) < 1):
            return None
        weight, bias = _weight_and_bias(epilogue, weight.data.numpy())
        conv = Convolution(
            weight, bias, (), (), strides=_ints(attrs.strides),
            padding=_ints(attrs.padding), dilation=_ints(attrs.dilation), groups=int(attrs.groups),
            low=epilogue.low, high=epilogue.high)
        data = self.values[call.args[0]]
        if (isinstance(data, Tensor) and data.shape[2:] == conv.kernel == (1, 1)
                and conv.groups == 1):
            return self._convolution_of_vector(conv, data, epilogue)
        if conv.groups > 1 and conv.groups == weight.shape[0] and weight.shape[1] == 1:
            return self._depthwise(conv, data, epilogue)
        return self._dense_convolution(conv, data, epilogue)

    def _dense_convolution(self, conv: Convolution, data: Value, epilogue: Epilogue) -> Value:
        """A convolution that sums over channels: any order of them will do within a group."""
        if isinstance(data, Tensor):
            planar = replace(conv, input_shapes=(data.shape,))
            if conv.groups == 1 and can_convolve(planar, self.isa):
                return self._add_convolution(planar, [data], epilogue)
        source = self._blocked(data)
        if source is None:
            return None
        depth = conv.weight.shape[1]
        groups = np.arange(source.channels).reshape(conv.groups, depth)
        rank = np.argsort(source.storage_order())
        within = np.argsort(rank[groups], axis=1)
        order = np.take_along_axis(groups, within, 1).reshape(-1)
        weight = conv.weight.reshape(conv.groups, -1, depth, *conv.kernel)
        weight = np.take_along_axis(weight, within[:, None, :, None, None], 2)
        conv = replace(conv, weight=np.ascontiguousarray(weight.reshape(conv.weight.shape)))
        arranged = source.take(order)
        conv = replace(conv, input_shapes=tuple(t.shape for t in arranged.tensors),
                       input_lanes=arranged.pieces())
        if not can_convolve(conv, self.isa):
            return None
        return self._add_convolution(conv, list(arranged.tensors), epilogue)

    def _convolution_of_vector(self, conv: Convolution, data: Tensor, epilogue: Epilogue) -> Value:
        """A 1x1 convolution after a global pooling is a fully connected layer."""
        dense = Dense(conv.weight[:, :, 0, 0], conv.bias, conv.low, conv.high)
        if epilogue.residual is not None or not can_multiply(dense, self.isa):
            return None
        vector = self._reshaped(data, (1, conv.input_channels))
        output = Tensor((1, conv.output_channels))
        self.plan.steps.append(DenseStep([vector], output, dense))
        return self._reshaped(output, (1, conv.output_channels, 1, 1))

    def _depthwise(self, conv: Convolution, data: Value, epilogue: Epilogue) -> Value:
        """A convolution of each channel by itself: it keeps the blocks of its input."""
        source = self._blocked(data)
        if source is None or source.channels != conv.output_channels:
            return None
        pieces, places = source.whole_blocks()
        count = len(pieces) * source.lanes
        weight = np.zeros((count, *conv.weight.shape[1:]), np.float32)
        weight[places] = conv.weight
        bias = np.zeros(count, np.float32)
        bias[places] = conv.bias
        conv = replace(conv, weight=weight, bias=bias, groups=count, input_lanes=pieces,
                       unused=count - len(places),
                       input_shapes=tuple(t.shape for t in source.tensors))
        if not can_convolve(conv, self.isa):
            return None
        return self._add_convolution(conv, list(source.tensors), epilogue, places)

    def _add_convolution(self, conv: Convolution, tensors: list[Tensor], epilogue: Epilogue,
                         places: np.ndarray | None = None) -> Value:
        channels = conv.output_channels
        places = np.arange(channels) if places is None else places
        output = Tensor(conv.output_shape(self.isa.lanes))
        result = Blocked((output,), np.stack([np.zeros(len(places), int), places], 1))
        if epilogue.residual is not None:
            residual = self._blocked(self.values[epilogue.residual])
            if residual is not None and result.is_plain and not _lie_alike(residual, result):
                residual = self._blocked(self._plain(residual))
            if residual is not None and _lie_alike(residual, result):
                conv = replace(conv, residual=True)
                tensors = [*tensors, residual.tensors[0]]
            else:
                bare = replace(conv, low=-math.inf, high=math.inf)
                self.plan.steps.append(ConvolutionStep(tensors, output, bare))
                return self._add_and_clamp(result, self.values[epilogue.residual], epilogue)
        self.plan.steps.append(ConvolutionStep(tensors, output, conv))
        return result

    def _add_and_clamp(self, result: Blocked, residual: Value, epilogue: Epilogue) -> Tensor:
        """What could not be done on the way, by TVM."""
        low, high = epilogue.low, epilogue.high

        def build(a: relay.Expr, b: relay.Expr) -> relay.Expr:
            total = relay.add(a, b)
            return relay.clip(total, max(low, -3.4e38), min(high, 3.4e38)) if (
                math.isfinite(low) or math.isfinite(high)) else total
        first, second = self._plain(result), self._plain(residual)
        return self._add_relay([first, second], first.shape, "float32", build, "add")

    def _dense(self, epilogue: Epilogue) -> Value:
        call = epilogue.call
        data, weight = self.values[call.args[0]], call.args[1]
        shape = shape_of(call)
        if (isinstance(weight, relay.Constant) and shape[0] == 1 and len(shape) == 2
                and str(weight.data.dtype) == "float32" and epilogue.residual is None):
            dense = Dense(*_weight_and_bias(epilogue, weight.data.numpy()), epilogue.low,
                          epilogue.high)
            if can_multiply(dense, self.isa):
                output = Tensor(shape)
                self.plan.steps.append(DenseStep([self._plain(data)], output, dense))
                return output
        return self._original(epilogue)

    def _window_pool(self, expr: relay.Expr, kind: str, count_padding: bool) -> Value:
        data, attrs = self.values[expr.args[0]], expr.attrs
        window, padding = _ints(attrs.pool_size), _ints(attrs.padding)
        if not isinstance(data, Blocked) or str(attrs.layout) != "NCHW":
            return None
        if (kind == "average" and window == data.size and shape_of(expr)[2:] == (1, 1)
                and not any(padding)):
            return self._global_average(expr, data)
        pieces, places = data.whole_blocks()
        pooling = Pooling(kind, window, tuple(t.shape for t in data.tensors), pieces,
                          strides=_ints(attrs.strides), padding=padding,
                          dilation=_ints(attrs.dilation), round_up=bool(attrs.ceil_mode),
                          count_padding=count_padding)
        if tuple(pooling.output_size) != shape_of(expr)[2:] or not can_pool(pooling, self.isa):
            return None
        output = Tensor(pooling.output_shape(self.isa.lanes))
        self.plan.steps.append(PoolingStep(list(data.tensors), output, pooling))
        return Blocked((output,), np.stack([np.zeros(len(places), int), places], 1))

    def _read_max_pool2d(self, expr: relay.Expr) -> Value:
        return self._window_pool(expr, "max", False)

    def _read_avg_pool2d(self, expr: relay.Expr) -> Value:
        return self._window_pool(expr, "average", bool(expr.attrs.count_include_pad))

    def _read_global_avg_pool2d(self, expr: relay.Expr) -> Value:
        return self._global_average(expr, self.values[expr.args[0]])

    def _read_adaptive_avg_pool2d(self, expr: relay.Expr) -> Value:
        size = expr.attrs.output_size
        if size is None or any(int(s) != 1 for s in size):
            return None
        return self._global_average(expr, self.values[expr.args[0]])

    def _read_mean(self, expr: relay.Expr) -> Value:
        axes = sorted(int(a) % 4 for a in expr.attrs.axis) if expr.attrs.axis is not None else []
        if axes != [2, 3] or bool(expr.attrs.exclude) or len(shape_of(expr.args[0])) != 4:
            return None
        return self._global_average(expr, self.values[expr.args[0]])

    def _global_average(self, expr: relay.Expr, data: Value) -> Value:
        if not isinstance(data, Blocked):
            return None
        pooling = Pooling("average", data.size, tuple(t.shape for t in data.tensors), data.pieces(),
                          planar=True)
        if not can_pool(pooling, self.isa):
            return None
        output = Tensor((1, data.channels, 1, 1))
        self.plan.steps.append(PoolingStep(list(data.tensors), output, pooling))
        return self._reshaped(output, shape_of(expr))

    # What moves channels only.

    def _read_concatenate(self, expr: relay.Expr) -> Value:
        values = self.values[expr.args[0]]
        if int(expr.attrs.axis) % 4 != 1 or len(shape_of(expr)) != 4:
            return None
        if not any(isinstance(v, Blocked) for v in values):
            return None
        blocked = [b for b in map(self._blocked, values) if b is not None]
        return concatenate(blocked) if len(blocked) == len(values) else None

    def _read_split(self, expr: relay.Expr) -> Value:
        data = self.values[expr.args[0]]
        if not isinstance(data, Blocked) or int(expr.attrs.axis) % 4 != 1:
            return None
        what = expr.attrs.indices_or_sections
        if isinstance(what, (tvm.tir.IntImm, int)):
            ends = [data.channels * (i + 1) // int(what) for i in range(int(what))]
        else:
            ends = [int(i) for i in what] + [data.channels]
        return [data.take(range(a, b)) for a, b in zip([0, *ends[:-1]], ends)]

    def _read_strided_slice(self, expr: relay.Expr) -> Value:
        data = self.values[expr.args[0]]
        attrs, shape, source = expr.attrs, shape_of(expr), shape_of(expr.args[0])
        if (not isinstance(data, Blocked) or str(attrs.slice_mode) not in ("end", "size")
                or source[2:] != shape[2:] or source[0] != shape[0]):
            return None
        axes = ([int(a) for a in attrs.axes] if attrs.axes is not None
                else list(range(len(attrs.begin))))
        if 1 not in axes:
            return data if shape == source else None
        at = axes.index(1)
        strides = [int(s) for s in attrs.strides or ()]
        step = strides[at] if at < len(strides) else strides[0] if len(strides) == 1 else 1
        begin = int(attrs.begin[at])
        if step != 1:
            return None
        begin += source[1] if begin < 0 else 0
        return data.take(range(begin, begin + shape[1]))

    def _read_batch_flatten(self, expr: relay.Expr) -> Value:
        return self._reshaped(self._plain(self.values[expr.args[0]]), shape_of(expr))

    _read_squeeze = _read_expand_dims = _read_batch_flatten

    def _read_reshape(self, expr: relay.Expr) -> Value:
        shuffled = self._shuffle(expr)
        return self._read_batch_flatten(expr) if shuffled is None else shuffled

    def _shuffle(self, expr: relay.Expr) -> Value:
        """Channel shuffle's end: (1, C, H, W) -> (1, g, C/g, H, W) -> axes 1, 2 swapped -> back."""
        transpose = expr.args[0]
        if operator(transpose) != "transpose" or operator(transpose.args[0]) != "reshape":
            return None
        first = transpose.args[0]
        data = self.values[first.args[0]]
        middle, shape = shape_of(first), shape_of(expr)
        if (not isinstance(data, Blocked) or len(middle) != 5 or middle[0] != 1
                or _ints(transpose.attrs.axes or ()) != (0, 2, 1, 3, 4)
                or shape != (1, data.channels, *data.size)
                or middle[1] * middle[2] != data.channels or middle[3:] != data.size):
            return None
        return data.take(np.arange(data.channels).reshape(middle[1:3]).T.reshape(-1))

    # What TVM computes.

    def _elementwise(self, expr: relay.Expr) -> Value:
        data = self.values[expr.args[0]]
        if not isinstance(data, Blocked) or str(expr.checked_type.dtype) != "float32":
            return None
        tensors = tuple(
            self._add_relay([t], t.shape, "float32",
                            lambda x: relay.Call(expr.op, [x], expr.attrs), operator(expr))
            for t in data.tensors)
        return Blocked(tensors, data.places)

    def _elementwise_pair(self, expr: relay.Expr) -> Value:
        a, b = (self.values[x] for x in expr.args)
        if (not isinstance(a, Blocked) or not isinstance(b, Blocked) or not _lie_alike(a, b, (1, 1))
                or str(expr.checked_type.dtype) != "float32"):
            return None
        size = shape_of(expr)[2:]
        shape = (*a.tensors[0].shape[:2], *size, a.lanes)
        output = self._add_relay([a.tensors[0], b.tensors[0]], shape, "float32",
                                 lambda x, y: relay.Call(expr.op, [x, y], expr.attrs),
                                 operator(expr))
        return Blocked((output,), a.places)

    def _by_relay(self, call: relay.Call) -> Value:
        """The operator as it is, on tensors of the network's own layout."""
        arguments = [self.values[a] for a in call.args]
        flat: list[Tensor] = []
        for argument in arguments:
            for one in argument if isinstance(argument, list) else [argument]:
                if not isinstance(one, relay.Constant):
                    flat.append(self._plain(one))

        def build(*given: relay.Expr) -> relay.Expr:
            rest = iter(given)
            built = []
            for argument in arguments:
                if isinstance(argument, list):
                    built.append(relay.Tuple([f if isinstance(f, relay.Constant) else next(rest)
                                              for f in argument]))
                else:
                    built.append(argument if isinstance(argument, relay.Constant) else next(rest))
            return relay.Call(call.op, built, call.attrs, call.type_args)

        kind = call.checked_type
        if isinstance(kind, relay.TupleType):
            # Each part is a step of its own; TVM computes equal expressions once.
            return [self._add_relay(flat, _type_shape(part), str(part.dtype),
                                    lambda *given, i=i: relay.TupleGetItem(build(*given), i),
                                    operator(call)) for i, part in enumerate(kind.fields)]
        return self._add_relay(flat, shape_of(call), str(kind.dtype), build, operator(call))

    def _original(self, epilogue: Epilogue) -> Value:
        """A convolution or dense layer that we have no kernel for, operator by operator."""
        for call in epilogue.calls:
            self.values[call] = self._by_relay(call)
        return self.values[epilogue.last]

    def _add_relay(self, inputs: Iterable[Tensor], shape: Iterable[int], dtype: str,
                   build: Callable[..., relay.Expr], what: str) -> Tensor:
        output = Tensor(tuple(shape), dtype)
        self.plan.steps.append(RelayStep(list(inputs), output, build, what))
        return output

    def _reshaped(self, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
        """Costs nothing when run, unlike operators such as batch_flatten."""
        if tensor.shape == shape:
            return tensor
        return self._add_relay([tensor], shape, tensor.dtype, lambda x: relay.reshape(x, shape),
                               "reshape")

    # Between the layouts.

    def _plain(self, value: Value) -> Tensor:
        """The value as one tensor of the network's own layout."""
        if isinstance(value, relay.Constant):
            return self._add_relay([], value.data.shape, str(value.data.dtype), lambda: value,
                                   "constant")
        if isinstance(value, Tensor):
            return value
        shape = (1, value.channels, *value.size)
        return self._add_relay(value.tensors, shape, value.tensors[0].dtype,
                               lambda *given: operators.to_planar(value, given), "to_planar")

    def _blocked(self, value: Value) -> Blocked | None:
        """The value in blocks, or None where it is no float32 picture of one batch."""
        if not isinstance(value, Tensor):
            return value if isinstance(value, Blocked) else None
        shape = value.shape
        if len(shape) != 4 or shape[0] != 1 or value.dtype != "float32":
            return None
        if value in self.blocked:
            return self.blocked[value]
        lanes = self.isa.lanes
        blocked = (1, len(plain_lanes(shape[1], lanes)), *shape[2:], lanes)
        output = self._add_relay([value], blocked, "float32",
                                 lambda x: operators.to_blocked(x, shape, lanes), "to_blocked")
        self.blocked[value] = plain(output, shape[1])
        return self.blocked[value]


def _lie_alike(a: Blocked, b: Blocked, broadcast: tuple[int, int] | None = None) -> bool:
    """Whether the channels have the same places in one tensor each."""
    if len(a.tensors) != 1 or len(b.tensors) != 1 or not np.array_equal(a.places, b.places):
        return False
    if a.tensors[0].shape[1] != b.tensors[0].shape[1]:
        return False
    return a.size == b.size or broadcast is not None and broadcast in (a.size, b.size)


def _weight_and_bias(epilogue: Epilogue, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both float32, scaled as the epilogue says."""
    if epilogue.scale is not None:
        weight = weight * epilogue.scale.reshape(-1, *(1,) * (weight.ndim - 1))
    bias = np.zeros(len(weight)) if epilogue.bias is None else epilogue.bias
    return np.ascontiguousarray(weight, np.float32), np.ascontiguousarray(bias, np.float32)


def _ints(values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(int(v) for v in values)


def _type_shape(kind: relay.TensorType) -> tuple[int, ...]:
    return tuple(int(d) for d in kind.shape)
