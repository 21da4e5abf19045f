"""Descriptions of what outputs mean: what they may say, whose they can be, and presets."""

from __future__ import annotations

import copy
import json
import re

import numpy as np
import pytest
from conftest import ROOT

from run_model_tools.errors import ToolError
from run_model_tools.tasks.anchors import anchors_of
from run_model_tools.tasks.description import check_tasks
from run_model_tools.tasks.fit import Output, check_fit
from run_model_tools.tasks.presets import FILE, read_presets
from small_networks import save_classifier

FACE = read_presets()["face_detection"].tasks[0]
FACE_OUTPUTS = [Output("regressors", (1, 896, 16)), Output("classificators", (1, 896, 1))]
ROWS = {"kind": "detection", "form": "yolo-rows", "output": 0, "units": "pixels",
        "score_threshold": 0.5, "nms": {"iou": 0.5, "per_class": True}, "labels": ["a", "b"]}
HEADS = {"kind": "detection", "form": "yolo-heads", "outputs": [0], "anchors": [[[10, 13]] * 3],
         "coding": "v5", "layout": "NCHW", "score_threshold": 0.5, "nms": None}
BOXES = {"kind": "detection", "form": "boxes", "boxes": "b", "scores": "s", "box_format": "xyxy",
         "units": "pixels", "score_threshold": 0.1}
DISTANCES = {"kind": "detection", "form": "distances", "boxes": 0, "scores": 1, "strides": [8, 16],
             "point_offset": 0.5, "distances": "cells", "activation": "sigmoid",
             "score_threshold": 0.5, "nms": None}
MASK = {"kind": "segmentation", "output": 0, "form": "mask", "activation": "sigmoid"}
MAPS = {"kind": "segmentation", "output": 0, "form": "scores", "layout": "NCHW"}
INDICES = {"kind": "segmentation", "output": 0, "form": "indices"}
POINTS = {"kind": "landmarks", "output": 0, "columns": ["x", "y", "z"], "units": "pixels",
          "points": 4}
TURNED = {"kind": "detection", "form": "boxes", "boxes": "b", "scores": "s", "units": "pixels",
          "box_format": "cxcywh", "score_threshold": 0.1,
          "angle": {"unit": "radians", "direction": "clockwise"},
          "nms": {"iou": 0.5, "overlap": "probabilistic", "mode": "fast", "per_class": True}}
CENTERS = {"kind": "detection", "form": "centers", "heatmap": 0, "sizes": 1, "layout": "NCHW",
           "order": "xy", "size_unit": "cells", "activation": "sigmoid", "score_threshold": 0.3}
DEPTH = {"kind": "map", "output": 0, "quantity": "depth", "unit": "m", "resample": "bicubic"}
STYLE = {"kind": "image", "output": 0, "layout": "NCHW", "color_order": "RGB", "range": [0, 255]}
BINARY = {"kind": "classification", "output": 0, "binary": True, "activation": "sigmoid"}


def refused(call, *arguments) -> ToolError:
    with pytest.raises(ToolError) as caught:
        call(*arguments)
    return caught.value


@pytest.mark.parametrize("task", [FACE, ROWS, HEADS, BOXES, DISTANCES, TURNED, MASK, MAPS, POINTS,
                                  BINARY, CENTERS, DEPTH, STYLE,
                                  {"kind": "embedding", "output": "e"}])
def test_a_description_is_taken_alone_in_a_list_and_in_an_object(task):
    assert check_tasks(task, "t") == check_tasks([task], "t") == check_tasks(
        {"tasks": [task], "model": "m"}, "t") == [task]


