"""Convolutions whose weights have the filters last, as a group of threads loads them: neighbouring
threads neighbouring numbers, also where a group sums up a few of the channels only."""

from run_model_tools.inside_tvm.devices import tiles

NAME = "filters_last"
"""The name of the implementation among TVM's of the operator."""
_LAYOUT = "IHWO"
_FEW = 4
"""Filters that are fewer stay as they are."""


def with_filters_last(tvm, module):
    """The module with the constant weights of such convolutions laid out anew."""
    from tvm import relay

    from run_model_tools.kernels.relay.graph import operator

    class FiltersLast(relay.ExprMutator):
        def visit_call(self, call):
            made = super().visit_call(call)
            if operator(call) != "nn.conv2d" or not _is_worth_it(relay, call):
                return made
            weight = relay.const(tvm.nd.array(
                made.args[1].data.numpy().transpose(1, 2, 3, 0).copy()))
            changed = relay.nn.conv2d(made.args[0], weight,
                                      **{**call.attrs, "kernel_layout": _LAYOUT})
            return relay.Call(changed.op, changed.args, changed.attrs, changed.type_args,
                              call.span)

    module = relay.transform.InferType()(module)
    module["main"] = FiltersLast().visit(module["main"])
    return relay.transform.InferType()(module)


def _is_worth_it(relay, call):
    attrs = call.attrs
    if (str(attrs.data_layout), str(attrs.kernel_layout)) != ("NCHW", "OIHW"):
        return False
    if str(attrs.out_layout) not in ("", "NCHW") or int(attrs.groups) != 1:
        return False
    if not isinstance(call.args[1], relay.Constant):
        return False
    data, weight, result = (
        [int(getattr(extent, "value", 0)) for extent in one.checked_type.shape]
        for one in (*call.args, call))
    dtypes = {str(one.checked_type.dtype) for one in (*call.args, call)}
    if 0 in data or len(dtypes) > 1 or not dtypes <= {"float32", "float16"}:
        return False
    # One place has nothing to share, and what reads far apart is for patches.py.
    reach = [(int(stride), int(dilation))
             for stride, dilation in zip(attrs.strides, attrs.dilation)]
    return (weight[0] >= _FEW and result[2:] != [1, 1]
            and not tiles.reaches_far(reach, weight[2:]))


def implementation(tvm, op, attrs):
    """How one of these is computed; None for any other operator."""
    if op.name != "nn.conv2d" or str(attrs.kernel_layout) != _LAYOUT:
        return None

    def compute(attrs, inputs, out_type):
        return [_convolution(attrs, *inputs, str(out_type.dtype))]

    return tiles.left_to_products(compute, NAME)


def _convolution(attrs, data, weight, dtype):
    from tvm import te, topi

    (top, left, bottom, right), strides, dilation = (
        [int(one) for one in numbers] for numbers in (attrs.padding, attrs.strides, attrs.dilation))
    images, _, *extents = [int(extent) for extent in data.shape]
    channels, rows, columns, filters = [int(extent) for extent in weight.shape]
    places = [(extent + padding - (size - 1) * gap - 1) // stride + 1
              for extent, padding, size, gap, stride in zip(
                  extents, (top + bottom, left + right), (rows, columns), dilation, strides)]
    if top or left or bottom or right:
        data = topi.nn.pad(data, [0, 0, top, left], [0, 0, bottom, right], name="padded")
    channel, row, column = (te.reduce_axis((0, extent), name) for extent, name in zip(
        (channels, rows, columns), ("channel", "row", "column")))

    def product(image, filter_, y, x):
        number = data(image, channel, y * strides[0] + row * dilation[0],
                      x * strides[1] + column * dilation[1])
        return te.sum(number.astype(dtype) * weight(channel, row, column, filter_).astype(dtype),
                      axis=[channel, row, column])

    return te.compute((images, filters, *places), product, name="convolution")
