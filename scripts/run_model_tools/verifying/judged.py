"""By what the outputs of a network of 8 bits are judged: the classes that they name, and how far
their numbers are off.

Of large outputs a sample is looked at, thinned along the longest axes, so that what the short ones
tell apart (channels, columns of boxes) is still there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from run_model_tools.verifying import agreement
from run_model_tools.verifying.comparison import FEWEST

CLASSES, NUMBERS = "classes", "numbers"
"""What a task says of an output that is no map of scores, which it names by its layout."""

# Slices of more indices are places, which are many, and not kinds of quantity.
_MOST_SLICES = 256
# A slice may be off by this times the tolerance of its spread: by the usual 0.1, half of it.
_SLICE = 5.0
# Of the slice's own root mean square, and of the output's: spreads below are those of constants.
_LEAST_SPREAD, _LEAST_OF_ALL = 2.0 ** -10, 2.0 ** -16


def stated(tasks: list[dict[str, Any]] | None, outputs: Sequence[str]) -> list[str | None]:
    """What tasks say that each output is: CLASSES, "NCHW" or "NHWC" for maps of scores, NUMBERS."""
    found: list[str | None] = [NUMBERS if tasks else None] * len(outputs)
    for task in tasks or ():
        kind = (CLASSES if task["kind"] == "classification" and not task.get("binary") else
                task.get("layout") if task["kind"] == "segmentation" else None)
        if kind is not None:
            at = task["output"]
            found[at if isinstance(at, int) else [
                i for i, name in enumerate(outputs) if at in (name, f"output_{i}")][0]] = kind
    return found


@dataclass(frozen=True)
class Judged:
    """How one output is judged."""

    axis: int | None
    """Along which scores of classes lie, for each of the other axes' places; None: there are none.
    """
    are_names: bool
    """Whether its numbers are whole: names of classes, places, counts, right or wrong."""
    has_places: bool = False
    """Whether there are scores of many places in one view."""

    @staticmethod
    def of(output: np.ndarray, kind: str | None) -> Judged:
        if output.dtype.kind != "f":
            return Judged(None, True)
        if kind in ("NCHW", "NHWC") and output.ndim >= 3:
            return Judged(output.ndim - (3 if kind == "NCHW" else 1), False, True)
        if kind in (None, CLASSES) and agreement.are_scores(output):
            return Judged(output.ndim - 1, False)
        return Judged(None, False)

    @property
    def unit(self) -> str:
        """What names a class."""
        return "numbers" if self.are_names else "places" if self.has_places else "views"

    def sample(self, output: np.ndarray, most: int) -> np.ndarray:
        """At most so many of its numbers, or one for each class."""
        steps = [1] * output.ndim
        while np.prod(shape := [-(-d // s) for d, s in zip(output.shape, steps)]) > most:
            longest = max((a for a in range(output.ndim) if a != self.axis),
                          key=lambda a: shape[a], default=None)
            if longest is None or shape[longest] == 1:
                break
            # A step that shares no factor with usual extents, so that all of their places are seen.
            steps[longest] += 2
        return output[tuple(slice(None, None, step) for step in steps)].copy()

    def scores(self, sample: np.ndarray) -> np.ndarray:
        """(places, classes) of a sample of an output with scores."""
        assert self.axis is not None
        return agreement.scores_of(
            np.moveaxis(sample, self.axis, -1).reshape(-1, sample.shape[self.axis]))


@dataclass(frozen=True)
class Found:
    """How far an output is from that of the float32 network."""

    agreement: float
    """The share of views, or of places in them, whose class is expected to be the same; 1 of an
    output that names none."""
    other: int
    """In how many of the views and places another class was named."""
    places: int
    """Of all views, that name a class."""
    error: float
    """As Spread.error has it."""


def judge(how: Judged, want: np.ndarray, have: np.ndarray) -> Found:
    """Samples of all views (first axis) against those of the float32 network."""
    if how.are_names:
        other = int(np.count_nonzero(want != have))
        return Found(1 - other / max(want.size, 1), other, want.size, 0.0)
    error = Spread(how, want).error(have.astype(np.float64) - want)
    if how.axis is None:
        return Found(1.0, 0, 0, error)
    scores, others = (np.concatenate([how.scores(one) for one in of]) for of in (want, have))
    expected = agreement.expected_agreement(agreement.margins(scores),
                                            agreement.gains(scores, others - scores))
    return Found(expected, agreement.disagreements(scores, others), len(scores), error)


def judge_all(judged: Sequence[Judged], want: Sequence[Sequence[np.ndarray]],
              have: Sequence[Sequence[np.ndarray]]) -> Found:
    """The worst of all outputs, of which there are samples of each view."""
    found = [judge(how, np.stack([view[i] for view in want]), np.stack([view[i] for view in have]))
             for i, how in enumerate(judged)]
    worst = max(found, key=lambda one: one.other / max(one.places, 1))
    return Found(min(one.agreement for one in found), worst.other, worst.places,
                 float(np.max([one.error for one in found])))


class Spread:
    """What differences of an output are relative to.

    Its root mean square, of all views together; and, so that nothing small is lost beside what is
    large, what each slice differs by from its own mean: of a table of boxes beside probabilities
    each column, of maps each channel.
    """

    def __init__(self, how: Judged, want: np.ndarray):
        """want: samples of all views (first axis)."""
        want = want.astype(np.float64)
        self.whole = agreement.root_mean_square(want) + 1e-30
        self.slices: list[tuple[tuple[int, ...], np.ndarray]] = []
        # Of one place, scores of classes are each a quantity, of which a view says one number.
        if how.axis is not None and not how.has_places:
            return
        for axis in range(1, want.ndim):
            extent = want.shape[axis]
            if 1 < extent <= _MOST_SLICES and want[0].size // extent >= FEWEST:
                axes = tuple(a for a in range(want.ndim) if a != axis)
                own = np.sqrt(np.square(want).mean(axes))
                least = np.maximum(_LEAST_SPREAD * own, _LEAST_OF_ALL * self.whole)
                self.slices.append((axes, np.maximum(want.std(axes), least)))

    def error(self, change: np.ndarray) -> float:
        """The root mean square of the whole, or a fifth of that of the slice where it is worst."""
        square = np.square(change, dtype=np.float64)
        return float(np.max([np.sqrt(square.mean()) / self.whole, *(
            (np.sqrt(square.mean(axes)) / spread).max() / _SLICE
            for axes, spread in self.slices)]))
