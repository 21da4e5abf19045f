"""Relay's operators that choose between numbers, made to keep a NaN (nan_arithmetic.py)."""

from run_model_tools.inside_tvm.operators import nan_arithmetic
from run_model_tools.inside_tvm.operators.own_operators import once, replace


@once
def install(tvm):
    """Lets Relay's operators be computed so in this process."""
    from tvm.relay.op.strategy import generic

    te, tir = tvm.te, tvm.tir
    for name, choose in (("maximum", te.max), ("minimum", te.min)):
        def of_two(attrs, inputs, shape, choose=choose):
            return nan_arithmetic.of_two(tvm, tir, choose, *inputs, shape)

        replace(tvm, name, generic.schedule_injective, of_two)
    for name, choose, identity in (("max", te.max, float("-inf")), ("min", te.min, float("inf"))):
        def along(attrs, inputs, shape, choose=choose, identity=identity):
            rank = len(inputs[0].shape)
            axes = (list(range(rank)) if attrs.axis is None else
                    [int(axis) % rank for axis in attrs.axis])
            if attrs.exclude:
                axes = [axis for axis in range(rank) if axis not in axes]
            return nan_arithmetic.along_axes(tvm, tir, choose, identity, inputs[0], axes,
                                             bool(attrs.keepdims))

        replace(tvm, name, generic.schedule_reduce, along)
    replace(tvm, "nn.relu", generic.schedule_injective,
            lambda attrs, inputs, shape: nan_arithmetic.relu(tvm, tir, inputs[0]))
    replace(tvm, "sign", generic.schedule_injective,
            lambda attrs, inputs, shape: nan_arithmetic.sign(tvm, tir, inputs[0]))
    replace(tvm, "clip", generic.schedule_injective,
            lambda attrs, inputs, shape: nan_arithmetic.clip(tvm, tir, inputs[0], attrs.a_min,
                                                             attrs.a_max))
    for rank in (1, 2, 3):
        replace(tvm, "nn.max_pool%dd" % rank, generic.schedule_pool,
                lambda attrs, inputs, shape: nan_arithmetic.max_pool(tvm, tir, inputs[0], attrs,
                                                                     shape))

    for name in ("argmax", "argmin"):
        def index(attrs, inputs, shape, name=name):
            if attrs.axis is None or len(attrs.axis) != 1 or attrs.exclude:
                return None
            clean = nan_arithmetic.comparable(
                tvm, tir, inputs[0], int(attrs.axis[0]) % len(inputs[0].shape), name == "argmax")
            return getattr(tvm.topi, name)(clean, [int(attrs.axis[0])], bool(attrs.keepdims),
                                           bool(attrs.select_last_index))

        replace(tvm, name, generic.schedule_reduce, index)
    for name in ("equal", "less_equal", "greater_equal"):
        replace(tvm, name, generic.schedule_injective,
                lambda attrs, inputs, shape: nan_arithmetic.with_itself(tvm, tir, *inputs))
    replace(tvm, "subtract", generic.schedule_injective,
            lambda attrs, inputs, shape: nan_arithmetic.less_itself(tvm, tir, *inputs))
    replace(tvm, "multiply", generic.schedule_injective,
            lambda attrs, inputs, shape: nan_arithmetic.times_zero(tvm, tir, *inputs, shape))
    replace(tvm, "not_equal", generic.schedule_injective,
            lambda attrs, inputs, shape: nan_arithmetic.not_equal(tvm, tir, *inputs))
    replace(tvm, "logical_not", generic.schedule_injective,
            lambda attrs, inputs, shape: nan_arithmetic.logical_not(tvm, tir, inputs[0]), "bool")
    replace(tvm, "cast", generic.schedule_injective,
            lambda attrs, inputs, shape: nan_arithmetic.as_flag(tvm, tir, inputs[0])
            if attrs.dtype == "bool" else None)
