"""Reads the tensors of a PyTorch checkpoint (.pth) without PyTorch and without running its pickle.

Two forms exist.  Since PyTorch 1.6 a checkpoint is a zip archive: NAME/data.pkl is a pickle whose
persistent ids name storages, and NAME/data/KEY holds each storage's bytes.  Before, it was one
stream: three pickles (magic number, protocol version, facts about the machine), the object's, a
list of the storages' keys, and then each storage as its length (int64, elements) and bytes.  Both
are described by torch/serialization.py.
"""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from run_model_tools.errors import MALFORMED_FILE, ToolError

_MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001
_DTYPES = {"FloatStorage": "<f4", "DoubleStorage": "<f8", "HalfStorage": "<f2",
           "LongStorage": "<i8", "IntStorage": "<i4", "ShortStorage": "<i2", "CharStorage": "|i1",
           "ByteStorage": "|u1", "BoolStorage": "|b1"}


@dataclass
class _Storage:
    key: str
    dtype: np.dtype
    elements: int
    data: np.ndarray | None = None


@dataclass(frozen=True)
class _Tensor:
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def array(self, what: str) -> np.ndarray:
        """A copy; the last element's place is checked before anything is read."""
        sizes = (self.offset, *self.shape, *self.strides)
        whole = all(isinstance(n, int) and n >= 0 for n in sizes)
        if not whole or len(self.shape) != len(self.strides) or self.storage.data is None:
            raise ToolError(MALFORMED_FILE, f"{what} describes a tensor that makes no sense.")
        last = self.offset + sum((n - 1) * s for n, s in zip(self.shape, self.strides))
        if 0 in self.shape:
            return np.zeros(self.shape, self.storage.dtype)
        if last >= self.storage.data.size:
            raise ToolError(MALFORMED_FILE, f"{what} describes a tensor that ends outside of its "
                                            "storage.")
        step = self.storage.dtype.itemsize
        return np.lib.stride_tricks.as_strided(
            self.storage.data[self.offset:], self.shape, [s * step for s in self.strides]).copy()


class _StorageType:
    def __init__(self, name: str) -> None:
        self.dtype = np.dtype(_DTYPES[name])


def _rebuild_tensor(storage: Any, offset: Any, shape: Any, strides: Any, *_: Any) -> _Tensor:
    if not isinstance(storage, _Storage):
        raise pickle.UnpicklingError("a tensor's storage is something else")
    return _Tensor(storage, offset, tuple(shape), tuple(strides))


class _Unpickler(pickle.Unpickler):
    """Admits ordered dictionaries, and stand-ins for tensors and storages; nothing else."""

    def __init__(self, file: Any) -> None:
        super().__init__(file)
        self.storages: dict[str, _Storage] = {}

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if module == "torch._utils" and name in ("_rebuild_tensor", "_rebuild_tensor_v2"):
            return _rebuild_tensor
        if (module, name) == ("torch._utils", "_rebuild_parameter"):
            return lambda tensor, *_: tensor
        if module == "torch" and name in _DTYPES:
            return _StorageType(name)
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")

    def persistent_load(self, pid: Any) -> Any:
        kind, storage_type, key, _, elements, *view = tuple(pid)
        # Before PyTorch 0.4 a storage could be a part of another one.
        whole = view in ([], [None])
        if kind != "storage" or not isinstance(storage_type, _StorageType) or not whole:
            raise pickle.UnpicklingError("it asks for a persistent object that is no storage")
        storage = self.storages.setdefault(
            str(key), _Storage(str(key), storage_type.dtype, int(elements)))
        if storage.dtype != storage_type.dtype or storage.elements != elements:
            raise pickle.UnpicklingError("it describes one storage in two ways")
        return storage


def load_tensors(data: bytes, what: str) -> dict[str, np.ndarray]:
    """{name: array} of a checkpoint that is a state dict, or has one as its member `state_dict`.

    Args:
      data: the file.
      what: what to call it in a message.
    Raises:
      ToolError (4): for anything else than tensors of numbers, before it is built.
    """
    try:
        root = _read_zip(data) if data[:2] == b"PK" else _read_stream(data)
    except ToolError:
        raise
    except Exception as error:  # A damaged pickle or archive may raise nearly anything.
        raise ToolError(MALFORMED_FILE, f"{what} is not a PyTorch checkpoint that holds tensors "
                                        f"only: {error}; it was not loaded.") from error
    if isinstance(root, Mapping) and isinstance(root.get("state_dict"), Mapping):
        root = root["state_dict"]
    if not isinstance(root, Mapping) or not root or not all(
            isinstance(key, str) and isinstance(value, _Tensor) for key, value in root.items()):
        raise ToolError(MALFORMED_FILE, f"{what} does not hold named tensors.")
    return {key: value.array(what) for key, value in root.items()}


def _read_zip(data: bytes) -> Any:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        index = next(name for name in names if name.endswith("/data.pkl"))
        folder = index[:-len("data.pkl")]
        if f"{folder}byteorder" in names and archive.read(f"{folder}byteorder") != b"little":
            raise ValueError("its numbers are big-endian")
        unpickler = _Unpickler(io.BytesIO(archive.read(index)))
        root = unpickler.load()
        for storage in unpickler.storages.values():
            member = f"{folder}data/{storage.key}"
            size = storage.elements * storage.dtype.itemsize
            if archive.getinfo(member).file_size != size:
                raise ValueError(f"storage {storage.key} is not {size} bytes long")
            storage.data = np.frombuffer(archive.read(member), storage.dtype)
    return root


def _read_stream(data: bytes) -> Any:
    file = io.BytesIO(data)
    magic, protocol, machine = (_Unpickler(file).load() for _ in range(3))
    if magic != _MAGIC or protocol != _PROTOCOL or machine.get("little_endian") is not True:
        raise ValueError("it does not begin as one")
    unpickler = _Unpickler(file)
    root = unpickler.load()
    keys = _Unpickler(file).load()
    if sorted(map(str, keys)) != sorted(unpickler.storages):
        raise ValueError("its storages are not those that its tensors use")
    position = file.tell()
    for key in keys:
        storage = unpickler.storages[str(key)]
        (elements,) = struct.unpack_from("<q", data, position)
        if elements != storage.elements:
            raise ValueError(f"storage {key} has another length than its tensors expect")
        position += 8
        storage.data = np.frombuffer(data, storage.dtype, elements, position)
        position += elements * storage.dtype.itemsize
    return root
