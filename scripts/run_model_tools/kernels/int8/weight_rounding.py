"""Weights to whole numbers, so that what a layer computes of its usual inputs changes least.

Rounding each weight to the nearest number leaves an error that the inputs multiply: channels that
are large together, and above all those whose mean is not zero, add up what was rounded.  From the
means and covariances of a layer's inputs (`Moments`, seen while calibrating) follow

- which way to round: column by column, what rounding one of them costs is taken off those that are
  not rounded yet, by as much as the inputs vary together (GPTQ, Frantar and others 2022: the
  Cholesky factor of the inverse covariance says by how much);
- a bias that takes off the mean of the error that is left.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from run_model_tools.kernels.convolutions.convolution import Convolution

# Places of the outputs that are looked at of all pictures together.
_ROWS = 4096
# Columns that are weighed against each other; beyond it, channels are taken in parts.
_MOST_COLUMNS = 1152
# Rows that are multiplied together: products are larger than what is added to them.
_ADDED = 512
# Added to all variances, as a part of their mean: little is known of them by few rows.
_DAMPING, _DAMPING_OF_FEW = 0.01, 0.1
# Columns of which the errors are carried on together.
_PANEL = 64


class Moments:
    """Means and covariances of the inputs of a convolution, in the order of its weights."""

    def __init__(self, conv: Convolution, pictures: int):
        self.conv = conv
        self.rows = max(32, -(-_ROWS // max(pictures, 1)))
        depth, taps = conv.weight.shape[1], int(np.prod(conv.kernel))
        part = max(1, _MOST_COLUMNS // taps)
        self.parts = [range(i * taps, min(i + part, depth) * taps) for i in range(0, depth, part)]
        self.count = 0
        self.sums = np.zeros((conv.groups, depth * taps))
        self.products = [np.zeros((conv.groups, len(p), len(p))) for p in self.parts]
        self._random = np.random.default_rng(11)
        self._pending: list[np.ndarray] = []
        self._rounded: dict[bytes, np.ndarray] = {}
        self._factors: dict[tuple[int, range], Factor] | None = None

    def add(self, inputs: list[np.ndarray]) -> None:
        """One picture's input tensors, without the residual."""
        self._pending.append(self._patches(inputs))
        if sum(patches.shape[1] for patches in self._pending) >= _ADDED:
            self._add_pending()

    def _add_pending(self) -> None:
        if not self._pending:
            return
        patches = np.concatenate(self._pending, 1)
        self._pending = []
        self.count += patches.shape[1]
        self.sums += patches.sum(1, dtype=np.float64)
        for part, total in zip(self.parts, self.products):
            these = patches[:, :, part.start:part.stop]
            total += these.transpose(0, 2, 1) @ these

    def _patches(self, inputs: list[np.ndarray]) -> np.ndarray:
        """float32 (groups, rows, columns): what some of the outputs are sums of."""
        conv = self.conv
        channels = _channels(conv, inputs)
        top, left, bottom, right = conv.padding
        padded = np.pad(channels, ((0, 0), (top, bottom), (left, right)))
        window = [(k - 1) * d + 1 for k, d in zip(conv.kernel, conv.dilation)]
        views: np.ndarray = np.lib.stride_tricks.sliding_window_view(
            padded, window, axis=(1, 2))  # type: ignore[call-overload]
        views = views[:, ::conv.strides[0], ::conv.strides[1], ::conv.dilation[0],
                      ::conv.dilation[1]]
        height, width = views.shape[1:3]
        at = np.arange(height * width)
        if len(at) > self.rows:
            at = self._random.choice(len(at), self.rows, replace=False)
        taken = views[:, at // width, at % width].reshape(
            conv.groups, len(channels) // conv.groups, len(at), -1)
        return taken.transpose(0, 2, 1, 3).reshape(conv.groups, len(at), -1).astype(np.float32)

    def means(self, scales: np.ndarray) -> np.ndarray:
        """(groups, columns) of the inputs in steps of `scales`, one for each input channel."""
        self._add_pending()
        return self.sums / max(self.count, 1) / self._of_columns(scales)

    def rounded(self, weight: np.ndarray, scales: np.ndarray, largest: int) -> np.ndarray:
        """int8 of weights in steps, of the shape of the convolution's, that take inputs in steps
        of `scales`."""
        key = hashlib.blake2b(weight.tobytes() + scales.tobytes()).digest()
        if key not in self._rounded:
            self._rounded[key] = self._round(weight, scales, largest)
        return self._rounded[key]

    def _round(self, weight: np.ndarray, scales: np.ndarray, largest: int) -> np.ndarray:
        groups = self.conv.groups
        rows = weight.reshape(groups, len(weight) // groups, -1)
        result = np.clip(np.rint(rows), -largest, largest)
        steps = self._of_columns(scales)
        if self._factors is None:
            self._factors = self._factorised()
        for (group, part), factor in self._factors.items():
            at = slice(part.start, part.stop)
            result[group, :, at] = carried(rows[group, :, at], factor.times(steps[group, at]),
                                           largest)
        return result.reshape(weight.shape).astype(np.int8)

    def _factorised(self) -> dict[tuple[int, range], Factor]:
        """Of the inputs themselves, by group and part."""
        self._add_pending()
        found = {}
        means = self.sums / max(self.count, 1)
        for part, total in zip(self.parts, self.products):
            if self.count < len(part):
                continue  # Most directions have not been seen.
            for group in range(self.conv.groups):
                covariance = total[group] / self.count
                if not covariance.any():
                    continue
                # Steps as they usually are (ranges.py): half as far apart as the channels' sizes.
                steps = np.maximum(np.diag(covariance), 1e-12 * covariance.max()) ** 0.25
                mean = means[group, part.start:part.stop]
                covariance = (covariance - np.outer(mean, mean)) / np.outer(steps, steps)
                factor = factorised(covariance, _DAMPING_OF_FEW * len(part) / self.count)
                if factor is not None:
                    found[group, part] = factor.times(1 / steps)
        self.products = []
        return found

    def _of_columns(self, scales: np.ndarray) -> np.ndarray:
        taps = int(np.prod(self.conv.kernel))
        return np.repeat(scales, taps).reshape(self.conv.groups, -1)


def _channels(conv: Convolution, inputs: list[np.ndarray]) -> np.ndarray:
    """(channels, height, width), in the order of the weights."""
    if conv.planar:
        return inputs[0].reshape(conv.input_channels, *conv.input_size)
    flat = [np.moveaxis(tensor[0], 3, 1).reshape(-1, *tensor.shape[2:4]) for tensor in inputs]
    lanes = inputs[0].shape[4]
    return np.concatenate([
        flat[piece.tensor][piece.block * lanes + piece.first:][:piece.count]
        for piece in conv.input_lanes])


@dataclass(frozen=True)
class Factor:
    """How much rounding a column is carried on to those after it."""

    order: np.ndarray
    """What varies most is rounded first, while much is left to make up for it."""
    upper: np.ndarray
    """float32, the Cholesky factor of the inverse covariance in this order."""

    def times(self, steps: np.ndarray) -> Factor:
        """That of columns in such steps."""
        return Factor(self.order, self.upper * steps[self.order].astype(np.float32))


def factorised(covariance: np.ndarray, damping: float = 0.0) -> Factor | None:
    """None where nothing varies."""
    variances = np.diag(covariance)
    mean = float(variances.mean())
    if not mean > 0:
        return None
    damped = covariance + np.eye(len(covariance)) * mean * max(_DAMPING, damping)
    order = np.argsort(-variances, kind="stable")
    upper = np.linalg.cholesky(np.linalg.inv(damped[np.ix_(order, order)])).T
    return Factor(order, upper.astype(np.float32))


def carried(rows: np.ndarray, factor: Factor, largest: int) -> np.ndarray:
    """Whole numbers for each of `rows` (output channels, columns), each column's error carried on
    to those after it."""
    upper = factor.upper
    left = np.ascontiguousarray(rows.T[factor.order], np.float32)
    result = np.empty_like(left)
    for start in range(0, len(left), _PANEL):
        end = min(start + _PANEL, len(left))
        errors = np.empty((end - start, left.shape[1]), np.float32)
        for i in range(start, end):
            result[i] = np.clip(np.rint(left[i]), -largest, largest)
            errors[i - start] = (left[i] - result[i]) / upper[i, i]
            left[i + 1:end] -= np.outer(upper[i, i + 1:end], errors[i - start])
        left[end:] -= upper[start:end, end:].T @ errors
    found = np.empty_like(result)
    found[factor.order] = result
    return found.T
