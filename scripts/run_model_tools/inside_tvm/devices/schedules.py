"""Keeps every kernel within its GPU's limits, and none of them to one thread.

TVM's schedules are looked at before they are taken: one with more groups, or groups with more
threads or shared memory than the target allows, a single thread where there is work for many, or
threads that sum up whole rows by themselves, is replaced by a plain one, in which a thread computes
one number and a group of them, or a few groups, each long sum.  Sums of products get tiles
(products.py) where nothing was tuned, and running sums are of another kind (running_sums.py).
"""

from contextlib import contextmanager

from run_model_tools.errors import last_line
from run_model_tools.inside_tvm import bounded_code, called_operator
from run_model_tools.inside_tvm.devices import (
    filters_last,
    patches,
    products,
    running_sums,
    tiles,
)
from run_model_tools.inside_tvm.devices.kernels import (
    KINDS,
    MOST_DEEP,
    MOST_GROUPS,
    Needs,
    steps_of_a_thread,
)

_GROUP = 64
_LARGE_GROUP = 256
_LARGE = 4096
"""Numbers of a sum from which on a large group makes it."""
_GROUPS = 64
"""Of fewer a GPU has units to spare, so that a sum of _LARGE numbers for each is worth one more
kernel."""
_FEW = 4096
_FEW_ROWS = 65535
"""Sums that a group each is worth: of numbers that lie apart fewer than of those side by side,
which threads of their own would read from as many places at once."""
_LONG_ROW = 1024
_TIMES = 4
"""By how much a plain schedule has to have fewer steps to take a whole one's place."""
_SMALL = 64
"""Numbers; what makes no more than these may take a single thread."""


@contextmanager
def bounded(tvm, target, notes, placement):
    """While it is open, schedules for the target's GPU are within its limits; `notes` says which
    layers got a plain one, as {"operator", "schedule", "shapes", "because"}, and `placement` takes
    in what there is no schedule for."""
    if target.kind.name not in KINDS:
        yield
        return

    def select(original, op, attrs, inputs, out_type, target, *rest):
        if target.kind.name not in KINDS:
            return original(op, attrs, inputs, out_type, target, *rest)
        if op.name == running_sums.NAME:
            chosen = running_sums.implementation(tvm)
            return chosen, chosen.compute(attrs, inputs, out_type)
        own = filters_last.implementation(tvm, op, attrs)
        if own is not None:
            outputs = own.compute(attrs, inputs, out_type)
            return _with_limits(tvm, op, inputs, own, notes, placement), outputs
        try:
            chosen, outputs = original(op, attrs, inputs, out_type, target, *rest)
        except Exception as error:
            placement.note(op.name, _shapes(inputs), "TVM has no way to compute it on %s (%s)" % (
                target.kind.name, last_line(error)[-200:]))
            raise
        own = patches.implementation(tvm, op, attrs, inputs, outputs, target)
        if own is not None and not bounded_code.is_measured(outputs, target):
            chosen, outputs = own, own.compute(attrs, inputs, out_type)
        return _with_limits(tvm, op, inputs, chosen, notes, placement), outputs

    with bounded_code.selecting(select), tiles.chosen(tvm):
        yield


def _with_limits(tvm, op, inputs, implementation, notes, placement):
    """The implementation with a schedule that is looked at."""
    def schedule(attrs, outs, target):
        made, complaint = None, None
        made = _tiled(tvm, implementation.name, outs, target)
        if made is not None:
            return made
        try:
            with _as_opencl(tvm, target) as twin:
                made = implementation.schedule(attrs, outs, twin)
            with target:
                complaint = complaint_about(tvm, made, outs, target,
                                            measured=bounded_code.is_measured(outs, target))
        except Exception as error:
            complaint = last_line(error)
        if complaint is None:
            return made
        if not _is_plain(tvm, outs):
            placement.note(op.name, _shapes(inputs), "its kernels would have %s" % complaint)
            raise ValueError("%s for %s: %s, and it has no other schedule" % (
                op.name, target.kind.name, complaint))
        notes.append({"operator": op.name, "schedule": implementation.name, "because": complaint,
                      "shapes": [list(shape) for shape in _shapes(inputs)]})
        return plain_schedule(outs, target)

    return bounded_code.with_schedule(implementation, schedule)


def _tiled(tvm, name, outs, target):
    """The schedule of products.py where there is one that keeps to the limits."""
    try:
        with target:
            made = products.tiled_schedule(name, outs, target)
            if made is not None and complaint_about(tvm, made, outs, target) is None:
                return made
    except (TypeError, ValueError, tvm.error.TVMError):
        pass  # an extent that depends on the place, or a stage that cannot be where it is wanted
    return None


