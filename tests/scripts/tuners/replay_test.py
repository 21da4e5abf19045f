"""Each tuner as AutoTVM drives it, a few dozen trials over a recording."""

import json

import pytest

from run_model_tools import tvm_process
from run_model_tools.errors import ToolError
from run_model_tools.tuners.recording import FOLDER, read
from run_model_tools.tuning.session import learning_packages

TASK = FOLDER / "mobilenet_v1_3x3_3_32_s2.json"
TAUGHT = [str(path) for path in sorted(FOLDER.glob("*.json")) if read(path).group == "develop"]
TRIALS = 36

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def runs():
    tuners = ["random", "ga", "ga-dqn", "guided-alone", "guided"]
    environment = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    try:
        environment["PYTHONPATH"] = str(learning_packages())
        tuners.append("xgb")
    except ToolError:
        pass
    found = tvm_process.call("replay", None, environment=environment, recordings=[str(TASK)],
                             history=TAUGHT, tuners=tuners, seeds=[1, 2], trials=TRIALS, batch=3,
                             noise=0.03)["runs"]
    return {(run["tuner"], run["seed"]): run for run in found}


def test_every_tuner_finds_something_within_its_trials(runs):
    speeds = read(TASK).speeds
    assert len(runs) >= 10
    for run in runs.values():
        trials = [trial for trial, _ in run["steps"]]
        found = [speeds[index] for _, index in run["steps"]]
        assert trials == sorted(trials) and trials[0] >= 1 and trials[-1] <= run["trials"] <= TRIALS
        assert found == sorted(found) and found[-1] > 0.5, run


def test_experience_makes_the_first_trial_a_good_one(runs):
    first = read(TASK).speeds[runs["guided", 1]["steps"][0][1]]
    assert first > 0.9


def test_a_recording_of_another_space_is_refused(tmp_path):
    value = json.loads(TASK.read_text())
    value["knobs"][0]["choices"][0] = [-1, 999]
    (tmp_path / "other.json").write_text(json.dumps(value))
    with pytest.raises(ToolError, match="another space"):
        tvm_process.call("replay", None, recordings=[str(tmp_path / "other.json")], history=[],
                         tuners=["random"], seeds=[1], trials=4, batch=1, noise=0.0)
