"""driver.py: its configuration, and a session of each method with a handful of real trials."""

import json
import subprocess
import sys

import numpy as np
import pytest

from run_model_tools.environment import REPO_ROOT
from run_model_tools.targets import find_target
from run_model_tools.tuners import json_schema
from run_model_tools.tuners.driver.experiment import settings_of
from run_model_tools.tuners.driver.trials import name_of, read_trials
from run_model_tools.tuners.experience_files import elsewhere, gather
from run_model_tools.tuners.recording import Recording
from run_model_tools.tuners.space import Knob
from run_model_tools.tuning import selection
from small_networks import save_classifier

DRIVER = REPO_ROOT / "examples" / "tuners" / "driver.py"
TARGET = selection.record_target(find_target("native"))
SCHEMA = json.loads((DRIVER.parent / "config.schema.json").read_text())


def drive(*arguments):
    return subprocess.run([sys.executable, DRIVER, *arguments], capture_output=True, text=True,
                          check=False)


@pytest.mark.parametrize(("change", "sentence"), [
    ({"modles": []}, "the key 'modles' is not known: do you mean 'models'?"),
    ({"autotuner_settings": {"trials": 0}}, "'autotuner_settings.trials' is 0, and 1 is the"),
    ({"autotuner_settings": {"trials": "many"}}, "is 'many', and a whole number was expected"),
    ({"autotuner_settings": {"profile": True}}, "key 'autotuner_settings.profile' is not known"),
    ({"models": []}, "'models' is empty"), ({"models": [{"type": "zoo"}]}, "'models[0].name' is"),
    ({"models": [{"name": "x", "type": "pytorch"}]}, "choose of file, zoo"),
    ({"experiment": {"names": ["speed"]}}, "'experiment.names[0]' is 'speed'"),
    ({"run_settings": {"seconds": True}}, "a number was expected")])
def test_a_wrong_key_is_named(change, sentence):
    assert sentence in json_schema.wrong({"models": ["net.onnx"], **change}, SCHEMA)


def test_the_example_is_as_the_schema_says():
    example = json.loads((DRIVER.parent / "config-example.json").read_text())
    assert json_schema.wrong(example, SCHEMA) is None
    assert json_schema.wrong({}, SCHEMA) == "the key 'models' is missing"
    assert json_schema.wrong([], SCHEMA) == "the whole is [], and an object was expected"


def test_the_driver_says_what_is_wrong_and_explains_the_keys(tmp_path):
    help_text = drive("--help").stdout
    assert "device_key" in help_text and "explore_decay" in help_text
    (tmp_path / "c.json").write_text('{"models": ["net.onnx"], "tracer": "a:1"}')
    result = drive("-m=tune", "-c", str(tmp_path / "c.json"))
    assert result.returncode == 4
    assert "c.json: the key 'tracer' is not known: do you mean 'tracker'?" in result.stderr
    assert drive("-m=tune", "-c", str(tmp_path / "none.json")).returncode == 3
    result = drive("-m=tune", "-c", json.dumps({"models": [f"{tmp_path}/net.onnx"]}))
    assert result.returncode == 3 and "net.onnx, one of 'models', is not there" in result.stderr


@pytest.mark.parametrize(("text", "code", "sentence"), [
    ('{"models": ["a.onnx"], "models": ["b.onnx"]}', 4, "the key 'models' is there twice"),
    ('{"models": ["a.onnx"], "autotuner_settings": {"minutes": NaN}}', 4, "NaN is no number"),
    ('{"models": ["a.onnx"', 4, "the configuration is not JSON"),
    ('{"models": ["a.onnx"], "target": "opencl"}', 2, "'target' is 'opencl', a GPU"),
    ('{"models": ["a.onnx"], "target": "rasberry"}', 2, "'target' is 'rasberry', for which"),
    ('{"models": ["a.onnx"], "target": "riscv64"}', 2, "'target' is 'riscv64', whose code"),
    ('{"models": ["a.onnx"], "tracker": "here:1"}', 2, "'tracker' and 'device_key' belong"),
    ('{"models": ["a.onnx"], "autotuner_settings": {"tuner": "luck"}}', 2, "is 'luck': choose of"),
    ('{"models": ["a.onnx"], "save_path": "a.onnx/b"}', 1, "a.onnx/b/guided-1, where trials are")])
