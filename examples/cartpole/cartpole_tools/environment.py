"""Gymnasium's CartPole-v1, installed when it is needed first, and policies tried on it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import numpy as np

from run_model_tools import environment
from run_model_tools.setup.pip_site import pip_site

NAME = "CartPole-v1"
MAX_STEPS = 500
#: Rewards within which Gymnasium counts CartPole-v1 as solved: the average over 100 episodes.
SOLVED = 475.0
#: Where the cart leaves the track, in metres from its middle.
TRACK = 2.4

_FOLDER = Path(__file__).resolve().parents[1]


def gymnasium() -> Any:
    """The module. Raises ToolError (3) if the package cannot be had."""
    site = str(pip_site(_FOLDER / "requirements.txt",
                        environment.BUILD_DIR / "examples" / "cartpole" / "site",
                        "Gymnasium, which has the environment,"))
    if site not in sys.path:
        sys.path.append(site)
    import gymnasium as module
    return module


def make() -> Any:
    """One CartPole-v1: an episode ends after 500 steps."""
    return gymnasium().make(NAME, disable_env_checker=True)


@dataclass(frozen=True)
class Trial:
    """How a policy did: the rewards of each episode, and how far the cart went at most, on average
    over the episodes, as a fraction of the way to the track's end."""

    rewards: np.ndarray
    excursion: float

    @property
    def average(self) -> float:
        return float(self.rewards.mean())


def try_policy(q_values: Callable[[np.ndarray], np.ndarray], episodes: int, seed: int) -> Trial:
    """All episodes at once, their starts drawn from `seed`.

    `q_values` makes float32 [episodes, 2] of observations, float32 [episodes, 4].
    """
    environments = gymnasium().make_vec(NAME, num_envs=episodes,
                                        vectorization_mode="vector_entry_point")
    observations, _ = environments.reset(seed=seed)
    rewards = np.zeros(episodes)
    furthest = np.zeros(episodes)
    running = np.ones(episodes, dtype=bool)
    while running.any():
        actions = np.argmax(q_values(observations), axis=1)
        observations, reward, terminated, truncated, _ = environments.step(actions)
        rewards += np.where(running, reward, 0.0)
        furthest = np.where(running, np.maximum(furthest, np.abs(observations[:, 0])), furthest)
        # An episode that has ended starts anew by itself; that one is not looked at.
        running &= ~(terminated | truncated)
    environments.close()
    return Trial(rewards, float(np.minimum(furthest / TRACK, 1.0).mean()))
