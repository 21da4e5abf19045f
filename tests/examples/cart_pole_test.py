"""The dynamics in C++ against Gymnasium's CartPole-v1, which computes in double and rounds to
float32 only what it gives as the observation."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pytest

from cartpole_tools import environment

TOLERANCE = 1e-12


class Step(NamedTuple):
    state: np.ndarray
    terminated: bool
    ended: bool
    observation: np.ndarray


def parse(line: str) -> Step:
    words = line.split()
    return Step(np.array(words[:4], dtype=np.float64), words[4] == "1", words[5] == "1",
                np.array(words[6:], dtype=np.float32))


def text(state: Iterable[float]) -> str:
    return " ".join(f"{value:.17g}" for value in state)


@pytest.fixture(scope="module")
def command(emulator: list[str]) -> list[str]:
    return [*emulator, os.environ["RUN_MODEL_CART_POLE_STEPS"]]


def steps_of(command: list[str], lines: list[str]) -> list[Step]:
    output = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True,
                            check=True).stdout
    return [parse(line) for line in output.splitlines()]


def starts_of(command: list[str], seed: int, count: int) -> np.ndarray:
    output = subprocess.run(command, input=f"start {seed} {count}\n", capture_output=True,
                            text=True, check=True).stdout
    return np.array([line.split() for line in output.splitlines()], dtype=np.float64)


def test_each_step_is_gymnasiums(command: list[str]) -> None:
    """From Gymnasium's own state each time, over the track's whole width and past its ends."""
    cart = environment.make()
    random = np.random.default_rng(7)
    lines, expected = [], []
    for episode in range(60):
        cart.reset(seed=episode)
        # Anywhere within the limits, and fast enough to leave them at once now and then.
        cart.unwrapped.state = random.uniform(-1, 1, 4) * (2.4, 3.0, 0.2, 3.0)
        for _ in range(20):
            action = int(random.integers(2))
            lines.append(f"{action} {text(cart.unwrapped.state)}")
            observation, _, terminated, _, _ = cart.step(action)
            expected.append((cart.unwrapped.state.copy(), terminated, observation))
            if terminated:
                break
    found = steps_of(command, lines)
    assert len(found) == len(expected)
    assert {terminated for _, terminated, _ in expected} == {True, False}
    for step, (state, terminated, observation) in zip(found, expected):
        np.testing.assert_allclose(step.state, state, rtol=0, atol=TOLERANCE)
        assert step.terminated == step.ended == terminated
        np.testing.assert_array_equal(step.observation, step.state.astype(np.float32))
        np.testing.assert_allclose(step.observation, observation, rtol=3e-7, atol=1e-30)


def test_whole_episodes_are_gymnasiums(command: list[str]) -> None:
    """Without going back to Gymnasium's state: as long as a pole stands that is pushed at
    random."""
    cart = environment.make()
    random = np.random.default_rng(8)
    lengths = []
    for episode in range(40):
        cart.reset(seed=episode)
        lines, expected = [], []
        start, terminated = text(cart.unwrapped.state), False
        while not terminated:
            action = int(random.integers(2))
            lines.append(f"{action} {start}")
            start = ""
            _, _, terminated, _, _ = cart.step(action)
            expected.append(cart.unwrapped.state.copy())
        found = steps_of(command, lines)
        np.testing.assert_allclose([s.state for s in found], expected, rtol=0, atol=TOLERANCE)
        assert [s.terminated for s in found] == [False] * (len(expected) - 1) + [True]
        lengths.append(len(expected))
    assert max(lengths) > 30


def test_limits_are_gymnasiums(command: list[str]) -> None:
    """The last numbers within the limits and the first beyond, on both sides: only beyond them ends
    an episode. At rest, positions do not move in the first step."""
    cart = environment.make()
    for index, limit in ((0, 2.4), (2, 12 * 2 * np.pi / 360)):
        for value in (limit, np.nextafter(limit, 9)):
            for sign in (1, -1):
                state = np.zeros(4)
                state[index] = sign * value
                cart.reset(seed=1)
                cart.unwrapped.state = state
                _, _, terminated, _, _ = cart.step(1)
                assert terminated == (value > limit)
                [step] = steps_of(command, [f"1 {text(state)}"])
                assert step.terminated == terminated


def test_episodes_end_after_500_steps(command: list[str]) -> None:
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as program:
        assert program.stdin and program.stdout
        x, x_dot, theta, theta_dot = 0.01, 0.0, 0.02, 0.0
        start = f" {text((x, x_dot, theta, theta_dot))}"
        for count in range(1, environment.MAX_STEPS + 1):
            # Holds pole and cart upright and near the middle; found by trial.
            action = int(0.1 * x + 0.3 * x_dot + 3 * theta + theta_dot > 0)
            program.stdin.write(f"{action}{start}\n")
            program.stdin.flush()
            start = ""
            step = parse(program.stdout.readline())
            x, x_dot, theta, theta_dot = step.state
            assert not step.terminated
            assert step.ended == (count == environment.MAX_STEPS)
        program.stdin.close()


def test_starts_are_drawn_evenly(command: list[str]) -> None:
    starts = starts_of(command, 1, 4000)
    assert starts.shape == (4000, 4)
    assert np.all(np.abs(starts) < 0.05)
    counts = np.array([np.histogram(column, bins=10, range=(-0.05, 0.05))[0]
                       for column in starts.T])
    # 400 expected in each; five standard deviations.
    assert np.all(np.abs(counts - 400) < 5 * np.sqrt(400 * 0.9))
    # Independent of each other: the correlation of 4000 pairs has a standard deviation of 0.016.
    assert np.all(np.abs(np.corrcoef(starts.T) - np.eye(4)) < 0.08)


def test_a_seed_decides_the_starts(command: list[str]) -> None:
    np.testing.assert_array_equal(starts_of(command, 1, 3), starts_of(command, 1, 3))
    assert not np.any(starts_of(command, 1, 3) == starts_of(command, 2, 3))
