"""Expressions that keep a NaN as ONNX does: TVM drops it where it chooses between two numbers.

max(x, 0) of TVM is "x > 0 ? x : 0", which is 0 where x is NaN.  With its operands exchanged the
same instruction gives NaN, so that bounds cost nothing; where both operands may be NaN it takes one
comparison more.  `tir` is the module of expressions, which TVM 0.27 calls tirx.
"""

import re


def relu(tvm, tir, x):
    with tvm.te.tag_scope(tag=tvm.topi.tag.ELEMWISE):
        return tvm.te.compute(x.shape, lambda *at: tvm.te.max(tir.const(0, x.dtype), x(*at)))


def clip(tvm, tir, x, low, high):
    low, high = (tir.const(float(bound), x.dtype) for bound in (low, high))
    with tvm.te.tag_scope(tag=tvm.topi.tag.ELEMWISE):
        return tvm.te.compute(x.shape,
                              lambda *at: tvm.te.max(low, tvm.te.min(high, x(*at))))


def sign(tvm, tir, x):
    def element(*at):
        value, zero = x(*at), tir.const(0, x.dtype)
        # A difference of comparisons is made of vectors, a choice among three numbers is not.
        of_number = (value > zero).astype(x.dtype) - (value < zero).astype(x.dtype)
        return tir.Select(tir.isnan(value), value, of_number)

    with tvm.te.tag_scope(tag=tvm.topi.tag.ELEMWISE):
        return tvm.te.compute(x.shape, element)


def of_two(tvm, tir, choose, a, b, shape):
    """te.max or te.min of two tensors, broadcast to a shape."""
    def element(tensor, at):
        own = at[len(at) - len(tensor.shape):]
        return tensor(*[0 if int(extent) == 1 else i for extent, i in zip(tensor.shape, own)])

    with tvm.te.tag_scope(tag=tvm.topi.tag.BROADCAST):
        # Fused, the first is written out three times, which is too much of a chain.
        first, second = sorted((a, b), key=_inlined)
        return tvm.te.compute(
            shape, lambda *at: _chosen(tir, choose, element(first, at), element(second, at)))


def _inlined(tensor):
    """How many operations a tensor is made by."""
    found, waiting = set(), [tensor.op]
    while waiting:
        operation = waiting.pop()
        if operation not in found:
            found.add(operation)
            waiting += [source.op for source in operation.input_tensors]
    return len(found)


def along_axes(tvm, tir, choose, identity, x, axes, keepdims):
    """te.max or te.min of all numbers along some axes.  identity: the infinity that any number
    goes before."""
    reduce = tvm.te.comm_reducer(lambda a, b: _chosen(tir, choose, a, b),
                                 lambda dtype: tir.const(identity, dtype))
    along = {axis: tvm.te.reduce_axis((0, x.shape[axis]), "k%d" % axis) for axis in sorted(axes)}
    shape = [1 if axis in along else extent for axis, extent in enumerate(x.shape)
             if keepdims or axis not in along]

    def result(*at):
        others = iter(at)
        places = []
        for axis in range(len(x.shape)):
            place = next(others) if keepdims or axis not in along else None
            places.append(along.get(axis, place))
        return reduce(x(*places), axis=list(along.values()))

    with tvm.te.tag_scope(tag=tvm.topi.tag.COMM_REDUCE):
        return tvm.te.compute(shape, result)


def comparable(tvm, tir, x, axis, is_largest):
    """What an index of the largest or smallest number along an axis is asked of: ONNX Runtime keeps
    the first number until another one is larger, so a NaN is the best of all where it is the first
    and the worst elsewhere."""
    best = tir.const(float("inf" if is_largest else "-inf"), x.dtype)
    worst = tir.const(float("-inf" if is_largest else "inf"), x.dtype)

    def element(*at):
        value = x(*at)
        return tir.Select(tir.isnan(value), tir.Select(at[axis] == 0, best, worst), value)

    with tvm.te.tag_scope(tag=tvm.topi.tag.ELEMWISE):
        return tvm.te.compute(x.shape, element)


def with_itself(tvm, tir, a, b):
    """Whether a tensor's numbers equal themselves, which all but NaN do and TVM takes for true;
    None for two tensors."""
    return _of_the_same(tvm, a, b, lambda value: negated(tir, tir.isnan(value)))


