"""What was experienced, to learn from again and again."""

from __future__ import annotations

from collections import deque

import numpy as np


class Replay:
    """The last `capacity` transitions of `lookahead` steps each.

    A transition is an observation, the action taken, the discounted rewards of the next steps, the
    observation after them, and the weight of what follows that: discount^steps, or 0 where the
    episode terminated.
    """

    def __init__(self, capacity: int, observation_size: int, lookahead: int,
                 discount: float) -> None:
        self._observations = np.zeros((capacity, observation_size), dtype=np.float32)
        self._actions = np.zeros(capacity, dtype=np.int64)
        self._returns = np.zeros(capacity, dtype=np.float32)
        self._following = np.zeros((capacity, observation_size), dtype=np.float32)
        self._weights = np.zeros(capacity, dtype=np.float32)
        self._count = 0
        self._lookahead, self._discount = lookahead, discount
        # Steps whose transition still waits for rewards.
        self._waiting: deque[tuple[np.ndarray, int, float]] = deque()

    def add(self, observation: np.ndarray, action: int, reward: float, following: np.ndarray,
            terminated: bool, truncated: bool) -> None:
        """One step. An episode that was only cut off by the limit of steps (`truncated`) would have
        had a future, so what follows keeps its weight."""
        self._waiting.append((observation, action, reward))
        if terminated or truncated:
            while self._waiting:
                self._store(following, terminated)
        elif len(self._waiting) == self._lookahead:
            self._store(following, False)

    def sample(self, size: int, random: np.random.Generator) -> tuple[np.ndarray, ...]:
        """`size` transitions, as arrays in the order that the class names."""
        i = random.integers(min(self._count, len(self._actions)), size=size)
        return (self._observations[i], self._actions[i], self._returns[i], self._following[i],
                self._weights[i])

    def _store(self, following: np.ndarray, terminated: bool) -> None:
        """The transition of the step that has waited longest, up to `following`."""
        i = self._count % len(self._actions)
        self._returns[i] = sum(self._discount ** k * step[2]
                               for k, step in enumerate(self._waiting))
        self._weights[i] = 0.0 if terminated else self._discount ** len(self._waiting)
        self._observations[i], self._actions[i], _ = self._waiting.popleft()
        self._following[i] = following
        self._count += 1
