"""Forms of Relay that the readers want, where TVM's importer and its passes make others."""

from __future__ import annotations

from typing import Callable

import numpy as np
import tvm
from tvm import relay

from run_model_tools.inside_tvm.plain_graphs import mapped, nodes_of, with_body, without_fence
from run_model_tools.kernels.relay.arithmetic import is_elementwise
from run_model_tools.kernels.relay.graph import operator, shape_of
from run_model_tools.kernels.relay.readers.channels import slice_indices
from run_model_tools.kernels.relay.whole_numbers import is_dense_of_whole

_SCALES = ("multiply", "divide")
_ALONG_ROWS = ("nn.conv1d", "nn.max_pool1d", "nn.avg_pool1d", "nn.conv1d_transpose",
               "nn.adaptive_avg_pool1d")
_REDUCTIONS = {"mean": relay.mean, "sum": relay.sum, "max": relay.max, "min": relay.min,
               "variance": relay.variance}


def keep_scales(mod: tvm.IRModule, fold: Callable[[tvm.IRModule], tvm.IRModule]) -> tvm.IRModule:
    """fold(mod), where `fold` is TVM's FoldScaleAxis: only factors that are constants go into the
    weights of convolutions.  With others, such as the gates of squeeze-and-excite blocks, weights
    would have to be made anew for every picture.  Products of whole numbers stay such."""
    return mapped(relay, fold(mapped(relay, mod, _fenced)), without_fence)


def with_plain_prelu(mod: tvm.IRModule) -> tvm.IRModule:
    """PReLU by channel as nn.prelu of the tensor; the importer makes it one of a vector of all
    numbers, with a slope for each of them."""
    return mapped(relay, relay.transform.InferType()(mod), _plain_prelu)


def of_one_row(mod: tvm.IRModule) -> tvm.IRModule:
    """Convolutions and poolings along one axis as those of pictures of one row, with what is done
    to single numbers between them."""
    if not any(operator(node) in _ALONG_ROWS for node in nodes_of(relay, mod)):
        return mod
    mod = relay.transform.InferType()(mod)
    return with_body(relay, mod, _OneRow().visit(mod["main"]).body)


def _fenced(call: relay.Call, args: list[relay.Expr]) -> relay.Expr | None:
    """A fence, which the pass does not look through, on each side of products of two tensors, and
    of what is a dense layer of whole numbers."""
    if operator(call) not in _SCALES or any(isinstance(a, relay.Constant) for a in call.args) and (
            not any(is_dense_of_whole(a) for a in call.args)):
        return None
    fenced = [relay.annotation.stop_fusion(a) for a in args]
    return relay.annotation.stop_fusion(
        relay.Call(call.op, fenced, call.attrs, call.type_args, call.span))


def _plain_prelu(call: relay.Call, args: list[relay.Expr]) -> relay.Expr | None:
    if operator(call) != "reshape" or operator(call.args[0]) != "nn.prelu":
        return None
    prelu, shape = call.args[0], shape_of(call)
    if operator(prelu.args[0]) != "reshape":
        return None
    slopes = _slopes(prelu.args[1], shape)
    if len(shape) < 2 or shape_of(prelu.args[0].args[0]) != shape or slopes is None:
        return None
    return relay.nn.prelu(args[0].args[0].args[0], relay.const(slopes), axis=1)


