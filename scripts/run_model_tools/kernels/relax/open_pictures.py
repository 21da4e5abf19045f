"""Resized and pooled pictures and transposed convolutions of open extents, as functions that Relax
calls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import c_defines

_AT = {
    "align_corners": "target > 1 ? x * ((size - 1) / (double)(target - 1)) : 0",
    "asymmetric": "x * (size / (double)target)",
    "tf_half_pixel_for_nn": "(x + 0.5) * (size / (double)target)",
    "half_pixel": "(x + 0.5) * (size / (double)target) - 0.5",
    "pytorch_half_pixel": "target > 1 ? (x + 0.5) * (size / (double)target) - 0.5 : 0"}
_NEAREST = {
    # What double precision leaves of a whole number or of a half must not decide.
    "round_prefer_floor": "up(at - 0.5 - 1e-6)", "round_prefer_ceil": "down(at + 0.5 + 1e-6)",
    "floor": "down(at + 1e-6)", "ceil": "up(at - 1e-6)"}


def resizing(method: str, coordinates: str, rounding: str) -> dict[str, object] | None:
    """Macros for f32-open-resize.c.in, in the words of resampling.resized(); None for what they do
    not say here."""
    if coordinates not in _AT:
        return None
    if method == "linear":
        return {"LINEAR": 1, "AT": _AT[coordinates], "NEAREST": "0"}
    rounding = rounding or ("round" if coordinates == "align_corners" else "floor")
    if method != "nearest_neighbor" or rounding not in _NEAREST:
        return None
    return {"LINEAR": 0, "AT": _AT[coordinates], "NEAREST": _NEAREST[rounding]}


@dataclass(frozen=True)
class Pooling:
    """The largest number or the mean of each window; pairs are downwards and across."""

    is_max: bool
    window: tuple[int, int]
    strides: tuple[int, int]
    before: tuple[int, int]
    """Pads before the first row and column."""
    counts_pads: bool
    """Whether means are of all of a window's places, also those outside of the picture."""


def pooling_source(name: str, pooling: Pooling, isa: Isa) -> str:
    """C code, to follow ffi_c's, of the function `name` (picture, [result])."""
    defines = {"MAX": int(pooling.is_max), "COUNTS_PADS": int(pooling.counts_pads)}
    for what, numbers in (("TAPS", pooling.window), ("STRIDE", pooling.strides),
                          ("BEFORE", pooling.before)):
        defines |= {f"{what}_Y": numbers[0], f"{what}_X": numbers[1]}
    return c_defines({**isa.defines(), **defines, "FUNCTION": f"__tvm_ffi_{name}"}) + (
        '#include "f32-open-pool.c.in"\n')


def of_cells(weights: np.ndarray, strides: tuple[int, int], groups: int) -> np.ndarray:
    """The weights of the convolution that makes what is in each cell of strides[0] x strides[1]
    numbers of a transposed convolution's result: (output channels, row and column of the cell,
    input channels of a group, height, width).

    weights: (input channels, output channels of a group, height, width)
    """
    inputs, outputs, *window = weights.shape
    places = [-(-size // stride) for size, stride in zip(window, strides)]
    made = np.zeros((groups, outputs, *strides, inputs // groups, *places), np.float32)
    of_group = weights.reshape(groups, inputs // groups, outputs, *window)
    for row in range(window[0]):
        for column in range(window[1]):
            # What is read last comes from the weights' beginning.
            made[:, :, row % strides[0], column % strides[1], :,
                 places[0] - 1 - row // strides[0], places[1] - 1 - column // strides[1]
                 ] = of_group[..., row, column].transpose(0, 2, 1)
    return made.reshape(-1, inputs // groups, *places)
