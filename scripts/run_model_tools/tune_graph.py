"""Choosing the layouts of a whole graph with AutoTVM's graph tuner; inside TVM's process.

The fastest code of two layers that follow each other may want different layouts, and a conversion in
between.  From AutoTVM's trials of each layer (request["trials_log"]) and measured conversions, the
graph tuner takes for each layer what makes the sum least.
"""

import os

import tunable_layers
import tuning_records
from tuning_worker import Task


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
    trials = [autotvm.record.decode(record.text) for record in records
              if record.kind == "autotvm" and record.key in wanted]
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
                     max_sch_num=session.request.get("candidates", 12), verbose=False,
                     log_file=os.devnull)
        session.emit("stage", text="measuring conversions of layouts")
        tuner.benchmark_layout_transform(
            min_exec_num=session.measure.get("conversions", 50), timeout=30,
            runner=autotvm.LocalRunner(number=1, repeat=1, min_repeat_ms=5, timeout=30,
                                       cooldown_interval=0.0))
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