class _OneRow(relay.ExprMutator):
    """(N, C, L) becomes (N, C, 1, L) where it is worth it; `rows` has what became of which."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[relay.Expr, relay.Expr] = {}
        self.splits: dict[relay.Expr, relay.Expr] = {}

    def visit_call(self, call: relay.Call) -> relay.Expr:
        new = super().visit_call(call)
        name, shape = operator(call), shape_of(call) if hasattr(call, "checked_type") else ()
        made: relay.Expr | None = None
        if name in _REDUCTIONS and call.args and new.args[0] in self.rows:
            return self._reduced(name, call, new)
        if len(shape) == 3 and -1 not in shape:
            if name in ("nn.conv1d", "nn.max_pool1d", "nn.avg_pool1d"):
                made = self._window(name, new)
            elif name == "nn.conv1d_transpose":
                made = self._transposed(new)
            elif name == "concatenate" and int(new.attrs.axis) % 3 == 1:
                made = self._concatenated(new)
            elif name == "strided_slice" and new.args[0] in self.rows:
                made = self._slice(call, new)
            elif name == "nn.adaptive_avg_pool1d" and shape[2] == 1:
                made = relay.nn.global_avg_pool2d(self._row(new.args[0]))
            elif is_elementwise(call) and any(a in self.rows for a in new.args):
                made = self._elementwise(call, new)
        return new if made is None else self._of_row(made)

    def visit_tuple_getitem(self, item: relay.TupleGetItem) -> relay.Expr:
        new = super().visit_tuple_getitem(item)
        split = new.tuple_value
        if (operator(split) != "split" or int(split.attrs.axis) % 3 != 1
                or split.args[0] not in self.rows):
            return new
        if split not in self.splits:
            self.splits[split] = relay.split(
                self.rows[split.args[0]], split.attrs.indices_or_sections, 1).astuple()
        return self._of_row(relay.TupleGetItem(self.splits[split], new.index))

    def _of_row(self, made: relay.Expr) -> relay.Expr:
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

    def _transposed(self, call: relay.Call) -> relay.Expr | None:
        attrs, weight = call.attrs, call.args[1]
        if (str(attrs.data_layout) != "NCW" or str(attrs.kernel_layout) != "IOW"
                or not isinstance(weight, relay.Constant)):
            return None
        before, after = (int(p) for p in attrs.padding)
        kernel = weight.data.numpy()[:, :, None, :]
        return relay.nn.conv2d_transpose(
            self._row(call.args[0]), relay.const(kernel), strides=(1, int(attrs.strides[0])),
            padding=(0, before, 0, after), dilation=(1, int(attrs.dilation[0])),
            channels=kernel.shape[1] * int(attrs.groups), kernel_size=kernel.shape[2:],
            groups=int(attrs.groups), output_padding=(0, int(attrs.output_padding[0])))

    def _concatenated(self, call: relay.Call) -> relay.Expr | None:
        fields = call.args[0].fields if isinstance(call.args[0], relay.Tuple) else []
        if not any(field in self.rows for field in fields):
            return None
        return relay.concatenate([self._row(field) for field in fields], 1)

    def _slice(self, call: relay.Call, new: relay.Call) -> relay.Expr | None:
        """Of channels; there is all of the rest."""
        source, shape = shape_of(call.args[0]), shape_of(call)
        taken = slice_indices(call.attrs, source, shape)
        if taken is None or source[::2] != shape[::2]:
            return None
        first, *others = taken[1].tolist()
        step = others[0] - first if others else 1
        if step < 1:
            return None
        return relay.strided_slice(self._row(new.args[0]), [first], [first + step * len(taken[1])],
                                   [step], axes=[1])

    def _reduced(self, name: str, call: relay.Call, new: relay.Call) -> relay.Expr:
        """Along rows: a reduction of planes."""
        attrs = call.attrs
        axes = [int(a) % 3 for a in attrs.axis] if attrs.axis is not None else []
        if len(shape_of(call.args[0])) != 3 or axes != [2] or bool(attrs.exclude):
            return new
        options: dict[str, object] = {}
        if name == "variance":
            if shape_of(call.args[1]) != (*shape_of(call.args[0])[:2], 1):
                return new
            options = {"unbiased": bool(attrs.unbiased), "with_mean": self._row(new.args[1])}
        made = _REDUCTIONS[name](self.rows[new.args[0]], [2, 3], bool(attrs.keepdims), **options)
        return self._of_row(made) if bool(attrs.keepdims) else made

    def _elementwise(self, call: relay.Call, new: relay.Call) -> relay.Expr | None:
        arguments = []
        for old, argument in zip(call.args, new.args):
            if isinstance(argument, relay.Constant):
                value = argument.data.numpy()
                if value.ndim > 1:
                    value = value.reshape((1,) * (3 - value.ndim) + value.shape)[:, :, None, :]
                arguments.append(relay.const(value))
            elif shape_of(old) in (shape_of(call), (*shape_of(call)[:2], 1)):
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