def _shapes(tensors):
    return tuple(tuple(int(d) if hasattr(d, "value") else -1 for d in tensor.shape)
                 for tensor in tensors)


@contextmanager
def _as_opencl(tvm, target):
    """The target that schedules are asked for: TVM's know limits of OpenCL that Vulkan has too."""
    twin = target
    if target.kind.name == "vulkan":
        limits = {name: int(target.attrs[name]) for name in (
            "max_num_threads", "max_threads_per_block", "max_shared_memory_per_block")}
        twin = tvm.target.Target({"kind": "opencl", **limits})
    with twin:
        yield twin


def _together(count, target):
    """How many threads make a sum of so many numbers."""
    return _GROUP if count < _LARGE else min(_LARGE_GROUP, int(target.max_num_threads))


def complaint_about(tvm, schedule, outs, target, tensors=None, measured=False):
    """Why the kernels that a schedule makes are not to be taken; None if they are.

    tensors: what goes in and out, where it cannot be told from the results `outs`.  measured:
    whether it is a record's, which was the fastest on a GPU as a whole, its kernels that a single
    thread starts for each group included, as Mali's templates have them to lay out what they read.
    """
    lowered = tvm.lower(schedule.normalize(),
                        tensors or [*bounded_code.placeholders(tvm, outs), *outs])
    row = _longest_row(tvm, outs)
    longest = 0 if row is None else _summed(row)
    most = int(target.max_num_threads)
    shared = int(target.attrs.get("max_shared_memory_per_block", 16384))
    for function in lowered.functions.values():
        for kernel in _kernels(tvm, function.body):
            needs = Needs()
            needs.see(tvm, "", function.with_body(kernel))
            if needs.threads > most:
                return "groups of %d threads, and %d are allowed" % (needs.threads, most)
            if needs.deep > MOST_DEEP:
                return "groups of %d threads in the third dimension, and %d are allowed" % (
                    needs.deep, MOST_DEEP)
            if needs.shared_bytes > shared:
                return "%d bytes of shared memory, and %d are allowed" % (
                    needs.shared_bytes, shared)
            allowed = MOST_GROUPS[target.kind.name]
            if allowed and any(a > b for a, b in zip(needs.groups, allowed)):
                return "%s groups, and %s are allowed" % tuple(
                    " x ".join(map(str, count)) for count in (needs.groups, allowed))
            if _sums_several(tvm, kernel):
                return "groups that sum up several numbers at once"
            if measured:
                continue
            if needs.threads == 1 and _numbers(outs) > _SMALL:
                return "groups of one thread"
            steps = steps_of_a_thread(tvm, kernel)
            if longest and steps >= longest:
                return "threads that sum up %d numbers by themselves" % longest
            # TVM's own reductions have 16 or 32 threads a row, whose group is the only one where
            # there are as few rows.
            if longest >= _LONG_ROW and steps >= _TIMES * longest / (
                    _together(longest, target) * _parts(row)):
                return "threads that take %d steps of sums of %d numbers" % (steps, longest)
    return None


def _sums_several(tvm, kernel):
    """Whether a group's threads together make more than one number at a time, as TVM's schedules
    have it where it cannot tell from the shapes that they do not; it has no code for that."""
    sums, loads = [], []

    def visit(node):
        if isinstance(node, tvm.tir.BufferLoad):
            loads.append(node)
        elif called_operator(node) == "tir.tvm_thread_allreduce":
            count = int(node.args[0])
            sums.extend(result.buffer for result in node.args[2 + count:2 + 2 * count])

    tvm.tir.stmt_functor.post_order_visit(kernel, visit)
    return any(load.buffer.data.same_as(result.data) and int(getattr(index, "value", 1)) != 0
               for load in loads for result in sums for index in load.indices)


def exceeds_limits(tvm, task, config, target):
    """Whether a template of AutoTVM, configured as it was tuned, perhaps on another device, makes
    kernels that the target's GPU cannot start, or nothing at all; never so for a CPU."""
    if target.kind.name not in KINDS:
        return False
    try:
        with _as_opencl(tvm, target):
            schedule, tensors = task.instantiate(config)
        with target:
            return complaint_about(tvm, schedule, tensors[-1:], target, tensors,
                                   measured=True) is not None
    except Exception:
        return True