def test_each_mistake_gets_one_sentence(tmp_path, text, code, sentence):
    save_classifier(tmp_path / "a.onnx")
    result = subprocess.run([sys.executable, DRIVER, "-m=tune", "-c", text], capture_output=True,
                            text=True, check=False, cwd=tmp_path)
    assert result.returncode == code and sentence in result.stderr, result.stderr
    assert len(result.stderr.splitlines()) == 1 and result.stdout == ""


def test_hyperparameters_are_those_of_the_search():
    for name, value in SCHEMA["properties"]["experiment"]["properties"]["hyperparameters"][
            "properties"].items():
        chosen = 0.25 if value["items"]["type"] == "number" else 7
        settings = settings_of({name: chosen})
        assert chosen in (settings.population, settings.elite, *vars(settings.dqn).values()), name


def test_an_experiment_over_recordings(tmp_path):
    """As a user runs it; each combination searches each recording with each seed."""
    config = {"models": ["not read.onnx"], "save_path": str(tmp_path / "out"), "experiment": {
        "hyperparameters": {"explore_decay": [0.97], "pop_size": [4, 24]}, "seeds": 2,
        "trials": 12}}
    result = drive("-m=experiment", "-c", json.dumps(config), "--json")
    assert result.returncode == 0 and result.stderr == "", result.stderr
    report = json.loads((tmp_path / "out" / "trial_hyperparameters.json").read_text())
    assert report == json.loads(result.stdout)
    assert {row["hyperparameters"]["pop_size"] for row in report["combinations"]} == {4, 24}
    means = [row["mean"] for row in report["combinations"]]
    assert means == sorted(means) and means[0] < means[1]
    for row in report["combinations"]:
        needed = row["median_trials_to_95"]
        assert len(needed) == 4 and all(1 <= trials <= 13 for trials in needed.values())
    assert "| explore_decay | pop_size | cifar" in (
        tmp_path / "out" / "trial_hyperparameters.md").read_text()


@pytest.mark.skipif(TARGET is None, reason="this machine has no named target of its own")
def test_a_benchmark_of_trials_that_are_there(tmp_path):
    """Made-up logs: one tuner finds the best at its second trial and after 2 s, the other comes
    within 5 % of it at its fourth and after 9 s."""
    model = save_classifier(tmp_path / "net.onnx")
    config = {"models": [str(model)], "save_path": str(tmp_path / "out"),
              "autotuner_settings": {"tuner": ["xgb", "guided"], "seeds": [1]}}
    nothing = drive("-m=benchmark", "-c", json.dumps(config))
    assert nothing.returncode == 3 and "run driver.py -m=tune with" in nothing.stderr
    for tuner, trials in (("guided", ((2.0, 0), (1.0, 2), (1.5, 5))),
                          ("xgb", ((4.0, 0), (3.0, 3), (None, 6), (1.04, 9), (2.0, 12)))):
        log = tmp_path / "out" / f"{tuner}-1" / f"net.{TARGET}.autotvm.trials"
        log.parent.mkdir(parents=True)
        text = []
        for seconds, ended in trials:
            value = json.loads(line("conv2d.x86", ONE, 4, seconds or 1e9,
                                    error=0 if seconds else 4))
            value["result"][3] = 1.7e9 + ended
            text.append(json.dumps(value))
        log.write_text("\n".join(text))
    result = drive("-m=benchmark", "-c", json.dumps(config))
    assert result.returncode == 0, result.stderr
    report = json.loads((tmp_path / "out" / "benchmark.json").read_text())
    task = "net: conv2d 1x16x8x8"

    def needed(unit, tuner, share):
        return report[unit]["tasks"][task][tuner][f"trials_to_{share}"]["median"]
    assert (needed("trials", "guided", 95), needed("trials", "xgb", 95)) == (2, 4)
    assert (needed("seconds", "guided", 95), needed("seconds", "xgb", 95)) == (3, 10)
    assert needed("trials", "xgb", 99) is None and report["baseline"] == "xgb"
    assert report["trials"]["tuners"]["guided"]["ratio"]["mean"] == 0.5
    # xgb went on after its best: what it did not reach, it did not within all of its trials.
    assert (report["trials"]["budget"], report["seconds"]["budget"]) == (5, 13)
    assert "> 5 (> 5–> 5)" in result.stdout and "ms a trial" not in result.stdout
    assert report["networks"] == []
    for name in ("best-so-far-trials.svg", "best-so-far-seconds.svg"):
        assert (tmp_path / "out" / name).read_text().count("<polyline") == 2
    assert "## Seconds until" in (tmp_path / "out" / "benchmark.md").read_text()


