"""Operators that keep a NaN as ONNX does: TVM 0.18 drops it where it chooses between two numbers.

max(x, 0) of TVM is "x > 0 ? x : 0", which is 0 where x is NaN.  With its operands exchanged the
same instruction gives NaN, so that bounds cost nothing; where both operands may be NaN it takes one
comparison more.
"""

_SUPPORTED_RELEASE = "0.18."


def install(tvm):
    """Lets Relay's operators be computed so in this process; more than once is the same."""
    if not str(tvm.__version__).startswith(_SUPPORTED_RELEASE) or hasattr(install, "done"):
        return
    install.done = True
    from tvm.relay.op.strategy import generic

    te, tir = tvm.te, tvm.tir
    for name, choose in (("maximum", te.max), ("minimum", te.min)):
        _replace(tvm, name, generic.schedule_injective, _of_two(tvm, choose))
    for name, choose, identity in (("max", te.max, te.min_value), ("min", te.min, te.max_value)):
        _replace(tvm, name, generic.schedule_reduce, _along_axes(tvm, choose, identity))

    def relu(value, attrs):
        return te.max(tir.const(0, value.dtype), value)

    def clip(value, attrs):
        low, high = (tir.const(float(bound), value.dtype) for bound in (attrs.a_min, attrs.a_max))
        return te.max(low, te.min(high, value))

    for name, bounded in (("nn.relu", relu), ("clip", clip)):
        _replace(tvm, name, generic.schedule_injective, _of_one(tvm, bounded))


def _replace(tvm, name, schedule, compute):
    """Has an operator of floats computed by another function, with the schedule that it has."""
    from tvm.relay.op.op import _wrap_default_fstrategy

    known = tvm.relay.op.get(name).get_attr("FTVMCompute")

    def chosen(attrs, inputs, out_type):
        if not out_type.dtype.startswith("float"):
            return known(attrs, inputs, out_type)
        return [compute(attrs, inputs, [int(extent) for extent in out_type.shape])]

    tvm.ir.register_op_attr(name, "FTVMCompute", chosen, 11)
    strategy = tvm.target.get_native_generic_func("%s_strategy" % name)
    kind = schedule.__name__.partition("_")[2]
    strategy.set_default(_wrap_default_fstrategy(chosen, schedule.fdefault, "%s.generic" % kind),
                         allow_override=True)
    for key, of_key in schedule.dispatch_dict.items():
        strategy.register(_wrap_default_fstrategy(chosen, of_key, "%s.%s" % (kind, key)), [key],
                          allow_override=True)


def _of_one(tvm, function):
    def compute(attrs, inputs, shape):
        with tvm.te.tag_scope(tag=tvm.topi.tag.ELEMWISE):
            return tvm.te.compute(shape, lambda *at: function(inputs[0](*at), attrs))

    return compute


def _of_two(tvm, choose):
    def compute(attrs, inputs, shape):
        def element(tensor, at):
            own = at[len(at) - len(tensor.shape):]
            return tensor(*[0 if int(extent) == 1 else i for extent, i in zip(tensor.shape, own)])

        def result(*at):
            return _chosen(tvm, choose, *[element(tensor, at) for tensor in inputs])

        with tvm.te.tag_scope(tag=tvm.topi.tag.BROADCAST):
            return tvm.te.compute(shape, result)

    return compute


def _along_axes(tvm, choose, identity):
    reduce = tvm.te.comm_reducer(lambda a, b: _chosen(tvm, choose, a, b), identity)

    def compute(attrs, inputs, shape):
        tensor = inputs[0]
        rank = len(tensor.shape)
        named = (list(range(rank)) if attrs.axis is None else
                 [int(axis) % rank for axis in attrs.axis])
        if attrs.exclude:
            named = [axis for axis in range(rank) if axis not in named]
        along = {axis: tvm.te.reduce_axis((0, tensor.shape[axis]), "k%d" % axis)
                 for axis in sorted(named)}

        def result(*at):
            others = iter(at)
            places = []
            for axis in range(rank):
                place = next(others) if attrs.keepdims or axis not in along else None
                places.append(along.get(axis, place))
            return reduce(tensor(*places), axis=list(along.values()))

        with tvm.te.tag_scope(tag=tvm.topi.tag.COMM_REDUCE):
            return tvm.te.compute(shape, result)

    return compute


def _chosen(tvm, choose, a, b):
    """`choose` gives its second operand where it cannot compare."""
    return tvm.tir.Select(tvm.tir.isnan(a), a, choose(a, b))
