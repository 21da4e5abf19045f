"""TVM's parameters file, read and written byte by byte.

The format (little endian; src/runtime/file_utils.cc and ndarray.h of TVM 0.8 to 0.19):

    u64 0xF7E58D4F05049CB7, u64 0
    u64 count, count x (u64 length, name)
    u64 count, count x tensor

    tensor: u64 0xDD5E40F096B4A13F, u64 0
            i32 device type, i32 device id, i32 rank, u8 type code, u8 bits, u16 lanes
            rank x i64 extent, i64 bytes of data, data

The aligned writing of it puts a padding tensor before each real one, so that the data of every
real tensor start at a multiple of 128 in the file and can be used where they are mapped.  The
padding's names start with `__align`; TVM's own runtimes ignore names that the graph lacks.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from mmap import ACCESS_READ, mmap
from pathlib import Path

import numpy as np

from run_model_tools.errors import MALFORMED_FILE, ToolError

LIST_MAGIC = 0xF7E58D4F05049CB7
TENSOR_MAGIC = 0xDD5E40F096B4A13F
ALIGNMENT = 128
PADDING_PREFIX = "__align"

_CPU = (1, 0)
_UINT8 = (1, 8, 1)
_TENSOR_HEAD = struct.Struct("<QQiiiBBH")
# DLPack's type codes, as TVM's dtype strings spell them.
_TYPE_NAMES = {0: "int", 1: "uint", 2: "float", 3: "handle", 4: "bfloat"}


def dtype_of(name: str) -> tuple[int, int, int]:
    """Type code, bits and lanes of a type of one lane as TVM spells it: "float32", "bool" ..."""
    if name == "bool":
        return 1, 1, 1
    for code, kind in _TYPE_NAMES.items():
        if name.startswith(kind) and name[len(kind):].isdigit():
            return code, int(name[len(kind):]), 1
    raise ToolError(MALFORMED_FILE, f"a tensor of the graph has the type '{name}', which is none "
                                    "of TVM's with one lane.")


@dataclass(frozen=True)
class Tensor:
    """A tensor as it stands in the file; `data` are its bytes, rows last."""

    dtype: tuple[int, int, int]
    """Type code, bits and lanes, as in DLPack's DLDataType."""
    shape: tuple[int, ...]
    data: bytes | memoryview
    offset: int = field(default=0, compare=False)
    """Where the data begin in the file that the tensor was read from."""

    @classmethod
    def of(cls, array: np.ndarray) -> Tensor:
        return cls(dtype_of(str(array.dtype)), array.shape, array.tobytes())

    @property
    def dtype_name(self) -> str:
        """As TVM writes it: float32, int8, uint8 ..."""
        code, bits, lanes = self.dtype
        name = "bool" if self.dtype == (1, 1, 1) else f"{_TYPE_NAMES.get(code, code)}{bits}"
        return name if lanes == 1 else f"{name}x{lanes}"


class _Reader:
    def __init__(self, data: bytes | mmap, what: str) -> None:
        self._view = memoryview(data)
        self._what = what
        self.position = 0

    def take(self, size: int, of: str) -> memoryview:
        if size < 0 or size > len(self._view) - self.position:
            self.fail(f"{of} needs {size} bytes at offset {self.position}, and the file has "
                      f"{len(self._view)}")
        self.position += size
        return self._view[self.position - size:self.position]

    def u64(self, of: str) -> int:
        return struct.unpack("<Q", self.take(8, of))[0]

    def fail(self, found: str) -> None:
        raise ToolError(MALFORMED_FILE, f"{self._what} is not a parameters file of TVM: {found}.")


