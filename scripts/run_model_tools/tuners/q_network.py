"""A small fully connected network in NumPy: its values, its gradient, Adam, and Q-learning."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


class QNetwork:
    """Layers y = relu(x W + b), the last one without relu. `parameters`: W, b, W, b …, float32;
    W is [inputs, outputs]."""

    def __init__(self, sizes: tuple[int, ...], random: np.random.Generator) -> None:
        self.parameters: list[np.ndarray] = []
        for inputs, outputs in zip(sizes, sizes[1:]):
            # He et al. 2015, "Delving Deep into Rectifiers": keeps the variance through relus.
            scale = np.sqrt(2.0 / inputs)
            self.parameters += [(random.standard_normal((inputs,
                                                         outputs)) * scale).astype(np.float32),
                                np.zeros(outputs, dtype=np.float32)]

    def copy(self) -> QNetwork:
        copied = object.__new__(QNetwork)
        copied.parameters = [p.copy() for p in self.parameters]
        return copied

    def move_towards(self, other: QNetwork, share: float) -> None:
        """Each parameter goes `share` of the way to that of `other`."""
        for mine, theirs in zip(self.parameters, other.parameters):
            mine += np.float32(share) * (theirs - mine)

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        return self.layers(observations)[-1]

    def layers(self, observations: np.ndarray) -> list[np.ndarray]:
        """The observations [n, inputs], and what each layer makes of them."""
        values = [observations]
        for i in range(0, len(self.parameters), 2):
            x = values[-1] @ self.parameters[i] + self.parameters[i + 1]
            last = i + 2 == len(self.parameters)
            values.append(x if last else np.maximum(x, np.float32(0)))
        return values

    def gradient(self, values: list[np.ndarray], of_output: np.ndarray) -> list[np.ndarray]:
        """The loss's gradient for each parameter; `values` are those of layers(), and `of_output`
        the gradient [n, outputs] for the last of them."""
        gradients: list[np.ndarray] = []
        back = of_output
        for i in range(len(self.parameters) - 2, -1, -2):
            below = values[i // 2]
            gradients[:0] = [below.T @ back, back.sum(axis=0)]
            if i > 0:
                back = (back @ self.parameters[i].T) * (below > 0)
        return gradients


@dataclass
class Adam:
    """Kingma and Ba 2015, "Adam: A Method for Stochastic Optimization", algorithm 1."""

    parameters: list[np.ndarray]
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    steps: int = 0
    means: list[np.ndarray] = field(default_factory=list)
    squares: list[np.ndarray] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.means = [np.zeros_like(p) for p in self.parameters]
        self.squares = [np.zeros_like(p) for p in self.parameters]

    def step(self, gradients: list[np.ndarray], rate: float) -> None:
        """Changes the parameters in place."""
        self.steps += 1
        scale = rate * np.sqrt(1 - self.beta2 ** self.steps) / (1 - self.beta1 ** self.steps)
        for p, g, m, s in zip(self.parameters, gradients, self.means, self.squares):
            m += np.float32(1 - self.beta1) * (g - m)
            s += np.float32(1 - self.beta2) * (g * g - s)
            p -= np.float32(scale) * m / (np.sqrt(s) + np.float32(self.epsilon))


class QLearner:
    """A network that learns, and one that follows it slowly and gives the targets: Mnih et al.
    2015, "Human-level control through deep reinforcement learning", with the targets of van
    Hasselt et al. 2016 (double Q-learning)."""

    def __init__(self, sizes: tuple[int, ...], random: np.random.Generator, follow: float) -> None:
        """`follow`: share of the way that the target network goes at each step."""
        self.network = QNetwork(sizes, random)
        self.target = self.network.copy()
        self.adam = Adam(self.network.parameters)
        self._follow = follow

    def learn(self, states: np.ndarray, actions: np.ndarray, rewards: np.ndarray,
              following: np.ndarray, weights: np.ndarray | float, rate: float) -> float:
        """One step on a batch of transitions; `weights`: what the following states' values count.
        Gives the mean square of the errors."""
        rows = np.arange(len(actions))
        # The learning network chooses the next action, the target network says what it is worth.
        best = np.argmax(self.network(following), axis=1)
        wanted = rewards + weights * self.target(following)[rows, best]
        values = self.network.layers(states)
        errors = values[-1][rows, actions] - wanted
        of_output = np.zeros_like(values[-1])
        # The gradient of Huber's loss: that of half the square, cut off at 1.
        of_output[rows, actions] = np.clip(errors, -1, 1) / np.float32(len(actions))
        self.adam.step(self.network.gradient(values, of_output), rate)
        self.target.move_towards(self.network, self._follow)
        return float(np.mean(np.square(errors)))
