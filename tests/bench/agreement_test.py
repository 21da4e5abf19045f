"""Whether a runtime's output counts as the network's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from peers.agreement import check_agreement


@pytest.fixture
def check(tmp_path: Path):
    def run(values: np.ndarray, reference: np.ndarray, tolerance: float = 1e-3) -> dict:
        np.ascontiguousarray(values, np.float32).tofile(tmp_path / "output")
        return check_agreement(tmp_path / "output", reference.astype(np.float32), tolerance)
    return run


def test_small_differences_agree(check):
    found = check(np.array([1, 2.0005, 0]), np.array([[1, 2, 0]]))
    assert found["agrees"] and found["top1"] and found["relative"] < 1e-3


@pytest.mark.parametrize(("values", "reason"), [
    ([1, 2.1, 0], "differs from ONNX Runtime's by 0.1"), ([1, 2], "has 2 values"),
    ([1, np.nan, 0], "not finite"), ([2, 1.9995, 0], "best class is 0")])
def test_what_does_not_agree(check, values, reason):
    reference = np.array([[1, 2, 0]]) if values[0] == 1 else np.array([[1.9995, 2, 0]])
    found = check(np.array(values), reference)
    assert not found["agrees"] and reason in found["reason"]


def test_a_tolerance_of_the_network(check):
    assert check(np.array([1, 2.1, 0]), np.array([[1, 2, 0]]), 0.1)["agrees"]


def test_only_scores_have_a_best_class(check):
    pixels = np.random.default_rng(1).random((1, 2, 3, 4))
    assert check(pixels, pixels)["top1"] is None


def test_channels_last_are_the_same_output(check):
    pixels = np.random.default_rng(1).random((1, 2, 3, 4))
    assert check(pixels.transpose(0, 2, 3, 1), pixels)["agrees"]
    assert not check(pixels.transpose(0, 3, 2, 1), pixels)["agrees"]
