"""TopK and NonMaxSuppression as TVM compiles them for CPUs, against ONNX Runtime."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from scatter_and_scan_test import compiled

from run_model_tools.compiling.graph_file import counted_outputs, with_rows_counted
from small_networks import network, run_onnxruntime

TOP = """
    a, b = TopK(x, ten)
    c, d = TopK<largest=0>(x, ten)
    e, f = TopK(ties, all)
    g, h = TopK<largest=0, axis=0>(ties, one)
    i, j = TopK(whole, ten)
    k, l = TopK(odd, ten)
"""
BOXES = """
    a = NonMaxSuppression(corners, scores, most, overlap, least)
    b = NonMaxSuppression(corners, ties, many, overlap)
    c = NonMaxSuppression<center_point_box=1>(centers, scores, many, overlap, least)
    d = NonMaxSuppression(corners, scores, three)
    e = NonMaxSuppression(corners, scores, many, overlap, beyond)
"""


def same(folder, model, inputs, tolerance=0):
    """That each output is ONNX Runtime's, to the last bit or within a tolerance."""
    have = compiled(folder, model, inputs)
    graph = json.loads((folder / "model.json").read_text())
    have = with_rows_counted(have, counted_outputs(graph))
    want = run_onnxruntime(folder / "net.onnx", inputs)
    for value, one, other in zip(model.graph.output, have, want, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape, value.name
        np.testing.assert_allclose(one, other, tolerance, tolerance, err_msg=value.name)
    return want


@pytest.mark.parametrize("rows", [1, 5])
def test_the_first_of_rows_once_sorted(tmp_path, rows):
    random = np.random.default_rng(4)
    x = random.standard_normal((rows, 3001)).astype(np.float32)
    x[:, ::7] = -np.inf
    odd = random.standard_normal((rows, 70)).astype(np.float32)
    inputs = {"x": x, "odd": odd, "ties": random.integers(0, 9, (rows, 200)).astype(np.float32),
              "whole": random.integers(-2**40, 2**40, (rows, 100))}
    header = ", ".join(f"{'int64' if name == 'whole' else 'float'}{list(array.shape)} {name}"
                       for name, array in inputs.items())
    outputs = ", ".join(f"{'int64' if name in 'bdfhjil' else 'float'}[] {name}"
                        for name in "abcdefghijkl")
    model = network(f"({header}) => ({outputs}) {{ {TOP} }}", {
        "ten": [10], "all": [200], "one": [1]}, 17)
    same(tmp_path, model, inputs)


def test_a_not_a_number_is_as_large_as_infinity(tmp_path):
    x = np.arange(80, dtype=np.float32)[None]
    x[0, [3, 50]] = np.nan, np.inf
    model = network("(float[1,80] x) => (int64[] i) { v, i = TopK(x, k) }", {"k": [4]}, 17)
    assert compiled(tmp_path, model, {"x": x})[0].tolist() == [[3, 50, 79, 78]]


def test_boxes_that_no_better_one_overlaps(tmp_path):
    """Of two pictures and three classes, corners in any order, some boxes of no area or equal."""
    random = np.random.default_rng(6)
    corners = random.random((2, 300, 4)).astype(np.float32)
    corners[:, 5:60, 2:] = corners[:, 5:60, :2] + 0.05
    corners[:, 8:12, 2] = corners[:, 8:12, 0]
    corners[:, 20:24] = corners[:, 20:21]
    centers = random.random((2, 300, 4)).astype(np.float32) * [1, 1, 0.3, 0.3]
    inputs = {"corners": corners, "centers": centers.astype(np.float32),
              "scores": random.random((2, 3, 300)).astype(np.float32),
              "ties": random.integers(0, 5, (2, 3, 300)).astype(np.float32)}
    header = ", ".join(f"float{list(array.shape)} {name}" for name, array in inputs.items())
    outputs = ", ".join(f"int64[kept_{name}, 3] {name}" for name in "abcde")
    model = network(f"({header}) => ({outputs}) {{ {BOXES} }}", {
        "most": [7], "many": [1000], "three": [3], "overlap": np.float32([0.3]),
        "least": np.float32([0.4]), "beyond": np.float32([2])}, 17)
    onnx.checker.check_model(model)
    found = same(tmp_path, model, inputs)
    assert [len(one) for one in found][0::3] == [42, 18] and len(found[4]) == 0
    assert 42 < len(found[1]) < 1800 and 42 < len(found[2]) < 1800
