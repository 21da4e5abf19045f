"""Relax's operators that choose between numbers, made to keep a NaN (nan_arithmetic.py)."""

from run_model_tools.inside_tvm.operators import nan_arithmetic


def install(tvm):
    """Lets Relax's operators become such loops in this process; more than once is the same."""
    if hasattr(install, "done"):
        return
    install.done = True
    te, tir = tvm.te, getattr(tvm, "tirx", None) or tvm.tir

    for name, choose in (("maximum", te.max), ("minimum", te.min)):
        def of_two(builder, call, name=name, choose=choose):
            shape = _extents(call)
            if shape is None or not all(_extents(argument) is not None for argument in call.args):
                return None
            return builder.call_te(
                lambda a, b: nan_arithmetic.of_two(tvm, tir, choose, a, b, shape), *call.args,
                primfunc_name_hint=name)

        _replace(tvm, name, of_two)
    for name, choose, identity in (("max", te.max, float("-inf")), ("min", te.min, float("inf"))):
        def along(builder, call, name=name, choose=choose, identity=identity):
            if 0 in (_extents(call.args[0]) or ()):
                return None
            rank = int(call.args[0].ty.ndim)
            axes = (list(range(rank)) if call.attrs.axis is None else
                    [int(axis) % rank for axis in call.attrs.axis])
            return builder.call_te(
                lambda x: nan_arithmetic.along_axes(tvm, tir, choose, identity, x, axes,
                                                    bool(call.attrs.keepdims)),
                call.args[0], primfunc_name_hint=name)

        _replace(tvm, name, along)

    for name, make in (("relu", nan_arithmetic.relu), ("sign", nan_arithmetic.sign)):
        def of_one(builder, call, name=name, make=make):
            return builder.call_te(lambda x: make(tvm, tir, x), call.args[0],
                                   primfunc_name_hint=name)

        _replace(tvm, "nn.relu" if name == "relu" else name, of_one)

    def clip(builder, call):
        bounds = [getattr(bound, "value", None) for bound in call.args[1:]]
        bounds = [getattr(bound, "value", bound) for bound in bounds]
        if not all(isinstance(bound, (int, float)) for bound in bounds):
            return None
        return builder.call_te(lambda x: nan_arithmetic.clip(tvm, tir, x, *bounds), call.args[0],
                               primfunc_name_hint="clip")

    def max_pool(builder, call):
        shape = _extents(call)
        if shape is None or call.attrs.layout != call.attrs.out_layout:
            return None
        return builder.call_te(
            lambda x: nan_arithmetic.max_pool(tvm, tir, x, call.attrs, shape), call.args[0],
            primfunc_name_hint="max_pool")

    for rank in (1, 2, 3):
        _replace(tvm, "nn.max_pool%dd" % rank, max_pool)
    _replace(tvm, "clip", clip)


def _replace(tvm, name, legalize):
    """Has an operator of floats become what a function makes of it, if that makes something."""
    known = tvm.ir.Op.get("relax.%s" % name).get_attr("FLegalize")

    def chosen(builder, call):
        made = legalize(builder, call) if str(call.ty.dtype).startswith("float") else None
        return known(builder, call) if made is None else made

    tvm.ir.register_op_attr("relax.%s" % name, "FLegalize", chosen, 11)


def _extents(expr):
    """Of a tensor of a fixed shape; None of any other."""
    extents = getattr(getattr(expr.ty, "shape", None), "values", None)
    if extents is None:
        return None
    values = [getattr(extent, "value", None) for extent in extents]
    return None if None in values else [int(value) for value in values]