def line(template, arguments, size, seconds, target="llvm -keys=cpu -mcpu=x86-64-v4", error=0):
    return json.dumps({"input": [target, template, arguments, {}], "config": {
        "index": 1, "code_hash": None, "entity": [["tile", "sp", [-1, size]], ["u", "ot", True]]},
        "result": [[seconds], error, 1.0, 1700000000.5], "version": 0.2})


ONE, OTHER = ([["TENSOR", [1, n, 8, 8], "float32"], [1, 1]] for n in (16, 32))


def test_what_was_measured_of_other_tasks_is_gathered(tmp_path):
    log = tmp_path / "a.trials"
    log.write_text("\n".join([
        "# a comment", line("conv", OTHER, 4, 2e-3), line("conv", OTHER, 8, 1e-3),
        line("conv", OTHER, 16, 1e9, error=4), line("dense", OTHER, 4, 1e-3),
        line("conv", ONE, 4, 1e-3), line("conv", OTHER, 2, 1e-3, target="llvm -mcpu=x86-64-v3"),
        line("conv", OTHER, 2, 1e-3)[:60]]))
    knobs = (Knob("tile", [[-1, 2 ** i] for i in range(9)]), Knob("u", [[True], [False]]))
    Recording("r", "develop", "conv", [["TENSOR", [1, 8, 8, 8], "float32"], [1, 1]],
              "llvm -mcpu=x86-64-v4", 1.0, knobs, np.arange(1, 19) * 1e-3).write(
                  tmp_path / "r.json")
    key = json.dumps(["conv", ONE], separators=(",", ":"))
    files = [tmp_path / "r.json", tmp_path / "none.json"]
    found = gather("conv", "llvm -mcpu=x86-64-v4", key, files, [log, tmp_path / "none"])
    assert [len(past.speeds) for past in found] == [18, 3]
    tried = {past.space.knobs[0].choices[past.space.genes(i)[0]][1]: round(speed)
             for past in found[1:] for i, speed in past.speeds.items()}
    assert tried == {4: 500, 8: 1000, 16: 0}
    # Records are what their file's name says, whatever board they were measured on.
    assert len(gather("conv", "llvm -mcpu=x86-64-v2", key, files, [], [log])) == 1
    assert gather("conv", "llvm -mcpu=x86-64-v2", key, files, [log]) == []


def test_what_other_machines_measured_counts_for_this_layer_too(tmp_path):
    boards = {64: ["llvm -device=arm_cpu -model=a -mtriple=aarch64-linux-gnu",
                   "llvm -device=arm_cpu -model=b -mtriple=aarch64-linux-gnu"],
              32: ["llvm -device=arm_cpu -model=c -mtriple=armv7l-linux-gnueabihf"]}
    log = tmp_path / "arm.log"
    of_bytes = [["TENSOR", [1, 16, 8, 8], "int8"], [1, 1]]
    log.write_text("\n".join(line("conv", arguments, size, 1e-3, target=target)
                             for arguments, size in ((ONE, 4), (OTHER, 8), (of_bytes, 16))
                             for target in boards[64] + boards[32]))
    conv, dense = (json.dumps([template, ONE]) for template in ("conv", "dense"))
    target = "llvm -keys=arm_cpu,cpu -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"
    found = elsewhere(conv, target, [log])
    # A task for each board and layer, none of the other architecture's, and none of bytes.
    assert len(found) == 4
    assert [past.space.knobs[0].choices[0][1] for past in found] == [4, 4, 8, 8]
    assert len(elsewhere(conv, "llvm -mtriple=riscv64-linux-gnu", [log])) == 6
    assert elsewhere(dense, target, [log, tmp_path / "none"]) == []


def test_trials_are_read_with_those_that_failed(tmp_path):
    log = tmp_path / "a.trials"
    log.write_text("\n".join([line("conv2d.x86", ONE, 4, 2e-3),
                              line("conv2d.x86", ONE, 8, 1, error=2), '{"input": [']))
    (key, trials), = read_trials(log).items()
    assert [trial.seconds for trial in trials] == [2e-3, None]
    assert name_of(key) == "conv2d 1x16x8x8" and read_trials(tmp_path / "none") == {}
