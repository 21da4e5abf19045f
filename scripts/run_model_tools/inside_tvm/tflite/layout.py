"""A network of TensorFlow Lite in the layout that the kernels and TVM's schedules are made for."""

import numpy as np
import tvm
from tvm import relay
from tvm.relay import ExprMutator
from tvm.relay import dataflow_pattern as pattern

from run_model_tools.inside_tvm import called_operator, faster_folding
from run_model_tools.inside_tvm.plain_graphs import mapped

_CHANNELS_FIRST = {
    "nn.conv2d": ["NCHW", "default"], "nn.conv2d_transpose": ["NCHW", "default"],
    "nn.max_pool2d": ["NCHW"], "nn.avg_pool2d": ["NCHW"], "nn.global_avg_pool2d": ["NCHW"],
    "image.resize2d": ["NCHW"]}


def channels_first(function):
    """The module of a function in NHWC, whose layers of pictures compute in NCHW."""
    body = _Grouped().visit(function.body)
    mod = tvm.IRModule.from_expr(relay.Function(function.params, body))
    mod = relay.transform.InferType()(mod)
    grids = _Grids()
    with tvm.transform.PassContext(opt_level=3):
        mod = mapped(relay, mod, grids.hidden)
        mod = tvm.transform.Sequential([
            relay.transform.ConvertLayout(_CHANNELS_FIRST), relay.transform.InferType()])(mod)
        mod = mapped(relay, mod, grids.shown)
        mod = relay.transform.InferType()(faster_folding.fold(tvm, mod))
    mod = tvm.IRModule.from_expr(pattern.rewrite(_Prelu(), mod["main"]))
    return relay.transform.InferType()(mod)


class _Grids:
    """Roundings of whole tensors to bytes and back, hidden while layouts are converted: TVM has no
    layout for them but the one that they come in, so that each would lie between two conversions.
    """

    def __init__(self):
        self._calls = []

    def hidden(self, call, args):
        """For plain_graphs.mapped: an operator for any layout with the same types."""
        if called_operator(call) not in ("qnn.quantize", "qnn.dequantize") or any(
                int(d) != 1 for d in call.args[1].checked_type.shape) or isinstance(
                    call.args[0], relay.Constant):
            return None
        self._calls.append(call)
        # No network has a clip whose bounds are the wrong way round.
        marked = relay.clip(args[0], len(self._calls), -len(self._calls))
        return relay.cast(marked, call.checked_type.dtype)

    def shown(self, call, args):
        """What `hidden` stands for."""
        clip = call.args[0] if called_operator(call) == "cast" else None
        if called_operator(clip) != "clip" or not clip.attrs.a_min > 0 > clip.attrs.a_max:
            return None
        was = self._calls[int(clip.attrs.a_min) - 1]
        return relay.Call(was.op, [args[0].args[0], *was.args[1:]], was.attrs, was.type_args,
                                was.span)


def prelu(x, shape, slopes):
    """PReLU with a slope for each channel (the last axis) or one for all, as arithmetic: the
    layout of nn.prelu cannot be converted. channels_first() makes nn.prelu of it. None where each
    number has a slope of its own.
    """
    slopes = np.asarray(slopes, np.float32)
    if len(shape) != 4 or slopes.size not in (1, shape[-1]) or (
            slopes.size > 1 and slopes.shape[-1] != slopes.size):
        return None
    slopes = relay.const(np.resize(slopes, shape[-1]))
    zero = relay.const(np.float32(0))
    return relay.add(relay.maximum(x, zero), relay.multiply(relay.minimum(x, zero), slopes))


class _Prelu(pattern.DFPatternCallback):
    """nn.prelu of what prelu() makes."""

    def __init__(self):
        super().__init__()
        self.x, self.slopes = pattern.wildcard(), pattern.is_constant()
        self.zeros = [pattern.is_constant() for _ in range(2)]
        self.pattern = pattern.is_op("add")(
            pattern.is_op("maximum")(self.x, self.zeros[0]),
            pattern.is_op("multiply")(pattern.is_op("minimum")(self.x, self.zeros[1]),
                                      self.slopes))

    def callback(self, pre, post, found):
        x, slopes = found[self.x][0], found[self.slopes][0].data.numpy()
        full = (1,) * (4 - slopes.ndim) + slopes.shape
        # Channels are along the axis that the slopes go along; one channel is an axis of one.
        axes = ([i for i, extent in enumerate(full) if extent > 1]
                or [i for i in (1, 3) if int(pre.checked_type.shape[i]) == 1])[:1]
        if not axes or slopes.size != full[axes[0]] or any(
                found[zero][0].data.numpy().any() for zero in self.zeros):
            return post
        return relay.nn.prelu(x, relay.const(slopes.ravel()), axis=axes[0])


class _Grouped(ExprMutator):
    """Depthwise convolutions with their weights as those of any convolution in groups.

    ConvertLayout takes the importer's (height, width, channel, multiplier) for what it is only
    where the multiplier is 1.
    """

    def visit_call(self, call):
        call = super().visit_call(call)
        if called_operator(call) != "nn.conv2d" or str(call.attrs.kernel_layout) != "HWOI":
            return call
        attrs = {key: call.attrs[key] for key in call.attrs.keys()}  # noqa: SIM118 -- no dict
        channels = int(attrs["channels"])
        size = [int(d) for d in attrs["kernel_size"]]
        return relay.nn.conv2d(
            call.args[0], relay.reshape(call.args[1], (*size, 1, channels)),
            strides=attrs["strides"], padding=attrs["padding"], dilation=attrs["dilation"],
            groups=int(attrs["groups"]), channels=channels, kernel_size=size,
            data_layout="NHWC", kernel_layout="HWIO")
