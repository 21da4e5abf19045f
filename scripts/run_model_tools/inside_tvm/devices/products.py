"""Products of matrices and convolutions, plain ones too, as TVM's template for these has them: a
group of threads loads a part of both factors into shared memory, and each of its threads makes
several results of it.  Where a result is a sum of many numbers and there are few results, groups
sum up a part of the numbers each, and a second kernel their sums.

TVM's own templates have tiles for tuned networks only: untuned ones give groups of a thread or
four, or, for matrices, a group for each number.
"""

import math

from run_model_tools.inside_tvm.bounded_code import is_measured
from run_model_tools.inside_tvm.devices import filters_last, matrix_tiles, patches, tiles
from run_model_tools.inside_tvm.devices.kernels import PROMISED_GROUPS

_FEW_ROWS = 16
"""Of a product with a matrix of weights: TVM sums up fewer by a group for each number, which is
what a single picture's fully connected layer wants."""
VIEWS = "views"
"""Products of row_kernels.py."""
_PLAIN = "conv2d_nchw."
"""TVM's template has tiles for these (tiles.py), unless they read numbers far apart or are divided
into parts."""
_NAMES = ("batch_matmul.", "matmul", "dense", "group_conv2d_nchw.", "conv2d_transpose_nchw.",
          "conv1d_ncw.", _PLAIN, patches.NAME, filters_last.NAME, VIEWS)
"""What the implementations are called whose schedules these replace."""
_GROUP = 64


class _Sum:
    """A sum of products: its extents as best_tiles() wants them, and which axes they are of."""

    def __init__(self, op):
        extents = [int(axis.dom.extent) for axis in op.axis]
        reduced = [int(axis.dom.extent) for axis in op.reduce_axis]
        form = (len(extents), len(reduced))
        # Axes of channels or rows, of rows of a picture, and of columns; the others are images.
        self.f, self.y, self.x = {(2, 1): (0, None, 1), (3, 1): (1, None, 2),
                                  (3, 2): (1, None, 2), (4, 1): (1, 2, 3),
                                  (4, 3): (1, 2, 3)}[form]
        self.groups = int(op.attrs.get(patches.GROUPS, 1))
        if len(reduced) > 1:
            self.groups = int(op.input_tensors[0].shape[1]) // reduced[0]
            if self.groups < 1 or extents[1] % self.groups:
                raise KeyError(form)
        self.images = extents[0] if self.f else 1
        self.rows = extents[self.f] // self.groups
        if self.groups > 1:
            # No tile may reach into the next group, which reads other channels: their extents in f
            # are powers of two, and what these leave of a group counts as groups of their own.
            whole = self.rows & -self.rows
            self.groups *= self.rows // whole
            self.rows = whole
        self.height = 1 if self.y is None else extents[self.y]
        self.width = extents[self.x]
        self.reduced = [*reduced, 1, 1][:3] if len(reduced) != 2 else [reduced[0], 1, reduced[1]]
        self.reach = [(1, 1)] * 2
        for axis in range(1, len(reduced)):
            self.reach[axis - len(reduced)] = _reach(
                op, op.axis[axis - len(reduced)], op.reduce_axis[axis])

    def is_of_one_place(self, op):
        """Whether it is a convolution with one place, long sums of numbers that nothing shares."""
        return (len(op.axis) > 2 and self.height * self.width * self.images * self.groups == 1
                and math.prod(self.reduced) >= _GROUP)


def _reach(op, axis, tap):
    """(stride, dilation) of a convolution along an axis of the result and one of the kernel."""
    from tvm import arith, tir

    found = []

    def look(node):
        for index in node.indices if isinstance(node, tir.ProducerLoad) else ():
            factors = arith.detect_linear_equation(index, [axis.var, tap.var])
            if len(factors) == 3 and int(factors[0]) and int(factors[1]):
                found.append((int(factors[0]), int(factors[1])))

    tir.stmt_functor.post_order_visit(op.body[0].source[0], look)
    return found[0] if found else (1, 1)


