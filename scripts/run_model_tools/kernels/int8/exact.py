"""Layers of bytes whose numbers a quantized graph has decided: weights, scales and roundings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from run_model_tools.kernels.int8.grid import Grid
from run_model_tools.kernels.int8.quantized import QuantizedConvolution
from run_model_tools.kernels.isa import Isa
from run_model_tools.kernels.layer import Layer, Phase

# A bias that is this near to a whole number of the sums' steps is one, stored as float32.
_WHOLE = 1e-3


@dataclass(frozen=True)
class ExactConvolution(QuantizedConvolution):
    """A convolution whose inputs all lie on one grid, and its weights on one for each channel.

    The sum is of whole numbers, the bias too where it was one; a byte is the sum times its scale,
    rounded to even, and the zero point is added last: the arithmetic of QLinearConv.
    """

    steps: np.ndarray
    """float64, of each output channel's weights (grid.weight_steps)."""

    @property
    def weight_scales(self) -> np.ndarray:
        return self.steps * self.inputs[0].scale

    @cached_property
    def weight(self) -> np.ndarray:
        steps = self.steps[:, None, None, None]
        return np.rint(self.convolution.weight.astype(np.float64) / steps).astype(np.int8)

    @cached_property
    def start(self) -> np.ndarray:
        zeros = super().start
        return zeros + np.where(self._whole, np.rint(self._bias_steps), 0).astype(np.int64)

    @cached_property
    def _bias_steps(self) -> np.ndarray:
        return self.convolution.bias.astype(np.float64) / self.weight_scales

    @cached_property
    def _whole(self) -> np.ndarray:
        """Of which channels the bias is added to the sum."""
        steps = self._bias_steps
        near = np.abs(steps - np.rint(steps)) < _WHOLE + np.abs(steps) * 2.0**-22
        return near & (np.abs(steps) < 2**30) & (self.output is not None)

    @property
    def scale(self) -> np.ndarray:
        if self.output is None:
            return self.weight_scales.astype(np.float32)
        return (self.weight_scales / self.output.scale).astype(np.float32)

    @property
    def bias(self) -> np.ndarray:
        if self.output is None:
            return super().bias
        bias = np.where(self._whole, 0.0, self.convolution.bias.astype(np.float64))
        bias = bias / self.output.scale
        if self.convolution.residual:
            bias = bias - self.residual_scale.astype(np.float64) * self.inputs[-1].zero_point
        return bias.astype(np.float32)

    @property
    def bounds(self) -> tuple[np.float32, np.float32]:
        """Relative to the zero point."""
        conv = self.convolution
        if self.output is None:
            return np.float32(conv.low), np.float32(conv.high)
        zero = self.output.zero_point
        return (np.float32(np.clip(conv.low / self.output.scale, -zero, 255 - zero)),
                np.float32(np.clip(conv.high / self.output.scale, -zero, 255 - zero)))

    def output_defines(self) -> dict[str, object]:
        defines = super().output_defines()
        return defines if self.output is None else defines | {"BYTE_ZERO": self.output.zero_point}


def byte_table(after: Grid, made: np.ndarray) -> np.ndarray:
    """uint8 (256,): the kernels' bytes that stand for 256 numbers on a grid."""
    low, high = after.limits
    with np.errstate(all="ignore"):
        made = np.broadcast_to(made, (256,)).astype(np.float32)
        whole = np.clip(np.rint(made / np.float32(after.scale)), low - after.zero_point,
                        high - after.zero_point)
    return (np.nan_to_num(whole) + after.zero_point + after.offset).astype(np.uint8)


def make_map(shape: tuple[int, ...], before: Grid, after: Grid, table: np.ndarray,
             isa: Isa) -> Layer:
    """The layer that takes each byte to that of a table, by arithmetic where that is the same."""
    _, blocks, height, width, _ = shape
    pixels = blocks * height * width
    each = max(1024, -(-pixels // 8))
    defines = isa.defines() | {"PIXELS": pixels, "TASK_PIXELS": each}
    zero = before.zero_point + before.offset
    factor = np.float32(before.scale / after.scale)
    base = after.zero_point + after.offset
    low, high = np.float32(int(table.min()) - base), np.float32(int(table.max()) - base)
    steps = (np.arange(256) - zero).astype(np.float32) * factor
    constants: tuple[np.ndarray, ...] = ()
    if np.array_equal(np.rint(np.clip(steps, low, high)) + base, table):
        defines |= {"ZERO_BEFORE": zero, "FACTOR": factor, "LOW": low, "HIGH": high,
                    "BYTE_ZERO": base}
    else:
        defines["TABLE"] = 1
        constants = (table,)
    return Layer(kind="map_int8", template="u8-map.c.in", defines=defines,
                 phases=(Phase("int8_map", -(-pixels // each)),),
                 inputs=((tuple(shape), "uint8"),), constants=constants, output_shape=tuple(shape),
                 output_dtype="uint8", variant=isa.variant(), note={"kernel": "int8_map"})


def make_sum(shape: tuple[int, ...], grids: tuple[Grid, Grid], output: Grid, low: float,
             isa: Isa) -> Layer:
    """The layer that adds two tensors of bytes of one shape and one type, with what it makes."""
    factors = [np.float32(grid.scale / output.scale) for grid in grids]
    offset = output.zero_point - sum(
        float(f) * grid.zero_point for f, grid in zip(factors, grids))
    lowest, highest = output.limits
    _, blocks, height, width, _ = shape
    pixels = blocks * height * width
    each = max(1024, -(-pixels // 8))
    defines = isa.defines() | {
        "PIXELS": pixels, "TASK_PIXELS": each, "FACTOR_A": factors[0], "FACTOR_B": factors[1],
        "OFFSET": float(offset), "BYTE_OFFSET": output.offset,
        "BYTE_LOW": float(output.zero_point if low == 0 else lowest),
        "BYTE_HIGH": float(highest)}
    return Layer(kind="add_int8", template="u8-add.c.in", defines=defines,
                 phases=(Phase("int8_add", -(-pixels // each)),),
                 inputs=((tuple(shape), "uint8"),) * 2, constants=(), output_shape=tuple(shape),
                 output_dtype="uint8", variant=isa.variant(), note={"kernel": "int8_add"})
