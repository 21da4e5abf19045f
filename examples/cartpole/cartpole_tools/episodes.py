"""Episodes of CartPole-v1 on this machine, with a policy that may be anywhere."""

from __future__ import annotations

import sys
import time
from typing import Callable

import numpy as np

from cartpole_tools import environment


def play(choose: Callable[[np.ndarray], int], episodes: int, seed: int) -> list[int]:
    """The reward of each episode. `choose` makes an action of an observation, float32 [4]; episode
    i begins as Gymnasium's seed `seed` + i says. Shows on a terminal how far it is."""
    shown = sys.stderr.isatty()
    cart = environment.make()
    rewards: list[int] = []
    start = time.monotonic()
    for episode in range(episodes):
        rewards.append(_episode(cart, choose, seed + episode))
        if shown:
            sys.stderr.write(f"\repisode {episode + 1}/{episodes}, reward {rewards[-1]}, "
                             f"{time.monotonic() - start:.1f} s\033[K")
            sys.stderr.flush()
    if shown:
        sys.stderr.write("\n")
    return rewards


def play_at_random(episodes: int, seed: int) -> list[int]:
    """The same starts without a policy: what a reward is to be compared with."""
    cart, random = environment.make(), np.random.default_rng(seed)
    return [_episode(cart, lambda _: int(random.integers(2)), seed + episode)
            for episode in range(episodes)]


def _episode(cart: object, choose: Callable[[np.ndarray], int], seed: int) -> int:
    observation, _ = cart.reset(seed=seed)
    reward, ended = 0.0, False
    while not ended:
        observation, gained, terminated, truncated, _ = cart.step(choose(observation))
        reward += gained
        ended = terminated or truncated
    return int(reward)
