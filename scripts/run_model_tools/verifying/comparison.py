"""Whether an output is right: element by element, with a scale for every slice of it.

Two programs that add the same float32 numbers in another order differ by rounding, which is as
large as the sums that an element came from, not as the element itself.  What is allowed of an
element is `tolerance` times the largest of

- its own value;
- the root mean square of the smallest slice that it lies in: an output that holds boxes in hundreds
  of pixels beside probabilities is judged column by column, and one with a channel for each kind of
  quantity, channel by channel.  A slice is what has one index along one axis, if that leaves
  FEWEST numbers or more; with fewer, a slice of small numbers is more likely chance than another
  kind of quantity, as among the thousand logits of one picture;
- 1/256 of the output's largest value.  With the usual tolerance of 1e-3 that makes 64 units in the
  last place of the output's largest value: what sums of values that large leave in places that
  should be zero.  Networks of up to a hundred layers were seen to leave half of it.

Where that does not suffice, the network may be one that multiplies rounding errors, or that
decides by them.  So the reference is asked how much it changes itself when its weights and inputs
do by JITTER of their values, and what is a few times that, in the slice, is let pass.  A wrong sum
is wrong by hundreds of times as much.  The same holds for whole numbers, which have to be equal:
they may differ where, and only where, the reference's own change with such noise, or where they are
indices of a largest value and rounding decides which one that is (choices.py).  A network whose own
answer turns into another one by such noise (UNDECIDED) cannot be compared, and that is then said
instead of a result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

FEWEST = 16
FLOOR = 1 / 256
JITTER = 2.0 ** -18
"""Relative, uniform: what rounding amounts to in a sum of some thousand products."""
JITTER_FACTOR = 4.0
"""How much more than the reference's own changes is allowed: a few samples are no certain mean."""

UNDECIDED = 0.25
"""Of the values, or of the number of places where whole numbers differ: what is let pass beyond it
because of noise says nothing about whether the compiled network is right."""

MOST_STEPS, MEAN_STEPS = 8, 1
"""How far whole numbers that stand for others may be apart: as roundings can carry them through a
deep network, and no further on average than what the output can tell apart."""

ROUNDED_FACTOR = 2.0
STEPS_OFF = 0.03
FEWEST_ROUNDED = 256
"""What slices of fewer numbers say of the spread is chance where few of them change."""

CHANCE = 4.0
"""Standard deviations."""

_ROOM = 1 + 1e-4

EquallyGood = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Of the reference's whole numbers and others: true in each place where both are right."""

_MOST_ROWS = 1000

_TINY = 1e-30
"""What 32-bit Arm's vectors take for zero."""


@dataclass(frozen=True)
class Difference:
    """What comparing found: `largest` is relative to the scale of its element."""

    largest: float = 0.0
    complaint: str | None = None
    undecided: bool = False
    """Whether a difference was let pass that is larger than any comparison can stand for."""

    def and_also(self, other: Difference) -> Difference:
        """What both found of one output."""
        return Difference(max(self.largest, other.largest), self.complaint or other.complaint,
                          self.undecided or other.undecided)


def compare(name: str, want: np.ndarray, have: np.ndarray, tolerance: float,
            noisy: Callable[[], Iterable[np.ndarray]], rounded: bool = False,
            step: float | None = None, equally_good: EquallyGood | None = None) -> Difference:
    """Compares an output with the reference's.

    noisy: gives the reference's output with weights and inputs changed by JITTER, some times; it is
    asked only where the difference is more than allowed.  rounded: of a network that rounds between
    its layers; step: how far this output's numbers are apart then, where that is known.
    equally_good: tells of whole numbers where they stand for choices of the same worth; asked only
    if some differ.
    """
    if want.shape != have.shape:
        return Difference(complaint=f"output '{name}' has the shape {have.shape} when compiled and "
                                    f"{want.shape} in the reference")
    if want.dtype.kind != "f" and step is None:
        return _compare_exactly(name, want, have, noisy, equally_good)
    want, have = want.astype(np.float64), have.astype(np.float64)
    finite = np.isfinite(want)
    # Infinities of the right sign and NaNs are right where the reference has them.
    odd = ~finite & ~((want == have) | (np.isnan(want) & np.isnan(have)))
    odd |= finite & ~np.isfinite(have)
    undecided = odd
    if odd.any():
        # Rounding decides whether a number is divided by zero, where it does for the reference.
        for sample in noisy():
            if sample.shape == want.shape:
                odd = odd & (np.isfinite(sample) == finite)
        undecided = undecided & ~odd
        finite = finite & ~undecided
    if odd.any():
        return Difference(complaint=f"output '{name}' of the compiled model has {_some(have, odd)} "
                                    f"where the reference has {_some(want, odd)}, in "
                                    f"{np.count_nonzero(odd)} of {want.size} places")
    want = np.where(finite, want, 0.0)
    error = np.abs(np.where(finite, have, 0.0) - want)
    scale = slice_scale(want) + _TINY
    largest = float(np.max(error / scale, initial=0.0))
    many = want.size > 1 and float(np.mean(undecided)) > UNDECIDED
    # Written so that a tolerance below zero lets nothing pass.
    if not want.size or largest <= tolerance:
        return Difference(largest, undecided=many)
    if tolerance <= 0:
        allowed = np.zeros_like(want)
    elif rounded:
        allowed = _roundings(want, np.where(finite, have, 0.0), list(noisy()), tolerance * scale,
                             step or 0.0)
    else:
        allowed = JITTER_FACTOR * noise_of(want, noisy())
    wrong = ~(error <= np.maximum(tolerance * scale, allowed))
    if not wrong.any():
        size = (math.sqrt(np.mean(np.square(error)) / (np.mean(np.square(want)) + _TINY))
                if rounded else largest)
        return Difference(largest, undecided=many or size > UNDECIDED)
    at = tuple(int(i) for i in np.unravel_index(np.argmax(np.where(wrong, error / scale, -1)),
                                                want.shape))
    return Difference(largest, (
        f"output '{name}' of the compiled model differs from the reference in "
        f"{np.count_nonzero(wrong)} of {want.size} places, by up to {largest:.2g} of the values "
        f"there, and {tolerance:g} is allowed (at {list(at)}: {have[at]:.6g} instead of "
        f"{want[at]:.6g})"))


