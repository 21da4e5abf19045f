"""Which layers stay float32, so that a network of 8 bits answers as the float32 network does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from run_model_tools.kernels.plan import ConvolutionStep, DenseStep, Step
from run_model_tools.verifying.agreement import expected_agreement, root_mean_square

# Parts of the changes' size that are planned for, as they are estimated of few views.
_CAUTION = 0.8
# Scores by which a layer's part in the wrong answers is judged: the best ones of each view.
_BEST = 10


@dataclass(frozen=True)
class Demand:
    """What is asked of the network of 8 bits."""

    agreement: float
    """The share of views with the same best class, for outputs that are scores of classes."""
    error: float
    """The root mean square of an output's differences, relative to that of the output."""


@dataclass(frozen=True)
class Sensitivity:
    """Of each output (views, numbers) and of each layer (layers, views, numbers)."""

    steps: list[Step]
    """The layers that can be bytes."""
    outputs: list[np.ndarray]
    """Of the float32 network."""
    changes: list[np.ndarray]
    """float32: what each layer adds to them when only it is bytes."""
    scores: list[bool]
    """Which outputs are scores of classes."""


class Chooser:
    """Chooses by the sum of what the layers change."""

    def __init__(self, found: Sensitivity):
        self.found = found
        self.costs = np.array([work(step) for step in found.steps])
        self._scales = [root_mean_square(one) + 1e-30 for one in found.outputs]
        self._judged = [np.take_along_axis(changes, _best(want)[None], 2) if scores else changes
                        for want, changes, scores in zip(found.outputs, found.changes,
                                                         found.scores)]

    def alone(self, layer: int) -> float:
        """How much a layer's bytes alone change the outputs, relative to them."""
        return max(root_mean_square(changes[layer]) / scale
                   for changes, scale in zip(self.found.changes, self._scales))

    def expected(self, kept: set[int]) -> Demand:
        """The agreement and error when these layers stay float32."""
        bytes_ = [k for k in range(len(self.found.steps)) if k not in kept]
        agreement, error = 1.0, 0.0
        for want, changes, scores, scale in zip(self.found.outputs, self.found.changes,
                                                self.found.scores, self._scales):
            total = changes[bytes_].sum(0, dtype=np.float64)
            error = max(error, root_mean_square(total) / scale)
            if scores:
                agreement = min(agreement, expected_agreement(want, total))
        return Demand(agreement, error)

    def choose(self, demand: Demand) -> set[int]:
        """Layers that have to stay float32, the least work of them that is found: one after the
        other where most is gained for its work, and then without those that turn out not to be
        needed."""
        kept: set[int] = set()
        order: list[int] = []
        while len(kept) < len(self.found.steps) and not self._enough(kept, demand):
            order.append(self._next(kept))
            kept.add(order[-1])
        for layer in sorted(order, key=lambda k: -self.costs[k]):
            if self._enough(kept - {layer}, demand):
                kept.discard(layer)
        return kept

    def _enough(self, kept: set[int], demand: Demand) -> bool:
        expected = self.expected(kept)
        return (1 - expected.agreement <= (1 - demand.agreement) * _CAUTION
                and expected.error <= demand.error * _CAUTION)

    def _next(self, kept: set[int]) -> int:
        rest = np.array([k for k in range(len(self.found.steps)) if k not in kept])
        gains = np.zeros(len(rest))
        for changes, scale in zip(self._judged, self._scales):
            total = changes[rest].sum(0, dtype=np.float64)
            for at, k in enumerate(rest):
                gains[at] += (np.sum(np.square(total)) - np.sum(np.square(total - changes[k]))
                              ) / scale ** 2 / total.size
        return int(rest[np.argmax(np.maximum(gains, 1e-12) / self.costs[rest])])


def work(step: Step) -> float:
    """What a layer of float32 costs more than one of bytes, roughly: multiply-adds, and numbers
    that are read and written."""
    if isinstance(step, ConvolutionStep):
        conv = step.convolution
        moved = np.prod(step.output.shape) + sum(np.prod(shape) for shape in conv.input_shapes)
        # Few multiply-adds are done with each number of a depthwise layer.
        return float(conv.multiply_adds * (4 if conv.depthwise else 1) + 8 * moved)
    assert isinstance(step, DenseStep)
    return float(step.dense.weight.size * 4)


def _best(scores: np.ndarray) -> np.ndarray:
    return np.argsort(-scores, axis=1)[:, :_BEST]
