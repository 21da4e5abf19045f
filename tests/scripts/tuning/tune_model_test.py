"""tune_model as a user runs it, with a handful of real trials of a tiny network."""

import json
import shutil
import signal
import subprocess
import textwrap
import time

import numpy as np
import pytest
from records_test import line

from run_model_tools import environment
from run_model_tools.environment import REPO_ROOT
from run_model_tools.targets import find_target
from run_model_tools.tuning import records as tuning_records
from run_model_tools.tuning import selection
from run_model_tools.tuning.progress import Progress
from run_model_tools.tuning.weighing import Weighing
from small_networks import save_classifier, save_network, weights

TARGET = selection.record_target(find_target("native"))
QUICK = ("--kernels", "stock", "--tuner", "random", "--repeat", "1",
         "--min-repeat-ms", "1", "--minutes", "2", "--no-evaluate", "--json")

pytestmark = pytest.mark.skipif(TARGET is None,
                                reason="this machine has no named target of its own")


class Workshop:
    """A folder with tiny.onnx, and tune_model and compile_model run in it."""

    def __init__(self, folder, command):
        self.folder = folder
        self._command = command
        save_classifier(folder / "tiny.onnx")

    def tune(self, *flags):
        result = self._command("tune_model", "tiny.onnx", "--records-dir", "records", "--log-dir",
                               "logs", *QUICK, *flags, cwd=self.folder)
        assert result.stderr == ""
        return json.loads(result.stdout)

    def compile(self, *flags):
        result = self._command("compile_model", "tiny.onnx", "--target", TARGET, "--kernels",
                               "stock", "--json", *flags, cwd=self.folder)
        return json.loads(result.stdout)["metadata"]

    def file(self, kind, place="records"):
        return self.folder / place / f"tiny.{TARGET}.{kind}"


@pytest.fixture
def workshop(tmp_path, command):
    return Workshop(tmp_path, command)


def test_tasks_are_listed_without_measuring(workshop):
    report = workshop.tune("--list")
    assert [task["name"].split()[0] for task in report["tasks"]] == [
        "conv2d_NCHWc.x86", "dense_pack.x86", "dense_nopack.x86"]
    convolution = report["tasks"][0]
    # 4 x 8 x 8 outputs of 3 x 3 x 3 products and sums each; TVM counts some of the padding too.
    assert 1 <= convolution["flops"] / (4 * 8 * 8 * 27 * 2) < 1.3
    assert convolution["occurrences"] == 1
    assert convolution["space"] > 10
    assert not (workshop.folder / "logs").exists() and not (workshop.folder / "records").exists()


def test_a_network_with_an_operator_of_ours(workshop):
    save_network(workshop.folder / "tiny.onnx", """(float[1,4,9,7] x, float[1,5,6,2] grid)
            => (float[1,3,5,6] y) {
        sampled = GridSample<mode = "linear">(x, grid)
        y = Conv(sampled, w)
    }""", weights(3, w=(3, 4, 1, 1)), 20)
    assert [task["name"].split()[0] for task in workshop.tune("--list")["tasks"]] == [
        "conv2d_NCHWc.x86"]


