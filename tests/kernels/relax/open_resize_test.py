"""Resized pictures of open extents (kernels/c/f32-open-resize.c.in) against ONNX Runtime's."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper
from open_functions import Function

from run_model_tools.kernels.isa import AVX2, GENERIC
from run_model_tools.kernels.layer import c_defines
from run_model_tools.kernels.relax.open_pictures import resizing

CASES = {
    # method, coordinates, rounding: sizes before and after
    ("nearest_neighbor", "asymmetric", "floor"): [
        ((4, 40), (8, 80)), ((3, 5), (6, 10)), ((7, 21), (21, 42)), ((9, 9), (4, 5))],
    ("nearest_neighbor", "half_pixel", "round_prefer_floor"): [
        ((20, 16), (40, 32)), ((5, 30), (5, 60)), ((1, 1), (3, 2))],
    ("linear", "half_pixel", ""): [((5, 30), (10, 60)), ((8, 9), (3, 20)), ((1, 1), (2, 2))],
    ("linear", "align_corners", ""): [((6, 7), (12, 30)), ((4, 4), (1, 1))],
}


def by_onnx_runtime(x, sides, method, coordinates, rounding):
    node = helper.make_node(
        "Resize", ["x", "", "", "sizes"], ["y"], mode=method.replace("_neighbor", ""),
        coordinate_transformation_mode=coordinates,
        **({"nearest_mode": rounding} if rounding else {}))
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * 4)],
        [helper.make_tensor("sizes", TensorProto.INT64, [4], [*x.shape[:2], *sides])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]


@pytest.mark.parametrize("isa", [GENERIC, AVX2], ids=["generic", "avx2"])
def test_equals_onnx_runtime(tmp_path, isa):
    random = np.random.default_rng(5)
    for words, pairs in CASES.items():
        macros = {**isa.defines(), "FUNCTION": "__tvm_ffi_function", **resizing(*words)}
        function = Function(tmp_path, c_defines(macros) + '#include "f32-open-resize.c.in"\n')
        for before, after in pairs:
            x = random.standard_normal((2, 3, *before)).astype(np.float32)
            result = np.full((2, 3, *after), np.nan, np.float32)
            assert function(x, result)
            np.testing.assert_allclose(result, by_onnx_runtime(x, after, *words), rtol=0, atol=2e-6,
                                       err_msg=f"{words} {before} {after}")
