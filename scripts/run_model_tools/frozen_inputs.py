"""--freeze INPUT=FILE: arrays that become constants in the place of a model's inputs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import onnx
from google.protobuf.message import DecodeError

from run_model_tools.errors import MALFORMED_FILE, MISSING_FILE, USAGE, ToolError


def read_frozen(texts: Iterable[str]) -> dict[str, np.ndarray]:
    """--freeze NAME=FILE: the constants by the names of the inputs whose place they take."""
    frozen = {}
    for text in texts:
        name, _, file = text.rpartition("=")
        path = Path(file)
        if not name or path.suffix not in (".npy", ".npz", ".pb"):
            raise ToolError(USAGE, f"--freeze {text} is not of the form INPUT=FILE with a file "
                                   ".npy, .npz or .pb (an ONNX TensorProto).")
        if not path.is_file():
            raise ToolError(MISSING_FILE, f"{path} is not there, or is not a file.")
        try:
            frozen[name] = _read_array(path, name)
        except (OSError, ValueError, KeyError, DecodeError, TypeError, BadZipFile) as error:
            raise ToolError(MALFORMED_FILE, f"{path} holds no array for '{name}': "
                                            f"{' '.join(str(error).split())}.") from None
    return frozen


def _read_array(path: Path, name: str) -> np.ndarray:
    if path.suffix == ".pb":
        tensor = onnx.TensorProto()
        tensor.ParseFromString(path.read_bytes())
        return onnx.numpy_helper.to_array(tensor)
    if path.suffix == ".npy":
        return np.load(path, allow_pickle=False)
    with np.load(path, allow_pickle=False) as arrays:
        members = arrays.files
        if name not in members and len(members) != 1:
            raise ValueError(f"it has {', '.join(members) or 'nothing'} and no '{name}'")
        return arrays[name if name in members else members[0]]
