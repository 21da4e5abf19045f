"""Which layers stay float32, so that a network of 8 bits answers as the float32 network does."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from run_model_tools.kernels.convolutions.convolution import Convolution
from run_model_tools.kernels.plan import (
    ConvolutionStep,
    DenseStep,
    Plan,
    PoolingStep,
    ProductStep,
    Step,
)
from run_model_tools.verifying.agreement import expected_agreement, gains, root_mean_square
from run_model_tools.verifying.judged import Judged, Spread

# Scores by which a layer's part in the wrong answers is judged: the best ones of each view.
_BEST = 10


@dataclass(frozen=True)
class Demand:
    """What is asked of the network of 8 bits."""

    agreement: float
    """The share of views with the same best class, for outputs that name classes."""
    error: float
    """By how much an output may differ (judged.Spread)."""

    def meets(self, other: Demand) -> bool:
        """Whether no less is asked than there."""
        return self.agreement >= other.agreement and self.error <= other.error

    def between(self, other: Demand) -> Demand:
        """What is as much stricter than the one as it is laxer than the other."""
        return Demand(1 - math.sqrt((1 - self.agreement) * (1 - other.agreement)),
                      math.sqrt(self.error * other.error))


@dataclass(frozen=True)
class Sensitivity:
    """Of each output (views, numbers) or (places, classes), and of each layer (layers, ...)."""

    groups: list[list[Step]]
    """The layers and global means that can be bytes: each by itself, or some that are bytes or
    float32 together; here all are called layers."""
    outputs: list[np.ndarray]
    """Of the float32 network."""
    changes: list[np.ndarray]
    """float32: what each layer adds to them when only it is bytes; of whole numbers, 1 where it
    makes others of them."""
    judged: list[Judged]

    def steps(self, layers: Iterable[int]) -> set[Step]:
        return {step for k in layers for step in self.groups[k]}


def grouped(steps: list[Step], most: int) -> list[list[Step]]:
    """Of layers in their order at most so many groups (at least one)."""
    each = -(-len(steps) // max(most, 1)) or 1
    return [steps[at:at + each] for at in range(0, len(steps), each)]


class Chooser:
    """Chooses by the sum of what the layers change."""

    def __init__(self, found: Sensitivity, margins: list[np.ndarray | None]):
        """`margins`: agreement.margins of each output that is scores, of as many views as are
        known."""
        self.found, self.margins = found, margins
        self.costs = np.array([sum(map(work, group)) for group in found.groups])
        self._spreads = [Spread(how, want) for how, want in zip(found.judged, found.outputs)]
        self._judged = [changes if margins is None else
                        np.take_along_axis(changes, _best(want)[None], 2)
                        for want, changes, margins in zip(found.outputs, found.changes, margins)]

    def alone(self, layer: int) -> float:
        """How much a layer's bytes alone change the outputs, relative to them."""
        return max(root_mean_square(changes[layer]) / spread.whole
                   for changes, spread in zip(self.found.changes, self._spreads))

    def share(self, layers: set[int]) -> float:
        """Of the work, that of some layers."""
        return float(self.costs[list(layers)].sum() / (self.costs.sum() or 1.0))

    def expected(self, kept: set[int]) -> Demand:
        """The agreement and error when these layers stay float32."""
        bytes_ = [k for k in range(len(self.found.groups)) if k not in kept]
        agreement, error = 1.0, 0.0
        for how, want, changes, margins, spread in zip(
                self.found.judged, self.found.outputs, self.found.changes, self.margins,
                self._spreads):
            total = changes[bytes_].sum(0, dtype=np.float64)
            if how.are_names:
                agreement = min(agreement, 1 - float(np.minimum(total, 1).mean()))
                continue
            error = max(error, spread.error(total))
            if margins is not None:
                agreement = min(agreement, expected_agreement(margins, gains(want, total)))
        return Demand(agreement, error)

    def choose(self, demand: Demand) -> set[int]:
        """Layers that have to stay float32, the least work of them that is found: one after the
        other where most is gained for its work, and then without those that turn out not to be
        needed."""
        kept: set[int] = set()
        order: list[int] = []
        while len(kept) < len(self.found.groups) and not self._enough(kept, demand):
            order.append(self._next(kept))
            kept.add(order[-1])
        for layer in sorted(order, key=lambda k: -self.costs[k]):
            if self._enough(kept - {layer}, demand):
                kept.discard(layer)
        return kept

    def _enough(self, kept: set[int], demand: Demand) -> bool:
        return self.expected(kept).meets(demand)

    def _next(self, kept: set[int]) -> int:
        rest = np.array([k for k in range(len(self.found.groups)) if k not in kept])
        gained = np.zeros(len(rest))
        for changes, spread in zip(self._judged, self._spreads):
            total = changes[rest].sum(0, dtype=np.float64)
            for at, k in enumerate(rest):
                gained[at] += (np.sum(np.square(total)) - np.sum(np.square(total - changes[k]))
                               ) / spread.whole ** 2 / total.size
        return int(rest[np.argmax(np.maximum(gained, 1e-12) / self.costs[rest])])


def work(step: Step) -> float:
    """What a layer of float32 costs more than one of bytes, roughly, in multiply-adds of a 1x1
    convolution (15 ps): multiply-adds, and numbers that are read and written.  From profiles of the
    zoo's networks with AVX-512 VNNI and two threads.  Of layers that are never bytes, as if they
    could be."""
    if isinstance(step, ProductStep):
        return float(step.product.multiply_adds)
    if isinstance(step, ConvolutionStep):
        conv = step.convolution
        moved = np.prod(step.output.shape) + sum(np.prod(shape) for shape in conv.input_shapes)
        return float(_multiplied(conv) + 8 * moved)
    if isinstance(step, PoolingStep):
        return float(8 * sum(np.prod(tensor.shape) for tensor in step.inputs))
    return float(step.dense.weight.size * 8) if isinstance(step, DenseStep) else 0.0


def share_for_bytes(plan: Plan) -> float:
    """Of the plan's work, that of layers which can be bytes."""
    possible = sum(work(step) for step in plan.steps if _can_be_bytes(step))
    return possible / (sum(map(work, plan.steps)) or 1.0)


def _can_be_bytes(step: Step) -> bool:
    if isinstance(step, ConvolutionStep):
        return step.convolution.expression is None
    return isinstance(step, (DenseStep, PoolingStep))


def _multiplied(conv: Convolution) -> float:
    if conv.kernel == (1, 1):
        return float(conv.multiply_adds)
    direct = 0.4 * conv.multiply_adds
    if conv.groups > 1 or conv.kernel != (3, 3) or conv.strides != (1, 1):
        return direct
    # Winograd's algorithm, which is for float32 only, multiplies less with four times the weights.
    return min(direct, 0.05 * conv.multiply_adds + 14.0 * conv.weight.size)


def _best(scores: np.ndarray) -> np.ndarray:
    return np.argsort(-scores, axis=1)[:, :_BEST]
