"""A deep Q-network that chooses: Mnih et al. 2015, "Human-level control through deep reinforcement
learning", in the size that a few hundred trials can teach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from run_model_tools.tuners.q_network import QLearner


@dataclass(frozen=True)
class DqnSettings:
    hidden: tuple[int, ...] = (64, 32)
    discount: float = 0.6
    """What the next decision is worth beside this one: a child is measured at once, and is a
    parent later at best."""
    rate: float = 2e-3
    batch: int = 32
    memory: int = 2048
    learn_from: int = 24
    """Transitions in the memory before learning begins."""
    explore_first: float = 1.0
    explore_least: float = 0.1
    explore_decay: float = 0.985
    """What the share of decisions by chance is multiplied by at each of them, from
    `explore_first` to `explore_least`."""
    follow: float = 0.05
    """Share of the way that the target network goes to the learning one at each step."""


class Dqn:
    """A network that learns from a memory of transitions, and one that it takes its targets
    from."""

    def __init__(self, inputs: int, actions: int, random: np.random.Generator,
                 settings: DqnSettings = DqnSettings()) -> None:
        self._settings, self._random = settings, random
        self.actions = actions
        self.explore = settings.explore_first
        self._learner = QLearner((inputs, *settings.hidden, actions), random, settings.follow)
        self.network = self._learner.network
        self._states = np.zeros((settings.memory, inputs), dtype=np.float32)
        self._following = np.zeros((settings.memory, inputs), dtype=np.float32)
        self._actions = np.zeros(settings.memory, dtype=np.int64)
        self._rewards = np.zeros(settings.memory, dtype=np.float32)
        self.remembered = 0

    def act(self, state: np.ndarray) -> int:
        """By chance with the probability `explore`, which falls; else what promises most."""
        by_chance = self._random.random() < self.explore
        self.explore = max(self._settings.explore_least,
                           self.explore * self._settings.explore_decay)
        if by_chance:
            return int(self._random.integers(self.actions))
        return int(np.argmax(self.network(state[None].astype(np.float32))[0]))

    def remember(self, state: np.ndarray, action: int, reward: float,
                 following: np.ndarray) -> None:
        place = self.remembered % len(self._actions)
        self._states[place], self._following[place] = state, following
        self._actions[place], self._rewards[place] = action, reward
        self.remembered += 1

    def learn(self) -> float | None:
        """One step on a batch out of the memory; gives its loss, None while there is too little."""
        count = min(self.remembered, len(self._actions))
        if count < self._settings.learn_from:
            return None
        chosen = self._random.integers(count, size=self._settings.batch)
        return self._learner.learn(self._states[chosen], self._actions[chosen],
                                   self._rewards[chosen], self._following[chosen],
                                   self._settings.discount, self._settings.rate)

    def state(self) -> dict[str, np.ndarray]:
        """All that it has learnt and remembers, for load()."""
        count = min(self.remembered, len(self._actions))
        arrays = {f"{name}.{i}": array for name, group in self._groups().items()
                  for i, array in enumerate(group)}
        return {**arrays, "states": self._states[:count], "following": self._following[:count],
                "actions": self._actions[:count], "rewards": self._rewards[:count],
                "counts": np.array([self.remembered, self._learner.adam.steps], dtype=np.int64),
                "explore": np.array(self.explore)}

    def load(self, state: dict[str, np.ndarray]) -> None:
        """Raises ValueError where it is the state of another network."""
        for name, group in self._groups().items():
            for i, array in enumerate(group):
                stored = state.get(f"{name}.{i}")
                if stored is None or stored.shape != array.shape:
                    raise ValueError(f"{name}.{i} is not of the shape {array.shape}")
                array[...] = stored
        count = len(state["actions"])
        for mine, name in ((self._states, "states"), (self._following, "following"),
                           (self._actions, "actions"), (self._rewards, "rewards")):
            mine[:count] = state[name]
        self.remembered, self._learner.adam.steps = (int(n) for n in state["counts"])
        self.explore = float(state["explore"])

    def _groups(self) -> dict[str, list[Any]]:
        adam = self._learner.adam
        return {"network": self.network.parameters, "target": self._learner.target.parameters,
                "means": adam.means, "squares": adam.squares}
