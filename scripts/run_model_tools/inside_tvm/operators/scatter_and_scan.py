"""ScatterND, running sums and transposed convolutions with groups on CPUs.

TVM 0.18 starts its threads anew for each index of a ScatterND, and walks a running sum along one
column after the other, however far apart its numbers lie.  Here threads share the columns of all
rows, each begins once, and the inner loop goes over numbers that lie beside each other.  For Arm
it takes transposed convolutions without groups only.
"""

import math

from run_model_tools.inside_tvm.operators import own_operators

_TASK = 1 << 15
"""Numbers that are worth a task of their own."""
_MOST_TASKS = 16
_COLUMNS = 16
"""Of a task, at least: a cache line of float32."""


@own_operators.once
def install(tvm):
    """Lets Relay's operators be computed so in this process."""

    def scattered(attrs, inputs, out_type):
        return [scatter_nd(tvm, *inputs, mode=str(attrs.mode))]

    compute_by(tvm, "scatter_nd", scattered)
    for name in ("cumsum", "cumprod"):
        def running(attrs, inputs, out_type, name=name):
            if attrs.axis is None:
                return [getattr(tvm.topi, name)(inputs[0], None, attrs.dtype, attrs.exclusive)]
            return [scan(tvm, inputs[0], int(attrs.axis), str(out_type.dtype), name == "cumprod",
                         bool(attrs.exclusive))]

        compute_by(tvm, name, running)
    _take_groups(tvm)


def _take_groups(tvm):
    """Lets transposed convolutions with groups have on Arm the schedules of any CPU."""
    from tvm.relay.op.strategy import arm_cpu, generic

    def chosen(attrs, inputs, out_type, target):
        of = (arm_cpu.conv2d_transpose_strategy_arm_cpu if attrs.groups == 1 else
              generic.conv2d_transpose_strategy.fdefault)
        return of(attrs, inputs, out_type, target)

    tvm.target.get_native_generic_func("conv2d_transpose_strategy").register(
        chosen, ["arm_cpu"], allow_override=True)


def compute_by(tvm, name, compute):
    """Has an operator computed by a function on CPUs; some of TVM's have a key of their own."""
    from tvm import relay, topi
    from tvm.relay.op.strategy.generic import wrap_topi_schedule

    def strategy_of(attrs, inputs, out_type, target):
        strategy = relay.op.OpStrategy()
        strategy.add_implementation(
            compute, wrap_topi_schedule(topi.generic.schedule_extern), name=name + ".by_rows")
        return strategy

    strategies = tvm.target.get_native_generic_func(name + "_strategy")
    strategies.set_default(strategy_of, allow_override=True)
    strategies.register(strategy_of, ["cpu"], allow_override=True)


def scatter_nd(tvm, data, indices, updates, mode):
    """`data` with updates[y, x] put to, or with the mode combined with, [indices[:, y], x].

    An index beyond `data`, which a repaired ONNX model has none of, changes nothing.
    """
    te, tir = tvm.te, tvm.tir
    shape, depth = _extents(data), int(indices.shape[0])
    rows = math.prod(_extents(indices)[1:])
    columns = math.prod(shape[depth:])

    def loops(ins, outs):
        ib = tir.ir_builder.create()
        source, places, changes = map(ib.buffer_ptr, ins)
        out = ib.buffer_ptr(outs[0])
        with _Pieces(tvm, ib, math.prod(shape), 1, "copied") as (first, count):
            with ib.for_range(0, count, "i") as i:
                out[first + i] = source[first + i]
        with _Pieces(tvm, ib, columns, rows, "changed") as (first, count):
            with ib.for_range(0, rows, "row") as row:
                at = [ib.let("index", places[row + axis * rows].astype("int64"))
                      for axis in range(depth)]
                place, within = tir.const(0, "int64"), tir.const(True, "bool")
                for index, extent in zip(at, shape):
                    place = place * tir.const(extent, "int64") + index
                    within = tir.all(within, index >= 0, index < extent)
                with ib.if_scope(within):
                    begin = ib.let("begin", place * tir.const(columns, "int64")
                                   + first.astype("int64"))
                    with ib.for_range(0, count, "i") as i:
                        change = changes[row * columns + first + i]
                        out[begin + i] = _combined(tir, mode, out[begin + i], change)
        return ib.get()

    return _external(te, tir, loops, [data, indices, updates], shape, data.dtype)


def scan(tvm, data, axis, dtype, is_product, exclusive):
    """Running sums or products along an axis, each of `dtype`; `exclusive`: of what precedes."""
    te, tir = tvm.te, tvm.tir
    shape = _extents(data)
    axis %= len(shape)
    outer, length, columns = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1:])
    nothing = tir.const(1 if is_product else 0, dtype)

    def loops(ins, outs):
        ib = tir.ir_builder.create()
        source, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])

        def along(begin, count):
            def number(row, i):
                return source[begin + row * columns + i].astype(dtype)

            with ib.for_range(0, count, "i") as i:
                out[begin + i] = nothing if exclusive else number(0, i)
            with ib.for_range(0, length - 1, "before") as before:
                with ib.for_range(0, count, "i") as i:
                    last = out[begin + before * columns + i]
                    next_ = number(before if exclusive else before + 1, i)
                    out[begin + (before + 1) * columns + i] = (
                        last * next_ if is_product else last + next_)

        if outer == 1:
            with _Pieces(tvm, ib, columns, length, "columns") as (first, count):
                along(first, count)
        else:
            with _Pieces(tvm, ib, outer, length * columns, "rows", 1) as (first, count):
                with ib.for_range(0, count, "outer") as which:
                    along((first + which) * (length * columns), columns)
        return ib.get()

    return _external(te, tir, loops, [data], shape, dtype)


class _Pieces:
    """In a `with`: the first and the number of a task's share of `total` things, each of which is
    `work` numbers long; `least` of them are a share."""

    def __init__(self, tvm, ib, total, work, name, least=_COLUMNS):
        self.tir, self.total = tvm.tir, total
        tasks = max(1, min(_MOST_TASKS, total * work // _TASK, total // least))
        self.share = -(-total // tasks)
        tasks = max(1, -(-total // max(1, self.share)))
        self.scope = ib.for_range(0, tasks, name, kind="parallel" if tasks > 1 else "serial")

    def __enter__(self):
        first = self.scope.__enter__() * self.share
        return first, self.tir.min(self.share, self.total - first)

    def __exit__(self, *raised):
        return self.scope.__exit__(*raised)


def _combined(tir, mode, old, new):
    if mode == "update":
        return new
    if mode == "add":
        return old + new
    if mode == "mul":
        return old * new
    if mode not in ("min", "max"):
        raise ValueError("scatter_nd: unknown mode %s" % mode)
    return tir.min(old, new) if mode == "min" else tir.max(old, new)


def _external(te, tir, loops, inputs, shape, dtype):
    out = tir.decl_buffer(shape, dtype, "out_buf")
    return te.extern([tuple(shape)], inputs, loops, dtype=dtype, out_buffers=[out],
                     name="by_rows", tag="by_rows")


def _extents(tensor):
    return [int(extent) for extent in tensor.shape]
