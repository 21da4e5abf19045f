"""TopK and NonMaxSuppression as TVM compiles them for CPUs, against ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from tvm_outputs import Inputs, compiled_outputs, outputs_in, same_as_onnxruntime

from run_model_tools.onnx_repair.reference import reference_outputs
from small_networks import network

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


PLUGIN = """
    a, b, c, d = TRT.EfficientNMS_TRT<max_output_boxes=40, score_threshold=0.4>(corners, scores)
    e, f, g, h = TRT.EfficientNMS_TRT<max_output_boxes=400, class_agnostic=1, box_coding=1,
        score_activation=1, background_class=2>(centers, scores)
"""
NAN = "(float[1,80] x) => (int64[] i, int64[] j) { v, i = TopK(x, most) u, j = TopK(x, four) }"


def rows_to_sort(rows: int) -> tuple[onnx.ModelProto, list[Inputs]]:
    random = np.random.default_rng(4)
    x = random.standard_normal((rows, 3001)).astype(np.float32)
    x[:, ::7] = -np.inf
    odd = random.standard_normal((rows, 70)).astype(np.float32)
    ties = random.integers(-9, 9, (rows, 200)).astype(np.float32)
    ties *= np.float32([1, -1] * 100)  # 0 and -0.
    inputs = {"x": x, "odd": odd, "ties": ties,
              "whole": random.integers(-2**40, 2**40, (rows, 100))}
    header = ", ".join(f"{'int64' if name == 'whole' else 'float'}{list(array.shape)} {name}"
                       for name, array in inputs.items())
    outputs = ", ".join(f"{'int64' if name in 'bdfhjil' else 'float'}[] {name}"
                        for name in "abcdefghijkl")
    return network(f"({header}) => ({outputs}) {{ {TOP} }}", {
        "ten": [10], "all": [200], "one": [1]}, 17), [inputs]


def boxes_to_choose() -> tuple[onnx.ModelProto, list[Inputs]]:
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
    return model, [inputs]


def classes_apart() -> tuple[onnx.ModelProto, list[Inputs]]:
    """Detectors move boxes apart by their class, and suppress those of all classes together: so
    many are in many stripes.  Some are not finite."""
    random = np.random.default_rng(8)
    corner = random.random((1, 3000, 2)) * 0.5
    corners = np.concatenate([corner, corner + random.random((1, 3000, 2)) * 0.2], -1)
    corners += random.integers(0, 20, (1, 3000, 1)) * 1.5 - 7
    corners[0, ::500, random.integers(0, 4, 6)] = [np.nan, np.inf, -np.inf] * 2
    model = network("""(float[1,3000,4] corners, float[1,1,3000] scores) => (int64[kept,3] a) {
        a = NonMaxSuppression(corners, scores, many, overlap) }""",
                    {"many": [3000], "overlap": np.float32([0.3])}, 17)
    return model, [{"corners": corners.astype(np.float32),
                    "scores": random.random((1, 1, 3000)).astype(np.float32)}]


def boxes_for_a_plugin() -> tuple[onnx.ModelProto, list[Inputs]]:
    random = np.random.default_rng(8)
    corners, centers = (random.random((2, 300, 4)).astype(np.float32) for _ in range(2))
    corners[..., 2:] += corners[..., :2]
    inputs = {"corners": corners, "centers": centers,
              "scores": random.random((2, 300, 3)).astype(np.float32)}
    header = ", ".join(f"float{list(array.shape)} {name}" for name, array in inputs.items())
    outputs = ", ".join(f"{'int32' if name in 'adeh' else 'float'}[] {name}" for name in "abcdefgh")
    return network(f"({header}) => ({outputs}) {{ {PLUGIN} }}", {}, 17), [inputs]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a folder for each of the networks, which are compiled and run by one TVM."""
    made = tmp_path_factory.mktemp("chosen_boxes")
    x = np.arange(80, dtype=np.float32)[None]
    x[0, [3, 50]] = np.nan, np.inf
    compiled_outputs(made, {
        "row": rows_to_sort(1), "rows": rows_to_sort(5), "boxes": boxes_to_choose(),
        "classes": classes_apart(), "plugin": boxes_for_a_plugin(),
        "nan": (network(NAN, {"most": [70], "four": [4]}, 17), [{"x": x}])})
    return made


@pytest.mark.parametrize("name", ["row", "rows"])
def test_the_first_of_rows_once_sorted(folder, name):
    same_as_onnxruntime(folder / name)


def test_a_not_a_number_is_as_large_as_infinity(folder):
    sorted_whole, by_heap = outputs_in(folder / "nan/0.npz")
    assert sorted_whole[0, :4].tolist() == [3, 50, 79, 78] == by_heap[0].tolist()


def test_boxes_that_no_better_one_overlaps(folder):
    found = same_as_onnxruntime(folder / "boxes")
    assert [len(one) for one in found][0::3] == [42, 18] and len(found[4]) == 0
    assert 42 < len(found[1]) < 1800 and 42 < len(found[2]) < 1800


def test_boxes_of_classes_apart(folder):
    (found,) = same_as_onnxruntime(folder / "classes")
    assert 300 < len(found) < 2900


def test_the_best_boxes_of_a_plugin(folder):
    with np.load(folder / "plugin/in0.npz") as inputs:
        want, who = reference_outputs(folder / "plugin/net.onnx", dict(inputs))
    assert who == "onnxruntime"
    assert want[4].min() > 40 and want[4].max() < 400
    for have, known in zip(outputs_in(folder / "plugin/0.npz"), want, strict=True):
        assert have.dtype == known.dtype and have.shape == known.shape
        np.testing.assert_allclose(have, known, atol=1e-6)