def test_autotvm_measures_goes_on_and_compile_model_uses_it(workshop):
    first = workshop.tune("--trials", "5")
    method = first["methods"][0]
    assert first["target"] == TARGET and method["trials"] == 5
    # Every task gets a share, not the first one everything.
    assert all(task["trials"] >= 1 for task in method["tasks"])
    log = workshop.folder / "logs" / f"tiny.{TARGET}.autotvm.trials"
    _, trials, unreadable = tuning_records.read(log)
    assert len(trials) == 5 and unreadable == 0

    header, records, _ = tuning_records.read(workshop.file("autotvm"))
    assert header["threads"] == first["threads"] and header["family"] == "tiny"
    weighing = Weighing(method["tasks"])
    assert {r.key: r.seconds for r in records} == {
        r.key: r.seconds for r in tuning_records.best(trials, weighing.seconds).values()}
    # Of each task, what TVM would take untuned is measured first.
    untuned = {key: task["untuned"]["index"] for task in method["tasks"] for key in task["keys"]}
    first_of = {r.key: json.loads(r.text)["config"]["index"] for r in reversed(trials)}
    assert None not in untuned.values() and first_of == untuned

    # Killed in the middle of a line: the next session goes on, and measures other configurations.
    with open(log, "a", encoding="utf-8") as file:
        file.write(trials[0].text[:100])
    second = workshop.tune("--trials", "3", "--tasks", "0")
    assert second["methods"][0]["trials"] == 3
    _, all_trials, unreadable = tuning_records.read(log)
    assert len(all_trials) == 8 and unreadable == 1
    configurations = [json.loads(r.text)["config"]["index"] for r in all_trials
                      if r.template == "conv2d_NCHWc.x86"]
    assert len(set(configurations)) == len(configurations)
    after = {r.key: weighing.seconds(r)
             for r in tuning_records.read(workshop.file("autotvm"))[1]}
    assert all(after[r.key] <= weighing.seconds(r) for r in records)

    metadata = workshop.compile("--tuning-records", workshop.file("autotvm"))
    tuning = metadata["tuning"]
    assert (tuning["method"], tuning["layers"], tuning["tuned_layers"]) == ("autotvm", 2, 2)
    assert tuning["files"] == [{"name": workshop.file("autotvm").name, "records": 2,
                                "sha256": tuning["files"][0]["sha256"]}]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_session_loses_nothing(workshop, how):
    """What the log had when the session was ended is there afterwards, is not measured again, and
    nothing of the session goes on."""
    log = workshop.folder / "logs" / f"tiny.{TARGET}.autotvm.trials"
    session = subprocess.Popen(
        [str(REPO_ROOT / "scripts" / "tune_model"), "tiny.onnx", "--records-dir", "records",
         "--log-dir", "logs", *QUICK, "--any-layout", "--tasks", "0"], cwd=workshop.folder,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 120
    while time.monotonic() < end and not (log.exists() and log.read_text().count("\n") >= 3):
        time.sleep(0.05)
    session.send_signal(how)
    said = session.communicate(timeout=60)[1]
    assert session.returncode == (130 if how == signal.SIGINT else -how)
    assert how == signal.SIGKILL or "the trials are kept in logs/" in said
    # The worker of a session that was killed ends at its next event.
    there = ""
    while time.monotonic() < end and log.read_text() != there:
        there = log.read_text()
        time.sleep(1)
    again = workshop.tune("--trials", "2", "--any-layout", "--tasks", "0")
    assert again["methods"][0]["trials"] == 2 and log.read_text().startswith(there)
    _, trials, unreadable = tuning_records.read(log)
    indices = [json.loads(trial.text)["config"]["index"] for trial in trials]
    assert len(indices) >= 5 and len(set(indices)) == len(indices) and not unreadable


def test_another_log_is_taken_in(workshop):
    tasks = workshop.tune("--list")
    foreign = workshop.folder / "foreign.log"
    template, arguments = json.loads(tasks["tasks"][0]["keys"][0])
    record = json.loads(line([1e-6], target=tasks["target"]))
    record["input"][1:3] = [template, arguments]
    elsewhere = json.loads(json.dumps(record))
    elsewhere["input"][0] = "llvm -keys=cpu -mcpu=other"
    elsewhere["result"][0] = [1e-9]
    foreign.write_text("".join(json.dumps(r) + "\n" for r in (record, elsewhere))
                       + line([1e-9], 64, target=tasks["target"]) + "\n")
    report = workshop.tune("--minutes", "0", "--from", "foreign.log")
    assert report["methods"][0]["records"]["new"] == 1
    assert [r.seconds for r in tuning_records.read(workshop.file("autotvm"))[1]] == [1e-6]


def test_times_of_another_machine_are_not_mixed(workshop, command):
    path = workshop.file("autotvm")
    tuning_records.write(path, {"family": "tiny", "threads": 64, "measured_on": "a big one"},
                         [tuning_records.parse(line([1e-9]))])
    before = path.read_bytes()
    (workshop.folder / "foreign.log").write_text(line([1.0]))
    tasks = workshop.tune("--list")
    record = json.loads(line([0.5], target=tasks["target"]))
    record["input"][1:3] = json.loads(tasks["tasks"][0]["keys"][0])
    (workshop.folder / "foreign.log").write_text(json.dumps(record))
    flags = ("tiny.onnx", "--records-dir", "records", "--log-dir", "logs", *QUICK, "--minutes", "0",
             "--from", "foreign.log")
    result = command("tune_model", *flags, cwd=workshop.folder, code=6)
    assert "threads 64" in result.stderr and "--replace" in result.stderr
    assert path.read_bytes() == before
    command("tune_model", *flags, "--replace", cwd=workshop.folder)
    assert [r.seconds for r in tuning_records.read(path)[1]] == [0.5]


@pytest.mark.parametrize("flags, code, says", [
    (("--target", "riscv64"), 2, "--tracker"),
    (("--target", "llvm -mcpu=skylake"), 2, "x86_64_v4"),
    (("--tracker", "localhost:9190"), 2, "--device-key"),
    (("--tracker", "localhost", "--device-key", "pi"), 2, "HOST:PORT"),
    (("--trials", "0"), 2, "--trials"),
    (("--tasks", "one"), 2, "--tasks one"),
    (("--tasks", "0,7", "--kernels", "stock"), 2, "there is no task 7"),
    (("--from", "no.log"), 3, "no.log"),
    (("--history", "no.log"), 3, "no.log"),
    (("--history", "tiny.onnx"), 4, "tiny.onnx has no record of AutoTVM"),
    (("--history", "tiny.onnx", "--tuner", "ga"), 2, "--history is what --tuner guided"),
    (("--shape", "image"), 2, "--shape"),
    (("--target", "opencl"), 2, "this machine's with --device opencl"),
    (("--target", "opencl", "--device", "cuda"), 2, "--device cuda is not opencl"),
    (("--target", "opencl", "--device", "opencl:1"), 2, "on the first GPU"),
    (("--target", "opencl", "--device", "opencl", "--method", "all"), 2, "--method autotvm"),
    (("--target", "opencl", "--device", "opencl", "--kernels", "ours"), 2, "they are for CPUs"),
    (("--target", "opencl+raspi4_aarch64", "--device", "opencl"), 2, "code for aarch64"),
    (("--target", "vulkan", "--device", "opencl"), 2, "--device opencl is not vulkan"),
    (("--device", "opencl"), 2, "'native' is none"),
    (("--tvm",), 2, "--tvm"),
])
def test_mistakes_get_a_sentence(command, classifier, flags, code, says):
    result = command("tune_model", "tiny.onnx", "--log-dir", "logs", "--records-dir", "records",
                     *flags, cwd=classifier.parent, code=code)
    assert says in result.stderr and "Traceback" not in result.stderr
    assert not list(classifier.parent.glob("records/*"))


@pytest.mark.parametrize("kind", ["opencl", pytest.param("vulkan", marks=pytest.mark.slow)])
def test_a_gpu_is_tuned_where_there_is_one(workshop, kind):
    """What was measured serves compile_model, which is given the file: no GPU's records are taken
    for another one's by the target's name."""
    flags = ("--target", kind, "--device", kind, "--tasks", "0", "--trials", "3",
             "--log-dir", "logs", *QUICK)
    result = subprocess.run([str(REPO_ROOT / "scripts" / "tune_model"), "tiny.onnx", *flags],
                            cwd=workshop.folder, capture_output=True, text=True, check=False)
    if result.returncode == 3 and "no GPU with a driver" in result.stderr:
        pytest.skip(result.stderr)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["methods"][0]["trials"] == 3
    path = workshop.folder / "logs" / "records" / f"tiny.{kind}.autotvm"
    header, records, _ = tuning_records.read(path)
    assert header["measured_on"] == report["measured_on"] and "cpu" not in header
    assert len(records) == 1 and records[0].target.startswith(f"{kind} ")
    metadata = workshop.compile("--target", kind, "--tuning-records", path)
    assert metadata["tuning"]["tuned_layers"] == 1 and metadata["verification"]["done"]


def test_the_line_of_progress():
    progress = Progress("net", minutes=1)
    progress({"event": "tasks", "tasks": [
        {"index": n, "name": name, "flops": 2e6, "occurrences": 1, "weight": 1.0}
        for n, name in enumerate(("first", "second"))]})
    progress({"event": "task", "index": 1})
    for seconds in (None, 2e-3, 1e-3, 4e-3):
        progress({"event": "trial", "index": 1, "seconds": seconds})
    assert progress.trials() == 4 and progress.tasks[1].failed == 1
    assert progress.line(15) == ("net [#####...............] 1/2 tasks, 4 trials, 0:45 left, "
                                 "second 2.0 GFLOP/s")
    limited = Progress("net", minutes=10, trials_wanted=8)
    limited.tasks = progress.tasks
    assert "[##########..........]" in limited.line(12) and "0:12 left" in limited.line(12)


def test_a_log_of_tophub_by_its_path(workshop):
    """Lines for other targets, boards and templates are left out, counted, and not fatal."""
    # A board's record for each layer of the tiny network, as that target's TVM names them.
    result = workshop.tune("--list", "--target", "raspi_armv7")
    arguments = json.loads(result["tasks"][0]["keys"][0])
    spatial = json.loads(next(key for task in result["tasks"] for key in task["keys"]
                              if "spatial_pack" in key))
    entity = [["tile_co", "sp", [-1, 4]], ["tile_oh", "sp", [-1, 1]], ["tile_ow", "sp", [-1, 4]],
              ["reorder_0", "re", [0, 1, 2, 3, 4, 5, 8, 6, 7, 9]],
              ["ann_reduce", "an", ["none", "none"]],
              ["ann_spatial", "an", ["none", "none", "vec"]]]
    assert arguments

    def record(model, seconds, knobs=entity, template=spatial[0], triple="armv7l-linux-gnueabihf"):
        return json.dumps({
            "input": [f"llvm -device=arm_cpu -model={model} -mtriple={triple} -mattr=+neon",
                      template, spatial[1], {}],
            "config": {"index": 0, "code_hash": None, "entity": knobs},
            "result": [[seconds], 0, 1.0, 1.0], "version": 0.2, "tvm_version": "0.7.dev0"})

    log = workshop.folder / "arm.log"
    log.write_text("\n".join([
        "# of several boards", record("bcm2837", 0.5), record("pynq", 0.1),
        record("rk3399", 0.01, triple="aarch64-linux-gnu"), "cut {",
        line([1e-6], target="llvm -mcpu=skylake-avx512")]))
    flags = ("--target", "raspi_armv7", "--tuning-records", log)
    if shutil.which("arm-linux-gnueabihf-g++") is None:
        pytest.skip("there is no cross compiler")
    tuning = workshop.compile(*flags)["tuning"]
    assert (tuning["tuned_layers"], tuning["files"][0]["records"]) == (1, 1)
    assert tuning["left_out"] == {"other_board": 1, "other_target": 2, "unreadable": 1}
    log.write_text(record("bcm2837", 0.5, knobs=entity[:-1]))
    tuning = workshop.compile(*flags)["tuning"]
    assert tuning["tuned_layers"] == 0 and tuning["left_out"] == {"outdated": 1}


def test_committed_records_decide_whether_an_artifact_is_up_to_date(workshop, monkeypatch):
    """The metadata says what was used; --tuning none uses nothing."""
    untuned = workshop.compile("--tuning", "none", "--no-verify")
    assert "tuning" not in untuned
    metadata = workshop.compile("--no-verify")
    if selection.choose("auto", None, find_target(TARGET)).files:
        assert metadata["build_key"] != untuned["build_key"]
        assert metadata["tuning"]["layers"] == 2
        assert np.all([entry["records"] > 0 for entry in metadata["tuning"]["files"]])
    else:
        assert metadata["build_key"] == untuned["build_key"]


def test_weights_that_metaschedule_laid_out_flat_are_taken():
    done = subprocess.run([environment.VENV_PYTHON, "-c", textwrap.dedent("""
        from tvm import te, tir, topi
        from run_model_tools.inside_tvm.tuning.metaschedule import flat_weights
        had = [tir.IntImm("int32", extent) for extent in (3, 4)]
        for multiply in ("topi.nn.dense(a, b, None, None, '', had)",
                         "topi.nn.matmul(a, b, None, None, False, True, '', had)"):
            a, b = te.placeholder((2, 4)), te.placeholder((12,))
            with flat_weights():
                made = eval(multiply)
            print([int(extent) for extent in made.shape])
        """)], capture_output=True, text=True, env=environment.tvm_environment(), check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:2] == ["[2, 3]"] * 2
