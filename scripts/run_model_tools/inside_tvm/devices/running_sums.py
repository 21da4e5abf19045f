"""Sums along an axis up to each place: TVM has a thread for each row, which adds one number after
the other.

Here a row is cut into as many pieces as a piece has numbers.  A thread for each number sums up what
precedes it in its piece, and one for each piece the pieces before.
"""

import math

from run_model_tools.inside_tvm.bounded_code import implementation_of
from run_model_tools.inside_tvm.devices.products import bind_each

NAME = "cumsum"
"""The name of Relay's operator."""
_SHORT = 64
"""Numbers of a row that one piece may have."""


def implementation(tvm):
    """How cumsum is computed on a GPU."""
    from tvm import te

    def compute(attrs, inputs, out_type):
        data = inputs[0]
        axis = int(attrs.axis) % len(data.shape)
        return [_running(tvm, data, axis, str(out_type.dtype), bool(attrs.exclusive))]

    def schedule(attrs, outs, target):
        made = te.create_schedule([out.op for out in outs])
        for stage in made.stages:
            if isinstance(stage.op, te.ComputeOp):
                bind_each(te, stage)
        return made

    return implementation_of(compute, schedule, "running_sums")


def _running(tvm, data, axis, dtype, exclusive):
    te, tir = tvm.te, tvm.tir
    shape = [int(extent) for extent in data.shape]
    count = shape[axis]
    piece = count if count <= _SHORT else math.isqrt(count - 1) + 1
    pieces = -(-count // piece)

    def of(tensor, at, place):
        return tensor(*at[:axis], place, *at[axis + 1:])

    def sum_where(condition, value, reduced):
        """Without a term, not plus 0 times one that may be infinite."""
        return te.sum(tir.if_then_else(condition, value, tir.const(0, dtype)), axis=reduced)

    def within(*at):
        taken = te.reduce_axis((0, piece), "taken")
        last = at[axis] % piece
        return sum_where(taken < last if exclusive else taken <= last,
                         of(data, at, at[axis] - last + taken).astype(dtype), taken)

    inner = te.compute(shape, within, name="within_pieces")
    if pieces == 1:
        return inner

    def whole(*at):
        taken = te.reduce_axis((0, piece), "taken")
        place = at[axis] * piece + taken
        return sum_where(place < count, of(data, at, place).astype(dtype), taken)

    short = [*shape[:axis], pieces, *shape[axis + 1:]]
    wholes = te.compute(short, whole, name="pieces")

    def preceding(*at):
        taken = te.reduce_axis((0, pieces), "taken")
        return sum_where(taken < at[axis], of(wholes, at, taken), taken)

    before = te.compute(short, preceding, name="before_pieces")
    return te.compute(shape, lambda *at: inner(*at) + of(before, at, at[axis] // piece),
                      name="running_sums")
