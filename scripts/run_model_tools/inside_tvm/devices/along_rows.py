"""A kernel for GPUs that runs a program with sums along rows: softmax, normalisations."""

import math
from contextlib import nullcontext

from run_model_tools.inside_tvm.devices.kernels import PROMISED_GROUPS
from run_model_tools.inside_tvm.devices.row_values import apart, applied, chosen
from run_model_tools.kernels.programs.code import needed
from run_model_tools.kernels.programs.rows import domain, of_view

LONGEST_ROW = 4096
"""Of fewer numbers a group of threads keeps a few in registers of each thread."""
_MOST_THREADS = 256
_GROUP = 128
_NUMBERS_OF_A_THREAD = 4
"""Of a row, where there are threads enough."""
_NEAR_ROWS, _APART = 16, 16
"""Rows of a group, and threads of each, where numbers of a row lie apart: 16 neighbours are 64
bytes, two of the pieces that memory gives."""
_LONGEST_APART = 1024
_NEUTRAL = {"sum": 0.0, "max": -math.inf, "min": math.inf}


def kernel(tvm, program, load, out, order):
    """The statement that computes the buffer `out`.  load: row_values.Loads of its buffers; order:
    a view of the result in whose order it is stored, or None."""
    return _Kernel(tvm, program, load, out, order).body()


