"""Relay's operators that choose between numbers, made to keep a NaN (nan_arithmetic.py)."""

from run_model_tools.inside_tvm.operators import nan_arithmetic
from run_model_tools.inside_tvm.operators.own_operators import once, replace


@once
def install(tvm):
    """Lets Relay's operators be computed so in this process."""
    from tvm.relay.op.strategy import generic

    te, tir, injective = tvm.te, tvm.tir, generic.schedule_injective
    for name, make in _OF_INPUTS.items():
        replace(tvm, name, injective,
                lambda attrs, inputs, shape, make=make: make(tvm, tir, *inputs))
    replace(tvm, "logical_not", injective,
            lambda attrs, inputs, shape: nan_arithmetic.logical_not(tvm, tir, inputs[0]), "bool")
    replace(tvm, "multiply", injective,
            lambda attrs, inputs, shape: nan_arithmetic.times_zero(tvm, tir, *inputs, shape))
    replace(tvm, "clip", injective,
            lambda attrs, inputs, shape: nan_arithmetic.clip(tvm, tir, inputs[0], attrs.a_min,
                                                             attrs.a_max))
    replace(tvm, "cast", injective,
            lambda attrs, inputs, shape: nan_arithmetic.as_flag(tvm, tir, inputs[0])
            if attrs.dtype == "bool" else None)
    for rank in (1, 2, 3):
        replace(tvm, "nn.max_pool%dd" % rank, generic.schedule_pool,
                lambda attrs, inputs, shape: nan_arithmetic.max_pool(tvm, tir, inputs[0], attrs,
                                                                     shape))
    for name, choose, identity in (("max", te.max, float("-inf")), ("min", te.min, float("inf"))):
        replace(tvm, name + "imum", injective,
                lambda attrs, inputs, shape, choose=choose: nan_arithmetic.of_two(
                    tvm, tir, choose, *inputs, shape))
        replace(tvm, name, generic.schedule_reduce,
                lambda attrs, inputs, shape, choose=choose, identity=identity: (
                    nan_arithmetic.along_axes(tvm, tir, choose, identity, inputs[0],
                                              _axes(attrs, len(inputs[0].shape)),
                                              bool(attrs.keepdims))))
        replace(tvm, "arg" + name, generic.schedule_reduce,
                lambda attrs, inputs, shape, name="arg" + name: _place(tvm, name, attrs, *inputs))


_OF_INPUTS = {
    "nn.relu": nan_arithmetic.relu, "sign": nan_arithmetic.sign,
    "equal": nan_arithmetic.with_itself, "less_equal": nan_arithmetic.with_itself,
    "greater_equal": nan_arithmetic.with_itself, "not_equal": nan_arithmetic.not_equal,
    "subtract": nan_arithmetic.less_itself}
"""What is computed of the inputs alone."""


def _axes(attrs, rank):
    """Along which a reduction goes."""
    if attrs.axis is None:
        return list(range(rank))
    axes = [int(axis) % rank for axis in attrs.axis]
    return [axis for axis in range(rank) if axis not in axes] if attrs.exclude else axes


def _place(tvm, name, attrs, x):
    """Of the largest or smallest number along an axis; None where TVM's own does."""
    if attrs.axis is None or len(attrs.axis) != 1 or attrs.exclude:
        return None
    axis = int(attrs.axis[0])
    clean = nan_arithmetic.comparable(tvm, tvm.tir, x, axis % len(x.shape), name == "argmax")
    return getattr(tvm.topi, name)(clean, [axis], bool(attrs.keepdims),
                                   bool(attrs.select_last_index))
