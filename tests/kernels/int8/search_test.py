"""Choices of layers are measured until one does what is wanted, or, where that costs much, what is
demanded."""

from __future__ import annotations

import math

import numpy as np
import pytest

from run_model_tools.kernels.convolutions.convolution import Convolution, plain_lanes
from run_model_tools.kernels.int8.from_float32.fallback import Chooser, Demand, Sensitivity
from run_model_tools.kernels.int8.from_float32.search import Try, best_try
from run_model_tools.kernels.plan import ConvolutionStep
from run_model_tools.kernels.tensors import Tensor
from run_model_tools.verifying.judged import Judged


def chooser(errors: list[float], depths: list[int]) -> Chooser:
    """Of layers that change the output's numbers by so much, each others of them; their work is in
    proportion to `depths`."""
    steps = []
    for depth in depths:
        shape = (1, depth, 8, 8, 8)
        conv = Convolution(np.zeros((8, depth * 8, 1, 1), np.float32), np.zeros(8, np.float32),
                           (shape,), plain_lanes(depth * 8, 8))
        steps.append(ConvolutionStep([Tensor(shape)], Tensor((1, 1, 8, 8, 8)), conv))
    count = len(errors)
    changes = np.diag(errors).astype(np.float32)[:, None] * math.sqrt(count)
    return Chooser(Sensitivity([[step] for step in steps], [np.ones((1, count))], [changes],
                               [Judged(None, False)]), [None])


class Machine:
    """Measures what is expected, times `factor`, and as many classes changed as it is off."""

    def __init__(self, chooser: Chooser, factor: float = 1.0):
        self.chooser, self.factor = chooser, factor
        self.measured: list[set[int]] = []

    def __call__(self, asked: Demand, kept: set[int]) -> Try:
        self.measured.append(kept)
        error = self.factor * self.chooser.expected(kept).error
        return Try(kept, asked, {"relative_error": error, "expected_agreement": 1 - error})


def best(found: Chooser, least: float, machine: Machine) -> set[int] | None:
    """What stays float32 for 98 %, or `least` where that costs much."""
    one = best_try(found, Demand(0.98, 0.1), least, machine)
    return None if one is None else one.kept


def test_what_is_asked_is_done_where_that_costs_little():
    # All in bytes, 97.5 % would be expected.
    found = chooser([0.025, 0.001, 0.001], [1, 20, 20])
    assert best(found, 0.97, Machine(found)) == {0}


def test_what_will_do_is_enough_where_more_costs_much():
    found = chooser([0.2, 0.025, 0.001], [1, 20, 20])
    machine = Machine(found)
    assert best(found, 0.97, machine) == {0}
    # Unless it was asked for.
    assert best(found, 0.98, machine) == {0, 1}


def test_less_than_what_will_do_is_not_enough():
    found = chooser([0.2, 0.05, 0.001], [1, 20, 20])
    assert best(found, 0.97, Machine(found)) == {0, 1}


def test_more_is_asked_of_the_next_choice_until_one_does():
    found = chooser([0.05, 0.06, 0.07, 0.001, 0.001], [1, 1, 1, 1, 1])
    machine = Machine(found, factor=2.0)
    assert best(found, 0.98, machine) == {0, 1, 2}
    assert len(machine.measured) > 1


@pytest.mark.parametrize("least", [0.97, 0.98])
def test_there_may_be_none(least):
    found = chooser([5.0, 5.0], [1, 1])
    assert best(found, least, Machine(found)) is None
