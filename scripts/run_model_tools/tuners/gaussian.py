"""Regression by Gaussian processes: Rasmussen and Williams 2006, "Gaussian Processes for Machine
Learning", chapters 2 and 5."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class Kernel:
    """Matérn's kernel with ν = 5/2 on columns of different length, beside a linear one on given
    functions."""

    lengths: np.ndarray
    variance: float = 0.5
    noise: float = 1e-3
    """Variance of what is measured twice."""

    def between(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """[len(a), len(b)] covariances."""
        a, b = a / self.lengths, b / self.lengths
        square = (a * a).sum(1)[:, None] + (b * b).sum(1)[None] - 2 * a @ b.T
        distance = np.sqrt(5 * np.maximum(square, 0))
        return self.variance * (1 + distance + distance * distance / 3) * np.exp(-distance)


class Process:
    """A process given what was seen: y = basis(x) · weights + f(x) + noise.

    basis: columns whose weights are normal with the standard deviations `spread`.
    """

    def __init__(self, kernel: Kernel, x: np.ndarray, basis: np.ndarray, y: np.ndarray,
                 spread: np.ndarray, noise: np.ndarray | None = None) -> None:
        self._kernel, self._x, self._spread = kernel, x, spread
        self._basis = basis * spread
        covariance = kernel.between(x, x) + self._basis @ self._basis.T
        covariance[np.diag_indices(len(x))] += kernel.noise if noise is None else noise
        self._factor = np.linalg.cholesky(covariance)
        self._solved = np.linalg.solve(self._factor, y)
        self.evidence = float(-0.5 * self._solved @ self._solved
                              - np.log(np.diag(self._factor)).sum()
                              - 0.5 * len(x) * np.log(2 * np.pi))
        """The logarithm of y's probability density."""

    @cached_property
    def _weights(self) -> np.ndarray:
        return np.linalg.solve(self._factor.T, self._solved)

    def means(self, x: np.ndarray, basis: np.ndarray) -> np.ndarray:
        """Of y, which is cheap however many x there are."""
        return self._across(x, basis).T @ self._weights

    def _across(self, x: np.ndarray, basis: np.ndarray) -> np.ndarray:
        return self._kernel.between(self._x, x) + self._basis @ (basis * self._spread).T

    def predict(self, x: np.ndarray, basis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(means, standard deviations) of y without its noise."""
        scaled = basis * self._spread
        half = np.linalg.solve(self._factor, self._across(x, basis))
        prior = self._kernel.variance + (scaled * scaled).sum(1)
        return half.T @ self._solved, np.sqrt(np.maximum(prior - (half * half).sum(0), 1e-12))


def fit(start: Kernel, x: np.ndarray, basis: np.ndarray, y: np.ndarray, spread: np.ndarray,
        sweeps: int = 1) -> Kernel:
    """The kernel near `start` under which y is likeliest: each number in turn is made larger and
    smaller as long as that helps.

    Few points cannot tell a length, so what departs from `start` has to pay for it.
    """
    def worth(kernel: Kernel) -> float:
        departing = np.concatenate([np.log(kernel.lengths / start.lengths),
                                    [np.log(kernel.variance / start.variance),
                                     0.5 * np.log(kernel.noise / start.noise)]])
        return Process(kernel, x, basis, y, spread).evidence - 0.5 * float(departing @ departing)

    best, value = start, worth(start)
    for _ in range(sweeps):
        for place in range(len(start.lengths) + 2):
            for factor in (1.8, 1 / 1.8):
                other = _scaled(best, place, factor)
                there = worth(other)
                while there > value:
                    best, value = other, there
                    other = _scaled(best, place, factor)
                    there = worth(other)
    return best


def _scaled(kernel: Kernel, place: int, factor: float) -> Kernel:
    if place < len(kernel.lengths):
        lengths = kernel.lengths.copy()
        lengths[place] *= factor
        return replace(kernel, lengths=lengths)
    if place == len(kernel.lengths):
        return replace(kernel, variance=kernel.variance * factor)
    return replace(kernel, noise=min(max(kernel.noise * factor, 1e-5), 0.3))


def expected_improvement(means: np.ndarray, deviations: np.ndarray, best: float) -> np.ndarray:
    """By how much each exceeds `best` on average, where it does not: by nothing."""
    z = (means - best) / deviations
    density = np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)
    return (means - best) * normal_cdf(z) + deviations * density


def normal_cdf(z: np.ndarray) -> np.ndarray:
    """Abramowitz and Stegun 1964, 26.2.17: the error is below 7.5e-8."""
    t = 1 / (1 + 0.2316419 * np.abs(z))
    tail = np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi) * t * (0.319381530 + t * (
        -0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    return np.where(z > 0, 1 - tail, tail)