def less_itself(tvm, tir, a, b):
    """A tensor less itself, which TVM takes for zero; None for two tensors."""
    return _of_the_same(tvm, a, b, lambda value: _times_zero(tir, value))


def times_zero(tvm, tir, a, b, shape):
    """A tensor times the number zero, which TVM takes for zero; None for other factors."""
    if _is_zero(tir, a):
        a, b = b, a
    if not _is_zero(tir, b) or len(a.shape) != len(shape):
        return None
    with tvm.te.tag_scope(tag=tvm.topi.tag.BROADCAST):
        return tvm.te.compute(a.shape, lambda *at: _times_zero(tir, a(*at)))


def _is_zero(tir, tensor):
    body = getattr(tensor.op, "body", ())
    return not len(tensor.shape) and len(body) == 1 and isinstance(
        body[0], tir.FloatImm) and body[0].value == 0


def _times_zero(tir, value):
    """Infinity times zero, or less itself, is NaN."""
    least, zero, most, nan = (tir.const(float(number), value.dtype)
                              for number in ("-inf", 0, "inf", "nan"))
    return tir.Select(tir.And(value > least, value < most), zero, nan)


def _of_the_same(tvm, a, b, element):
    if a.op != b.op or a.value_index != b.value_index:
        return None
    with tvm.te.tag_scope(tag=tvm.topi.tag.BROADCAST):
        return tvm.te.compute(a.shape, lambda *at: element(a(*at)))


def negated(tir, flag):
    """Not, in words that TVM leaves alone: of a comparison it makes the opposite one, and neither
    holds of a NaN."""
    return tir.EQ(flag.astype("int32"), tir.const(0, "int32"))


def logical_not(tvm, tir, x):
    with tvm.te.tag_scope(tag=tvm.topi.tag.ELEMWISE):
        return tvm.te.compute(x.shape, lambda *at: negated(tir, x(*at)))


def not_equal(tvm, tir, a, b):
    """Whether two tensors, broadcast, differ: true beside a NaN."""
    same = with_itself(tvm, tir, a, b)
    return logical_not(tvm, tir, tvm.topi.equal(a, b) if same is None else same)


def as_flag(tvm, tir, x):
    """A cast to bool: what is not zero."""
    with tvm.te.tag_scope(tag=tvm.topi.tag.ELEMWISE):
        return tvm.te.compute(
            x.shape, lambda *at: negated(tir, tir.EQ(x(*at), tir.const(0, x.dtype))))


def max_pool(tvm, tir, x, attrs, shape):
    """The largest number of each window; padding is none.  None for layouts that cut up a picture's
    sides.  With TVM's tag, by which its schedules find the reduction."""
    axes = _spatial_axes(attrs.layout)
    if axes is None:
        return None
    window, strides, dilation, padding = ([int(i) for i in one] for one in (
        attrs.pool_size, attrs.strides, attrs.dilation, attrs.padding))
    before, after = [0] * len(shape), [0] * len(shape)
    for n, axis in enumerate(axes):
        before[axis] = padding[n]
        end = (int(shape[axis]) - 1) * strides[n] + (window[n] - 1) * dilation[n] + 1
        after[axis] = max(0, end - int(x.shape[axis]) - before[axis])
    lowest = tir.const(float("-inf"), x.dtype)
    wide = tvm.topi.nn.pad(x, before, after, lowest) if any(before + after) else x
    taps = [tvm.te.reduce_axis((0, extent), "k%d" % n) for n, extent in enumerate(window)]
    reduce = tvm.te.comm_reducer(lambda a, b: _chosen(tir, tvm.te.max, a, b),
                                 lambda dtype: lowest)

    def result(*at):
        places = list(at)
        for n, axis in enumerate(axes):
            places[axis] = at[axis] * strides[n] + taps[n] * dilation[n]
        return reduce(wide(*places), axis=taps)

    with tvm.te.tag_scope(tag="pool_max"):
        return tvm.te.compute(shape, result)


def _spatial_axes(layout):
    """Of the axes of a layout such as NCHW or NCHW16c those of depth, height and width."""
    axes = re.findall(r"\d*[A-Za-z]", layout)
    return [n for n, axis in enumerate(axes) if axis in "DHW"] \
        if not set("".join(axes)) & set("dhw") else None


def _chosen(tir, choose, a, b):
    """`choose` gives its second operand where it cannot compare."""
    return tir.Select(tir.isnan(a), a, choose(a, b))
