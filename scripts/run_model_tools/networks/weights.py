"""Where a network's weights come from: a file's state dict, or a seed."""

from __future__ import annotations

import math
import zlib
from enum import Enum
from typing import Mapping, Protocol

import numpy as np

from run_model_tools.errors import MALFORMED_FILE, ToolError


class Kind(Enum):
    """What a tensor does in its layer, which decides how a seed fills it."""

    KERNEL = "kernel"
    CLASSIFIER = "classifier"
    BIAS = "bias"
    SCALE = "scale"
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
    no library function rounds differently elsewhere.  Kernels have He's deviation, and each of
    their filters sums to about zero over its inputs: otherwise the common mean of activations
    behind a ReLU grows from layer to layer until every picture gives the same answer.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def take(self, name: str, kind: Kind, shape: tuple[int, ...]) -> np.ndarray:
        random = np.random.Generator(np.random.PCG64([self._seed, zlib.crc32(name.encode())]))
        values = random.integers(-(1 << 15), 1 << 15, shape, dtype=np.int64)
        if kind in (Kind.KERNEL, Kind.CLASSIFIER):
            return _kernel(values, 2.0 if kind is Kind.KERNEL else 1.0)
        low, high = _RANGES[kind]
        # Uniform in [low, high).
        return ((values + (1 << 15)) * ((high - low) / (1 << 16)) + low).astype(np.float32)

    def check_all_taken(self) -> None:
        pass


_RANGES = {
    Kind.BIAS: (-0.5, 0.5),
    Kind.SCALE: (0.75, 1.25),
    Kind.SHIFT: (-0.25, 0.5),
    Kind.MEAN: (-0.25, 0.25),
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
    # A uniform distribution in +-a has the variance a^2 / 3.
    return (values * (math.sqrt(3.0 * power / fan_in) / (1 << 15))).astype(np.float32)