def tiled_schedule(name, outs, target):
    """The schedule; None for what is no such product, or was tuned."""
    from tvm import te

    if not name.startswith(_NAMES) or len(outs) != 1 or is_measured(outs, target, name):
        return None
    found = sum_of(te, outs[0].op)
    if found is None:
        return None
    op, extents = found
    if name.startswith(("dense", "matmul")) and extents.rows < _FEW_ROWS:
        return None
    if extents.is_of_one_place(op) and _same_shape(outs[0], op):
        return sum_by_groups(te, outs[0], op)
    if name == VIEWS and target.kind.name == "cuda":
        return _schedule(te, outs[0], op, extents, matrix_tiles.best_within(
            target, extents.images, extents.rows, extents.width, extents.reduced[0]))
    best = tiles.best_within(target, extents.rows, extents.height, extents.width, extents.reduced,
                             extents.images * extents.groups, extents.reach)
    if name.startswith(_PLAIN) and best["parts"] == 1 and not tiles.reaches_far(
            extents.reach, extents.reduced[1:]):
        return None
    return _schedule(te, outs[0], op, extents, best)


def sum_of(te, final):
    """(the only sum that goes into the result, its extents), or None."""
    sums, seen, stack = [], set(), [final]
    while stack:
        op = stack.pop()
        if op in seen:
            continue
        seen.add(op)
        if isinstance(op, te.ComputeOp):
            if op.reduce_axis or op.num_outputs != 1:
                sums.append(op)
        elif not isinstance(op, te.PlaceholderOp):
            return None
        stack.extend(tensor.op for tensor in op.input_tensors)
    if len(sums) != 1 or sums[0].num_outputs != 1 or len(sums[0].input_tensors) != 2:
        return None
    try:
        return sums[0], _Sum(sums[0])
    except KeyError:
        return None


def bind_each(te, stage):
    """Gives each number of a stage a thread, which computes several where there are more groups
    than every GPU takes.  Returns the innermost axis."""
    every = stage.fuse(*stage.op.axis)
    count = 1
    for axis in stage.op.axis:
        count *= int(axis.dom.extent)
    rounds = None
    if count > _GROUP * PROMISED_GROUPS:
        rounds, every = stage.split(every, factor=_GROUP * PROMISED_GROUPS)
    block, thread = stage.split(every, factor=_GROUP)
    if rounds is not None:
        stage.reorder(block, thread, rounds)
    stage.bind(block, te.thread_axis("blockIdx.x"))
    stage.bind(thread, te.thread_axis("threadIdx.x"))
    return thread if rounds is None else rounds


def sum_apart(schedule, op, axis):
    """The operation that sums up for each place along one of a sum's axes.  Indices of the largest
    are sums of pairs."""
    made = schedule.rfactor(op.output(0), axis)
    return made.op if op.num_outputs == 1 else made[0].op


def sum_together(te, schedule, op, threads):
    """Has n threads sum up every nth number each and then all together.  Returns the threads' axis;
    those of the results remain to be bound."""
    stage = schedule[op]
    _, inner = stage.split(stage.fuse(*stage.op.reduce_axis), factor=threads)
    partial = sum_apart(schedule, op, inner)
    stage = schedule[op]
    thread = te.thread_axis((0, threads), "threadIdx.x")
    axis = stage.op.reduce_axis[0]
    stage.bind(axis, thread)
    schedule[partial].compute_at(stage, axis)
    stage.set_store_predicate(thread.var.equal(0))
    return thread


def _same_shape(tensor, op):
    return [int(a) for a in tensor.shape] == [int(a) for a in op.output(0).shape]


def _inlined_schedule(te, final, op):
    """A schedule in which all is inlined but the sum and the result."""
    schedule = te.create_schedule(final.op)
    for stage in schedule.stages:
        if isinstance(stage.op, te.ComputeOp) and stage.op not in (final.op, op):
            stage.compute_inline()
    return schedule


def sum_by_groups(te, final, op):
    """A group for each sum, whose threads load neighbouring numbers: there is nothing to share."""
    schedule = _inlined_schedule(te, final, op)
    thread = sum_together(te, schedule, op, _GROUP)
    stage = schedule[final]
    place = stage.fuse(*stage.op.axis)
    stage.bind(place, te.thread_axis("blockIdx.x"))
    if final.op != op:
        schedule[op].compute_at(stage, place)
        stage.set_store_predicate(thread.var.equal(0))
    return schedule


