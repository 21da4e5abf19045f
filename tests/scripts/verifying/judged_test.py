"""Networks of 8 bits are judged by what their outputs mean, and nothing small is lost in it."""

from __future__ import annotations

import numpy as np
import pytest

from run_model_tools.verifying.judged import NUMBERS, Judged, judge, judge_all, stated

RANDOM = np.random.default_rng(1)


def of(views: np.ndarray, kind: str | None = None) -> Judged:
    return Judged.of(views[0], kind)


def test_tasks_say_which_outputs_name_classes():
    tasks = [{"kind": "segmentation", "form": "scores", "output": "maps", "layout": "NCHW"},
             {"kind": "classification", "output": 2},
             {"kind": "classification", "output": "output_3", "binary": True}]
    assert stated(tasks, ["points", "maps", "classes", "one"]) == [
        "numbers", "NCHW", "classes", "numbers"]
    assert stated(None, ["a", "b"]) == [None, None]


def test_an_embedding_names_no_class():
    views = RANDOM.standard_normal((20, 1, 64)).astype(np.float32)
    changed = views + np.float32(0.05) * RANDOM.standard_normal(views.shape).astype(np.float32)
    assert judge(of(views), views, changed).places == 20
    found = judge(of(views, NUMBERS), views, changed)
    assert (found.agreement, found.places) == (1, 0)
    assert found.error == pytest.approx(0.05, rel=0.1)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_each_place_of_a_map_names_a_class(layout):
    views = np.zeros((3, 1, 4, 10, 10), np.float32)
    views[:, :, 1] = 100
    views[:, :, 2] = 99
    changed = views.copy()
    # A hundredth of all numbers, by a tenth of what one class is ahead of the other, is no matter.
    changed[:, :, 2, 5] += 0.1
    other = views.copy()
    other[:, :, 2, 5] += 1.5
    if layout == "NHWC":
        views, changed, other = (np.moveaxis(x, 2, -1) for x in (views, changed, other))
    how = of(views, layout)
    assert judge(how, views, changed).other == 0
    found = judge(how, views, other)
    assert (found.other, found.places) == (30, 300)
    assert found.agreement == pytest.approx(0.9)


def test_whole_numbers_are_right_or_wrong():
    views = RANDOM.integers(0, 20, (4, 1, 5, 5))
    changed = views.copy()
    changed[0, 0, 0, :2] += 1
    found = judge(of(views), views, changed)
    assert (found.other, found.places, found.error) == (2, 100, 0)


def test_a_small_quantity_beside_a_large_one_is_not_lost():
    boxes = RANDOM.uniform(0, 600, (6, 1, 300, 4))
    scores = RANDOM.uniform(0, 1, (6, 1, 300, 1))
    views = np.concatenate([boxes, scores], -1)
    wrong = np.concatenate([boxes, scores[::-1]], -1)
    assert judge(of(views), views, wrong).error > 0.1
    near = views * (1 + 0.01 * RANDOM.standard_normal(views.shape))
    assert judge(of(views), views, near).error < 0.1


def test_what_varies_little_is_not_lost():
    views = 100 + RANDOM.standard_normal((6, 1, 3, 8, 8))
    assert judge(of(views), views, np.full_like(views, 100)).error > 0.1
    assert judge(of(views), views, views + 0.1 * RANDOM.standard_normal(views.shape)).error < 0.1
    constant = np.ones((6, 1, 3, 8, 8))
    assert judge(of(constant), constant, constant + 1e-4).error < 0.1


def test_a_single_number_is_judged():
    views = RANDOM.standard_normal(20)
    assert judge(of(views), views, views * 1.05).error == pytest.approx(0.05)


def test_samples_have_all_channels():
    output = np.arange(2 * 21 * 300 * 400).reshape(2, 21, 300, 400).astype(np.float32)
    sample = Judged.of(output, "NCHW").sample(output, 4096)
    assert sample.shape[:2] == (2, 21) and 1024 < sample.size <= 4096
    scores = np.zeros((1, 10_000), np.float32)
    assert Judged.of(scores, None).sample(scores, 4096).shape == scores.shape


def test_the_worst_output_counts():
    good, bad = np.ones((2, 1, 4, 4)), np.arange(32.0).reshape(2, 1, 4, 4)
    judged = [of(good), of(bad)]
    found = judge_all(judged, list(zip(good, bad)), list(zip(good, bad * 1.5)))
    assert found.error == pytest.approx(0.5)
