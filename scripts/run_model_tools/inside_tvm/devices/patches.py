"""Convolutions that read numbers far apart, as products of two matrices: of the weights, and of the
patches of the input that each place's kernel lies on.

TVM's templates and products.py load all that lies between the first and the last number of a
channel that a group reads.  Of a convolution with a large dilation most of that is read by no
thread of the group, and of one with large strides, as stems of vision transformers are, it is too
much for shared memory.  Here a group loads what it multiplies and nothing else: a step takes the
next numbers of the patches, whichever channel, row and column of the kernel they belong to.  Which
of the two loads less is counted (tiles.py).
"""

import math

from run_model_tools.inside_tvm.devices import tiles

NAME = "patches"
"""The name of the implementation among TVM's of the operator."""
GROUPS = "groups"
"""The attribute of the sum which says how many groups of channels it has."""
ALONG_KERNELS = "patches_along_kernels"
"""The tag of patches whose numbers lie closer together along the kernel than from place to place,
which is the order that neighbouring threads load them in."""
_INDEXING = 1.1
"""What it costs to find each number by divisions: on lavapipe, patches whose cost was counted a
tenth below that of windows took half as long again."""
_OPERATORS = {"nn.conv1d": ("NCW", "OIW"), "nn.conv2d": ("NCHW", "OIHW")}


def implementation(tvm, op, attrs, inputs, outputs, target):
    """How a convolution that reads numbers far apart is computed; None for any other operator.

    A depthwise one stays as it is: its numbers are multiplied once each, and sharing them is worth
    nothing.
    """
    layouts = _OPERATORS.get(op.name)
    if layouts is None or (attrs.data_layout, attrs.kernel_layout) != layouts:
        return None
    if attrs.out_layout not in ("", layouts[0]):
        return None
    shapes = [[int(getattr(extent, "value", 0)) for extent in tensor.shape]
              for tensor in (*inputs[:2], outputs[0])]
    if 0 in sum(shapes, []) or not _is_worth_it(attrs, *shapes, target):
        return None

    def compute(attrs, inputs, out_type):
        return [_convolution(attrs, inputs[0], inputs[1], str(out_type.dtype))]

    return tiles.left_to_products(compute, NAME)


def _is_worth_it(attrs, data, weight, result, target):
    """Whether patches take less than windows; of the three only shapes are given."""
    groups = int(attrs.groups)
    if groups > 1 and weight[1] == 1:
        return False
    reach = [(int(stride), int(dilation))
             for stride, dilation in zip(attrs.strides, attrs.dilation)]
    if not tiles.reaches_far(reach, weight[2:]):
        return False
    one_row = [1] * (2 - len(reach))
    dense = [(1, 1)] * 2

    def cost(reduced, reach):
        return tiles.best_within(target, weight[0] // groups, *one_row, *result[2:], reduced,
                                 data[0] * groups, reach)["cost"]

    windows = cost([weight[1], *one_row, *weight[2:]], [*dense[len(reach):], *reach])
    return cost([math.prod(weight[1:]), 1, 1], dense) * _INDEXING < windows


def _convolution(attrs, data, weight, dtype):
    """The sum, of shape (images, channels, places ...)."""
    from tvm import te, topi

    kernel = [int(extent) for extent in weight.shape[2:]]
    axes = len(kernel)
    strides, dilation, padding = ([int(one) for one in numbers] for numbers in (
        attrs.strides, attrs.dilation, attrs.padding))
    before, after = padding[:axes], padding[-axes:]
    images, channels, *extents = [int(extent) for extent in data.shape]
    groups, filters = int(attrs.groups), int(weight.shape[0])
    channels //= groups
    places = [(extent + first + last - (size - 1) * step - 1) // stride + 1
              for extent, first, last, size, step, stride in zip(
                  extents, before, after, kernel, dilation, strides)]
    padded = data
    if any(padding):
        padded = topi.nn.pad(data, [0, 0, *before], [0, 0, *after], name="padded")
    count = channels * math.prod(kernel)

    def parts(number):
        """(channel, row and column of the kernel) of a patch's number."""
        found = []
        for size in reversed(kernel):
            found.insert(0, number % size)
            number = number // size
        return number, found

    def patch(image, group, number, *place):
        channel, taps = parts(number)
        return padded(image, group * channels + channel, *(
            at * stride + tap * step
            for at, stride, tap, step in zip(place, strides, taps, dilation)))

    def row(filter_, number):
        channel, taps = parts(number)
        return weight(filter_, channel, *taps)

    tag = ALONG_KERNELS if strides[-1] > 1 and dilation[-1] < strides[-1] else ""
    if groups == 1:
        patches = te.compute((images, count, *places), lambda image, *rest: patch(image, 0, *rest),
                             name=NAME, tag=tag)
    else:
        patches = te.compute((images, groups, count, *places), patch, name=NAME, tag=tag)
    rows = te.compute((filters, count), row, name="rows")
    number = te.reduce_axis((0, count), "number")

    def product(image, filter_, *place):
        of_group = [] if groups == 1 else [filter_ // (filters // groups)]
        return te.sum(patches(image, *of_group, number, *place).astype(dtype)
                      * rows(filter_, number).astype(dtype), axis=number)

    return te.compute((images, filters, *places), product, name="convolution",
                      attrs={GROUPS: groups})
