"""NonMaxSuppression of any number of boxes against ONNX Runtime's."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper
from open_functions import Function

from run_model_tools.inside_tvm.relax.suppression import ALL, C_SOURCE

THRESHOLDS = (0, 0.1, 0.25, 1 / 3, 0.5, 1)


def by_onnx_runtime(centers, feeds):
    kinds = [("boxes", TensorProto.FLOAT, [None] * 3), ("scores", TensorProto.FLOAT, [None] * 3),
             ("most", TensorProto.INT64, [1]), ("overlap", TensorProto.FLOAT, [1]),
             ("least", TensorProto.FLOAT, [1])][:len(feeds)]
    node = helper.make_node("NonMaxSuppression", [*feeds], ["kept"], center_point_box=centers)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info(*one) for one in kinds],
        [helper.make_tensor_value_info("kept", TensorProto.INT64, [None, 3])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)[0]


@pytest.mark.parametrize("centers", [0, 1])
def test_equals_onnx_runtime(tmp_path, centers):
    """Of boxes on a grid, of which many overlap by a threshold and some are empty, and of equal
    scores, some of them those of boxes that are masked."""
    random = np.random.default_rng(centers)
    function = Function(tmp_path, C_SOURCE, name="__tvm_ffi_run_model_suppressed")
    for count in (0, 1, 2, 7, 40, 60):
        for most in (0, 5, 2 ** 40, -1):
            boxes = random.integers(0, 12, (2, count, 4)).astype(np.float32) * np.float32(0.1)
            scores = random.integers(0, 6, (2, 3, count)).astype(np.float32)
            scores[scores == 0] = -np.inf
            feeds = {"boxes": boxes, "scores": scores, "most": np.array([most]),
                     "overlap": np.array([random.choice(THRESHOLDS)], np.float32)}
            for least in (None, 2, -np.inf):
                if least is not None:
                    feeds["least"] = np.array([least], np.float32)
                want = by_onnx_runtime(centers, feeds)
                rows = np.full((6 * min(count, max(most, 0)), 3), -1)
                ends = np.zeros(2, np.int64)
                given = [*feeds.values()] + ([ALL] if least is None else [])
                assert function(*given, np.array(centers, np.int32), rows, ends)
                np.testing.assert_array_equal(rows[:ends[0]], want)
                assert ends[1] == 3


def test_other_extents_are_refused(tmp_path):
    function = Function(tmp_path, C_SOURCE, name="__tvm_ffi_run_model_suppressed")
    given = [np.array([9]), np.zeros(1, np.float32), ALL, np.array(0, np.int32),
             np.zeros((6, 3), np.int64), np.zeros(2, np.int64)]
    boxes, scores = np.zeros((1, 6, 4), np.float32), np.ones((1, 1, 6), np.float32)
    assert function(boxes, scores, *given)
    assert not function(boxes[:, 1:], scores, *given)
    assert not function(boxes[:, :, 1:], scores, *given)
    # More are left than there is room for.
    assert not function(boxes, scores, *given[:4], np.zeros((1, 3), np.int64), given[5])
