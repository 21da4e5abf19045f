"""Choosing the layouts of a whole graph with AutoTVM's graph tuner; inside TVM's process.

The fastest code of two layers that follow each other may want different layouts, and a conversion
in between.  From AutoTVM's trials of each layer (request["trials_log"]) and measured conversions,
the graph tuner takes for each layer what makes the sum least.
"""

import hashlib
import json
import math
import os
import time

import numpy as np

from run_model_tools.inside_tvm.tuning import tunable_layers
from run_model_tools.inside_tvm.tuning.session import Task
from run_model_tools.tuning import records as tuning_records
from run_model_tools.tuning.weighing import BYTES_PER_SECOND

# How long conversions are measured at most.
SECONDS = 60


def tasks(session):
    """(one task for each convolution, signature of the network)."""
    layers, sequence = tunable_layers.find(session.tvm, session.simplified(), session.target)
    session.layers, session.sequence = layers, sequence
    places = [index for index in sequence if layers[index].operator == "nn.conv2d"]
    found = [Task(number, layers[place].templates[0][0], 0.0, 1, keys=tuple(layers[place].keys()))
             for number, place in enumerate(places)]
    return found, tunable_layers.signature(layers, sequence)


def tune(session, found):
    """Writes request["log"]: one record for each convolution, in the graph's order."""
    from tvm import autotvm, relay
    from tvm.autotvm.graph_tuner import DPTuner, PBQPTuner

    wanted = {key for task in found for key in task.keys}
    _, records, _ = tuning_records.read(session.request["trials_log"])
    trials = []
    for record in _worth_weighing([r for r in records if r.kind == "autotvm" and r.key in wanted]):
        inp, result = autotvm.record.decode(record.text)
        # The graph tuner looks at the first time only.
        trials.append((inp, result._replace(costs=(record.seconds,))))
    missing = sum(1 for task in found
                  if not any(record.key in task.keys for record in records))
    if missing:
        return {"missing": missing}
    mod = session.simplified()
    inputs = {str(var.name_hint): [int(d) for d in var.checked_type.shape]
              for var in mod["main"].params}
    failure = None
    for make in (DPTuner, PBQPTuner):
        tuner = make(mod["main"], inputs, trials, [relay.op.get("nn.conv2d")], session.target,
                     max_sch_num=session.request.get("candidates", 8), verbose=False,
                     log_file=os.devnull)
        session.emit("stage", text="measuring conversions of layouts")
        # Those that are not measured are taken to cost as much for each element as the others do.
        tuner.benchmark_layout_transform(layout_records=_conversions(session, tuner),
                                         infer_layout=True)
        session.emit("stage", text="choosing layouts")
        try:
            tuner.run()
        except Exception as error:
            failure = error
            continue
        chosen = tuner.get_optimal_records()
        with open(session.log, "w", encoding="utf-8") as file:
            for inp, result in chosen:
                file.write(autotvm.record.encode(inp, result) + "\n")
        return {"chosen": len(chosen), "tuner": make.__name__}
    raise failure


def _worth_weighing(records):
    """Leaves out what cannot be best in any graph: converting to the fastest layout costs less.

    The graph tuner does not see that by itself where its candidates are few.
    """
    best = tuning_records.best(records)
    kept = []
    for record in records:
        data, weight, strides = json.loads(record.key)[1][:3]
        moved = math.prod(data[1]) + weight[1][0] * math.prod(data[1][2:]) // math.prod(strides)
        conversions = 2 * 4 * moved / BYTES_PER_SECOND
        if record.seconds <= best[record.key].seconds + conversions:
            kept.append(record)
    return kept


def _conversions(session, tuner):
    """Times of the graph's possible conversions, as records; as many as SECONDS allow.

    TVM's own measurement starts a process for each of several hundred.
    """
    from tvm import autotvm

    wanted = {}

    def note(_from_node, _to_node, _from_choice, _to_choice, arguments):
        _, source, target = arguments
        if source != target:
            workload = autotvm.task.args_to_workload(arguments, "layout_transform")
            wanted.setdefault(workload, arguments)

    tuner._iterate_layout_transform(note)
    records, end = [], time.monotonic() + SECONDS
    # Spread over all of them, whatever their order, in case the time is not enough.
    order = sorted(wanted, key=lambda workload: hashlib.sha256(repr(workload).encode()).digest())
    for workload in order:
        if time.monotonic() > end and records:
            break
        seconds = _time_conversion(session, wanted[workload])
        if seconds is not None:
            records.append(_record(autotvm, session.target, workload, seconds))
    return records


def _time_conversion(session, arguments):
    """Seconds of one conversion; None where the layouts do not fit the shape.

    A device behind a tracker is not asked: its memory is taken to move BYTES_PER_SECOND.
    """
    from tvm import topi

    data, source, target = arguments
    elements = int(np.prod([int(extent) for extent in data.shape]))
    if session.tracker:
        return 2 * 4 * elements / BYTES_PER_SECOND
    try:
        output = topi.layout_transform(data, source, target)
        if int(np.prod([int(extent) for extent in output.shape])) != elements:
            return None
        with session.target:
            schedule = topi.x86.schedule_injective([output])
            function = session.tvm.build(schedule, [data, output], target=session.target)
    except Exception:
        return None
    arrays = [session.tvm.nd.array(np.zeros([int(e) for e in tensor.shape], tensor.dtype))
              for tensor in (data, output)]
    timer = function.time_evaluator(function.entry_name, session.tvm.cpu(0), number=1, repeat=3,
                                    min_repeat_ms=2)
    return min(timer(*arrays).results)


def _record(autotvm, target, workload, seconds):
    task = autotvm.task.Task(workload[0], workload[1:])
    return (autotvm.measure.MeasureInput(target, task, None),
            autotvm.measure.MeasureResult((seconds,), 0, 0, 0))