def _schedule(te, final, op, extents, best):
    schedule = _inlined_schedule(te, final, op)
    same = _same_shape(final, op)
    is_divided = best["parts"] > 1
    if is_divided:
        part, _ = schedule[op].split(op.reduce_axis[0], nparts=best["parts"])
        output = schedule.rfactor(op.output(0), part)
        partial = schedule.cache_write(output, "local")
    elif final.op == op or not same:
        output = op.output(0)
        partial = schedule.cache_write(output, "local")
    else:
        output, partial = final, op.output(0)
        schedule[partial].set_scope("local")
    factors = [schedule.cache_read(tensor, "shared", [partial]) for tensor in op.input_tensors]

    thread = _bind_tiles(te, schedule[output], extents, best["tiles"], is_divided)
    sums = schedule[partial]
    sums.compute_at(schedule[output], thread)
    reduced = list(sums.op.reduce_axis)
    if is_divided:
        # What is left of the axis that was divided comes last.
        reduced.insert(0, reduced.pop())
    step, channel = sums.split(reduced[0], factor=best["channels"])
    sums.reorder(step, channel, *reduced[1:], *sums.op.axis)
    # Not every compiler keeps results in registers that a loop counts through.
    for axis in sums.op.axis:
        sums.unroll(axis)
    threads = math.prod(lanes for *_, lanes, _ in best["tiles"])
    for tensor, factor in zip(op.input_tensors, factors):
        schedule[factor].compute_at(sums, step)
        _load(te, schedule[factor], tensor, extents, len(reduced), threads)

    if output.op != final.op and output != final:
        each = bind_each(te, schedule[final])
        if is_divided and final.op != op:
            if same:
                schedule[op].set_scope("local")
                schedule[op].compute_at(schedule[final], each)
            else:
                bind_each(te, schedule[op])
    return schedule


def _bind_tiles(te, stage, extents, sizes, is_divided):
    """Gives each tile of the result a group of threads; of one that is divided the first axis is
    that of the parts.  Returns the threads' axis."""
    (_, _, tf, fi), (_, vy, ty, _), (_, vx, tx, _) = sizes
    axes = list(stage.op.axis)
    images = [axes.pop(0)] if is_divided else []
    images += axes[:extents.f]
    f = axes[extents.f]
    if extents.groups > 1:
        group, f = stage.split(f, nparts=extents.groups)
        images.append(group)
    f, inner = stage.split(f, factor=fi)
    block_f, thread_f = stage.split(f, factor=tf)
    blocks, virtual, threads = [], [], [thread_f]
    for axis, parts, lanes in ((extents.y, vy, ty), (extents.x, vx, tx)):
        if axis is None:
            continue
        outer, thread = stage.split(axes[axis], factor=lanes)
        block, part = stage.split(outer, factor=parts)
        blocks.append(block)
        virtual.append(part)
        threads.append(thread)
    stage.reorder(*images, block_f, *blocks, *virtual, *threads, inner)
    thread = stage.fuse(*threads)
    if images:
        stage.bind(stage.fuse(*images), te.thread_axis("blockIdx.z"))
    stage.bind(block_f, te.thread_axis("blockIdx.y"))
    stage.bind(stage.fuse(*blocks), te.thread_axis("blockIdx.x"))
    for axis in virtual:
        stage.bind(axis, te.thread_axis("vthread"))
    stage.bind(thread, te.thread_axis("threadIdx.x"))
    return thread


def _load(te, stage, tensor, extents, reduced, threads):
    """Has so many threads load a part of a factor into shared memory, for sums along `reduced`
    axes."""
    order = list(stage.op.axis)
    # Patches have the axes of the picture last.
    pictures = sum(axis is not None for axis in (extents.y, extents.x))
    row = -1 - pictures if tensor.op.name == patches.NAME else -2
    if reduced == 1:
        # Threads read one column of as many rows at once, or write one of patches: rows of an
        # odd length lie in different banks of shared memory, those of 16 numbers in two.
        stage.storage_align(order[row], 2, 1)
    if tensor.op.tag == patches.ALONG_KERNELS:
        order.append(order.pop(row))
        stage.reorder(*order)
    _, lane = stage.split(stage.fuse(*order), factor=threads)
    stage.bind(lane, te.thread_axis("threadIdx.x"))
