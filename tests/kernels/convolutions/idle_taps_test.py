"""Taps that only ever fall into the padding are left out, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

import reference
from run_model_tools.kernels.convolutions.convolution import Convolution, without_idle_taps


def conv_of(size: tuple[int, int], kernel: tuple[int, int], padding: tuple[int, int, int, int],
            strides: tuple[int, int] = (1, 1), dilation: tuple[int, int] = (1, 1)) -> Convolution:
    rng = np.random.default_rng(1)
    return Convolution(rng.standard_normal((2, 3, *kernel)).astype(np.float32),
                       np.ones(2, np.float32), ((1, 3, *size),), (), strides=strides,
                       padding=padding, dilation=dilation)


@pytest.mark.parametrize(("size", "dilation", "left"), [
    ((16, 16), 12, (3, 3)), ((16, 16), 16, (1, 1)), ((16, 40), 24, (1, 3)), ((9, 9), 8, (3, 3))])
def test_dilations_as_wide_as_the_picture(size: tuple[int, int], dilation: int,
                                          left: tuple[int, int]) -> None:
    conv = conv_of(size, (3, 3), (dilation,) * 4, dilation=(dilation, dilation))
    small = without_idle_taps(conv, size)
    assert small.kernel == left
    assert small.output_size == conv.output_size


def test_random_convolutions_compute_the_same() -> None:
    rng, dropped = np.random.default_rng(2), 0
    for _ in range(400):
        size, kernel, strides, dilation = (tuple(int(v) for v in rng.integers(1, most, 2))
                                           for most in (8, 5, 4, 6))
        padding = tuple(int(v) for v in rng.integers(0, 12, 4))
        conv = conv_of(size, kernel, padding, strides, dilation)  # type: ignore[arg-type]
        if min(conv.output_size) < 1:
            continue
        small = without_idle_taps(conv, size)
        assert min(small.padding) >= 0
        dropped += small.kernel != conv.kernel
        x = rng.standard_normal((1, 3, *size)).astype(np.float32)
        assert np.allclose(reference.convolve(small, [x], 16), reference.convolve(conv, [x], 16),
                           rtol=0, atol=1e-12)
    assert dropped > 50
