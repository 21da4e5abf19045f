"""Tuning with MetaSchedule, which makes its own schedules; inside TVM's process.

request["log"] is a folder here: MetaSchedule's database of two tables.
"""

import os
import sys
from contextlib import contextmanager

from run_model_tools.inside_tvm.tuning.session import Task, signature_of
from run_model_tools.tuning import records

ROUND = 16
BUILD_TIMEOUT = 30
RUN_TIMEOUT = 15


class TimeOver(Exception):
    """Ends the task scheduler's loop."""


@contextmanager
def flat_weights():
    """While it is open, TVM takes products whose weights MetaSchedule has laid out along one axis.

    It counts the axes of weights before it gives them the shape that they had.
    """
    from tvm import auto_scheduler, topi

    module = sys.modules[topi.nn.dense.__module__]  # by its name topi.nn has the function
    original = module.matmul

    def matmul(a, b, bias=None, dtype=None, turned_a=False, turned_b=False, layout="", shape=None):
        if shape:
            auto_scheduler.relay_integration.rewrite_tensor_shape(b, shape)
        return original(a, b, bias, dtype, turned_a, turned_b, layout, shape)

    module.matmul = topi.nn.matmul = matmul
    try:
        yield
    finally:
        module.matmul = topi.nn.matmul = original


def tasks(session):
    """(tasks, signature of the network)."""
    from tvm import meta_schedule

    config = {"relay.backend.use_meta_schedule": True, "relay.backend.tir_converter": "default"}
    found = []
    for extracted in meta_schedule.relay_integration.extract_tasks(
            session.simplified(config), _with_cores(session), {}):
        if not _worth_tuning(session.tvm, extracted):
            continue
        item = Task(len(found), str(extracted.task_name), _flops(session.tvm, extracted),
                    int(extracted.weight))
        item.extracted = extracted
        found.append(item)
    return found, signature_of(session)


def tune(session, found):
    """MetaSchedule's scheduler decides which task to go on with: by what its rounds have gained."""
    import tempfile

    from tvm import meta_schedule

    chosen = [task for task in found if session.wanted(task.index)]
    os.makedirs(session.log, exist_ok=True)
    _drop_broken_lines(session.log)
    with tempfile.TemporaryDirectory(prefix="run_model-") as folder:
        contexts, weights = meta_schedule.relay_integration.extracted_tasks_to_tune_contexts(
            [task.extracted for task in chosen], folder, num_tuning_cores=session.threads, seed=1,
            # Without a model, evolution has nothing to go by.
            strategy="evolutionary" if session.tuner == "xgb" else "replay-trace")
        database = meta_schedule.database.JSONDatabase(work_dir=session.log)
        callbacks = [meta_schedule.measure_callback.AddToDatabase(),
                     meta_schedule.measure_callback.RemoveBuildArtifact(),
                     meta_schedule.measure_callback.UpdateCostModel(), _follow(session, chosen)]
        evaluator = meta_schedule.runner.EvaluatorConfig(
            number=1, repeat=session.measure.get("repeat", 3),
            min_repeat_ms=session.measure.get("min_repeat_ms", 20), enable_cpu_cache_flush=False)
        total = session.trials or 10 ** 6
        try:
            meta_schedule.tune.tune_tasks(
                tasks=contexts, task_weights=weights, work_dir=folder, max_trials_global=total,
                num_trials_per_iter=min(ROUND, max(1, total // len(chosen))),
                builder=meta_schedule.builder.LocalBuilder(
                    max_workers=session.request.get("jobs") or os.cpu_count(),
                    timeout_sec=BUILD_TIMEOUT),
                runner=_runner(meta_schedule, session, evaluator), database=database,
                cost_model="xgb" if session.tuner == "xgb" else "random",
                measure_callbacks=callbacks)
        except Exception as error:
            # Through TVM's C++ side, an exception comes back as one of its own.
            if "TimeOver" not in str(error) and not isinstance(error, TimeOver):
                raise
    return {}


def _follow(session, chosen):
    from tvm.meta_schedule.measure_callback import PyMeasureCallback
    from tvm.meta_schedule.utils import derived_object

    @derived_object
    class Follow(PyMeasureCallback):
        """Passes on what was measured, and ends the loop when the time is over."""

        def apply(self, task_scheduler, task_id, measure_candidates, builder_results,
                  runner_results):
            session.emit("task", index=chosen[int(task_id)].index)
            for result in runner_results:
                costs = [float(s) for s in result.run_secs] if result.error_msg is None else None
                session.emit("trial", index=chosen[int(task_id)].index,
                             seconds=min(costs) if costs else None)
            if session.time_left() <= 0:
                raise TimeOver("TimeOver")

    return Follow()


def _runner(meta_schedule, session, evaluator):
    if session.tracker:
        host, port = session.host_and_port()
        config = meta_schedule.runner.RPCConfig(
            tracker_host=host, tracker_port=port, tracker_key=session.tracker["key"],
            session_timeout_sec=60)
        return meta_schedule.runner.RPCRunner(rpc_config=config, evaluator_config=evaluator,
                                              max_workers=1)
    return meta_schedule.runner.LocalRunner(timeout_sec=RUN_TIMEOUT, evaluator_config=evaluator)


def _with_cores(session):
    """The target with the number of cores, which MetaSchedule's rules ask for."""
    text = str(session.target)
    if "-num-cores" not in text:
        text += " -num-cores=%d" % session.threads
    return session.tvm.target.Target(text)


def _worth_tuning(tvm, extracted):
    """What reduces something: all else is as fast as memory is, whatever its schedule."""
    function = extracted.dispatched[0]["main"]
    found = []

    def visit(node):
        if isinstance(node, tvm.tir.Block) and any(
                int(var.iter_type) == tvm.tir.IterVar.CommReduce for var in node.iter_vars):
            found.append(node)

    tvm.tir.stmt_functor.post_order_visit(function.body, visit)
    return bool(found)


def _flops(tvm, extracted):
    try:
        return float(tvm.tir.analysis.estimate_tir_flops(extracted.dispatched[0]))
    except Exception:
        return 1.0


def _drop_broken_lines(folder):
    """TVM's reader takes no line that was cut; a record without its workload goes too."""
    workloads = os.path.join(folder, "database_workload.json")
    table = os.path.join(folder, "database_tuning_record.json")
    count = records.drop_broken_lines(workloads, lambda value: len(value) == 2)
    records.drop_broken_lines(table, lambda value: len(value) == 2 and value[0] < count)
