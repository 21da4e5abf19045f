"""Which layers stay float32 is chosen by what each of them changes and what it costs."""

from __future__ import annotations

import numpy as np
import pytest

from run_model_tools.kernels.convolutions.convolution import Convolution, plain_lanes
from run_model_tools.kernels.int8.from_float32.fallback import Chooser, Demand, Sensitivity, grouped
from run_model_tools.kernels.plan import ConvolutionStep, PoolingStep
from run_model_tools.kernels.tensors import Tensor
from run_model_tools.verifying.agreement import margins
from run_model_tools.verifying.judged import Judged

VIEWS, CLASSES = 12, 20
SCORES, NUMBERS = Judged(1, False), Judged(None, False)


def layer(depth: int) -> ConvolutionStep:
    """A layer whose work is in proportion to `depth` blocks of its input."""
    shape = (1, depth, 8, 8, 8)
    weight = np.zeros((8, depth * 8, 3, 3), np.float32)
    conv = Convolution(weight, np.zeros(8, np.float32), (shape,), plain_lanes(depth * 8, 8),
                       padding=(1, 1, 1, 1))
    return ConvolutionStep([Tensor(shape)], Tensor((1, 1, 8, 8, 8)), conv)


def chooser(sizes: list[float], depths: list[int], scores: bool = True, seed: int = 1) -> Chooser:
    """Of layers that change outputs of unit variance by so much, each in its own way."""
    random = np.random.default_rng(seed)
    outputs = random.standard_normal((VIEWS, CLASSES))
    changes = np.stack([size * random.standard_normal((VIEWS, CLASSES)) for size in sizes])
    return Chooser(Sensitivity([[layer(depth)] for depth in depths], [outputs],
                               [changes.astype(np.float32)], [SCORES if scores else NUMBERS]),
                   [margins(outputs) if scores else None])


def test_nothing_is_kept_where_nothing_is_lost():
    assert chooser([0.001] * 4, [1] * 4).choose(Demand(0.98, 0.1)) == set()


def test_what_spoils_the_answers_is_kept():
    found = chooser([0.001, 0.9, 0.001, 0.7], [1, 1, 1, 1])
    assert found.choose(Demand(0.98, 10)) == {1, 3}
    assert found.alone(1) == pytest.approx(0.9, rel=0.3)


def test_of_equal_changes_the_cheaper_layer_is_kept():
    # With either one, the error is low enough.
    found = chooser([0.08, 0.08], [8, 1], scores=False)
    assert found.choose(Demand(0.98, 0.1)) == {1}


def test_changes_that_cancel_count_together():
    random = np.random.default_rng(3)
    outputs = random.standard_normal((VIEWS, CLASSES))
    change = random.standard_normal((VIEWS, CLASSES)).astype(np.float32)
    found = Chooser(Sensitivity([[layer(1)], [layer(1)]], [outputs],
                                [np.stack([change, -change])], [NUMBERS]), [None])
    assert found.choose(Demand(0.98, 0.1)) == set()


def test_all_are_kept_where_each_is_too_much():
    assert chooser([5.0, 5.0, 5.0], [1, 2, 3]).choose(Demand(0.98, 0.1)) == {0, 1, 2}


def test_a_mean_costs_little_beside_the_layer_before_it():
    one = layer(1)
    mean = PoolingStep([one.output], Tensor((1, 8, 1, 1)), None)
    random = np.random.default_rng(6)
    outputs = random.standard_normal((VIEWS, CLASSES))
    changes = 0.08 * random.standard_normal((2, VIEWS, CLASSES))
    found = Chooser(Sensitivity([[one], [mean]], [outputs], [changes.astype(np.float32)],
                                [NUMBERS]), [None])
    assert found.choose(Demand(0.98, 0.1)) == {1}


def test_every_output_has_to_do():
    random = np.random.default_rng(4)
    outputs = [random.standard_normal((VIEWS, CLASSES)), random.standard_normal((VIEWS, 50))]
    changes = [np.zeros((2, VIEWS, CLASSES), np.float32),
               np.stack([np.zeros((VIEWS, 50)), 0.5 * outputs[1]]).astype(np.float32)]
    found = Chooser(Sensitivity([[layer(1)], [layer(1)]], outputs, changes, [SCORES, NUMBERS]),
                    [margins(outputs[0]), None])
    assert found.choose(Demand(0.98, 0.1)) == {1}


def test_margins_of_other_views_count_too():
    random = np.random.default_rng(7)
    outputs = np.sort(random.standard_normal((VIEWS, CLASSES)), axis=1)
    changes = (0.05 * random.standard_normal((1, VIEWS, CLASSES))).astype(np.float32)
    found = Sensitivity([[layer(1)]], [outputs], [changes], [SCORES])
    assert Chooser(found, [np.full(100, 1.0)]).choose(Demand(0.98, 10)) == set()
    assert Chooser(found, [np.full(100, 1e-3)]).choose(Demand(0.98, 10)) == {0}


def test_whole_numbers_are_to_be_the_same():
    changes = np.zeros((2, VIEWS, 50), np.float32)
    changes[0, :, :2] = changes[1, :, 1:3] = 1
    found = Chooser(Sensitivity([[layer(1)], [layer(2)]], [np.ones((VIEWS, 50))], [changes],
                                [Judged(None, True)]), [None])
    assert found.expected(set()).agreement == pytest.approx(1 - 3 / 50)
    assert found.choose(Demand(0.95, 0.1)) == {0}


def test_layers_that_are_measured_together_stay_float32_together():
    steps = [layer(1), layer(1), layer(1), layer(1), layer(1)]
    assert grouped(steps, 9) == [[step] for step in steps]
    groups = grouped(steps, 2)
    assert groups == [steps[:3], steps[3:]]
    changes = np.stack([np.zeros((VIEWS, 50)), np.ones((VIEWS, 50))]).astype(np.float32)
    found = Chooser(Sensitivity(groups, [np.ones((VIEWS, 50))], [changes], [NUMBERS]), [None])
    kept = found.choose(Demand(0.98, 0.1))
    assert found.found.steps(kept) == set(steps[3:]) and found.share(kept) == pytest.approx(0.4)
