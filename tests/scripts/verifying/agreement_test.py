"""The share of views that keep their best class, as margins and errors let expect it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from run_model_tools.verifying.agreement import (
    disagreements,
    expected_agreement,
    gains,
    margins,
)

CLASSES = 30


def scores(random: np.random.Generator, count: int) -> np.ndarray:
    return 3 * random.standard_normal((count, CLASSES))


def test_every_margin_meets_every_gain():
    # Two of six cases: a gain of 1.5 beats a margin of 1 and one of 1.2.
    assert expected_agreement(np.array([1.0, 1.2, 2.0]), np.array([1.5, -3.0])) == pytest.approx(
        4 / 6)
    # What is caught up with exactly is no longer ahead.
    assert expected_agreement(np.array([1.0]), np.array([1.0])) == 0


def test_gains_are_those_of_the_best_two():
    want = np.array([[1.0, 5.0, 4.0]])
    assert margins(want) == [1.0]
    assert gains(want, np.array([[9.0, 0.25, 0.75]])) == [0.5]


@pytest.mark.parametrize("size", [0.1, 0.4])
def test_few_views_tell_what_many_show(size):
    random = np.random.default_rng(8)
    many = scores(random, 20_000)
    changed = many + size * random.standard_normal(many.shape)
    truth = 1 - disagreements(many, changed) / len(many)
    guesses = []
    for _ in range(20):
        few = scores(random, 80)
        changes = size * random.standard_normal(few.shape)
        guesses.append(expected_agreement(margins(few), gains(few, changes)))
    # Third and later classes may win too, which two scores do not show.
    assert np.mean(guesses) == pytest.approx(truth, abs=0.25 * (1 - truth))
    # Counting the views of eighty would spread by more than this.
    assert np.std(guesses) < 0.8 * math.sqrt(truth * (1 - truth) / 80)


def test_a_tie_of_float32_has_no_answer_to_keep():
    want = np.array([[2.0, 2.0 + 1e-7, 0.0], [2.0, 2.01, 0.0]], np.float32)
    have = want[:, [1, 0, 2]]
    assert disagreements(want, have) == 1
    ahead = margins(want)
    assert np.isinf(ahead[0]) and ahead[1] == pytest.approx(0.01, rel=1e-3)
    assert expected_agreement(ahead, np.array([0.02])) == 0.5
