"""Poolings of open extents (kernels/c/f32-open-pool.c.in) against their definition."""

from __future__ import annotations

import numpy as np
import pytest
from open_functions import Function

from run_model_tools.kernels.isa import AVX2, GENERIC
from run_model_tools.kernels.relax.open_pictures import Pooling, pooling_source

CASES = {
    # window, strides, pads before, pictures (H, W) and what is added behind
    "3x3 of stride 2": ((3, 3), (2, 2), (1, 1), [((1, 1), 1), ((9, 40), 1), ((112, 57), 0)]),
    "2x2": ((2, 2), (2, 2), (0, 0), [((2, 2), 0), ((34, 7), 0), ((7, 35), 1)]),
    "5x5": ((5, 5), (1, 1), (2, 2), [((1, 3), 2), ((20, 20), 2)]),
    "stride 3": ((2, 4), (1, 3), (0, 2), [((5, 50), 0), ((5, 49), 0)]),
    "rows": ((1, 3), (1, 2), (0, 0), [((1, 101), 0)]),
    "narrower than its strides": ((1, 1), (2, 2), (0, 0), [((9, 33), 0)]),
}


def windows(x, window, strides, before, behind, fill):
    """[..., row, column, window's rows, columns] of the result."""
    padded = np.pad(x, [(0, 0), (0, 0), *((b, behind) for b in before)], constant_values=fill)
    return np.lib.stride_tricks.sliding_window_view(padded, window, (2, 3))[
        :, :, ::strides[0], ::strides[1]]


@pytest.mark.parametrize("isa", [GENERIC, AVX2], ids=["generic", "avx2"])
def test_equals_the_definition(tmp_path, isa):
    random = np.random.default_rng(3)
    for name, (window, strides, before, pictures) in CASES.items():
        for kind in ("max", "mean", "mean of all"):
            pooling = Pooling(kind == "max", window, strides, before, kind == "mean of all")
            function = Function(tmp_path, pooling_source("function", pooling, isa))
            for sides, behind in pictures:
                x = random.standard_normal((2, 3, *sides)).astype(np.float32)
                x[0, 0, -1, -1] = np.nan
                seen = windows(x, window, strides, before, behind, np.inf)
                if kind == "max":
                    want = np.where(np.isinf(seen), -np.inf, seen).max((-2, -1))
                else:
                    want = np.where(np.isinf(seen), 0, seen).sum((-2, -1), np.float64)
                    want /= (np.prod(window) if kind == "mean of all"
                             else (~np.isinf(seen)).sum((-2, -1)))
                result = np.zeros(want.shape, np.float32)
                assert function(x, result)
                np.testing.assert_allclose(result, want, rtol=1e-5, atol=1e-6,
                                           err_msg=f"{name} {kind} {sides}")


def test_no_more_is_read_than_is_seen(tmp_path):
    pooling = Pooling(True, (2, 2), (2, 2), (0, 0), False)
    function = Function(tmp_path, pooling_source("function", pooling, GENERIC))
    x = np.arange(2 * 5 * 8000, dtype=np.float32).reshape(1, 2, 5, 8000)
    result = np.zeros((1, 2, 2, 3), np.float32)
    assert function(x, result)
    np.testing.assert_array_equal(result, x[:, :, 1:4:2, 1:7:2])


def test_other_extents_are_refused(tmp_path):
    pooling = Pooling(True, (3, 3), (2, 2), (1, 1), False)
    function = Function(tmp_path, pooling_source("function", pooling, GENERIC))
    x = np.ones((1, 2, 8, 8), np.float32)
    assert function(x, np.zeros((1, 2, 4, 4), np.float32))
    for shape in ((1, 3, 4, 4), (1, 2, 6, 4), (1, 2, 4)):
        assert not function(x, np.zeros(shape, np.float32))
