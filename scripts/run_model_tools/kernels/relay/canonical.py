"""Forms of Relay that the readers want, where TVM's importer and its passes make others."""

from __future__ import annotations

from typing import Callable

import numpy as np
import tvm
from tvm import relay

from run_model_tools.kernels.relay.arithmetic import is_elementwise
from run_model_tools.kernels.relay.graph import operator, shape_of

_SCALES = ("multiply", "divide")


def keep_scales(mod: tvm.IRModule, fold: Callable[[tvm.IRModule], tvm.IRModule]) -> tvm.IRModule:
    """fold(mod), where `fold` is TVM's FoldScaleAxis: only factors that are constants go into the
    weights of convolutions.  With others, such as the gates of squeeze-and-excite blocks, weights
    would have to be made anew for every picture."""
    mod = _mutated(mod, _FenceScales())
    return _mutated(fold(mod), _RemoveFences())


def with_plain_prelu(mod: tvm.IRModule) -> tvm.IRModule:
    """PReLU by channel as nn.prelu of the tensor; the importer makes it one of a vector of all
    numbers, with a slope for each of them."""
    return _mutated(mod, _PlainPrelu())


def of_one_row(mod: tvm.IRModule) -> tvm.IRModule:
    """Convolutions and poolings along one axis as those of pictures of one row, with what is done
    to single numbers between them."""
    return _mutated(mod, _OneRow())


def _mutated(mod: tvm.IRModule, mutator: relay.ExprMutator) -> tvm.IRModule:
    mod = relay.transform.InferType()(mod)
    mod["main"] = mutator.visit(mod["main"])
    return relay.transform.InferType()(mod)


class _FenceScales(relay.ExprMutator):
    """A fence, which the pass does not look through, on each side of products of two tensors."""

    def visit_call(self, call: relay.Call) -> relay.Expr:
        new = super().visit_call(call)
        if operator(call) not in _SCALES or any(isinstance(a, relay.Constant) for a in call.args):
            return new
        fenced = [relay.annotation.stop_fusion(a) for a in new.args]
        fence = relay.Call(new.op, fenced, new.attrs, new.type_args, new.span)
        return relay.annotation.stop_fusion(fence)


class _RemoveFences(relay.ExprMutator):
    def visit_call(self, call: relay.Call) -> relay.Expr:
        new = super().visit_call(call)
        return new.args[0] if operator(call) == "annotation.stop_fusion" else new


class _PlainPrelu(relay.ExprMutator):
    def visit_call(self, call: relay.Call) -> relay.Expr:
        new = super().visit_call(call)
        prelu = call.args[0] if operator(call) == "reshape" else call
        if operator(prelu) != "nn.prelu" or operator(prelu.args[0]) != "reshape":
            return new
        shape = shape_of(call)
        slopes = _slopes(prelu.args[1], shape)
        if len(shape) < 2 or shape_of(prelu.args[0].args[0]) != shape or slopes is None:
            return new
        return relay.nn.prelu(self.visit(prelu.args[0].args[0]), relay.const(slopes), axis=1)


class _OneRow(relay.ExprMutator):
    """(N, C, L) becomes (N, C, 1, L) where it is worth it; `rows` has what became of which."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[relay.Expr, relay.Expr] = {}

    def visit_call(self, call: relay.Call) -> relay.Expr:
        new = super().visit_call(call)
        name, shape = operator(call), shape_of(call) if hasattr(call, "checked_type") else ()
        made: relay.Expr | None = None
        if len(shape) == 3 and -1 not in shape:
            if name in ("nn.conv1d", "nn.max_pool1d", "nn.avg_pool1d"):
                made = self._window(name, new)
            elif name == "nn.adaptive_avg_pool1d" and shape[2] == 1:
                made = relay.nn.global_avg_pool2d(self._row(new.args[0]))
            elif is_elementwise(call) and any(a in self.rows for a in new.args):
                made = self._elementwise(call, new)
        if made is None:
            return new
        result = relay.squeeze(made, axis=[2])
        self.rows[result] = made
        return result

    def _row(self, expr: relay.Expr) -> relay.Expr:
        return self.rows[expr] if expr in self.rows else relay.expand_dims(expr, 2)

    def _window(self, name: str, call: relay.Call) -> relay.Expr | None:
        attrs = call.attrs
        before, after = (int(p) for p in attrs.padding)
        common: dict[str, object] = {
            "strides": (1, int(attrs.strides[0])), "padding": (0, before, 0, after),
            "dilation": (1, int(attrs.dilation[0]))}
        if name == "nn.conv1d":
            weight = call.args[1]
            if (str(attrs.data_layout) != "NCW" or str(attrs.kernel_layout) != "OIW"
                    or not isinstance(weight, relay.Constant)):
                return None
            kernel = weight.data.numpy()[:, :, None, :]
            return relay.nn.conv2d(
                self._row(call.args[0]), relay.const(kernel), groups=int(attrs.groups),
                channels=kernel.shape[0], kernel_size=kernel.shape[2:], **common)
        if str(attrs.layout) != "NCW":
            return None
        common |= {"pool_size": (1, int(attrs.pool_size[0])), "ceil_mode": bool(attrs.ceil_mode)}
        if name == "nn.max_pool1d":
            return relay.nn.max_pool2d(self._row(call.args[0]), **common)
        return relay.nn.avg_pool2d(self._row(call.args[0]), **common,
                                   count_include_pad=bool(attrs.count_include_pad))

    def _elementwise(self, call: relay.Call, new: relay.Call) -> relay.Expr | None:
        arguments = []
        for old, argument in zip(call.args, new.args):
            if isinstance(argument, relay.Constant):
                value = argument.data.numpy()
                if value.ndim > 1:
                    value = value.reshape((1,) * (3 - value.ndim) + value.shape)[:, :, None, :]
                arguments.append(relay.const(value))
            elif shape_of(old) == shape_of(call):
                arguments.append(self._row(argument))
            else:
                return None
        return relay.Call(new.op, arguments, new.attrs, new.type_args, new.span)


def _slopes(alpha: relay.Expr, shape: tuple[int, ...]) -> np.ndarray | None:
    """(channels,), if the slopes of a tensor of this shape are constants that differ by channel
    only."""
    while operator(alpha) in ("reshape", "broadcast_to"):
        alpha = alpha.args[0]
    if not isinstance(alpha, relay.Constant) or -1 in shape or len(shape) < 2:
        return None
    try:
        values = alpha.data.numpy()
        whole = (values.reshape(shape) if values.size == np.prod(shape)
                 else np.broadcast_to(values, shape))
    except ValueError:
        return None
    channels = whole.reshape(shape[0], shape[1], -1)
    first = channels[0, :, 0]
    return first.copy() if (channels == first[None, :, None]).all() else None