def in_order_of(wanted: list[np.ndarray], had: list[np.ndarray]) -> list[np.ndarray] | None:
    """The rows of several tensors that belong together, each in the place of the row that is like
    it; None where there are not as many, or too many to look for them."""
    count = len(wanted[0])
    if any(a.shape != b.shape or len(a) != count for a, b in zip(wanted, had)) \
            or count > _MOST_ROWS:
        return None
    apart = np.zeros((count, count))
    for want, have in zip(wanted, had):
        a, b = (one.reshape(count, -1).astype(np.float64) for one in (want, have))
        scale = np.max(np.abs(a), initial=_TINY)
        apart += np.abs(a[:, None] - b[None]).sum(axis=-1) / scale
    places = []
    for row in apart:
        places.append(int(np.argmin(row)))
        apart[:, places[-1]] = np.inf
    return [have[places] for have in had]


def compare_steps(name: str, want: np.ndarray, have: np.ndarray, tolerance: float,
                  noisy: Callable[[], Iterable[np.ndarray]]) -> Difference:
    """Compares whole numbers that stand for others, as layers of whole numbers give them.

    Two runtimes round a sum that lies between two whole numbers differently now and then, and
    layers after that pass it on: single numbers may be some steps apart, but not most of them.
    Steps of 16 bits may be finer than what is asked of float32, and then `tolerance` decides.
    Where the reference is that far from itself in most of noisy(), nothing is decided.
    """
    if want.shape != have.shape:
        return Difference(complaint=f"output '{name}' has the shape {have.shape} when compiled and "
                                    f"{want.shape} in the reference")
    allowed = tolerance * slice_scale(want.astype(np.float64))

    def steps(other: np.ndarray) -> tuple[float, int, bool]:
        """(on average, at most, whether that is allowed)"""
        apart = np.abs(want.astype(np.int64) - other.astype(np.int64))
        mean, most = float(apart.mean()) if apart.size else 0.0, int(apart.max(initial=0))
        return mean, most, mean <= MEAN_STEPS and most <= MOST_STEPS or bool(
            (apart <= allowed).all())

    mean, most, right = steps(have)
    largest = mean / max(float(np.abs(want.astype(np.int64)).max(initial=0)), 1.0)
    if right:
        return Difference(largest)
    itself = [steps(sample)[2] for sample in noisy() if sample.shape == want.shape]
    if 2 * sum(itself) < len(itself):
        return Difference(largest, undecided=True)
    return Difference(largest, (
        f"output '{name}' of the compiled model differs from the reference by {most} of its steps "
        f"at most and {mean:.2g} on average, and {MOST_STEPS} and {MEAN_STEPS} are allowed"))


def largest_slice_error(want: np.ndarray, have: np.ndarray) -> float:
    """The root mean square of the elements' differences, each by the scale of its element: of the
    slice where that is largest, so that a few quantities that are all wrong do not drown.  Of whole
    numbers it is the share of those that differ."""
    if want.dtype.kind != "f":
        return float(np.mean(want != have)) if want.size else 0.0
    want = want.astype(np.float64)
    square = np.square((have.astype(np.float64) - want) / (slice_scale(want) + _TINY))
    found = [square.mean()] if square.size else [0.0]
    for axis, extent in enumerate(want.shape):
        if extent > 1 and want.size // extent >= FEWEST:
            found.append(square.mean(axis=tuple(a for a in range(want.ndim) if a != axis)).max())
    return math.sqrt(max(found))


