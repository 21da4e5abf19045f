"""AutoTVM and auto_scheduler measure on the server, which they get from TVM's tracker."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from board import IS_NATIVE
from conftest import ROOT
from server_process import TARGET
from tvm import auto_scheduler, autotvm, te
from tvm.testing.auto_scheduler import matmul_auto_scheduler_test
from workloads import BOARD_TARGET, LINK

KEY = "oven"
TRIALS = 4 if IS_NATIVE else 2


@autotvm.template("run_model/rpc_test/matmul")
def matmul(n: int):
    a, b = (te.placeholder((n, n), name=name, dtype="float32") for name in "ab")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    schedule = te.create_schedule(c.op)
    config = autotvm.get_config()
    y, x = schedule[c].op.axis
    config.define_split("tile_y", y, num_outputs=2)
    config.define_split("tile_x", x, num_outputs=2)
    outer_y, inner_y = config["tile_y"].apply(schedule, c, y)
    outer_x, inner_x = config["tile_x"].apply(schedule, c, x)
    schedule[c].reorder(outer_y, outer_x, schedule[c].op.reduce_axis[0], inner_y, inner_x)
    return schedule, [a, b, c]


@pytest.fixture
def board(start_server, tracker):
    """The server, registered; the tracker's address, after the check that all is as before."""
    server = start_server("--tracker", f"{tracker.host}:{tracker.port}", "--key", KEY)
    yield tracker
    server.wait_until_idle()
    assert "SIG" not in server.log()


def test_autotvm(board):
    task = autotvm.task.create("run_model/rpc_test/matmul", args=(64,), target=BOARD_TARGET)
    # .so instead of the default, a .tar of objects that the board would have to link.
    builder = autotvm.LocalBuilder(build_func=LINK, do_fork=True, n_parallel=2, timeout=60)
    runner = autotvm.RPCRunner(KEY, host=board.host, port=board.port, number=2, repeat=2,
                               timeout=60, min_repeat_ms=0, enable_cpu_cache_flush=IS_NATIVE)
    results = []
    tuner = autotvm.tuner.GridSearchTuner(task)
    tuner.tune(n_trial=TRIALS, measure_option=autotvm.measure_option(builder, runner),
               callbacks=[lambda _, inputs, measured: results.extend(measured)])
    assert len(results) == TRIALS
    for result in results:
        assert result.error_no == 0, result
        assert len(result.costs) == 2 and min(result.costs) > 0


def test_auto_scheduler(board, tmp_path):
    task = auto_scheduler.SearchTask(func=matmul_auto_scheduler_test, args=(64, 64, 64),
                                     target=BOARD_TARGET)
    policy = auto_scheduler.SketchPolicy(
        task, program_cost_model=auto_scheduler.RandomModel(), verbose=0,
        params={"evolutionary_search_num_iters": 1, "evolutionary_search_population": 32,
                "sample_init_min_population": 8})
    log = tmp_path / "records.json"
    task.tune(auto_scheduler.TuningOptions(
        num_measure_trials=TRIALS, num_measures_per_round=TRIALS, verbose=0,
        builder=auto_scheduler.LocalBuilder(build_func=LINK, timeout=60, n_parallel=2),
        runner=auto_scheduler.RPCRunner(KEY, board.host, board.port, number=2, repeat=2, timeout=60,
                                        min_repeat_ms=0, enable_cpu_cache_flush=IS_NATIVE),
        measure_callbacks=[auto_scheduler.RecordToFile(str(log))]), policy)
    records = list(auto_scheduler.load_records(str(log)))
    assert len(records) == TRIALS
    for _, result in records:
        assert result.error_no == 0, result.error_msg
        assert len(result.costs) == 2 and min(float(cost) for cost in result.costs) > 0


@pytest.mark.skipif(not IS_NATIVE, reason="it measures the natively compiled network")
@pytest.mark.slow
@pytest.mark.parametrize("method", ["autotvm", "auto_scheduler"])
def test_tune_model_of_this_project(board, tmp_path, method):
    """scripts/tune_model --tracker with the server as the board."""
    from run_model_tools.targets import find_target
    from run_model_tools.tuning import selection

    if selection.record_target(find_target(TARGET)) is None:
        pytest.skip("this machine has no named target of its own")
    make = ("import pathlib, sys; from small_networks import save_classifier; "
            "save_classifier(pathlib.Path(sys.argv[1]))")
    subprocess.run([sys.executable, "-c", make, str(tmp_path / "tiny.onnx")], cwd=ROOT / "tests",
                   check=True)
    tuned = subprocess.run(
        [str(ROOT / "scripts" / "tune_model"), "tiny.onnx", "--records-dir", "records", "--log-dir",
         "logs", "--kernels", "stock", "--tuner", "random", "--repeat", "1", "--min-repeat-ms", "1",
         "--minutes", "2", "--trials", "4", "--no-evaluate", "--json", "--method", method,
         "--tracker", f"{board.host}:{board.port}", "--device-key", KEY],
        cwd=tmp_path, capture_output=True, text=True, check=False)
    assert tuned.returncode == 0, tuned.stderr
    [report] = json.loads(tuned.stdout)["methods"]
    assert report["trials"] >= 1 and report["failed"] == 0
