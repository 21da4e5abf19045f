"""Tuning with the auto-scheduler (Ansor), which makes its own schedules; inside TVM's process."""

import os

from run_model_tools.inside_tvm.tuning.session import Task, signature_of
from run_model_tools.tuning import records

# Trials of one task between two decisions which task to go on with.
ROUND = 16
BUILD_TIMEOUT = 30
RUN_TIMEOUT = 15


class TimeOver(Exception):
    """Ends the task scheduler's loop."""


def tasks(session):
    """(tasks, signature of the network)."""
    from tvm import auto_scheduler

    mod = session.simplified({"relay.backend.use_auto_scheduler": True})
    search_tasks, weights = auto_scheduler.extract_tasks(mod["main"], {}, session.target)
    found = []
    for task, weight in zip(search_tasks, weights):
        item = Task(len(found), str(task.desc), float(task.compute_dag.flop_ct), int(weight),
                    keys=(task.workload_key,))
        item.search = task
        found.append(item)
    return found, signature_of(session)


def tune(session, found):
    """The scheduler of TVM decides which task to go on with: by what its rounds have gained."""
    from tvm import auto_scheduler
    from tvm.auto_scheduler.task_scheduler import TaskSchedulerCallback

    chosen = [task for task in found if session.wanted(task.index)]
    # TVM's reader of these logs ends the process at a line that was cut.
    records.drop_broken_lines(session.log, lambda value: {"i", "r"} <= set(value))
    resumed = session.log if os.path.exists(session.log) and os.path.getsize(session.log) else None

    class Follow(TaskSchedulerCallback):
        """Passes on what was measured, and ends the loop when the time is over."""

        def __init__(self):
            self.seen = 0

        def pre_tune(self, task_scheduler, task_id):
            if session.time_left() <= 0:
                raise TimeOver()
            session.emit("task", index=chosen[task_id].index)

        def post_tune(self, task_scheduler, task_id):
            best = float(task_scheduler.best_costs[task_id])
            for _ in range(task_scheduler.ct - self.seen):
                session.emit("trial", index=chosen[task_id].index,
                             seconds=best if best < records.FAILED_COST else None)
            self.seen = task_scheduler.ct
            if session.time_left() <= 0:
                raise TimeOver()

    total = session.trials or 10 ** 6
    options = auto_scheduler.TuningOptions(
        num_measure_trials=max(total, len(chosen)),
        num_measures_per_round=min(ROUND, max(1, total // len(chosen))),
        builder=_builder(auto_scheduler, session.request),
        runner=_runner(auto_scheduler, session),
        measure_callbacks=[auto_scheduler.RecordToFile(session.log)], verbose=0)
    scheduler = auto_scheduler.TaskScheduler(
        [task.search for task in chosen], [task.occurrences for task in chosen],
        load_log_file=resumed, callbacks=[Follow()])
    try:
        if session.tuner == "xgb":
            scheduler.tune(options, search_policy="sketch.xgb")
        else:
            # Without a model, evolution has nothing to go by: a small population is sampled.
            scheduler.tune(options, search_policy="sketch.random", search_policy_params={
                "evolutionary_search_num_iters": 1, "evolutionary_search_population": 64,
                "sample_init_min_population": 16})
    except TimeOver:
        pass
    return {}


def _builder(auto_scheduler, request):
    options = {"timeout": BUILD_TIMEOUT, "n_parallel": request.get("jobs") or os.cpu_count()}
    if request.get("cc"):
        from tvm.contrib import cc

        # Without it, what is built are objects that the board would have to link.
        options["build_func"] = cc.cross_compiler(request["cc"], output_format="so")
    return auto_scheduler.LocalBuilder(**options)


def _runner(auto_scheduler, session):
    options = {"timeout": RUN_TIMEOUT, "number": 1, "repeat": session.measure.get("repeat", 3),
               "min_repeat_ms": session.measure.get("min_repeat_ms", 20)}
    if session.tracker:
        host, port = session.host_and_port()
        return auto_scheduler.RPCRunner(session.tracker["key"], host, port, **options)
    # Other threads and stale caches are what a network has too: no flush, no pause.
    return auto_scheduler.LocalRunner(enable_cpu_cache_flush=False, cooldown_interval=0.0,
                                      **options)
