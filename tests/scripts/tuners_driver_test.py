"""driver.py: its configuration, and a session of each method with a handful of real trials."""

import json
import subprocess
import sys

import numpy as np
import pytest

from run_model_tools.environment import REPO_ROOT
from run_model_tools.tuners import json_schema
from run_model_tools.tuners.driver.experiment import settings_of
from run_model_tools.tuners.driver.trials import name_of, read_trials
from run_model_tools.tuners.experience_files import elsewhere, gather
from run_model_tools.tuners.recording import Recording
from run_model_tools.tuners.space import Knob

DRIVER = REPO_ROOT / "examples" / "tuners" / "driver.py"
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


def test_hyperparameters_are_those_of_the_search():
    for name, value in SCHEMA["properties"]["experiment"]["properties"]["hyperparameters"][
            "properties"].items():
        chosen = 0.25 if value["items"]["type"] == "number" else 7
        settings = settings_of({name: chosen})
        assert chosen in (settings.population, settings.elite, *vars(settings.dqn).values()), name


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
    log.write_text("\n".join(line("conv", arguments, size, 1e-3, target=target)
                             for arguments, size in ((ONE, 4), (OTHER, 8))
                             for target in boards[64] + boards[32]))
    target = "llvm -keys=arm_cpu,cpu -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"
    found = elsewhere("conv", target, [log])
    # A task for each board and layer, and none of the other architecture's.
    assert len(found) == 4
    assert [past.space.knobs[0].choices[0][1] for past in found] == [4, 4, 8, 8]
    assert len(elsewhere("conv", "llvm -mtriple=riscv64-linux-gnu", [log])) == 6
    assert elsewhere("dense", target, [log, tmp_path / "none"]) == []


def test_trials_are_read_with_those_that_failed(tmp_path):
    log = tmp_path / "a.trials"
    log.write_text("\n".join([line("conv2d.x86", ONE, 4, 2e-3),
                              line("conv2d.x86", ONE, 8, 1, error=2), '{"input": [']))
    (key, trials), = read_trials(log).items()
    assert [trial.seconds for trial in trials] == [2e-3, None]
    assert name_of(key) == "conv2d 1x16x8x8" and read_trials(tmp_path / "none") == {}
