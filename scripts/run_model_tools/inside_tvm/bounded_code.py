"""Keeps TVM's schedules from making code of a layer that LLVM needs for ever to compile.

Some schedules unroll whole kernels and vectorise whole rows, which for a shape that nobody had in
mind (a Conv1d over a second of sound) gives functions that LLVM's optimiser does not finish in an
hour.  How much code a schedule makes is counted before LLVM sees it, and beyond a limit a plain
schedule takes its place, whose code is small whatever the shape.  Counting instead of waiting: the
same network gives the same files on any machine, however busy.
"""

import os
from contextlib import contextmanager

from run_model_tools.inside_tvm import is_supported

LIMIT_VARIABLE = "RUN_MODEL_CODE_LIMIT"
LIMIT = 5000
"""Of count_operations().  Layers of image networks have 20 to 500.  Rows of 1000 and 4000 numbers,
four apart, which LLVM did not finish in minutes, come to 15,000 and 250,000."""

_LANES = 16
_LONG = 64
_SMALL = ("injective", "run_model")
"""What schedules are called whose code is small for any shape."""


@contextmanager
def bounded_code(tvm, notes, at_work=lambda layer: None):
    """While it is open, layers beyond the limit get a plain schedule; `notes` says which.

    A note is {"operator", "shapes", "schedule", "limit"}.  at_work: is told of every layer, in
    words.
    """
    if not is_supported(tvm):
        yield
        return
    limit = int(os.environ.get(LIMIT_VARIABLE, LIMIT))

    def select(original, op, attrs, inputs, out_type, target, *rest):
        at_work("%s %s" % (op.name, " ".join(_words(tensor) for tensor in list(inputs)[:2])))
        chosen, outputs = original(op, attrs, inputs, out_type, target, *rest)
        if target.kind.name not in ("llvm", "c") or chosen.name.startswith(_SMALL):
            return chosen, outputs
        return _bounded(tvm, op, inputs, chosen, limit, notes), outputs

    with selecting(select):
        yield


@contextmanager
def selecting(select):
    """While it is open, select(TVM's select_implementation, its arguments ...) is called for it."""
    from tvm.relay.backend import te_compiler

    original = te_compiler.select_implementation

    def select_implementation(op, attrs, inputs, out_type, target, use_autotvm=True):
        return select(original, op, attrs, inputs, out_type, target, use_autotvm)

    te_compiler.select_implementation = select_implementation
    try:
        yield
    finally:
        te_compiler.select_implementation = original


def implementation_of(compute, schedule, name, plevel=10):
    """An implementation of an operator, as TVM's strategies have them."""
    from tvm import relay

    strategy = relay.op.OpStrategy()
    strategy.add_implementation(compute, schedule, name=name, plevel=plevel)
    return strategy.specializations[0].implementations[0]


def with_schedule(implementation, schedule):
    """That implementation of an operator, with another schedule."""
    return implementation_of(implementation.compute, schedule, implementation.name,
                             implementation.plevel)


def _bounded(tvm, op, inputs, implementation, limit, notes):
    """The implementation with a schedule that looks at what it would make."""
    def schedule(attrs, outs, target):
        with target:
            made = implementation.schedule(attrs, outs, target)
            operations = count_operations(tvm, made, outs, limit)
            if operations <= limit:
                return made
            notes.append({
                "operator": op.name, "schedule": implementation.name, "limit": limit,
                "shapes": [[int(d) for d in tensor.shape] for tensor in inputs]})
            return plain_schedule(outs)

    return with_schedule(implementation, schedule)


def _words(tensor):
    return "x".join(str(d) for d in tensor.shape)


def is_measured(outs, target, name=None):
    """Whether a layer's template, or only one of this name, is configured by a tuning record."""
    from tvm.autotvm.task import DispatchContext
    from tvm.autotvm.task.topi_integration import get_workload

    workload = get_workload(outs, name)
    return workload is not None and not DispatchContext.current.query(
        target, workload).is_fallback


class _Enough(Exception):
    pass


def count_operations(tvm, schedule, outs, limit):
    """How many operations on registers of 16 numbers the code of a schedule has, not how many it
    executes, long vectors of scattered numbers counted for more; a number above `limit` as soon as
    there are more."""
    count = 0

    def visit(node):
        nonlocal count
        if isinstance(node, tvm.tir.Ramp) and not tvm.tir.analysis.expr_deep_equal(
                node.stride, tvm.tir.const(1, node.stride.dtype)):
            # Numbers apart from each other are loaded one by one, and LLVM looks for patterns
            # among all of a vector's: the time that it takes is more than in proportion to them.
            count += int(node.lanes) * max(1, int(node.lanes) // _LONG)
        elif isinstance(node, tvm.tir.PrimExpr):
            count += max(1, tvm.DataType(node.dtype).lanes // _LANES)
        if count > limit:
            raise _Enough

    lowered = tvm.lower(schedule.normalize(), [*placeholders(tvm, outs), *outs])
    try:
        for function in lowered.functions.values():
            tvm.tir.stmt_functor.post_order_visit(function.body, visit)
    except Exception as error:
        if count <= limit:
            raise error
    return count


def placeholders(tvm, outs):
    """What the outputs are computed of, each once."""
    found, seen, stack = [], set(), list(outs)
    while stack:
        tensor = stack.pop()
        # Tensors without axes refuse to be compared by ==.
        key = (tensor.op, int(tensor.value_index))
        if key in seen:
            continue
        seen.add(key)
        if isinstance(tensor.op, tvm.te.PlaceholderOp):
            found.append(tensor)
        stack.extend(tensor.op.input_tensors)
    return found


def plain_schedule(outs):
    """Loops as they are written, outer ones in parallel, the innermost in vectors where nothing is
    summed; what is padded or reshaped on the way is computed where it is needed."""
    from tvm import te

    schedule = te.create_schedule([out.op for out in outs])
    final = {out.op for out in outs}
    for stage in schedule.stages:
        if not isinstance(stage.op, te.ComputeOp) or not stage.op.axis:
            continue
        if stage.op not in final and not stage.op.reduce_axis:
            stage.compute_inline()
            continue
        axes = list(stage.op.axis)
        if len(axes) > 1:
            stage.parallel(stage.fuse(*axes[:-1]))
        if not stage.op.reduce_axis and len(axes) > 1:
            stage.vectorize(stage.split(axes[-1], factor=_LANES)[1])
    return schedule
