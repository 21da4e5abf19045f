"""--freeze INPUT=FILE, INPUT=NUMBER,...: arrays that become constants in place of inputs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import onnx
from google.protobuf.message import DecodeError

from run_model_tools.errors import MALFORMED_FILE, MISMATCH, MISSING_FILE, USAGE, ToolError


def read_frozen(texts: Iterable[str]) -> dict[str, np.ndarray]:
    """--freeze NAME=FILE: the constants by the names of the inputs whose place they take.

    Numbers that are written out (NAME=16000, NAME=1,64) are arrays of Python's numbers, which
    as_declared() gives a type.
    """
    frozen: dict[str, np.ndarray] = {}
    for text in texts:
        name, _, file = text.rpartition("=")
        if name in frozen:
            raise ToolError(USAGE, f"--freeze {text}: '{name}' is frozen already; name it once.")
        numbers = _numbers(file)
        if name and numbers is not None:
            frozen[name] = numbers
            continue
        path = Path(file)
        if not name or path.suffix not in (".npy", ".npz", ".pb"):
            raise ToolError(USAGE, f"--freeze {text} is not of the form INPUT=FILE with a file "
                                   ".npy, .npz or .pb (an ONNX TensorProto), or INPUT=NUMBER,...")
        if not path.is_file():
            raise ToolError(MISSING_FILE, f"{path} is not there, or is not a file.")
        try:
            frozen[name] = _read_array(path, name)
        except (OSError, ValueError, KeyError, DecodeError, TypeError, BadZipFile) as error:
            raise ToolError(MALFORMED_FILE, f"{path} holds no array for '{name}': "
                                            f"{' '.join(str(error).split())}.") from None
    return frozen


def as_declared(path: Path, value: onnx.ValueInfoProto, array: np.ndarray) -> np.ndarray:
    """Written numbers in the type that the input has, one number in as many axes of 1; an array of
    a file as it is."""
    if array.dtype != object or value.type.WhichOneof("value") != "tensor_type":
        return array
    tensor = value.type.tensor_type
    wanted = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    try:
        with np.errstate(all="ignore"):
            made = array.astype(wanted)
        exact = wanted.kind == "f" or bool(np.all(made.astype(object) == array))
    except (OverflowError, ValueError, TypeError):
        exact = False
    if not exact:
        raise ToolError(MISMATCH, f"--freeze {value.name}: {path} declares {wanted}, of which "
                                  f"{', '.join(map(str, array.ravel()))} is none.")
    return made.reshape((1,) * len(tensor.shape.dim)) if made.size == 1 else made


def _numbers(text: str) -> np.ndarray | None:
    """Of "3", "0.5", "true" or several of them with commas between; None for anything else."""
    words = {"true": True, "false": False}
    try:
        found: list[object] = [words[part] if part in words else
                               int(part) if part.lstrip("+-").isdecimal() else float(part)
                               for part in text.split(",")]
    except ValueError:
        return None
    return np.array(found if len(found) > 1 else found[0], object)


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
