"""How the policy of examples/cartpole is trained, and the one that is committed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import CARTPOLE

from cartpole_tools import environment
from cartpole_tools.policy_file import policy_file, read_policy
from cartpole_tools.replay import Replay
from run_model_tools.tuners.q_network import Adam, QLearner, QNetwork

POLICY = CARTPOLE / "policy.onnx"


def train(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([CARTPOLE / "train", *map(str, arguments)], cwd="/", capture_output=True,
                          text=True, check=False)


def test_the_policy_has_the_agreed_form() -> None:
    model = onnx.load(str(POLICY))
    onnx.checker.check_model(model, full_check=True)
    assert [(o.domain, o.version) for o in model.opset_import] == [("", 13)]
    session = onnxruntime.InferenceSession(str(POLICY))
    assert [(v.name, v.type, v.shape) for v in session.get_inputs()] == [
        ("observation", "tensor(float)", [1, 4])]
    assert [(v.name, v.type, v.shape) for v in session.get_outputs()] == [
        ("q_values", "tensor(float)", [1, 2])]
    assert POLICY.stat().st_size < 50_000


def test_the_policy_computes_what_was_trained() -> None:
    session, network = onnxruntime.InferenceSession(str(POLICY)), read_policy(POLICY)
    for observation in np.random.default_rng(1).uniform(-1, 1, (50, 1, 4)).astype(np.float32):
        [expected] = session.run(None, {"observation": observation})
        np.testing.assert_allclose(network(observation), expected, rtol=1e-5, atol=1e-4)


def test_the_policy_balances_from_other_starts_than_it_was_chosen_by() -> None:
    trial = environment.try_policy(read_policy(POLICY), 500, seed=31)
    assert trial.rewards.shape == (500,)
    assert trial.average >= environment.SOLVED
    assert 0 < trial.excursion < 0.5


def test_trials_count_one_episode_each() -> None:
    """Pushing to one side always: poles fall within some ten steps, and nothing of the episodes
    that begin after that is counted."""
    trial = environment.try_policy(lambda seen: np.tile(np.float32([0, 1]), (len(seen), 1)), 50, 1)
    assert 8 <= trial.rewards.min() <= trial.rewards.max() <= 11


def test_training_is_repeatable(tmp_path: Path) -> None:
    """Two hundred steps of learning, after which no policy is good enough to be written."""
    def digest(*arguments: object) -> str:
        result = train("--steps", 1200, "--out", tmp_path / "policy.onnx", "--json", *arguments)
        assert result.returncode == 8 and "was not written" in result.stderr
        report = json.loads(result.stdout)
        assert report["schema_version"] == 1 and report["steps"] == 1200
        assert report["policy"] is None and not (tmp_path / "policy.onnx").exists()
        assert report["evaluations"][-1]["average_reward"] == report["average_reward"] < 475
        return report["sha256"]

    assert digest() == digest() != digest("--seed", 3)


def test_training_refuses_arguments_that_make_no_sense() -> None:
    assert train("--steps", 0).returncode == 2


def test_gradient_is_the_slope() -> None:
    random = np.random.default_rng(1)
    network = QNetwork((4, 5, 3, 2), random)
    network.parameters = [p.astype(np.float64) for p in network.parameters]
    inputs, of_output = random.standard_normal((6, 4)), random.standard_normal((6, 2))
    gradients = network.gradient(network.layers(inputs), of_output)
    for parameter, gradient in zip(network.parameters, gradients):
        for i in range(parameter.size):
            at = np.unravel_index(i, parameter.shape)
            ends = []
            for shift in (1e-6, -1e-6):
                parameter[at] += shift
                ends.append((network(inputs) * of_output).sum())
                parameter[at] -= shift
            assert gradient[at] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-6)


def test_adam_goes_by_the_rate_at_first() -> None:
    """Its first step has the rate's length in every direction, whatever the gradient's length."""
    parameter = np.array([1.0, 1.0], dtype=np.float32)
    Adam([parameter]).step([np.array([0.01, -300.0], dtype=np.float32)], 0.1)
    np.testing.assert_allclose(parameter, [0.9, 1.1], rtol=1e-5)


def test_transitions_add_up_the_next_rewards() -> None:
    replay = Replay(capacity=10, observation_size=1, lookahead=3, discount=0.5)
    for i in range(4):
        replay.add(np.float32([i]), i % 2, 1.0, np.float32([i + 1]), i == 3, False)
    seen, actions, returns, following, weights = replay.sample(400, np.random.default_rng(1))
    found = {(float(s[0]), int(a), float(r), float(f[0]), float(w))
             for s, a, r, f, w in zip(seen, actions, returns, following, weights)}
    assert found == {(0, 0, 1.75, 3, 0.125), (1, 1, 1.75, 4, 0), (2, 0, 1.5, 4, 0), (3, 1, 1, 4, 0)}


def test_an_episode_cut_off_has_a_future() -> None:
    replay = Replay(capacity=2, observation_size=1, lookahead=3, discount=0.5)
    replay.add(np.float32([0]), 0, 1.0, np.float32([1]), False, False)
    replay.add(np.float32([1]), 1, 1.0, np.float32([2]), False, True)
    _, _, returns, following, weights = replay.sample(100, np.random.default_rng(1))
    assert set(zip(returns, following[:, 0], weights)) == {(1.5, 2, 0.25), (1, 2, 0.5)}


def test_learning_brings_values_to_their_targets() -> None:
    """A world of one step, with a reward for the second action alone."""
    random = np.random.default_rng(2)
    learner = QLearner((1, 8, 2), random, follow=0.005)
    for _ in range(3000):
        actions = random.integers(2, size=32)
        observations = np.ones((32, 1), dtype=np.float32)
        learner.learn(observations, actions, actions.astype(np.float32), observations,
                      np.zeros(32, dtype=np.float32), 3e-3)
    np.testing.assert_allclose(learner.network(np.ones((1, 1), dtype=np.float32)), [[0, 1]],
                               atol=0.05)


def test_files_keep_networks(tmp_path: Path) -> None:
    network = QNetwork((4, 3, 2), np.random.default_rng(1))
    (tmp_path / "small.onnx").write_bytes(policy_file(network))
    for mine, theirs in zip(network.parameters, read_policy(tmp_path / "small.onnx").parameters):
        np.testing.assert_array_equal(mine, theirs)
