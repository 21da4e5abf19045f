"""Kernels for GPUs of what networks of matrices are made of: programs over rows (softmax,
normalisations, chains of arithmetic) and products with what is done to their result, which read
their operands where these lie, in whatever order.

As computations and schedules of TVM, so that all kinds of GPU have them of one source.
"""

import math

from run_model_tools.inside_tvm.bounded_code import implementation_of
from run_model_tools.inside_tvm.devices import patches, products
from run_model_tools.inside_tvm.devices.kernels import PROMISED_GROUPS
from run_model_tools.kernels.rows import domain

PRODUCT, PRODUCT_OF_FEW = products.VIEWS, "run_model.product_of_few"
"""What products are called: products.py has a schedule for the first."""
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
_FEW_ROWS = 16
"""Of a product: fewer are summed up by a group for each number, where the numbers of a column of
the right factor lie side by side."""


def of_program(tvm, program, sources, shape, order=None):
    """How TVM computes a program, of the tensors and constants of `sources`; the result is of a
    shape of as many numbers as rows.output_shape() has.  order: a view of the result, each number
    once, in whose order it is stored."""
    te = tvm.te

    def compute(attrs, inputs, out_type):
        load = _Loads(tvm, sources, inputs)
        if not program.reduces:
            factors, _ = domain(program)
            return [te.compute(shape, lambda *at: _value(
                tvm, program, lambda view: load(program.inputs[view], [
                    (_flat(at, shape), _of(factors, view))])), name="elementwise")]
        return [te.extern(shape, list(inputs),
                          lambda ins, outs: _Rows(
                              tvm, program, load.of_buffers(ins), outs[0], order).body(),
                          dtype="float32", name="rows")]

    def schedule(attrs, outs, target):
        made = te.create_schedule([out.op for out in outs])
        if not program.reduces:
            products.bind_each(te, made[outs[0]])
        return made

    return implementation_of(compute, schedule, "run_model.program")


def shape_of_product(product, wanted):
    """The shape of the result: (batch, rows, columns), or (rows, columns) where that is wanted and
    there is one batch."""
    batch, *plain = product.shape
    return tuple(plain) if batch == 1 and tuple(wanted) == tuple(plain) else product.shape


def of_product(tvm, product, sources, shape):
    """The same of a product, whose result is of shape_of_product().  Weights are the first of the
    constants."""
    te = tvm.te

    def compute(attrs, inputs, out_type):
        load = _Loads(tvm, sources, inputs)
        _, rows, columns = product.shape
        batches = shape[:-2]
        left = te.compute((*batches, rows, product.depth), lambda *at: load(
            product.left, zip(at, product.left.axes[-len(at):])), name="left")
        if sources.has_weights:
            right = te.compute((*batches, product.depth, columns), lambda *at: load.number(
                len(sources.inputs), at[-1] * product.depth + at[-2] if has_few_rows(product)
                else at[-2] * columns + at[-1]), name="right")
        else:
            view = product.right
            with te.tag_scope(tag=_order(view)):
                right = te.compute((*batches, product.depth, columns), lambda *at: load(
                    view, zip(at, view.axes[-len(at):])), name="right")
        depth = te.reduce_axis((0, product.depth), "depth")
        total = te.compute(shape, lambda *at: te.sum(
            left(*at[:-1], depth) * right(*at[:-2], depth, at[-1]), axis=depth), name="product")
        if product.epilogue is None and product.scale == 1:
            return [total]

        def finished(*at):
            scaled = total(*at)
            if product.scale != 1:
                scaled = scaled * tvm.tir.const(product.scale, "float32")
            if product.epilogue is None:
                return scaled
            place = (at[0] * rows + at[1] if batches else at[0], at[-1])
            return _value(tvm, product.epilogue, lambda view: load(
                product.epilogue.inputs[view], zip(place, product.epilogue.inputs[view].axes)),
                scaled)

        return [te.compute(shape, finished, name="finished")]

    def schedule(attrs, outs, target):
        found = products.sum_of(te, outs[0].op)
        if found is None:
            raise ValueError("no tiles for this product")
        return products.sum_by_groups(te, outs[0], found[0])

    is_deep = has_few_rows(product) and (sources.has_weights or _order(product.right))
    return implementation_of(compute, schedule, PRODUCT_OF_FEW if is_deep else PRODUCT)


