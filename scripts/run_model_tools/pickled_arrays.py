"""Reads NumPy arrays out of a pickle without running anything that is in it."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
from numpy.core import multiarray

from run_model_tools.errors import MALFORMED_FILE, ToolError

# What NumPy's own __reduce__ names.  Neither calls anything that its arguments name.
_ADMITTED = {
    ("numpy.core.multiarray", "_reconstruct"): multiarray._reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): multiarray._reconstruct,
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
