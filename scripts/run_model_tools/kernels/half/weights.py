"""Weights as kernels in half precision want them (c/half_tile.h).

Sums of a few products are kept in float16, which ends at 65504.  Weights are therefore divided by a
power of two for each output channel, so large that the weights of any run are at most 1 together:
then no run goes beyond float16 whatever the (finite) activations are.  That a weight gets so small
that bits of it are lost is no matter beside the others: it is 2**-14 of their sum at most.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from run_model_tools.kernels.convolutions.convolution import Convolution
from run_model_tools.kernels.isa import Isa

RUN_PRODUCTS = 64
"""The most products that are summed up in float16: kernels/half_error.md."""

_LEAST_HALF, _LARGEST_HALF = 2.0 ** -14, 2.0 ** 15
"""Of the powers of two that float16 has with all of its bits."""


def scaled(conv: Convolution, isa: Isa) -> tuple[Convolution, np.ndarray | None]:
    """The convolution with divided weights and biases, and what each output channel's sum is to be
    multiplied by; as it is, and None, where nothing is in half precision."""
    if not isa.half:
        return conv, None
    return _divided(conv, powers(conv.weight.reshape(len(conv.weight), -1)))


def scaled_with_bias(conv: Convolution, isa: Isa) -> tuple[Convolution, np.ndarray | None]:
    """scaled() where the bias is a part of the run of products that is summed up in float16."""
    if not isa.half:
        return conv, None
    return _divided(conv, np.maximum(powers(_with_bias(conv)), _LEAST_HALF))


def _divided(conv: Convolution, scales: np.ndarray) -> tuple[Convolution, np.ndarray]:
    return replace(conv, weight=conv.weight / scales[:, None, None, None],
                   bias=conv.bias / scales), scales


def fits_one_run(conv: Convolution) -> bool:
    """Whether a layer whose sums are one run, with their bias in it, can be in half precision."""
    run = _with_bias(conv)
    return run.shape[1] <= RUN_PRODUCTS and bool(powers(run).max() <= _LARGEST_HALF)


def _with_bias(conv: Convolution) -> np.ndarray:
    return np.concatenate([conv.weight.reshape(len(conv.weight), -1), conv.bias[:, None]], 1)


def powers(weights: np.ndarray, run: int = RUN_PRODUCTS) -> np.ndarray:
    """float32 (rows,): the least powers of two by which `run` weights of a row, whichever
    they are, become at most 1 together."""
    sizes = -np.sort(-abs(weights.astype(np.float64)), axis=1)[:, :run].sum(axis=1)
    # Rounding may add 2**-11 to each weight and to the sum with each product.
    sizes *= (1 + 2.0 ** -11) ** (run + 1)
    exponents = np.ceil(np.log2(np.where(sizes > 0, sizes, 1)))
    # A bias divided by less than this might go beyond float32.
    return np.exp2(np.maximum(exponents, -60)).astype(np.float32)