def _kernels(tvm, body):
    """The outermost statements that are bound to threads: each becomes a kernel."""
    found = []

    def look(node):
        if isinstance(node, tvm.tir.AttrStmt) and node.attr_key == "thread_extent":
            found.append(node)
        elif isinstance(node, tvm.tir.SeqStmt):
            for one in node.seq:
                look(one)
        elif hasattr(node, "body"):
            look(node.body)
        elif isinstance(node, tvm.tir.IfThenElse):
            look(node.then_case)

    look(body)
    return found


def _numbers(outs):
    count = 1
    for extent in outs[0].shape:
        count *= int(extent)
    return count


def _is_plain(tvm, outs):
    """Whether all of it is computed by expressions, and none by a program of its own."""
    seen, stack = set(), [out.op for out in outs]
    while stack:
        op = stack.pop()
        if op in seen:
            continue
        seen.add(op)
        if not isinstance(op, (tvm.te.ComputeOp, tvm.te.PlaceholderOp)):
            return False
        stack.extend(tensor.op for tensor in op.input_tensors)
    return True


def plain_schedule(outs, target):
    """A thread for each number; what is padded or reshaped on the way is computed where it is
    needed, and a sum in the thread that needs it, or, where many do, by a kernel of its own."""
    from tvm import te

    schedule = te.create_schedule([out.op for out in outs])
    final = {out.op for out in outs}
    sums = []
    for stage in schedule.stages:
        op = stage.op
        if not isinstance(op, te.ComputeOp) or op in final:
            continue
        if op.reduce_axis or op.num_outputs != 1:
            sums.append(op)
        else:
            stage.compute_inline()
    in_threads = (len(sums) == 1 and len(outs) == 1 and sums[0].num_outputs == 1
                  and _numbers([sums[0].output(0)]) == _numbers(outs)
                  and not _is_long(sums[0]) and outs[0].op.axis)
    for op in final if in_threads else [*sums, *final]:
        if _is_long(op):
            _sum_long(te, schedule, op, target)
            continue
        if not op.axis:
            raise ValueError("a result without axes")
        stage = schedule[op]
        inner = products.bind_each(te, stage)
        if in_threads:
            schedule[sums[0]].set_scope("local")
            schedule[sums[0]].compute_at(stage, inner)
    return schedule


def _is_long(op):
    """Whether a sum is of so many numbers, and makes so few, that a group should make each."""
    if not op.reduce_axis:
        return False
    few = _FEW_ROWS if _is_along_rows(op) else _FEW
    return _summed(op) >= _GROUP and _numbers([op.output(0)]) <= few


def _summed(op):
    """How many numbers a sum is of; 0 where that depends on the place (adaptive poolings)."""
    count = 1
    for axis in op.reduce_axis:
        count *= int(getattr(axis.dom.extent, "value", 0))
    return count


def _is_along_rows(op):
    """Whether the numbers of a sum lie side by side."""
    import tvm

    last = op.reduce_axis[-1].var
    found = []

    def look(node):
        if isinstance(node, tvm.tir.ProducerLoad) and len(node.indices):
            tvm.tir.stmt_functor.post_order_visit(
                node.indices[-1], lambda part: found.append(part.same_as(last)))

    tvm.tir.stmt_functor.post_order_visit(op.body[0].source[0], look)
    return any(found)


def _longest_row(tvm, outs):
    """Of the long sums of single numbers, not of products, the longest one; None for none."""
    longest, seen, stack = None, set(), [out.op for out in outs]
    while stack:
        op = stack.pop()
        if op in seen:
            continue
        seen.add(op)
        if isinstance(op, tvm.te.ComputeOp) and len(op.input_tensors) == 1 and _is_long(op):
            longest = max(longest or op, op, key=_summed)
        stack.extend(tensor.op for tensor in op.input_tensors)
    return longest


def _parts(op):
    """How many groups make a long sum."""
    return max(1, min(_GROUPS // _numbers([op.output(0)]), _summed(op) // _LARGE))


def _sum_long(te, schedule, op, target):
    """Gives each number a group, or, where there are few of very many, several, whose results a
    second kernel sums up."""
    count, parts = _summed(op), _parts(op)
    if parts > 1:
        stage = schedule[op]
        part, _ = stage.split(stage.fuse(*op.reduce_axis), nparts=parts)
        partial = products.sum_apart(schedule, op, part)
        count = -(-count // parts)
        _group_each(te, schedule, partial, _together(count, target))
        count = parts
    _group_each(te, schedule, op, _together(count, target))


def _group_each(te, schedule, op, threads):
    """A group for each number."""
    products.sum_together(te, schedule, op, threads)
    stage = schedule[op]
    if stage.op.axis:
        stage.bind(stage.fuse(*stage.op.axis), te.thread_axis("blockIdx.x"))