CHANGES = [
    (FACE, "kind", "detect"), (FACE, "form", "sdd"), (FACE, "labels", []), (FACE, "color", 1),
    (FACE, "labels", ["a\nb"]), (FACE, "x_scale", 0), (FACE, "x_scale", None),
    (FACE, "activation", None), (FACE, "score_threshold", 1.5), (FACE, "nms", {"iou": 0.3}),
    (FACE, "nms", {"iou": 0.3, "per_class": True, "mode": "soft"}), (FACE, "limit", 0),
    (FACE, "boxes", -1), (FACE, "boxes", ""), (FACE, "boxes", True), (FACE, "exponential", 1),
    (FACE, "keypoints", {"count": 0}), (FACE, "keypoints", {"count": 2, "values": 4}),
    (FACE, "anchors", {"generator": "mediapipe"}),
    (FACE, "anchors", {**FACE["anchors"], "num_layers": 3}),
    (FACE, "anchors", {"generator": "list", "boxes": [[0.5, 0.5, 0, 1]]}),
    ({"kind": "landmarks", "form": "heatmaps", "output": 0, "layout": "NCHW",
      "refine": "quarter"}, "units", "pixels"),
    ({"kind": "landmarks", "form": "heatmaps", "output": 0, "layout": "NCHW",
      "refine": "quarter"}, "refine", "half"),
    (DISTANCES, "strides", []),
    (DISTANCES, "distances", "metres"),
    (DISTANCES, "keypoints", {"count": 2}),
    (DISTANCES, "bins", -1),
    (FACE, "anchors", {"generator": "pyramid", "feature_maps": [[2, 2]], "sizes": [[8], [16]],
                       "aspect_ratios": [[1]]}),
    (FACE, "anchors", {"generator": "pyramid", "feature_maps": [[2, 2]], "sizes": [[]],
                       "aspect_ratios": [[1]]}),
    (FACE, "anchors", {"generator": "pyramid", "feature_maps": [[2, 2]], "sizes": [[8]],
                       "aspect_ratios": [[0]]}),
    (FACE, "anchors", {"generator": "torchvision", "feature_maps": [[2, 2]], "aspect_ratios": []}),
    (ROWS, "units", "metres"), (ROWS, "score_threshold", float("nan")),
    (ROWS, "keypoints", {"count": 2, "offset": 4}), (ROWS, "nms", "DELETE"),
    (HEADS, "anchors", []), (HEADS, "scale_xy", 1.1), (HEADS, "layout", "DELETE"),
    (BOXES, "keypoints", {"count": 2}), (BOXES, "box_format", "xxyy"),
    (MASK, "layout", "NCHW"), (MASK, "activation", "softmax"), (MAPS, "threshold", 0.5),
    (MAPS, "layout", "DELETE"), (INDICES, "resample", "bilinear"),
    (POINTS, "columns", ["x", "z"]), (POINTS, "columns", ["x", "y", "y"]),
    (POINTS, "threshold", 0.5), (POINTS, "confidence", 1), (POINTS, "connections", [[1, 2, 3]]),
    (ROWS, "strides", []), (ROWS, "masks", {"output": 1, "count": 0, "layout": "NCHW"}),
    (ROWS, "masks", {"output": 1, "count": 4}),
    (ROWS, "masks", {"output": 1, "count": 4, "layout": "NCHW", "drop_empty": 1}),
    (HEADS, "masks", {"output": 1, "count": 4, "layout": "NCHW"}),
    (BINARY, "activation", "softmax"), (BINARY, "activation", "DELETE"),
    (TURNED, "keypoints", {"count": 2}), (TURNED, "clip", "input"), (TURNED, "box_format", "xyxy"),
    (TURNED, "angle", {"unit": "radians"}), (TURNED, "angle", {"direction": "clockwise"}),
    (TURNED, "angle", {"unit": "turns", "direction": "clockwise"}),
    (TURNED, "nms", {"iou": 0.5, "per_class": True}),
    (TURNED, "nms", {"iou": 0.5, "per_class": True, "overlap": "area", "mode": "weighted"}),
    (BOXES, "nms", {"iou": 0.5, "per_class": True, "overlap": "area"}),
    (HEADS, "angle", {"unit": "radians", "direction": "clockwise"}),
    (CENTERS, "keypoints", {"count": 2}), (CENTERS, "classes_per_box", "best"),
    (CENTERS, "activation", "softmax"), (CENTERS, "order", "DELETE"), (CENTERS, "sizes", "DELETE"),
    (DEPTH, "quantity", "distance"), (DEPTH, "unit", ""), (DEPTH, "scale", 0),
    (DEPTH, "resample", "cubic"), (DEPTH, "labels", ["near"]), (STYLE, "range", [1, 1]),
    (STYLE, "range", [0, 1, 2]), (STYLE, "range", [[0, 1]]), (STYLE, "range", [0, 1e9]),
    ({**STYLE, "color_order": "GRAY"}, "range", [[0, 1]] * 3), (STYLE, "color_order", "rgb"),
    (STYLE, "size", "input"), (STYLE, "layout", "DELETE")]


TURN = {"start": 0, "end": 1, "target": 90}


@pytest.mark.parametrize("region", [
    {}, {"from": "box", "square": "long", "scale": 1.5}, {"turn": TURN, "shift": [0, -0.5]},
    {"from": "alignment", "turn": TURN, "scale": [1, 2]}, {"from": "oriented", "scale": 1.1}])
def test_regions_are_taken(region):
    assert check_tasks(dict(POINTS, region=region), "t.json")[0]["region"] == region