def slice_scale(want: np.ndarray) -> np.ndarray:
    """What an element's error is measured by; `want` has finite numbers only."""
    size = np.abs(want)
    if not size.size:
        return size
    square = size * size
    slices = np.broadcast_to(np.sqrt(square.mean()), want.shape)
    for axis, extent in enumerate(want.shape):
        if extent > 1 and want.size // extent >= FEWEST:
            others = tuple(a for a in range(want.ndim) if a != axis)
            slices = np.minimum(slices, np.sqrt(square.mean(axis=others, keepdims=True)))
    return np.maximum(np.maximum(size, slices), FLOOR * size.max())


def noise_of(want: np.ndarray, samples: Iterable[np.ndarray]) -> np.ndarray:
    """How much the reference's own output changes: in each place, and around it."""
    changes = [np.nan_to_num(np.abs(sample.astype(np.float64) - want), posinf=np.inf)
               for sample in samples if sample.shape == want.shape]
    if not changes:
        return np.zeros_like(want)
    worst = np.max(changes, axis=0)
    return np.maximum(worst, slice_scale(np.sqrt(np.mean(np.square(changes), axis=0))))


def _roundings(want: np.ndarray, have: np.ndarray, samples: list[np.ndarray],
               always: np.ndarray, step: float) -> np.ndarray:
    """What is allowed of each place of a network that rounds: nothing in a slice that changes more
    as a whole than roundings explain.

    always: what is allowed anyway; its size counts for the whole slice.
    """
    changes = np.stack([sample.astype(np.float64) - want for sample in samples
                        if sample.shape == want.shape] or [np.zeros_like(want)])
    changes = np.nan_to_num(changes, nan=0.0, posinf=0.0, neginf=0.0)
    error = have - want
    allowed = np.full(want.shape, np.inf)
    everything = tuple(range(want.ndim))
    slices = [everything, *(everything[:axis] + everything[axis + 1:]
                            for axis, extent in enumerate(want.shape)
                            if extent > 1 and want.size // extent >= FEWEST)]
    for axes in slices:
        def mean(x: np.ndarray, axes: tuple[int, ...] = axes) -> np.ndarray:
            return x.mean(axis=axes, keepdims=True)

        count = max(1, math.prod(want.shape[a] for a in axes))
        most = np.maximum(
            ROUNDED_FACTOR * np.abs(changes).max(axis=(0, *(a + 1 for a in axes)))
            .reshape(mean(want).shape), step)
        room = np.sqrt(mean(np.square(always)))
        # One place alone says nothing of its slice.
        single = most / count
        spread = np.sqrt(np.mean([mean(np.square(change)) for change in changes], axis=0))
        # By chance the mean changes too: of numbers that do so independently by this share of their
        # spread, of those that a common scale moves together by what is usual among the slices.
        means = np.stack([mean(change) for change in changes])
        share = max(count ** -0.5, math.sqrt(np.mean(np.square(means / (spread + _TINY)))))
        chance = CHANCE * share * spread
        spread = np.maximum(ROUNDED_FACTOR * spread, STEPS_OFF ** 0.5 * step)
        is_spread = np.sqrt(mean(np.square(error))) <= np.maximum(
            room, np.maximum(spread, single * count ** 0.5))
        shift = np.abs(means).max(axis=0)
        shift = np.maximum(np.maximum(ROUNDED_FACTOR * shift, chance), STEPS_OFF * step)
        is_centred = np.abs(mean(error)) <= np.maximum(room, np.maximum(shift, single))
        if count >= FEWEST_ROUNDED or axes == everything:
            allowed = np.minimum(allowed, np.where(is_spread, most * _ROOM, 0.0))
        allowed = np.where(is_centred, allowed, 0.0)
    return allowed


def _compare_exactly(name: str, want: np.ndarray, have: np.ndarray,
                     noisy: Callable[[], Iterable[np.ndarray]],
                     equally_good: EquallyGood | None) -> Difference:
    wrong = want != have
    if not wrong.any():
        return Difference()
    share = float(np.mean(wrong))
    if equally_good is not None:
        wrong &= ~equally_good(want, have)
    if wrong.any():
        for sample in noisy():
            if sample.shape == want.shape:
                wrong &= sample == want
    if not wrong.any():
        return Difference(undecided=share > UNDECIDED and want.size > 1)
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return Difference(complaint=(
        f"output '{name}' of the compiled model, whole numbers, differs from the reference in "
        f"{np.count_nonzero(wrong)} of {want.size} places (at {list(at)}: {have[at]} instead of "
        f"{want[at]})"))


def _some(values: np.ndarray, places: np.ndarray) -> str:
    return f"{values[places][0]:.6g}"