def read_params(data: bytes | mmap, what: str = "the parameters") -> dict[str, Tensor]:
    """All tensors in the file's order, padding included; raises ToolError (4) if malformed."""
    reader = _Reader(data, what)
    if reader.u64("the magic number") != LIST_MAGIC:
        reader.fail("it does not start with the magic number of a parameter list")
    reader.u64("the reserved word")
    names = []
    for _ in range(reader.u64("the number of names")):
        raw = bytes(reader.take(reader.u64("a name's length"), "a name"))
        names.append(raw.decode("utf-8", "surrogateescape"))
    count = reader.u64("the number of tensors")
    if count != len(names) or len(set(names)) != len(names):
        reader.fail(f"it has {len(names)} names ({len(set(names))} different) for {count} tensors")
    tensors = {name: _read_tensor(reader, name) for name in names}
    if reader.position != len(data):
        reader.fail(f"{len(data) - reader.position} bytes are left over at its end")
    return tensors


def read_params_file(path: Path) -> dict[str, Tensor]:
    """read_params() of a file, which is mapped: its tensors take no memory of their own."""
    with open(path, "rb") as file:
        data = mmap(file.fileno(), 0, access=ACCESS_READ) if path.stat().st_size else b""
    return read_params(data, str(path))


def _read_tensor(reader: _Reader, name: str) -> Tensor:
    head = _TENSOR_HEAD.unpack(reader.take(_TENSOR_HEAD.size, f"tensor '{name}'"))
    magic, _, _, _, rank, code, bits, lanes = head
    if magic != TENSOR_MAGIC:
        reader.fail(f"tensor '{name}' does not start with the magic number of a tensor")
    shape = struct.unpack(f"<{max(rank, 0)}q", reader.take(8 * rank, f"the shape of '{name}'"))
    size = reader.u64(f"the size of '{name}'")
    elements = 1
    for extent in shape:
        elements *= extent
    if min(shape, default=0) < 0 or size != elements * ((bits * lanes + 7) // 8):
        reader.fail(f"tensor '{name}' of shape {shape} and {bits} bits has {size} bytes")
    data = reader.take(size, f"the data of '{name}'")
    return Tensor((code, bits, lanes), shape, data, reader.position - size)


def is_padding(name: str) -> bool:
    """Whether a tensor of this name only moves the next one to its place."""
    return name.startswith(PADDING_PREFIX)


def plain(names: Sequence[str], tensor_of: Callable[[str], Tensor]
          ) -> Iterator[bytes | memoryview]:
    """A file as TVM writes it with the tensors of these names in their order, piece by piece: a
    network may take much of the memory there is, and no two tensors are asked for at once."""
    yield _list_of(names)
    for tensor in map(tensor_of, names):
        yield _head(tensor)
        yield tensor.data


def aligned(names: Sequence[str], tensor_of: Callable[[str], Tensor]
            ) -> Iterator[bytes | memoryview]:
    """An aligned file with the tensors of these names in their order, piece by piece."""
    listed = []
    for index, name in enumerate(names):
        if is_padding(name):
            raise ValueError(f"a real tensor must not be called {name}")
        listed += [f"{PADDING_PREFIX}{index}", name]
    head = _list_of(listed)
    position = len(head)
    yield head
    padding_head = len(_head(Tensor(_UINT8, (0,), b"")))
    for tensor in map(tensor_of, names):
        head = _head(tensor)
        # One byte at least, since an empty tensor is a special case in some readers.
        padding = -(position + padding_head + len(head)) % ALIGNMENT or ALIGNMENT
        yield _head(Tensor(_UINT8, (padding,), bytes(padding))) + bytes(padding) + head
        yield tensor.data
        position += padding_head + padding + len(head) + len(tensor.data)


def _list_of(names: Sequence[str]) -> bytes:
    """What stands before the tensors."""
    listed = [struct.pack("<QQQ", LIST_MAGIC, 0, len(names))]
    for name in names:
        encoded = name.encode("utf-8", "surrogateescape")
        listed.append(struct.pack("<Q", len(encoded)) + encoded)
    return b"".join([*listed, struct.pack("<Q", len(names))])


def _head(tensor: Tensor) -> bytes:
    rank = len(tensor.shape)
    return (_TENSOR_HEAD.pack(TENSOR_MAGIC, 0, *_CPU, rank, *tensor.dtype)
            + struct.pack(f"<{rank}qq", *tensor.shape, len(tensor.data)))