class _Kernel:
    """Threads go along a row together, as many times as sums follow each other.  What is needed
    again stays in the thread's registers, so that it is computed once: two times might be rounded
    in two ways."""

    def __init__(self, tvm, program, load, out, order):
        self._tvm, self._program, self._load, self._out = tvm, program, load, out
        self._order = order
        self._rows, self._columns = domain(program)
        self._stages, self._is_row = program.stages(), program.is_row()
        self._width = math.prod(count for count, _ in self._columns)
        self._count = math.prod(count for count, _ in self._rows)
        # Where numbers of a row lie apart and those of neighbouring rows side by side, neighbouring
        # threads have neighbouring rows.
        self._are_rows_near = self._width <= _LONGEST_APART and self._lie_apart()
        wanted = -(-self._width // _NUMBERS_OF_A_THREAD)
        self._threads = min(1 << (wanted - 1).bit_length(),
                            _APART if self._are_rows_near else _MOST_THREADS)
        self._together = _NEAR_ROWS if self._are_rows_near else max(1, _GROUP // self._threads)
        """Rows of a group."""
        self._each = -(-self._width // self._threads)
        """Numbers of a row that a thread has."""
        self._held = {}
        """By node, what there is one of in a row."""
        self._arrays = {}
        """By node, what a thread keeps of a row."""

    def _lie_apart(self):
        near, apart_ = 0, 0
        for index in range(len(self._program.inputs)):
            column, row = (_inner_stride(of_view(factors, index))
                           for factors in (self._columns, self._rows))
            if column and row:
                near += column == 1
                apart_ += row == 1
        return apart_ > near

    def body(self):
        tir, te = self._tvm.tir, self._tvm.te
        self._ib = ib = tir.ir_builder.create()
        groups = min(-(-self._count // self._together), PROMISED_GROUPS)
        rounds = -(-self._count // (groups * self._together))
        along, across = "threadIdx.x", "threadIdx.y"
        if self._are_rows_near:
            along, across = across, along
        block, self._thread, one = map(te.thread_axis, ("blockIdx.x", along, across))
        extents = {"blockIdx.x": groups, along: self._threads, across: self._together}
        for axis in sorted((block, self._thread, one), key=lambda axis: axis.thread_tag):
            ib.scope_attr(axis, "thread_extent", extents[axis.thread_tag])
        with ib.for_range(0, rounds, name="round") as round_:
            row, is_one = (round_ * groups + block.var) * self._together + one.var, None
            if rounds * groups * self._together > self._count:
                # Threads sum up together, also those whose row is beyond the last.
                is_one = row < self._count
                row = tir.min(row, self._count - 1)
            self._go_along(row, is_one)
        return ib.get()

    def _go_along(self, row, is_one):
        ib, nodes = self._ib, self._program.nodes
        last, result = max(self._stages), len(nodes) - 1
        self._arrays = {index: ib.allocate("float32", (self._each,), name="kept%d" % index,
                                           scope="local") for index in self._kept()}
        made = set()
        for stage in range(last + 1):
            for index in range(len(nodes)):
                if (self._is_row[index] and self._stages[index] == stage
                        and index not in self._held):
                    self._held[index] = self._of_row(index, row)
            sums = {index: self._variable(_NEUTRAL[nodes[index].op])
                    for index in self._program.ends(stage)}
            wanted = self._needed(stage, made)
            stored = result if stage == last and not self._is_row[result] else None
            if wanted or sums:
                with ib.for_range(0, self._each, name="place",
                                  kind="unroll" if self._each > 1 else "serial") as place:
                    at = place * self._threads + self._thread.var
                    with self._where(at < self._width if self._width % self._threads else None):
                        self._at(row, at, place, made, wanted, sums, stored, is_one)
            made |= wanted & set(self._arrays)
            for index, total in sums.items():
                self._held[index] = self._of_all(nodes[index].op, total)
        if self._is_row[result]:
            first = self._thread.var.equal(0)
            self._store(row, None, self._held[result],
                        first if is_one is None else self._tvm.tir.all(first, is_one))

    def _at(self, row, at, place, made, wanted, sums, stored, is_one):
        """What a pass does at a place of the row; made: what earlier passes have kept."""
        nodes, values = self._program.nodes, {}
        for index in sorted(wanted):
            kept = self._arrays.get(index)
            if index not in made:
                values[index] = self._of_place(index, row, at, values)
                if kept is not None:
                    kept[place] = values[index]
            if kept is not None:
                values[index] = kept[place]
        for index, total in sums.items():
            of = nodes[index].args[0]
            total[0] = self._joined(nodes[index].op, total[0],
                                    self._held[of] if self._is_row[of] else values[of])
        if stored is not None:
            self._store(row, at, values[stored], is_one)

    def _needed(self, stage, known):
        """All numbers of places that a pass needs, those in `known` included."""
        nodes = self._program.nodes
        roots = {nodes[index].args[0] for index in self._program.ends(stage)}
        if stage == max(self._stages):
            roots.add(len(nodes) - 1)
        return needed(nodes, roots, self._is_row, known)

    def _kept(self):
        """What is computed in one pass and needed in a later one."""
        kept, made = set(), set()
        for stage in range(max(self._stages) + 1):
            wanted = self._needed(stage, made)
            kept |= wanted & made
            made |= wanted
        return kept

    def _of_row(self, index, row):
        """What there is one of in a row, kept in a variable."""
        node = self._program.nodes[index]
        if node.op == "input":
            which = int(node.value)
            value = self._load(self._program.inputs[which],
                               [(row, of_view(self._rows, which))])
        else:
            value = applied(self._tvm, self._program, node, [self._held[a] for a in node.args])
        return value if isinstance(value, self._tvm.tir.FloatImm) else self._variable(value)[0]

    def _of_place(self, index, row, at, values):
        node = self._program.nodes[index]
        if node.op == "input":
            which = int(node.value)
            return self._load(self._program.inputs[which], [
                (row, of_view(self._rows, which)), (at, of_view(self._columns, which))])
        return applied(self._tvm, self._program, node, [
            self._held[a] if self._is_row[a] else values[a] for a in node.args])

    def _store(self, row, column, value, condition):
        with self._where(condition):
            self._ib.emit(self._tvm.tir.BufferStore(self._out, value, self._place(row, column)))

    def _where(self, condition):
        """The context of statements for which something has to hold, None for nothing."""
        return nullcontext() if condition is None else self._ib.if_scope(condition)

    def _place(self, row, column):
        """Where in the result a number goes; column: None where there is one of a row."""
        tir, shape = self._tvm.tir, [int(extent) for extent in self._out.shape]
        if column is None:
            return apart(self._tvm, row, shape)
        if self._order is None:
            if shape and shape[-1] == self._width:
                return [*apart(self._tvm, row, shape[:-1]), column]
            return apart(self._tvm, row * self._width + column, shape)
        place, after = tir.const(0, "int32"), math.prod(shape)
        for count, stride in (factor for axis in self._order.axes for factor in axis):
            after //= count
            if stride % self._width == 0:
                index = tir.floordiv(row, stride // self._width)
            elif self._width % (stride * count) == 0:
                index = tir.floordiv(column, stride)
            else:
                index = tir.floordiv(row * self._width + column, stride)
            place = place + tir.floormod(index, count) * after
        return apart(self._tvm, place, shape)

    def _variable(self, value):
        made = self._ib.allocate("float32", (1,), name="number", scope="local")
        made[0] = self._tvm.tir.const(value, "float32") if isinstance(value, float) else value
        return made

    def _of_all(self, op, total):
        """What all threads of a row have come to together."""
        if self._threads == 1:
            return total[0]
        tir = self._tvm.tir
        x, y = (self._tvm.te.var(name, "float32") for name in "xy")
        reducer = tir.CommReducer([x], [y], [self._joined(op, x, y)],
                                  [tir.const(_NEUTRAL[op], "float32")])
        # Of two numbers, so that TVM gives its place to nothing else of one: it will be shared.
        result = self._ib.allocate("float32", (2,), name="together", scope="local")
        with self._ib.new_scope():
            self._ib.scope_attr(reducer, "reduce_scope",
                                tir.reinterpret("handle", tir.const(0, "uint64")))
            self._ib.emit(tir.call_intrin(
                "handle", "tir.tvm_thread_allreduce", tir.const(1, "uint32"), total[0],
                tir.const(True, "bool"), result[0], self._thread.var))
        return result[0]

    def _joined(self, op, a, b):
        return a + b if op == "sum" else chosen(self._tvm, op, a, b)


def _inner_stride(factors):
    """Of the innermost of an axis' factors; 0 for an axis of one number."""
    return factors[-1][1] if factors else 0
