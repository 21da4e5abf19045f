"""Quotients and remainders of whole numbers that are rounded down, spelled by those that are cut.

TVM makes those rounded down of a sum by adding a multiple of the divisor first that is to make the
sum positive, which is 2^31 or so where it knows nothing of a tensor's numbers: int32 runs over, and
(x + 2) // 3 and (x + 2) % 3 are wrong for nearly all x.
"""

from run_model_tools.inside_tvm.operators.own_operators import once, replace


@once
def install(tvm):
    """Lets Relay's operators be computed so in this process."""
    from tvm.relay.op.strategy import generic

    topi = tvm.topi

    def is_above(rest, b):
        """Whether what is cut lies above what is rounded down: the signs differ."""
        zero = tvm.tir.const(0, b.dtype)
        return topi.logical_and(topi.not_equal(rest, zero),
                                topi.less(topi.bitwise_xor(rest, b), zero))

    def remainder(attrs, inputs, shape):
        a, b = inputs
        rest = topi.mod(a, b)
        return topi.where(is_above(rest, b), topi.add(rest, b), rest)

    def quotient(attrs, inputs, shape):
        a, b = inputs
        return topi.subtract(topi.divide(a, b),
                             topi.cast(is_above(topi.mod(a, b), b), a.dtype))

    for name, compute in (("floor_divide", quotient), ("floor_mod", remainder)):
        replace(tvm, name, generic.schedule_injective, compute, "int")
