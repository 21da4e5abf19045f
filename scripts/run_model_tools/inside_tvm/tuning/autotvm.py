"""Tuning with AutoTVM's templates, each layer for its share of the time; inside TVM's process."""

import hashlib
import os
import time

from run_model_tools.inside_tvm.devices.code import generators
from run_model_tools.inside_tvm.tuning import tunable_layers, untuned
from run_model_tools.inside_tvm.tuning.measuring import DeviceBuild, PromptLoader
from run_model_tools.inside_tvm.tuning.session import Task, share
from run_model_tools.inside_tvm.tuning.tasks import tuples
from run_model_tools.tuning import records

BUILD_TIMEOUT = 30
RUN_TIMEOUT = 15


def tasks(session):
    """(tasks, signature of the network): one task for each template of each layer."""
    from tvm import autotvm

    layers, sequence = tunable_layers.find(session.tvm, session.simplified(), session.target)
    found = []
    for layer in layers:
        for (name, arguments), key in zip(layer.templates, layer.keys()):
            with session.target:
                task = autotvm.task.create(name, tuples(arguments), target=session.target)
            if not session.request.get("any_layout"):
                _keep_common_layouts(task, arguments, session.vector_lanes())
            item = Task(len(found), "%s %s" % (name, _shapes(arguments)), float(task.flop),
                        layer.occurrences, _bytes(arguments), len(task.config_space), (key,),
                        untuned.find(task))
            item.autotvm = task
            found.append(item)
    return found, tunable_layers.signature(layers, sequence)


