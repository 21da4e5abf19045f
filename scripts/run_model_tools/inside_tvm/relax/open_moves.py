"""Transposes, reshapes and concatenations of open extents: those that products and copies of ours
need not see, and copies where TVM computes each place's index anew."""

from run_model_tools.inside_tvm import called_operator
from run_model_tools.inside_tvm.relax.open_groups import variables_of
from run_model_tools.inside_tvm.relax.open_operators import extents_of


def turned(bindings, expr):
    """(tensor, which of its axes each axis of `expr` is): `expr` before it was transposed."""
    order = list(range(expr.ty.ndim))
    value = bindings.value_of(expr)
    while is_transpose(value) and bindings.array_of(expr) is None:
        axes = permutation(value)
        order = [axes[axis] for axis in order]
        expr = value.args[0]
        value = bindings.value_of(expr)
    return expr, order


def is_transpose(call):
    return _named(call, "permute_dims")


def permutation(call):
    """Of a transpose: which axis of what it is given each axis of its result is."""
    axes = call.attrs.axes
    return list(reversed(range(call.ty.ndim))) if axes is None else [int(a) for a in axes]


def product_before(bindings, call):
    """The variable of the product that only this transpose reads, if its columns stay the last
    axis; else None."""
    if not is_transpose(call) or permutation(call)[-1] != call.ty.ndim - 1:
        return None
    variable = call.args[0]
    readers = bindings.readers.get(variable, set()) if variable in bindings.at else set()
    return variable if len(readers) == 1 and None not in readers and _named(
        bindings.value_of(variable), "matmul") else None


def joined(bindings, call):
    """(tensors, axis) of a concatenation, and of a reshape that TVM would not see to move nothing,
    as one of one tensor; None of anything else."""
    if _named(call, "concat"):
        fields = getattr(call.args[0], "fields", None)
        if fields is None or extents_of(call) is None:
            return None
        axis = int(call.attrs.axis or 0) % call.ty.ndim
        return [_not_reshaped(bindings, field) for field in fields], axis
    if _named(call, "reshape") and bindings.array_of(call.args[0]) is None:
        extents = (extents_of(call), extents_of(call.args[0]))
        if None not in extents and not all(map(_is_plain, [e for one in extents for e in one])):
            return [_not_reshaped(bindings, call.args[0])], 0
    return None


def unread_moves(bindings, values, result):
    """Variables of transposes, reshapes and constants that nothing reads any more.

    values: by variable, in the order of the bindings.
    """
    read, unread = set(variables_of(result)), set()
    for variable, value in reversed(list(values.items())):
        if variable not in read and (variable in bindings.arrays or is_transpose(value)
                                     or _named(value, "reshape")):
            unread.add(variable)
        elif value is not None:
            read.update(variables_of(value))
    return unread


def _not_reshaped(bindings, expr):
    value = bindings.value_of(expr)
    while _named(value, "reshape") and bindings.array_of(expr) is None:
        expr = value.args[0]
        value = bindings.value_of(expr)
    return expr


def _named(call, name):
    return called_operator(call) == "relax." + name


def _is_plain(extent):
    """Whether it is made of numbers, symbols and products alone."""
    kind = type(extent).__name__
    return kind in ("IntImm", "Var") or kind == "Mul" and _is_plain(extent.a) and _is_plain(
        extent.b)
