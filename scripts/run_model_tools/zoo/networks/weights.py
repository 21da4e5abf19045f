"""Where a network's weights come from: a file's state dict, or a seed."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from enum import Enum
from typing import Protocol

import numpy as np

from run_model_tools.errors import MALFORMED_FILE, ToolError


class Kind(Enum):
    """What a tensor does in its layer, which decides how a seed fills it."""

    KERNEL = "kernel of rectified values"
    LINEAR_KERNEL = "kernel of values around zero"
    CLASSIFIER = "classifier"
    BIAS = "bias"
    SCALE = "scale"
    WIDE_SCALE = "scale of what a ReLU6 limits"
    RESIDUAL_SCALE = "scale of what is added to a shortcut"
    SHIFT = "shift"
    MEAN = "mean"
    VARIANCE = "variance"


class Weights(Protocol):
    """Gives each tensor that a network asks for, once."""

    def take(self, name: str, kind: Kind, shape: tuple[int, ...]) -> np.ndarray:
        """float32 of exactly this shape."""

    def check_all_taken(self) -> None:
        """Called when the network is complete."""


class StateDict:
    """The tensors of a trained network by their names.

    Raises ToolError (4) for what is missing, has another shape, or is left over: then the file
    holds another network.
    """

    def __init__(self, tensors: Mapping[str, np.ndarray], what: str) -> None:
        # PyTorch counts the batches that a BatchNorm has seen; nothing computes with that.
        self._left = {name: array for name, array in tensors.items()
                      if not name.endswith(".num_batches_tracked")}
        self._what = what

    def take(self, name: str, kind: Kind, shape: tuple[int, ...]) -> np.ndarray:
        array = self._left.pop(name, None)
        if array is None:
            raise ToolError(MALFORMED_FILE, f"{self._what} holds no tensor '{name}': it is not "
                                            "the network that is expected.")
        if array.shape != shape:
            raise ToolError(MALFORMED_FILE, (
                f"{self._what}: '{name}' has the shape {array.shape}, where {shape} is expected."))
        return np.ascontiguousarray(array, dtype=np.float32)

    def check_all_taken(self) -> None:
        if self._left:
            raise ToolError(MALFORMED_FILE, (
                f"{self._what} holds {len(self._left)} tensors that the network does not have, "
                f"such as '{sorted(self._left)[0]}'."))


class Seeded:
    """Weights that a seed decides, the same bits on every machine and in any order of asking.

    Every value is a whole number from the generator times a power of two or a constant, so that
    no library function rounds differently elsewhere.  The deviations are He's (arxiv.org/abs/
    1502.01852), so that a signal neither dies nor grows on its way; the filters' sums are about
    zero, or the common mean of values behind a ReLU would grow from layer to layer until every
    picture gave the same answer (arxiv.org/abs/2101.08692).
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def take(self, name: str, kind: Kind, shape: tuple[int, ...]) -> np.ndarray:
        random = np.random.Generator(np.random.PCG64([self._seed, zlib.crc32(name.encode())]))
        values = random.integers(-(1 << 15), 1 << 15, shape, dtype=np.int64)
        if kind in _POWERS:
            return _kernel(values, _POWERS[kind])
        low, high = _RANGES[kind]
        # Uniform in [low, high).
        return ((values + (1 << 15)) * ((high - low) / (1 << 16)) + low).astype(np.float32)

    def check_all_taken(self) -> None:
        pass


# Variance of a kernel times its fan-in.  Of a rectified unit normal value the variance is
# (1 - 1 / pi) / 2, so that 2.93 gives variance 1 again; the classifier spreads its scores.
_POWERS = {Kind.KERNEL: 2.93, Kind.LINEAR_KERNEL: 1.0, Kind.CLASSIFIER: 30.0}

_RANGES = {
    Kind.BIAS: (-0.125, 0.25),
    Kind.SCALE: (0.75, 1.25),
    Kind.WIDE_SCALE: (1.0, 3.0),
    Kind.RESIDUAL_SCALE: (0.25, 0.625),
    Kind.SHIFT: (-0.125, 0.25),
    Kind.MEAN: (-0.125, 0.125),
    Kind.VARIANCE: (0.5, 1.5),
}


def _kernel(values: np.ndarray, power: float) -> np.ndarray:
    """Whole numbers, uniform in +-2^15 -> filters of variance power / fan-in.

    Depthwise filters keep their sum: they see one channel, whose mean is part of the signal.
    """
    fan_in = int(np.prod(values.shape[1:]))
    if values.shape[1] > 1:
        sums = values.reshape(values.shape[0], -1).sum(1)
        values = values - (sums // fan_in).reshape(-1, *[1] * (values.ndim - 1))
    else:
        power = min(power, 1.0)
    # A uniform distribution in +-a has the variance a^2 / 3.
    return (values * (math.sqrt(3.0 * power / fan_in) / (1 << 15))).astype(np.float32)