def _keep_common_layouts(task, arguments, lanes):
    """Leaves out blocks of channels that the layers before and after would have to convert to.

    A layer that is fastest by itself in blocks of, say, 24 costs a conversion on either side, which
    is often more than it gains.  So all layers work in blocks of one vector where their channels
    allow it.  What needs more registers than there are is left out too.
    """
    if not task.name.endswith("conv2d_NCHWc.x86"):
        return
    depthwise = task.name.startswith("depthwise")
    inputs = _common_blocks(arguments[0][1][1], lanes)
    outputs = inputs if depthwise else _common_blocks(arguments[1][1][0], lanes)
    registers = 32 if lanes == 16 else 16

    def usable(entity):
        block_in, block_out = entity["tile_ic"].size[-1], entity["tile_oc"].size[-1]
        # Some over the limit are fast all the same, since LLVM reloads a few.
        sums = -(-block_out // lanes) * entity["tile_ow"].size[-1]
        return (block_in in inputs and block_out in outputs and sums <= 1.15 * registers
                and (not depthwise or block_in == block_out))

    space = task.config_space
    space.multi_filter(usable)
    if not len(space):
        space.multi_filter(lambda entity: True)


def _common_blocks(channels, lanes):
    """The blocks that layers of so many channels are to have in common."""
    if channels % lanes == 0:
        return {lanes}
    if channels % 8 == 0:
        return {8} if channels >= 32 else {8, channels}
    return {size for size in range(1, min(channels, 64) + 1)
            if channels % size == 0 and (size > 1 or channels < 3)}


def tune(session, found):
    """Measures until the time is over; what one task leaves of its share goes to the others."""
    from tvm import autotvm

    records.mend(session.log)
    earlier = _earlier(session.log)
    option = autotvm.measure_option(builder=_builder(autotvm, session),
                                    runner=_runner(autotvm, session))
    waiting = sorted((t for t in found if session.wanted(t.index)), key=lambda t: -t.weight())
    trials = session.trials
    while waiting and session.time_left() > 0 and (trials is None or trials > 0):
        weights = [task.weight() for task in waiting]
        unfinished, measured_in_pass = [], 0
        for place, task in enumerate(waiting):
            if session.time_left() <= 0 or (trials is not None and trials <= 0):
                break
            count = None
            if trials is not None:
                # One at least is left for each of the others.
                others = len(waiting) - place - 1
                count = max(1, min(round(share(trials, weights, place)), trials - others))
            until = time.monotonic() + share(session.time_left(), weights, place)
            session.emit("task", index=task.index)
            measured, finished = _tune_one(session, task, until, count, option, earlier)
            measured_in_pass += measured
            trials = None if trials is None else trials - measured
            if not finished:
                unfinished.append(task)
        if not measured_in_pass:
            break
        waiting = unfinished
    return {}


def _tune_one(session, task, until, count, option, earlier):
    """(trials measured, whether nothing more is to be expected)."""
    from tvm import autotvm

    from run_model_tools.inside_tvm.tuning.tuners import PLAN_SIZE, Only, make_tuner, resume

    space = task.autotvm.config_space
    before, measured = earlier.setdefault(task.keys[0], []), []

    def note(_tuner, inputs, results):
        with open(session.log, "a", encoding="utf-8") as file:
            for inp, result in zip(inputs, results):
                file.write(autotvm.record.encode(inp, result) + "\n")
        for inp, result in zip(inputs, results):
            measured.append(result)
            before.append((inp, result))
            seconds = min(result.costs) if result.error_no == 0 else None
            session.emit("trial", index=task.index, seconds=seconds)

    default = task.untuned[0] if task.untuned else None
    if default is not None and all(inp.config.index != default for inp, _ in before):
        Only(task.autotvm, default).tune(n_trial=1, measure_option=option, callbacks=[note])
    tuner = make_tuner(session.tuner, task.autotvm, session.seed, _state_file(session, task),
                       lambda: _experience(session, task))
    resume(tuner, task.autotvm, [trial for trial in before
                                 if space.is_index_valid(trial[0].config.index)])
    original = tuner.has_next
    tuner.has_next = lambda: time.monotonic() < until and original()
    # Without a better one in so many trials, more of them rarely help.
    patience = session.request.get("patience") or max(2 * PLAN_SIZE, len(space) // 8)
    limit = len(space) if count is None else count - len(measured)
    tuner.tune(n_trial=limit, early_stopping=patience, measure_option=option, callbacks=[note])
    gone = len(before) >= len(space) or not original()
    stopped_early = time.monotonic() < until and (count is None or len(measured) < count)
    return len(measured), gone or stopped_early


def _experience(session, task):
    """What other layers have taught, measured now or in earlier sessions, and other machines."""
    from pathlib import Path

    from run_model_tools.tuners.experience import Experience
    from run_model_tools.tuners.experience_files import elsewhere, gather

    files = {kind: [Path(path) for path in paths]
             for kind, paths in (session.request.get("experience") or {}).items()}
    foreign = elsewhere(task.keys[0], str(task.autotvm.target), files.pop("history", ()))
    own = gather(task.autotvm.name, str(task.autotvm.target), task.keys[0], **files)
    return Experience(own + foreign, foreign=bool(foreign))


def _state_file(session, task):
    """Where a tuner that learns keeps what it has learnt of a task."""
    folder = session.log + ".learnt"
    os.makedirs(folder, exist_ok=True)
    name = hashlib.sha256(repr((task.keys[0], task.space)).encode()).hexdigest()[:16]
    return os.path.join(folder, "%s.%s.npz" % (session.tuner, name))


def _earlier(path):
    """The log's trials by workload; those that failed count as tried too."""
    import json

    from tvm import autotvm

    trials = {}
    if not path or not os.path.exists(path):
        return trials
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                template, arguments = json.loads(line)["input"][1:3]
                trial = autotvm.record.decode(line)
            except Exception:
                continue
            if trial is not None and trial[0].config.index is not None:
                trials.setdefault(records.workload_key(template, arguments), []).append(trial)
    return trials


def _builder(autotvm, session):
    request = session.request
    options = {"n_parallel": request.get("jobs") or os.cpu_count(), "timeout": BUILD_TIMEOUT}
    if request.get("cc"):
        from tvm.contrib import cc

        compiler = cc.cross_compiler(request["cc"])
        compiler.output_format = "so"
        options["build_func"] = compiler
    # Forked builders start at once; those that are spawned import TVM for seconds each.
    builder = autotvm.LocalBuilder(do_fork=True, **options)
    if session.target.kind.name in generators.WRITERS:
        builder.build_func = DeviceBuild(request)
    return builder


def _runner(autotvm, session):
    # A GPU's driver compiles the kernels when they are run first.
    options = {"timeout": (4 if session.is_gpu else 1) * RUN_TIMEOUT, "number": 1,
               "repeat": session.measure.get("repeat", 3),
               "min_repeat_ms": session.measure.get("min_repeat_ms", 20)}
    if session.tracker:
        host, port = session.host_and_port()
        return autotvm.RPCRunner(session.tracker["key"], host=host, port=port,
                                 module_loader=PromptLoader(), **options)
    return autotvm.LocalRunner(cooldown_interval=0.0, **options)


def _tensors(arguments):
    return [a for a in arguments if isinstance(a, list) and a and a[0] == "TENSOR"]


def _shapes(arguments):
    """"1x3x224x224, 64x3x7x7 /2": the tensors, and the stride where there is one."""
    text = ", ".join("x".join(map(str, tensor[1])) for tensor in _tensors(arguments))
    strides = next((a for a in arguments if isinstance(a, list) and len(a) == 2
                    and all(isinstance(i, int) for i in a)), None)
    return text + (" /%d" % strides[0] if strides and strides[0] != 1 else "")


def _bytes(arguments):
    """How many bytes the inputs have; the output is of their order."""
    total = 0
    for _, shape, dtype in _tensors(arguments):
        size = int("".join(c for c in dtype if c.isdigit()) or 32) // 8
        for extent in shape:
            size *= extent
        total += size
    return float(total)