@pytest.mark.parametrize("region, words", [
    ({"angle": 3}, "region.angle is not a member"), ({"from": "face"}, "region.from is 'face'"),
    ({"from": "alignment"}, 'has no "turn"'), ({"scale": 0}, "region.scale is not more than 0"),
    ({"turn": dict(TURN, end=0)}, "is the same keypoint"), ({"shift": [1]}, "has 1 elements"),
    ({"turn": {"start": 0, "end": 1}}, "has no member 'target'"), ({"square": "both"}, "'both'")])
def test_regions_that_make_no_sense(region, words):
    with pytest.raises(ToolError, match=re.escape(words)):
        check_tasks(dict(POINTS, region=region), "t.json")


@pytest.mark.parametrize("task,key,value", CHANGES)
def test_what_is_wrong_is_named_with_its_place(task, key, value):
    changed = copy.deepcopy(task)
    if value == "DELETE":
        del changed[key]
    else:
        changed[key] = value
    error = refused(check_tasks, {"tasks": [task, changed]}, "my.json")
    assert error.code == 4 and "my.json: tasks[1]" in str(error) and key in str(error) or (
        key == "activation" and "binary" in str(error))


@pytest.mark.parametrize("value", [[], None, 3, "x", [FACE] * 17, {"tasks": {}}, {}])
def test_no_tasks_at_all(value):
    assert refused(check_tasks, value, "my.json").code == 4


def test_what_fits():
    check_fit([FACE], FACE_OUTPUTS, "m")
    check_fit([{**FACE, "boxes": "output_0", "scores": 1}], FACE_OUTPUTS, "m")
    check_fit([FACE], [Output("classificators", None), Output("regressors", (None, 896, None))],
              "m")
    check_fit([ROWS], [Output("y", (1, 300, 7))], "m")
    check_fit([HEADS], [Output("y", (1, 21, 8, 8))], "m")
    check_fit([HEADS], [Output("y", (1, 3, 8, 8, 7))], "m")
    check_fit([BOXES], [Output("b", (3234, 4)), Output("s", (3234, 91))], "m")
    check_fit([TURNED], [Output("b", (1, 100, 5)), Output("s", (1, 100, 15))], "m")
    check_fit([MASK], [Output("y", (1, 16, 16, 1))], "m")
    check_fit([MASK], [Output("y", (None, 1, None, None))], "m")
    check_fit([MAPS], [Output("y", (1, 21, 16, 16))], "m")
    check_fit([{**MAPS, "labels": ["a"] * 21}], [Output("y", (None, 21, None, None))], "m")
    check_fit([CENTERS], [Output("hm", (1, 80, 128, 128)), Output("wh", (1, 2, 128, 128))], "m")
    check_fit([DEPTH], [Output("y", (1, 384, 384))], "m")
    check_fit([STYLE], [Output("y", (1, 3, 224, None))], "m")
    check_fit([POINTS], [Output("y", (1, 1, 1, 15))], "m")
    check_fit([{**POINTS, "form": "points"}], [Output("y", (1, 15))], "m")


def test_what_run_model_reads_fits():
    """The golden cases of tests/postprocess have every kind and form."""
    cases = json.loads((ROOT / "tests" / "postprocess" / "data" / "golden.json").read_text())
    for case in cases["cases"]:
        outputs = [Output(name, tuple(output["shape"])) for name, output in case["outputs"].items()]
        check_fit(check_tasks(case["task"], case["name"]), outputs, case["name"])


HEAT_MAPS = {"kind": "landmarks", "form": "heatmaps", "output": 0, "layout": "NCHW",
             "refine": "none", "labels": ["left", "right"]}
