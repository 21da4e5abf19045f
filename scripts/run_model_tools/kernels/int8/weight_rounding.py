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

import numpy as np

from run_model_tools.kernels.convolution import Convolution

# Places of the outputs that are looked at of all pictures together.
_ROWS = 4096
# Columns that are weighed against each other; beyond it, channels are taken in parts.
_MOST_COLUMNS = 1152
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
        self._rounded: dict[bytes, np.ndarray] = {}

    def add(self, inputs: list[np.ndarray]) -> None:
        """One picture's input tensors, without the residual."""
        patches = self._patches(inputs)
        self.count += patches.shape[1]
        self.sums += patches.sum(1)
        for part, total in zip(self.parts, self.products):
            these = patches[:, :, part.start:part.stop]
            total += these.transpose(0, 2, 1) @ these

    def _patches(self, inputs: list[np.ndarray]) -> np.ndarray:
        """float64 (groups, rows, columns): what some of the outputs are sums of."""
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
        return taken.transpose(0, 2, 1, 3).reshape(conv.groups, len(at), -1).astype(np.float64)

    def means(self, scales: np.ndarray) -> np.ndarray:
        """(groups, columns) of the inputs in steps of `scales`, one for each input channel."""
        return self.sums / max(self.count, 1) / self._of_columns(scales)

    def rounded(self, weight: np.ndarray, scales: np.ndarray, largest: int) -> np.ndarray:
        """int8 of weights in steps, of the shape of the convolution's, that take inputs in steps
        of `scales`."""
        key = weight.tobytes() + scales.tobytes()
        if key not in self._rounded:
            self._rounded = {key: self._round(weight, scales, largest)}
        return self._rounded[key]

    def _round(self, weight: np.ndarray, scales: np.ndarray, largest: int) -> np.ndarray:
        groups = self.conv.groups
        rows = weight.reshape(groups, len(weight) // groups, -1)
        result = np.clip(np.rint(rows), -largest, largest)
        steps, means = self._of_columns(scales), self.means(scales)
        for part, total in zip(self.parts, self.products):
            if self.count < len(part):
                continue  # Most directions have not been seen.
            at = slice(part.start, part.stop)
            for group in range(groups):
                here, mean = steps[group, at], means[group, at]
                covariance = total[group] / self.count / np.outer(here, here)
                covariance -= np.outer(mean, mean)
                result[group, :, at] = carried(rows[group, :, at], covariance, largest,
                                               _DAMPING_OF_FEW * len(part) / self.count)
        return result.reshape(weight.shape).astype(np.int8)

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


def carried(rows: np.ndarray, covariance: np.ndarray, largest: int,
            damping: float = 0.0) -> np.ndarray:
    """Whole numbers for each of `rows` (output channels, columns), each column's error carried on
    to those after it."""
    variances = np.diag(covariance)
    mean = float(variances.mean())
    if not mean > 0:
        return np.clip(np.rint(rows), -largest, largest)
    damped = covariance + np.eye(len(covariance)) * mean * max(_DAMPING, damping)
    # What varies most is rounded first, while much is left to make up for it.
    order = np.argsort(-variances, kind="stable")
    upper = np.linalg.cholesky(np.linalg.inv(damped[np.ix_(order, order)])).T
    left = rows[:, order].astype(np.float64)
    result = np.empty_like(left)
    for start in range(0, left.shape[1], _PANEL):
        end = min(start + _PANEL, left.shape[1])
        errors = np.empty((len(left), end - start))
        for i in range(start, end):
            result[:, i] = np.clip(np.rint(left[:, i]), -largest, largest)
            errors[:, i - start] = (left[:, i] - result[:, i]) / upper[i, i]
            left[:, i + 1:end] -= np.outer(errors[:, i - start], upper[i, i + 1:end])
        left[:, end:] -= errors @ upper[start:end, end:]
    found = np.empty_like(result)
    found[:, order] = result
    return found
