"""Transposes of open extents (kernels/c/open-transpose.c.in) against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from open_functions import Function

from run_model_tools.kernels.layer import c_defines

SHAPES = {(0, 2, 1): [(1, 1, 1), (2, 40, 77), (1, 3, 50), (3, 16, 16), (1, 33, 1), (2, 0, 5)],
          (2, 1, 0): [(35, 3, 20), (1, 7, 90), (64, 2, 8)],
          (0, 2, 1, 3): [(2, 5, 7, 3), (1, 9, 4, 1)],
          (0, 3, 1, 2): [(2, 6, 9, 20), (1, 9, 1, 70)],
          (1, 0, 3, 2): [(3, 2, 37, 18)],
          (0, 1, 4, 2, 5, 3): [(1, 2, 2, 2, 9, 11)]}
KINDS = ("float32", "float16", "int64", "uint8", "bool")


def transpose(folder, order, lanes):
    return Function(folder, c_defines(
        {"LANES": lanes, "FUNCTION": "__tvm_ffi_function", "AXES": len(order),
         "ORDER": list(order)})
        + '#include "open-transpose.c.in"\n')


@pytest.mark.parametrize("lanes", [4, 8])
def test_equals_numpy(tmp_path, lanes):
    random = np.random.default_rng(lanes)
    for order, shapes in SHAPES.items():
        function = transpose(tmp_path, order, lanes)
        # Of the last some tasks' worth.
        for shape in [*shapes, tuple(n * 5 for n in shapes[-1])]:
            for kind in KINDS:
                x = random.integers(0, 2 if kind == "bool" else 100, shape).astype(kind)
                want = x.transpose(order)
                result = np.zeros(want.shape, kind)
                assert function(x, result)
                np.testing.assert_array_equal(result, want, err_msg=f"{order} {shape} {kind}")


def test_other_extents_are_refused(tmp_path):
    function = transpose(tmp_path, (0, 2, 1), 4)
    x = np.ones((2, 3, 4), np.float32)
    assert function(x, np.zeros((2, 4, 3), np.float32))
    assert not function(x, np.zeros((2, 3, 4), np.float32))
    assert not function(x, np.zeros((2, 4), np.float32))