MISFITS = [
    (HEAT_MAPS, [Output("y", (1, 17, 64, 48))], "17 points, and there are 2 labels"),
    (HEAT_MAPS, [Output("y", (1, 34))], "a map for each point (NCHW)"),
    (FACE, [Output("boxes", (1, 896, 16))], "no output 'regressors'; its outputs are 'boxes'"),
    (FACE, [Output("regressors", (1, 2016, 18)), FACE_OUTPUTS[1]], "1x2016x18, where 896x16"),
    (FACE, [Output("regressors", (1, 896, 14)), FACE_OUTPUTS[1]], "896x16"),
    (FACE, [FACE_OUTPUTS[0], Output("classificators", (1, 100))], "896 anchors"),
    (FACE, [FACE_OUTPUTS[0], Output("classificators", (1, 896, 3))], "3 classes"),
    (ROWS, [Output("y", (1, 300, 85))], "80 classes, and there are 2 labels"),
    (ROWS, [Output("y", (1, 300, 4))], "rows of 5 numbers"),
    (HEADS, [Output("y", (1, 8, 8, 21))], "3 times 5"),
    (BOXES, [Output("b", (10, 5)), Output("s", (10,))], "rows of 4"),
    (TURNED, [Output("b", (10, 4)), Output("s", (10,))], "rows of 5"),
    (MASK, [Output("y", (1, 21, 16, 16))], "one map"),
    (MASK, [Output("y", (None, 21, 16, 16))], "one map"),
    (MAPS, [Output("y", (1, 1, 16, 16))], "the form mask"),
    (MAPS, [Output("y", (1, 1, None, 16))], "the form mask"),
    (CENTERS, [Output("hm", (1, 80, 128, 128)), Output("wh", (1, 2, 64, 64))], "as large as"),
    ({**CENTERS, "labels": ["a"]}, [Output("hm", (1, 80, 9, 9)), Output("wh", (1, 2, 9, 9))],
     "80 classes, and there are 1 labels"),
    (DEPTH, [Output("y", (1, 3, 8, 8))], "one number for each pixel"),
    (STYLE, [Output("y", (1, 8, 8, 3))], "3 channels (NCHW)"),
    (POINTS, [Output("y", (1, 10))], "3 numbers for each of 4 or more"),
    ({**POINTS, "connections": [[0, 4]]}, [Output("y", (1, 12))], "point 4"),
    ({**POINTS, "output": 1}, [Output("y", (1, 12))], "no output 1"),
    (BINARY, [Output("y", (1, 2))], "one number")]


@pytest.mark.parametrize("task,outputs,words", MISFITS)
def test_what_does_not_fit_is_refused(task, outputs, words):
    error = refused(check_fit, [task], outputs, "net.onnx")
    assert error.code == 6 and "net.onnx: task 0" in str(error) and words in str(error)


def test_presets():
    assert json.loads(FILE.read_text())["schema_version"] == 1
    presets = read_presets()
    assert {"face_detection", "selfie_segmentation", "yolov5", "yolov8",
            "torchvision_segmentation", "torchvision_ssdlite"} <= set(presets)
    # YOLO's rows on COCO, at 640x640.
    check_fit(presets["yolov5"].tasks, [Output("output0", (1, 25200, 85))], "m")
    check_fit(presets["yolov8"].tasks, [Output("output0", (1, 84, 8400))], "m")
    check_fit(presets["yolov8_segmentation"].tasks,
              [Output("output0", (1, 116, 8400)), Output("output1", (1, 32, 160, 160))], "m")
    check_fit(presets["yolov8_pose"].tasks, [Output("output0", (1, 56, 8400))], "m")
    check_fit(presets["yolov8_obb"].tasks, [Output("output0", (1, 20, 21504))], "m")
    check_fit(presets["yolo_with_nms"].tasks, [Output("output0", (1, 300, 6))], "m")
    check_fit(presets["yolox"].tasks, [Output("output", (1, 8400, 85))], "m")
    check_fit(presets["torchvision_segmentation"].tasks, [Output("out", (1, 21, 520, 520))], "m")
    check_fit(presets["torchvision_ssdlite"].tasks,
              [Output("s", (3234, 91)), Output("b", (3234, 4))], "m")
    # torchvision's networks give labels and scores in either order.
    outputs = {"boxes": Output("b", (None, 4), "float32"), "labels": Output("l", (None,), "int64"),
               "scores": Output("s", (None,), "float32")}
    for name, order in (("torchvision_detection", ("boxes", "scores", "labels")),
                        ("torchvision_ssd", ("boxes", "scores", "labels")),
                        ("torchvision_rcnn", ("boxes", "labels", "scores"))):
        check_fit(presets[name].tasks, [outputs[key] for key in order], "m")
        error = refused(check_fit, presets[name].tasks,
                        [outputs[key] for key in ("boxes", *order[:0:-1])], "m")
        assert "'l' is int64, where scores are expected" in str(error)
    boxes = [outputs[key] for key in ("boxes", "labels", "scores")]
    masks, points = Output("m", (None, 1, 60, 80)), Output("p", (None, 17, 3))
    check_fit(presets["torchvision_mask_rcnn"].tasks, [*boxes, masks], "m")
    check_fit(presets["torchvision_keypoint_rcnn"].tasks,
              [*boxes, points, Output("s", (None, 17))], "m")
    assert "a map for each box" in str(refused(
        check_fit, presets["torchvision_mask_rcnn"].tasks, [*boxes, Output("s", (None, 17))], "m"))
    assert "17 numbers of keypoints' scores" in str(refused(
        check_fit, presets["torchvision_keypoint_rcnn"].tasks, [*boxes, points, points], "m"))


