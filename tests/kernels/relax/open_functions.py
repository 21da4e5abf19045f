"""Runs functions that Relax calls, from C, on NumPy's arrays."""

from __future__ import annotations

import ctypes
import mmap
import subprocess
from pathlib import Path

import numpy as np

from run_model_tools.kernels.c_compiler import C_FOLDER, find_clang
from run_model_tools.kernels.relax.ffi_c import FAIL, RUNTIME, VALUES

TASKS = 3
_KINDS = {"float32": (2, 32), "float16": (2, 16), "int64": (0, 64), "int32": (0, 32),
          "uint8": (1, 8), "bool": (6, 8)}
"""tvm-ffi's code and bits."""
_CHECKS = """\
#define __builtin_memset(to, value, size) \\
  ((size) >> 40 ? __builtin_trap() : (void)__builtin_memset(to, value, size))
"""
"""Sizes below 0 go unnoticed in some C libraries."""
_LIBRARY = ctypes.CDLL(None)


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int * 2), ("ndim", ctypes.c_int),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("byte_offset", ctypes.c_uint64)]


class _Any(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("more", ctypes.c_uint), ("pointer", ctypes.c_void_p)]


class _Group(ctypes.Structure):
    _fields_ = [("sync", ctypes.c_void_p), ("tasks", ctypes.c_int)]


_TASK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(_Group), ctypes.c_void_p)
_LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, _TASK, ctypes.c_void_p, ctypes.c_int)


@_LAUNCH
def _in_parts(task, of, count):
    group = _Group(None, TASKS)
    return max(task(part, ctypes.byref(group), of) for part in range(TASKS))


_ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_uint64,
                             ctypes.c_int, ctypes.c_int)
_FREE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)
_given = {}


def _guarded(shape, kind):
    """An array that ends where memory ends: what is read or written behind it breaks down."""
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    begin = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, begin + mmap.PAGESIZE)
    last = ctypes.addressof(ctypes.c_char.from_buffer(memory, begin))
    assert _LIBRARY.mprotect(ctypes.c_void_p(last), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    return np.ndarray(shape, kind, memory, begin - size)


@_ALLOCATE
def _get(_kind, _id, size, _code, _bits):
    """Memory that is full of NaN: what is read before it is written shows."""
    memory = _guarded(-(-size // 4), np.float32)
    memory[:] = np.nan
    _given[memory.ctypes.data] = memory
    return memory.ctypes.data


@_FREE
def _give(_kind, _id, pointer):
    del _given[pointer]
    return 0


class Function:
    """A function by its C text, which is called `name` there."""

    def __init__(self, folder: Path, source: str, flags: tuple[str, ...] = (),
                 name: str = "__tvm_ffi_function"):
        path = folder / f"function{len(list(folder.iterdir()))}.c"
        path.write_text(_CHECKS + VALUES + FAIL + RUNTIME + source)
        subprocess.run([find_clang(), "-std=gnu17", "-O1", "-w", "-shared", "-fPIC",
                        "-ffp-contract=fast", f"-I{C_FOLDER}", *flags, "-o",
                        path.with_suffix(".so"), path], check=True)
        library = ctypes.CDLL(str(path.with_suffix(".so")))
        self._function = getattr(library, name)
        for slot_of, function in (("ParallelLaunch", _in_parts), ("AllocWorkspace", _get),
                                  ("FreeWorkspace", _give)):
            slot = ctypes.c_void_p.in_dll(library, f"__TVMBackend{slot_of}")
            slot.value = ctypes.cast(function, ctypes.c_void_p).value

    def __call__(self, *arrays: np.ndarray) -> bool:
        """Whether it takes them; the last ones get results."""
        values, kept = (_Any * len(arrays))(), []
        for index, array in enumerate(arrays):
            sizes = (ctypes.c_longlong * array.ndim)(*array.shape)
            given = _guarded(array.shape, array.dtype)
            given[...] = array
            one = _Tensor(given.ctypes.data, (ctypes.c_int * 2)(1, 0), array.ndim,
                          *_KINDS[str(array.dtype)], 1, ctypes.cast(sizes, ctypes.c_void_p), None,
                          0)
            kept.append((array, given, sizes, one))
            values[index] = _Any(7, 0, ctypes.addressof(one))
        status = self._function(None, values, len(arrays), ctypes.byref(_Any()))
        assert not _given, "memory was not given back"
        for array, given, *_ in kept:
            array[...] = given
        return status == 0
