"""Pixels from other places of the same channel: resizing, flipping, cutting, padding
(c/f32-resample.c.in)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from run_model_tools.kernels.convolutions.convolution import Lanes
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, Phase

_TASK_VECTORS = 8_000
"""Vectors that a core reads in about 5 us."""


@dataclass(frozen=True, eq=False)
class Axis:
    """Of each output position along an axis, the input positions that are summed up."""

    positions: np.ndarray
    """int (outputs, taps); -1 (with one tap): outside of the input."""
    weights: np.ndarray | None = None
    """float32 (outputs, taps); None: one tap, as it is."""
    blocks: np.ndarray | None = None
    """int (outputs,): how many blocks further on the position is read."""

    @property
    def size(self) -> int:
        return len(self.positions)


@dataclass(frozen=True, eq=False)
class Resampling:
    """Of each of the blocks `input_lanes`, or of as many as there are from the first on with
    Axis.blocks, the output's rows and columns."""

    rows: Axis
    columns: Axis
    input_shapes: tuple[tuple[int, ...], ...]
    input_lanes: tuple[Lanes, ...]
    fill: float = 0.0


def make(work: Resampling, isa: Isa) -> Layer:
    """The layer."""
    lanes, blocks = isa.lanes, len(work.input_lanes)
    height, width = work.input_shapes[0][2:4]
    plane = height * width
    axes = (work.rows, work.columns)
    weighted = any(axis.weights is not None for axis in axes)
    offsets: list[np.ndarray] = []
    for axis, step in zip(axes, (width * lanes, lanes)):
        offset = np.where(axis.positions < 0, -1, axis.positions * step)
        if axis.blocks is not None:
            offset = np.where(offset < 0, -1, offset + axis.blocks[:, None] * plane * lanes)
        offsets.append(offset.astype(np.int32).reshape(-1))
    constants: list[np.ndarray] = list(offsets)
    if weighted:
        constants += [np.ones(axis.positions.size, np.float32) if axis.weights is None
                      else axis.weights.astype(np.float32).reshape(-1) for axis in axes]
    taps = [axis.positions.shape[1] for axis in axes]
    lines = blocks * work.rows.size
    tasks = max(1, min(16, lines, lines * work.columns.size * math.prod(taps) // _TASK_VECTORS))
    defines = {
        **isa.defines(), "BLOCKS": blocks, "BLOCK_TENSOR": [p.tensor for p in work.input_lanes],
        "BLOCK_INDEX": [p.block for p in work.input_lanes], "IN_PLANE": plane,
        "OUT_HEIGHT": work.rows.size, "OUT_WIDTH": work.columns.size, "TAPS_Y": taps[0],
        "TAPS_X": taps[1], "TASKS": tasks, "FILL": float(work.fill)}
    if weighted:
        defines["WEIGHTED"] = 1
    return Layer(
        kind="resample", template="f32-resample.c.in", defines=defines,
        phases=(Phase("resample", tasks),),
        inputs=tuple((shape, isa.number) for shape in work.input_shapes),
        constants=tuple(constants),
        output_shape=(1, blocks, work.rows.size, work.columns.size, lanes),
        output_dtype=isa.number, variant=isa.variant(),
        note={"kernel": "resample", "taps": taps, "tasks": tasks})


def taken(positions: np.ndarray) -> Axis:
    """One input position for each output."""
    return Axis(np.asarray(positions, np.int64).reshape(-1, 1))


def resized(size: int, target: int, method: str, coordinates: str, rounding: str = "",
            alpha: float = -0.5, exclude_outside: bool = False) -> Axis | None:
    """An axis that is resized, in the words of Relay's image.resize2d; None for what they do not
    say here.

    method: "nearest_neighbor", "linear" or "cubic".  Coordinates are computed in float64; what is
    outside of the input is its edge.
    """
    x = np.arange(target, dtype=np.float64)
    scale = size / target
    if coordinates == "align_corners":
        at = x * ((size - 1) / (target - 1)) if target > 1 else x * 0
    elif coordinates == "asymmetric":
        at = x * scale
    elif coordinates == "tf_half_pixel_for_nn":
        at = (x + 0.5) * scale
    elif coordinates == "half_pixel" or coordinates == "pytorch_half_pixel" and target > 1:
        at = (x + 0.5) * scale - 0.5
    elif coordinates == "pytorch_half_pixel":
        at = x * 0
    else:
        return None
    if method == "nearest_neighbor":
        rounding = rounding or ("round" if coordinates == "align_corners" else "floor")
        # What float64 leaves of a whole number or of a half must not decide.
        tiny = 1e-6
        found: dict[str, Callable[[np.ndarray], np.ndarray]] = {
            "round": np.rint, "round_prefer_floor": lambda a: np.ceil(a - 0.5 - tiny),
            "round_prefer_ceil": lambda a: np.floor(a + 0.5 + tiny),
            "floor": lambda a: np.floor(a + tiny), "ceil": lambda a: np.ceil(a - tiny)}
        if rounding not in found:
            return None
        return taken(np.clip(found[rounding](at), 0, size - 1))
    first = np.floor(at)
    t = at - first
    if method == "linear":
        taps, weights = first[:, None] + [0, 1], np.stack([1 - t, t], 1)
    elif method == "cubic":
        taps = first[:, None] + [-1, 0, 1, 2]
        weights = np.stack([
            alpha * (t ** 3 - 2 * t ** 2 + t), (alpha + 2) * t ** 3 - (alpha + 3) * t ** 2 + 1,
            -(alpha + 2) * t ** 3 + (2 * alpha + 3) * t ** 2 - alpha * t,
            -alpha * t ** 3 + alpha * t ** 2], 1)
        if exclude_outside:
            weights = np.where((taps < 0) | (taps >= size), 0, weights)
            weights = weights / weights.sum(1, keepdims=True)
    else:
        return None
    return Axis(np.clip(taps, 0, size - 1).astype(np.int64), weights.astype(np.float32))