def has_few_rows(product):
    """Whether a product is of so few rows, whose weights lie by columns then."""
    return product.shape[1] < _FEW_ROWS


def _order(view):
    """The tag of a right factor whose numbers lie side by side down its columns, which is the order
    to load them in."""
    _, depth, columns = ([stride for count, stride in axis if count > 1] for axis in view.axes)
    return patches.ALONG_KERNELS if depth[-1:] == [1] and columns[-1:] != [1] else ""


class _Loads:
    """Numbers of a layer's tensors, by view and place."""

    def __init__(self, tvm, sources, inputs):
        self._tvm, self._sources, self._inputs = tvm, sources, inputs

    def of_buffers(self, buffers):
        """The same of the buffers that stand for the tensors in a kernel."""
        return _Loads(self._tvm, self._sources, buffers)

    def __call__(self, view, places):
        """places: (index, factors of (extent, stride)) of each axis."""
        at = self._tvm.tir.const(view.offset, "int32")
        for index, factors in places:
            inner = math.prod(count for count, _ in factors)
            for position, (count, stride) in enumerate(factors):
                inner //= count
                if stride and count > 1:
                    part = index if inner == 1 else self._tvm.tir.floordiv(index, inner)
                    if position:
                        part = self._tvm.tir.floormod(part, count)
                    at = at + part * stride
        return self.number(self._sources.index(view.tensor), at)

    def number(self, index, at):
        """Number `at` of an input, whatever its shape is."""
        read = self._inputs[index]
        places = _apart(self._tvm, at, read.shape)
        return (self._tvm.tir.BufferLoad(read, places)
                if isinstance(read, self._tvm.tir.Buffer) else read(*places))


def _flat(places, shape):
    """The number of the place in a tensor of a shape."""
    at = 0
    for place, extent in zip(places, shape):
        at = at * extent + place
    return at


def _apart(tvm, at, shape):
    """The opposite."""
    places, inner = [], 1
    for position, extent in reversed(list(enumerate(map(int, shape)))):
        place = at if inner == 1 else tvm.tir.floordiv(at, inner)
        places.insert(0, tvm.tir.floormod(place, extent) if position else place)
        inner *= extent
    return places


def _of(factors, view):
    """Of factors of all views, one's."""
    return [(count, strides[view]) for count, strides in factors]


def _value(tvm, program, load, product=None):
    """The result of a program without reductions; load: from the number of an input to its
    number."""
    values = []
    for node in program.nodes:
        values.append(load(int(node.value)) if node.op == "input" else
                      product if node.op == "product" else
                      _applied(tvm, program, node, [values[a] for a in node.args]))
    return values[-1]


def _applied(tvm, program, node, args):
    """What a node is of its arguments' values."""
    tir = tvm.tir
    if node.op in ("constant", "columns"):
        return tir.const(program.shape[-1] if node.op == "columns" else node.value, "float32")
    return {
        "identity": lambda x: x,
        "add": lambda a, b: a + b, "subtract": lambda a, b: a - b,
        "multiply": lambda a, b: a * b, "divide": lambda a, b: a / b,
        "maximum": lambda a, b: _chosen(tvm, "max", a, b),
        "minimum": lambda a, b: _chosen(tvm, "min", a, b),
        "negative": lambda x: tir.const(0, "float32") - x,
        "abs": tir.abs, "sqrt": tir.sqrt, "exp": tir.exp, "log": tir.log, "tanh": tir.tanh,
        "erf": tir.erf, "sigmoid": tir.sigmoid,
        "rsqrt": lambda x: tir.const(1, "float32") / tir.sqrt(x)}[node.op](*args)


