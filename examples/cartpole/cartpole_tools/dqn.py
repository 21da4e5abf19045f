"""Deep Q-learning: Mnih et al. 2015, "Human-level control through deep reinforcement learning",
with the targets of van Hasselt et al. 2016 (double Q-learning), returns of several steps and a
target network that follows slowly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from run_model_tools.tuners.q_network import Adam, QNetwork


@dataclass(frozen=True)
class Settings:
    steps: int = 60_000
    """Steps in the environment, with one step of learning each once learning has begun."""
    sizes: tuple[int, ...] = (4, 64, 64, 2)
    learn_from: int = 1_000
    """Steps at random before learning begins."""
    explore_until: int = 15_000
    """Until then the share of actions at random falls from 1 to `explore_least`."""
    explore_least: float = 0.05
    batch: int = 128
    memory: int = 60_000
    discount: float = 0.99
    lookahead: int = 5
    """Rewards that a target adds up before it asks the target network for the rest."""
    rate: float = 1e-3
    """Adam's rate at the start; it falls to zero at the end in a straight line."""
    follow: float = 0.005
    """Share of the way that the target network goes to the learning one at each step."""
    evaluate_every: int = 2_000


class Learner:
    """The network that learns, and the one that it takes its targets from."""

    def __init__(self, settings: Settings, random: np.random.Generator) -> None:
        self._settings = settings
        self.network = QNetwork(settings.sizes, random)
        self._target = self.network.copy()
        self._adam = Adam(self.network.parameters)

    def learn(self, batch: tuple[np.ndarray, ...], rate: float) -> None:
        """One step on a batch of Replay.sample()."""
        observations, actions, returns, following, weights = batch
        rows = np.arange(len(actions))
        # The learning network chooses the next action, the target network says what it is worth.
        best = np.argmax(self.network(following), axis=1)
        worth = self._target(following)[rows, best]
        wanted = returns + weights * worth
        values = self.network.layers(observations)
        errors = values[-1][rows, actions] - wanted
        of_output = np.zeros_like(values[-1])
        # The gradient of Huber's loss: that of half the square, cut off at 1.
        of_output[rows, actions] = np.clip(errors, -1, 1) / np.float32(len(actions))
        self._adam.step(self.network.gradient(values, of_output), rate)
        self._target.move_towards(self.network, self._settings.follow)
