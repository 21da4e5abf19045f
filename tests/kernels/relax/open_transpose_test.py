"""Transposes of open extents (kernels/c/open-transpose.c.in) against NumPy's."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from run_model_tools.kernels.c_compiler import C_FOLDER
from run_model_tools.kernels.layer import c_defines
from run_model_tools.kernels.relax.ffi_c import FAIL, RUNTIME, VALUES

TASKS = 3
SHAPES = {(0, 2, 1): [(1, 1, 1), (2, 40, 77), (1, 3, 50), (3, 16, 16), (1, 33, 1), (2, 0, 5)],
          (2, 1, 0): [(35, 3, 20), (1, 7, 90), (64, 2, 8)],
          (0, 2, 1, 3): [(2, 5, 7, 3), (1, 9, 4, 1)],
          (0, 3, 1, 2): [(2, 6, 9, 20), (1, 9, 1, 70)],
          (1, 0, 3, 2): [(3, 2, 37, 18)],
          (0, 1, 4, 2, 5, 3): [(1, 2, 2, 2, 9, 11)]}
KINDS = {"float32": (2, 32), "float16": (2, 16), "int64": (0, 64), "uint8": (1, 8), "bool": (6, 8)}
"""tvm-ffi's code and bits."""


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int * 2), ("ndim", ctypes.c_int),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("byte_offset", ctypes.c_uint64)]


class Any(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("more", ctypes.c_uint), ("pointer", ctypes.c_void_p)]


class Group(ctypes.Structure):
    _fields_ = [("sync", ctypes.c_void_p), ("tasks", ctypes.c_int)]


TASK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(Group), ctypes.c_void_p)
LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, TASK, ctypes.c_void_p, ctypes.c_int)


@LAUNCH
def in_parts(task, of, count):
    group = Group(None, TASKS)
    return max(task(part, ctypes.byref(group), of) for part in range(TASKS))


def library(folder: Path, order: tuple[int, ...], lanes: int) -> ctypes.CDLL:
    defines = {"LANES": lanes, "FUNCTION": "transposed", "AXES": len(order), "ORDER": list(order)}
    path = folder / f"{'_'.join(map(str, order))}_{lanes}"
    path.with_suffix(".c").write_text(VALUES + FAIL + RUNTIME + c_defines(defines)
                                      + '#include "open-transpose.c.in"\n')
    subprocess.run(["gcc", "-std=gnu17", "-O1", "-w", "-shared", "-fPIC", f"-I{C_FOLDER}", "-o",
                    path.with_suffix(".so"), path.with_suffix(".c")], check=True)
    made = ctypes.CDLL(str(path.with_suffix(".so")))
    slot = ctypes.c_void_p.in_dll(made, "__TVMBackendParallelLaunch")
    slot.value = ctypes.cast(in_parts, ctypes.c_void_p).value
    return made


def transposed(made: ctypes.CDLL, x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | None:
    """What the library makes of `x`; None where it refuses."""
    result, values, kept = np.zeros(shape, x.dtype), (Any * 2)(), []
    for index, array in enumerate((x, result)):
        sizes = (ctypes.c_longlong * array.ndim)(*array.shape)
        one = Tensor(array.ctypes.data, (ctypes.c_int * 2)(1, 0), array.ndim,
                     *KINDS[str(array.dtype)], 1, ctypes.cast(sizes, ctypes.c_void_p), None, 0)
        kept += [sizes, one]
        values[index] = Any(7, 0, ctypes.addressof(one))
    status = made.transposed(None, values, 2, ctypes.byref(Any()))
    return result if status == 0 else None


@pytest.mark.parametrize("lanes", [4, 8])
def test_equals_numpy(tmp_path, lanes):
    random = np.random.default_rng(lanes)
    for order, shapes in SHAPES.items():
        made = library(tmp_path, order, lanes)
        # Of the last some tasks' worth.
        for shape in [*shapes, tuple(n * 5 for n in shapes[-1])]:
            for kind in KINDS:
                x = random.integers(0, 2 if kind == "bool" else 100, shape).astype(kind)
                want = x.transpose(order)
                np.testing.assert_array_equal(transposed(made, x, want.shape), want,
                                              err_msg=f"{order} {shape} {kind}")


def test_other_extents_are_refused(tmp_path):
    made = library(tmp_path, (0, 2, 1), 4)
    x = np.ones((2, 3, 4), np.float32)
    assert transposed(made, x, (2, 4, 3)) is not None
    assert transposed(made, x, (2, 3, 4)) is None
    assert transposed(made, x, (2, 4)) is None