def test_mediapipes_anchors():
    """896 of the short range: two on each place of 16x16, six on each of 8x8, all of size 1."""
    anchors = anchors_of(FACE["anchors"])
    assert anchors.shape == (896, 4) and (anchors[:, 2:] == 1).all()
    np.testing.assert_allclose(anchors[:2, :2], 0.5 / 16)
    np.testing.assert_allclose(anchors[2, :2], [1.5 / 16, 0.5 / 16])
    np.testing.assert_allclose(anchors[512:518, :2], 0.5 / 8)
    np.testing.assert_allclose(anchors[-1, :2], 7.5 / 8)


def test_torchvisions_anchors():
    """By hand: a map of 1x2, scales 0.2 and 0.8, an aspect ratio of 2, sides at most 1."""
    anchors = anchors_of({"generator": "torchvision", "feature_maps": [[1, 2]],
                          "aspect_ratios": [[2]], "scales": [0.2, 0.8]})
    assert anchors.shape == (8, 4)
    np.testing.assert_allclose(anchors[0], [0.25, 0.5, 0.2, 0.2])
    np.testing.assert_allclose(anchors[1, 2:], [0.4, 0.4])
    np.testing.assert_allclose(anchors[2, 2:], [0.2 * 2 ** 0.5, 0.2 / 2 ** 0.5])
    np.testing.assert_allclose(anchors[7], [0.75, 0.5, 0.2 / 2 ** 0.5, 0.2 * 2 ** 0.5])


def test_compile_model_refuses_before_it_compiles(command, tmp_path):
    path = save_classifier(tmp_path / "tiny.onnx")
    result = command("compile_model", path, "--out", tmp_path / "out", "--task", "face_detection",
                     code=6)
    assert "no output 'regressors'" in result.stderr
    result = command("compile_model", path, "--out", tmp_path / "out", "--task", "faces", code=2)
    assert "face_detection" in result.stderr
    (tmp_path / "task.json").write_text(json.dumps({"kind": "classification", "output": "prob",
                                                    "labels": ["a", "b"]}))
    result = command("compile_model", path, "--out", tmp_path / "out", "--task",
                     tmp_path / "task.json", code=6)
    assert "3 classes, and there are 2 labels" in result.stderr
    assert not (tmp_path / "out").exists()


def test_compile_model_writes_tasks(command, tmp_path):
    path = save_classifier(tmp_path / "tiny.onnx")
    task = {"kind": "classification", "output": "prob", "labels": ["a", "b", "c"]}
    (tmp_path / "task.json").write_text(json.dumps(task))
    arguments = ("compile_model", path, "--out", tmp_path / "out", "--json", "--no-verify")
    result = command(*arguments, "--task", tmp_path / "task.json")
    assert json.loads(result.stdout)["metadata"]["tasks"] == [task]
    # The file beside the model says it too, and --task none that there are none.
    (tmp_path / "tiny.model.json").write_text(json.dumps({"preprocessing": None, "tasks": [task]}))
    again = json.loads(command(*arguments).stdout)
    assert again["up_to_date"] and again["metadata"]["tasks"] == [task]
    assert "tasks" not in json.loads(command(*arguments, "--task", "none").stdout)["metadata"]


def test_a_networks_own_labels(command, tmp_path):
    path = save_classifier(tmp_path / "tiny.onnx")
    task = {"kind": "classification", "output": "prob", "labels": ["of", "another"]}
    (tmp_path / "task.json").write_text(json.dumps(task))
    labels = tmp_path / "labels.txt"
    labels.write_bytes(b"a\r\nb b\r\n\xc3\xa7\r\n")
    arguments = ("compile_model", path, "--out", tmp_path / "out", "--json", "--no-verify",
                 "--labels", labels)
    with_task = (*arguments, "--task", tmp_path / "task.json")
    report = json.loads(command(*with_task).stdout)
    assert report["metadata"]["tasks"] == [{**task, "labels": ["a", "b b", "ç"]}]
    labels.write_text("a\nb\n")
    assert "--labels FILE names its own" in command(*with_task, code=6).stderr
    labels.write_bytes(b"\xff")
    assert "is not UTF-8" in command(*with_task, code=4).stderr
    labels.unlink()
    assert "cannot be read" in command(*with_task, code=3).stderr
    labels.write_text("a\nb\nc\n")
    assert "0 have classes here" in command(*arguments, code=2).stderr
    assert "2 have classes here" in command(*arguments, "--task", "yoeo_field", code=2).stderr


def test_the_document_names_every_preset():
    text = (ROOT / "scripts" / "COMPILING.md").read_text()
    assert all(f"`{name}`" in text for name in read_presets())
