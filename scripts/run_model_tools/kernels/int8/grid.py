"""The grid of whole numbers that a quantized graph puts its values on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from run_model_tools.kernels.int8.quantized import Quantization

# Of a weight in steps: float32 rounds the product of a step and a whole number, and the step that
# is found here is such a product divided by one.
_ROUNDING = 4e-5
_LOWEST, _HIGHEST = -128, 127


@dataclass(frozen=True)
class Grid:
    """What a QuantizeLinear of one scale says: scale * (number - zero_point), of some type."""

    scale: float
    zero_point: int
    dtype: str
    """"int8", "uint8", or a wider one, which no kernel of bytes takes."""

    @property
    def is_bytes(self) -> bool:
        return self.dtype in ("int8", "uint8")

    @property
    def stored(self) -> Quantization:
        """The same numbers in the kernels' unsigned bytes: signed ones 128 higher."""
        return Quantization(self.scale, self.zero_point + self.offset)

    @property
    def offset(self) -> int:
        """How much higher the kernels' bytes are than the graph's."""
        return 128 if self.dtype == "int8" else 0

    @property
    def numbers(self) -> np.ndarray:
        """float64 (256,), of bytes: what each of the kernels' bytes stands for."""
        steps = (np.arange(256) - (self.zero_point + self.offset)).astype(np.float32)
        return (steps * np.float32(self.scale)).astype(np.float64)

    @property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest number."""
        kind = np.iinfo(self.dtype)
        return int(kind.min), int(kind.max)


def weight_steps(weight: np.ndarray) -> np.ndarray | None:
    """float64, of each output channel the step that all its weights are whole multiples of, from
    -128 to 127; None where a channel has no such step.

    Weights of a quantized graph are seen as float32, whether its exporter, a repair or TVM made
    them so.  A step that is a multiple of the graph's own is as good: products are the same.
    """
    rows = weight.reshape(len(weight), -1).astype(np.float64)
    at = np.abs(rows).argmax(1)
    largest = rows[np.arange(len(rows)), at]
    steps = np.where(largest == 0, 1.0, 0.0)
    # A few weights rule out most steps; all of them are looked at for the rest.
    some = rows[:, ::max(1, rows.shape[1] // 64)]
    for most in range(1, 129):
        open_ = np.flatnonzero(steps == 0)
        if not len(open_):
            break
        tried = np.abs(largest[open_]) / most
        near = _on_grid(some[open_], tried)
        for channel, step in zip(open_[near], tried[near]):
            if _on_grid(rows[channel:channel + 1], np.array([step]))[0]:
                steps[channel] = step
    return steps if (steps > 0).all() else None


def _on_grid(rows: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Of each row, whether all of it are whole multiples of its step that bytes can be."""
    multiples = rows / steps[:, None]
    whole = np.rint(multiples)
    fits = (np.abs(multiples - whole) < _ROUNDING) & (whole >= _LOWEST) & (whole <= _HIGHEST)
    return fits.all(1)
