"""What of tune_model takes minutes: a tracker, the learned search, the methods other than AutoTVM,
the graph tuner, an evaluation."""

import json
import socket
import subprocess
import time

import numpy as np
import pytest
from tune_model_test import TARGET, workshop  # noqa: F401 -- a fixture

from run_model_tools import environment
from run_model_tools.errors import ToolError
from run_model_tools.targets import find_target
from run_model_tools.tuning import gpus, selection
from run_model_tools.tuning import records as tuning_records
from run_model_tools.tuning.session import TUNERS, learning_packages
from run_model_tools.tuning.weighing import Weighing

pytestmark = [pytest.mark.slow, pytest.mark.skipif(
    TARGET is None, reason="this machine has no named target of its own")]

RUNTIME_DEVICE = 4
"""AutoTVM's number of what failed on the device, and not while it was built."""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture
def tracker(tmp_path):
    """TVM's own tracker, and a server with the key "here"; gives HOST:PORT."""
    port, own, env = free_port(), free_port(), environment.tvm_environment()
    python = str(environment.VENV_PYTHON)
    commands = [
        [python, "-m", "tvm.exec.rpc_tracker", "--host", "127.0.0.1", "--port", str(port),
         "--port-end", str(port + 1)],
        [python, "-m", "tvm.exec.rpc_server", "--host", "127.0.0.1", "--port", str(own),
         "--port-end", str(own + 1), "--tracker", f"127.0.0.1:{port}", "--key", "here"]]
    processes = []
    try:
        for command in commands:
            processes.append(subprocess.Popen(command, env=env, cwd=tmp_path,
                                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", int(command[6]))) == 0:
                        break
                time.sleep(0.2)
        yield f"127.0.0.1:{port}"
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(30)


def test_measuring_through_a_tracker(workshop, tracker):  # noqa: F811
    report = workshop.tune("--trials", "3", "--tracker", tracker, "--device-key", "here")
    method = report["methods"][0]
    assert method["trials"] == 3 and method["failed"] == 0
    header, records, _ = tuning_records.read(workshop.file("autotvm"))
    assert header["measured_on"] == "device here" and records


@pytest.fixture
def own_tracker():
    """This project's rpc_server behind TVM's tracker; gives HOST:PORT."""
    with gpus.served() as address:
        yield address


def test_trials_for_cuda_reach_the_driver(workshop, monkeypatch):  # noqa: F811
    """What stands for NVIDIA's driver takes no code but its own: it says so of each library, and
    the next trial does not wait for the session of the one that failed."""
    built = environment.BUILD_DIR / "host" / "tests" / "runtime" / "devices" / "cuda"
    monkeypatch.setenv("LD_LIBRARY_PATH", str(built / "stand_in"), prepend=":")
    start = time.monotonic()
    report = workshop.tune("--target", "cuda-sm_80", "--device", "cuda", "--trials", "4",
                           "--no-evaluate")
    assert report["measured_on"].startswith("Stand-in GPU") and time.monotonic() - start < 60
    assert report["methods"][0]["failed"] == 4
    trials = (workshop.folder / "logs" / "tiny.cuda-sm_80.autotvm.trials").read_text().splitlines()
    assert [json.loads(line)["result"][1] for line in trials] == [RUNTIME_DEVICE] * 4


@pytest.mark.parametrize(("tuner", "where"), [
    *((tuner, "here") for tuner in TUNERS), ("ga-dqn", "rpc_server"), ("guided", "rpc_server")])
def test_a_layer_of_squeezenet(tmp_path, command, request, tuner, where):
    """Two sessions of six trials each: the second goes on, loses nothing, measures nothing twice
    (but for children of AutoTVM's genetic algorithm) and finds no worse."""
    if tuner == "xgb":
        try:
            learning_packages()
        except ToolError as error:
            pytest.skip(str(error))
    network = environment.BUILD_DIR / "zoo" / "seeded_squeezenet1_1.onnx"
    if not network.is_file():
        pytest.skip(f"{network} is not made")
    board = ["--tracker", request.getfixturevalue("own_tracker"), "--device-key", gpus.KEY] \
        if where == "rpc_server" else []
    best = []
    for _ in range(2):
        result = command("tune_model", str(network), "--kernels", "stock", "--tuner", tuner,
                         "--seed", "1", "--any-layout", "--tasks", "2", "--trials", "6",
                         "--minutes", "5", "--repeat", "1", "--min-repeat-ms", "5",
                         "--no-evaluate", "--records-dir", "records", "--log-dir", "logs",
                         "--json", *board, cwd=tmp_path)
        method = json.loads(result.stdout)["methods"][0]
        assert method["trials"] == 6 and method["failed"] == 0
        _, records, _ = tuning_records.read(next((tmp_path / "records").iterdir()))
        best.append(min(map(Weighing(method["tasks"]).seconds, records)))
    assert best[1] <= best[0]
    log, = (tmp_path / "logs").glob("*.trials")
    tried = [json.loads(r.text)["config"]["index"] for r in tuning_records.read(log)[1]]
    assert len(tried) == 12 and (tuner == "ga" or len(set(tried)) == 12)
    if tuner == "ga-dqn":
        learnt, = (tmp_path / "logs").glob("*.learnt/ga-dqn.*.npz")
        with np.load(learnt) as state:
            about = json.loads(str(state["about"]))
        # What both sessions have measured is in the generation that the networks go on with.
        assert {index for index, _ in about["speeds"]} <= set(tried)


def test_the_learned_search(workshop):  # noqa: F811
    try:
        learning_packages()
    except ToolError as error:
        pytest.skip(str(error))
    # More than the model needs to learn from, over two sessions.
    for trials in (14, 14):
        report = workshop.tune("--trials", str(trials), "--tuner", "xgb", "--tasks", "0",
                               "--any-layout")
    log = workshop.folder / "logs" / f"tiny.{TARGET}.autotvm.trials"
    trials = tuning_records.read(log)[1]
    assert len(trials) == 28 and report["methods"][0]["trials"] == 14
    assert len({json.loads(r.text)["config"]["index"] for r in trials}) == 28


@pytest.mark.parametrize("method", ["auto_scheduler", "metaschedule"])
def test_the_other_methods_measure_and_are_applied(workshop, method):  # noqa: F811
    report = workshop.tune("--method", method, "--trials", "4")
    assert report["methods"][0]["trials"] >= 1
    candidate = workshop.file(method, "logs/candidates")
    assert report["outcome"] == {method: f"not evaluated: left in logs/candidates/{candidate.name}"}
    assert not workshop.file(method).exists()
    header, records, unreadable = tuning_records.read(candidate)
    assert unreadable == 0 and {r.kind for r in records} == {method}
    assert header["layout"] == "NHWC" and len(header["network"]) == 64
    if selection.record_target(find_target("native")) == TARGET:
        metadata = workshop.compile("--tuning-records", candidate, "--target", "native")
        assert metadata["tuning"]["method"] == method
    # In the middle of a write, as a kill leaves it.
    log = workshop.folder / "logs" / f"tiny.{TARGET}.{method}.trials"
    cut = log / "database_tuning_record.json" if method == "metaschedule" else log
    whole = cut.read_text()
    cut.write_text(whole + whole[:60])
    again = workshop.tune("--method", method, "--minutes", "0")
    assert again["methods"][0]["records"]["new"] == len(records)


def test_the_graph_tuner_and_an_evaluation(workshop, command):  # noqa: F811
    report = workshop.tune("--trials", "8", "--graph-tuner")
    assert report["methods"][0]["graph"]["chosen"] == 1
    candidate = workshop.file("graph", "logs/candidates")
    header, records, _ = tuning_records.read(candidate)
    assert len(records) == 1 and len(header["network"]) == 64
    assert not workshop.file("graph").exists()
    evaluated = command("tune_model", "tiny.onnx", "--records-dir", "records", "--log-dir", "logs",
                        "--minutes", "0", "--graph-tuner", "--evaluate-seconds", "1", "--json",
                        cwd=workshop.folder)
    result = json.loads(evaluated.stdout)
    assert set(result["evaluation"]) == {"untuned", "autotvm", "graph"}
    assert result["evaluation"]["untuned"]["ratio"] == 1
    assert all(times["min_ms"] > 0 and times["runs"] >= 3
               for times in result["evaluation"].values())
    kept = [kind for kind, outcome in result["outcome"].items() if outcome == "kept"]
    # Only what was faster may be in place as a whole network's choice.
    assert workshop.file("graph").exists() == ("graph" in kept)