def _chosen(tvm, choice, a, b):
    """The larger or smaller one; NaN if one is."""
    other = getattr(tvm.te, choice)(a, b)
    if isinstance(a, tvm.tir.FloatImm):
        return other
    if isinstance(b, tvm.tir.FloatImm):
        # What cannot be compared is the second one.
        return getattr(tvm.te, choice)(b, a)
    return tvm.tir.Select(tvm.tir.isnan(a), a, other)


class _Rows:
    """A kernel in which threads go along a row together, as many times as sums follow each other.
    What is needed again stays in the thread's registers, so that it is computed once."""

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
        threads = _power_above(-(-self._width // _NUMBERS_OF_A_THREAD))
        self._threads = min(threads, _APART if self._are_rows_near else _MOST_THREADS)
        self._together = max(1, _NEAR_ROWS if self._are_rows_near else _GROUP // self._threads)
        """Rows of a group."""
        self._each = -(-self._width // self._threads)

    def _lie_apart(self):
        near, apart = 0, 0
        for index, row in enumerate(self._is_row_of_input()):
            columns, rows = (_inner_stride(_of(factors, index))
                             for factors in (self._columns, self._rows))
            if not row and rows:
                near += columns == 1
                apart += rows == 1
        return apart > near

    def _is_row_of_input(self):
        return [all(stride == 0 for _, stride in view.axes[-1]) for view in self._program.inputs]

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
        with ib.for_range(0, rounds, name="round") as turn:
            row = (turn * groups + block.var) * self._together + one.var
            is_one = row < self._count
            if rounds * groups * self._together > self._count:
                # Threads sum up together, also those whose row is beyond the last.
                row = tir.min(row, self._count - 1)
            else:
                is_one = None
            self._row(row, is_one)
        return ib.get()

    def _row(self, row, is_one):
        ib, nodes = self._ib, self._program.nodes
        last, result = max(self._stages), len(nodes) - 1
        of_rows, made, kept = {}, set(), self._kept()
        arrays = {index: ib.allocate("float32", (self._each,), name="kept%d" % index,
                                     scope="local") for index in kept}
        for stage in range(last + 1):
            for index, node in enumerate(nodes):
                if self._is_row[index] and self._stages[index] == stage and index not in of_rows:
                    of_rows[index] = self._held(
                        self._load(self._program.inputs[int(node.value)],
                                   [(row, _of(self._rows, int(node.value)))])
                        if node.op == "input" else _applied(
                            self._tvm, self._program, node, [of_rows[a] for a in node.args]))
            ends = self._ends(stage)
            sums = {index: self._variable(_neutral(nodes[index].op)) for index in ends}
            stores = stage == last and not self._is_row[result]
            wanted = self._needed(stage, made)

            def column(place, wanted=wanted, sums=sums, stores=stores):
                at = place * self._threads + self._thread.var

                def compute():
                    values = {}
                    for index in sorted(wanted):
                        values[index] = (arrays[index][place] if index in made
                                         else self._of_place(index, row, at, values, of_rows))
                        if index in arrays and index not in made:
                            arrays[index][place] = values[index]
                            values[index] = arrays[index][place]
                    for index, total in sums.items():
                        of = nodes[index].args[0]
                        value = of_rows[of] if self._is_row[of] else values[of]
                        total[0] = _joined(self._tvm, nodes[index].op, total[0], value)
                    if stores:
                        self._store(row * self._width + at, values[result], is_one)

                self._where(None if self._width % self._threads == 0 else at < self._width,
                            compute)

            if wanted or sums:
                with ib.for_range(0, self._each, name="place",
                                  kind="unroll" if self._each > 1 else "serial") as place:
                    column(place)
            made |= {index for index in wanted if index in arrays}
            for index, total in sums.items():
                of_rows[index] = self._of_all(nodes[index].op, total)
            if stage == last and self._is_row[result] and result not in of_rows:
                of_rows[result] = _applied(self._tvm, self._program, nodes[result],
                                           [of_rows[a] for a in nodes[result].args])
        if self._is_row[result]:
            first = self._thread.var.equal(0)
            self._store(row, of_rows[result],
                        first if is_one is None else self._tvm.tir.all(first, is_one))

    def _ends(self, stage):
        """The reductions that a pass along the row ends in."""
        nodes = self._program.nodes
        return [index for index, node in enumerate(nodes)
                if self._stages[index] == stage + 1 and len(node.args) == 1
                and node.op in _NEUTRAL and self._stages[node.args[0]] == stage]

    def _needed(self, stage, known):
        """All numbers of places that a pass needs, those in `known` included."""
        nodes, result = self._program.nodes, len(self._program.nodes) - 1
        stack = [nodes[index].args[0] for index in self._ends(stage)]
        if stage == max(self._stages) and not self._is_row[result]:
            stack.append(result)
        found = set()
        while stack:
            index = stack.pop()
            if self._is_row[index] or index in found:
                continue
            found.add(index)
            if index not in known:
                stack += nodes[index].args
        return found

    def _kept(self):
        """What is computed in one pass and needed in a later one."""
        kept, made = set(), set()
        for stage in range(max(self._stages) + 1):
            needed = self._needed(stage, made)
            kept |= needed & made
            made |= needed
        return kept

    def _of_place(self, index, row, at, values, of_rows):
        node = self._program.nodes[index]
        if node.op == "input":
            which = int(node.value)
            return self._load(self._program.inputs[which], [
                (row, _of(self._rows, which)), (at, _of(self._columns, which))])
        return _applied(self._tvm, self._program, node, [
            of_rows[a] if self._is_row[a] else values[a] for a in node.args])

    def _where(self, condition, write):
        if condition is None:
            write()
        else:
            with self._ib.if_scope(condition):
                write()

    def _store(self, at, value, condition):
        if self._order is not None:
            at = _place_in(self._tvm, self._order, at)
        self._where(condition, lambda: self._ib.emit(
            self._tvm.tir.BufferStore(self._out, value, _apart(self._tvm, at, self._out.shape))))

    def _variable(self, value):
        made = self._ib.allocate("float32", (1,), name="number", scope="local")
        made[0] = self._tvm.tir.const(value, "float32")
        return made

    def _held(self, value):
        """A value that is computed here, whoever reads it later."""
        if isinstance(value, self._tvm.tir.FloatImm):
            return value
        made = self._ib.allocate("float32", (1,), name="number", scope="local")
        made[0] = value
        return made[0]

    def _of_all(self, op, total):
        """What all threads of a row have come to together."""
        if self._threads == 1:
            return total[0]
        tir = self._tvm.tir
        x, y = (self._tvm.te.var(name, "float32") for name in "xy")
        reducer = tir.CommReducer([x], [y], [_joined(self._tvm, op, x, y)],
                                  [tir.const(_neutral(op), "float32")])
        # Of two numbers, so that TVM gives its place to nothing else of one: it will be shared.
        result = self._ib.allocate("float32", (2,), name="together", scope="local")
        with self._ib.new_scope():
            self._ib.scope_attr(reducer, "reduce_scope",
                                tir.reinterpret("handle", tir.const(0, "uint64")))
            self._ib.emit(tir.call_intrin(
                "handle", "tir.tvm_thread_allreduce", tir.const(1, "uint32"), total[0],
                tir.const(True, "bool"), result[0], self._thread.var))
        return result[0]


def _power_above(count):
    return 1 << max(0, (count - 1).bit_length())


def _inner_stride(factors):
    """Of the innermost of an axis' factors; 0 for an axis of one number."""
    return factors[-1][1] if factors else 0


def _place_in(tvm, order, at):
    """Where a view of all numbers of a tensor, each once, has number `at` of it."""
    place, after = tvm.tir.const(0, "int32"), math.prod(order.shape)
    for count, stride in (factor for axis in order.axes for factor in axis):
        after //= count
        place = place + tvm.tir.floormod(tvm.tir.floordiv(at, stride), count) * after
    return place


_NEUTRAL = {"sum": 0.0, "max": -math.inf, "min": math.inf}


def _neutral(op):
    return _NEUTRAL[op]


def _joined(tvm, op, a, b):
    return a + b if op == "sum" else _chosen(tvm, op, a, b)
