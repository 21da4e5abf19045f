"""How bytes shall stand for an activation of which some views have been seen.

Of the range that was seen, bytes get the part or the multiple that makes the mean squared error
smallest on views that the range was not taken from: a few large values would cost all others
precision, and pictures to come go beyond what some pictures showed.  Errors of a channel count by
the weights that they are multiplied with, and so do those of the weights, which take in the scales.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from run_model_tools.kernels.int8.from_float32.readers import Reader
from run_model_tools.kernels.int8.quantized import LARGEST_WEIGHT, Quantization

# Numbers of each activation that are kept of one view, evenly spread.
_SAMPLES = 2048
# Parts and multiples of the range that are tried.
_PARTS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.5)
# How much of its own a channel's scale may be, and is while the part is looked for.
_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
_USUAL_SHARE = 0.5
# The part of the weights' rounding errors that is left when they are carried on (weight_rounding).
_CARRIED = 0.3
# Groups of views, each of which is judged by the ranges of all others.
_FOLDS = 8


@dataclass(frozen=True)
class Choice:
    """What is made of a range that was seen."""

    share: float
    """How much of its own a channel's scale is.  1 gives every channel all bytes, but leaves the
    next layer weights of very different sizes; 0 is one scale for all."""
    part: float
    """Of the range, what bytes stand for."""
    highest: float = math.inf
    """A clamp, above which there are no numbers."""


class Observed:
    """What was seen of one activation, lane by lane if it is blocked, view by view."""

    def __init__(self) -> None:
        self.lows: list[np.ndarray] = []
        self.highs: list[np.ndarray] = []
        self.samples: list[np.ndarray] = []

    def add(self, values: np.ndarray) -> None:
        """One view's.  Views of one picture follow each other."""
        if values.ndim == 5:
            rows = np.moveaxis(values[0], 0, 2).reshape(-1, values.shape[1] * values.shape[4])
        else:
            rows = values.reshape(-1, 1)
        self.lows.append(np.minimum(rows.min(0), 0.0))
        self.highs.append(np.maximum(rows.max(0), 0.0))
        step = max(1, rows.size // _SAMPLES)
        # A step that shares no factor with usual widths, so that all columns are seen.
        self.samples.append(rows[::step + (step % 2 == 0)].copy())

    def choose(self, readers: Sequence[Reader] = (), highest: float = math.inf) -> Choice:
        """That with the least mean squared error of what its readers make of it.

        `highest`: no number is larger, as the layer that makes them clamps them there.
        """
        lanes = len(self.lows[0])
        squares = np.mean([np.square(part, dtype=np.float64).mean(0) for part in self.samples], 0)
        weighed = _Weighed.of(readers, squares) if lanes > 1 else _Weighed(np.ones(1), [])
        share = _SHARES[0] if lanes == 1 else _USUAL_SHARE
        part = self._best_part(share, weighed)
        if lanes > 1:
            share = min(_SHARES, key=lambda tried: self._error(self._ranges(tried), part, weighed))
            part = self._best_part(share, weighed)
        return Choice(share, part, highest)

    def quantization(self, choice: Choice, views: np.ndarray | None = None) -> Quantization:
        """By the ranges of all views, or only of some, of which these are the numbers."""
        best = self._range(np.arange(len(self.samples)) if views is None else views,
                           choice.share).quantization(choice.part)
        if best.channels is None or not math.isfinite(choice.highest):
            return best
        # Above the clamp there is nothing to store, and all channels' clamps fall on one byte.
        most = choice.highest / (best.scale * max(255 - best.zero_point, 1))
        return replace(best, channels=tuple(min(factor, most) for factor in best.channels))

    def _best_part(self, share: float, weighed: _Weighed) -> float:
        ranges = self._ranges(share)
        return min(_PARTS, key=lambda part: self._error(ranges, part, weighed))

    def _error(self, ranges: list[_Range], part: float, weighed: _Weighed) -> float:
        """What is lost of the readers' results, as a share of them; ranges: of _ranges()."""
        whole, *folds = ranges
        lost = np.zeros(len(self.lows[0]))
        for fold, others in zip(self._folds, folds):
            tried = others.quantization(part)
            scales = tried.scales(range(len(lost))) if tried.channels else tried.scale
            steps = np.concatenate([self.samples[view] for view in fold])
            steps *= (1 / np.asarray(scales)).astype(np.float32)
            steps -= np.rint(np.clip(steps, -tried.zero_point, 255 - tried.zero_point))
            lost += np.square(steps, out=steps).sum(0, dtype=np.float64) * np.square(scales)
        count = sum(map(len, self.samples))
        return float((lost / count * weighed.activation).sum()) + weighed.of_weights(
            whole.quantization(part).scales(range(len(lost))))

    @property
    def _folds(self) -> list[np.ndarray]:
        """The views of each."""
        views = np.arange(len(self.samples))
        return np.array_split(views, min(_FOLDS, len(views)))

    def _ranges(self, share: float) -> list[_Range]:
        """That of all views, and for each fold that of the others."""
        views, folds = np.arange(len(self.samples)), self._folds
        return [self._range(views, share), *(
            self._range(np.setdiff1d(views, fold) if len(folds) > 1 else fold, share)
            for fold in folds)]

    def _range(self, views: np.ndarray, share: float) -> _Range:
        lows = np.min([self.lows[view] for view in views], 0)
        highs = np.max([self.highs[view] for view in views], 0)
        sizes = np.maximum(-lows, highs)
        factors = (np.maximum(sizes / (sizes.max() or 1.0), 1e-3) ** share if share
                   else np.ones(1))
        return _Range(factors, float((lows / factors).min()), float((highs / factors).max()))


@dataclass(frozen=True)
class _Range:
    """Of some views."""

    factors: np.ndarray
    """(lanes,): each lane's; (1,), where they have one for all."""
    low: float
    """The lowest number, in units of its lane's factor, and the highest."""
    high: float

    def quantization(self, part: float) -> Quantization:
        """By a part of it, as Choice says."""
        found = Quantization.of_range(self.low * part, self.high * part)
        if len(self.factors) == 1:
            return found
        return replace(found, channels=tuple(self.factors.tolist()))


@dataclass(frozen=True)
class _Weighed:
    """What errors of an activation cost the layers that read it."""

    activation: np.ndarray
    """(lanes,): what the square of an error costs."""
    weights: list[tuple[np.ndarray, np.ndarray, float]]
    """Of each reader with weights: (largest, the lanes' mean squares where it reads them, factor of
    what rounding its weights costs)."""

    @staticmethod
    def of(readers: Sequence[Reader], squares: np.ndarray) -> _Weighed:
        """`squares`: (lanes,), the mean ones of the activation."""
        activation, weights = np.zeros(len(squares)), []
        for reader in readers:
            result = float((reader.power * squares).sum()) + 1e-30
            activation += reader.power / result
            if reader.largest is not None:
                read = np.where(reader.largest > 0, squares, 0)
                weights.append((reader.largest, read, _CARRIED * reader.taps / result))
        return _Weighed(activation if activation.any() else np.ones(len(squares)), weights)

    def of_weights(self, scales: np.ndarray) -> float:
        """What rounding the readers' weights costs where they take in such scales."""
        total = 0.0
        for largest, squares, factor in self.weights:
            step = (largest * scales).max(1) / LARGEST_WEIGHT
            total += factor * float((step ** 2 / 12 * (squares / scales ** 2).sum(1)).sum())
        return total
