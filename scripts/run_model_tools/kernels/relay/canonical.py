"""Forms of Relay that the readers want, where TVM's importer and its passes make others."""

from __future__ import annotations

from typing import Callable

import numpy as np
import tvm
from tvm import relay

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
        return relay.annotation.stop_fusion(relay.Call(new.op, fenced, new.attrs, new.type_args))


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
