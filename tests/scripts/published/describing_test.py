"""What is taken from a model's file and from those beside it, where no flags say anything."""

import argparse
import json
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from run_model_tools.compiling import compile_model
from run_model_tools.errors import ToolError
from run_model_tools.onnx_model import read_model
from run_model_tools.pictures import preprocessing
from run_model_tools.published import tflite_metadata, ultralytics
from run_model_tools.published.describing import describe, full_masks
from run_model_tools.tasks import presets
from run_model_tools.tflite.model import properties_behind, read_tflite

VIT = {"image_processor_type": "ViTImageProcessor", "size": {"height": 32, "width": 32},
       "image_mean": [0.5] * 3, "image_std": [0.25] * 3}
CLASSES = {"architectures": ["ViTForImageClassification"], "model_type": "vit",
           "id2label": {"1": "dog", "0": "cat", "2": "owl"}}
PICTURE = (1, 3, 32, 32)


def model_of(folder, outputs, properties=None, shape=PICTURE, others=None):
    """A file whose outputs have these shapes by name; nothing of it is run.

    others: further inputs of whole numbers."""
    graph = helper.make_graph(
        [helper.make_node("ConstantOfShape", ["shape"], [name]) for name in outputs], "net",
        [helper.make_tensor_value_info("pixel_values", TensorProto.FLOAT, shape),
         *(helper.make_tensor_value_info(name, TensorProto.INT64, dims)
           for name, dims in (others or {}).items())],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
         for name, dims in outputs.items()],
        [helper.make_tensor("shape", TensorProto.INT64, [1], [1])])
    model = helper.make_model(graph)
    helper.set_model_props(model, properties or {})
    folder.mkdir(exist_ok=True)
    onnx.save(model, str(folder / "model.onnx"))
    return read_model(folder / "model.onnx")


def described(model, *flags, shapes=None):
    parser = argparse.ArgumentParser()
    presets.add_flags(parser)
    preprocessing.add_flags(parser)
    return describe(parser.parse_args(flags), model, shapes)


def put(folder, name, value):
    (folder / name).write_text(json.dumps(value))


def test_hugging_faces_files_beside_the_model(tmp_path):
    model = model_of(tmp_path, {"logits": (1, 3)})
    assert described(model).notes == []
    put(tmp_path, "preprocessor_config.json", VIT)
    put(tmp_path, "config.json", CLASSES)
    said = described(model)
    assert said.preprocessing.fit == "squash" and said.preprocessing.std == (0.25,) * 3
    assert said.tasks == [{"kind": "classification", "output": "logits",
                           "labels": ["cat", "dog", "owl"]}]
    assert [note.split(" from ")[0] for note in said.notes] == ["preprocessing", "tasks"]
    # Flags come first, and none means none.
    said = described(model, "--preprocessing", "none", "--task", "none")
    assert (said.preprocessing, said.tasks, said.notes) == (None, None, [])
    assert described(model, "--preprocessing", "caffe").preprocessing.color_order == "BGR"
    # So does the file that says all.
    put(tmp_path, "model.model.json", {"preprocessing": None})
    said = described(model)
    assert (said.preprocessing, said.tasks, said.notes) == (None, None, [])


def test_files_above_the_folder_of_exported_models(tmp_path):
    put(tmp_path, "preprocessor_config.json", VIT)
    assert described(model_of(tmp_path / "onnx", {"y": (1, 3)})).preprocessing is not None
    assert described(model_of(tmp_path / "other", {"y": (1, 3)})).preprocessing is None


def test_what_does_not_fit_is_not_taken_and_said(tmp_path):
    model = model_of(tmp_path, {"features": (1, 8)})
    put(tmp_path, "config.json", CLASSES)
    put(tmp_path, "preprocessor_config.json", {
        **VIT, "do_center_crop": True, "crop_size": 30, "size": 31})
    said = described(model)
    assert (said.preprocessing, said.tasks) == (None, None)
    assert "no preprocessing taken from" in said.notes[0] and "cropped to 30x30" in said.notes[0]
    assert "no tasks taken from" in said.notes[1] and "3 labels" in said.notes[1]
    put(tmp_path, "preprocessor_config.json", {"image_processor_type": "SamImageProcessor"})
    assert "which is not one of" in described(model).notes[0]
    (tmp_path / "preprocessor_config.json").write_text("{")
    assert len(described(model).notes) == 1


def test_networks_of_no_pictures_have_no_preprocessing(tmp_path):
    put(tmp_path, "preprocessor_config.json", VIT)
    said = described(model_of(tmp_path, {"y": (1, 3)}, shape=(1, 128)))
    assert (said.preprocessing, said.notes) == (None, [])


def test_timms_file(tmp_path):
    model = model_of(tmp_path, {"y": (1, 5)})
    put(tmp_path, "config.json", {"architecture": "resnet18", "pretrained_cfg": {
        "input_size": [3, 28, 28], "crop_pct": 0.8, "interpolation": "bilinear"}})
    spec = described(model).preprocessing
    assert (spec.resizer, spec.resize, spec.crop, spec.mean[0]) == ("pil-bilinear", 40, 32, 0.485)
    wider = described(model, shapes={"pixel_values": (1, 3, 64, 64)}).preprocessing
    assert (wider.resize, wider.crop) == (80, 64)
    other = tmp_path / "timm.json"
    (tmp_path / "config.json").rename(other)
    assert described(model).preprocessing is None
    assert described(model, "--preprocessing", str(other)).preprocessing == spec


def test_files_of_networks_for_pictures_and_texts(tmp_path):
    """transformers 5 writes the image processor into another file, beside the tokenizer's."""
    put(tmp_path, "processor_config.json", {"image_processor": VIT, "processor_class": "CLIP"})
    model = model_of(tmp_path, {"y": (1, 3)}, others={"input_ids": (1, 7)})
    assert described(model).preprocessing.std == (0.25,) * 3
    model = model_of(tmp_path, {"y": (1, 3)}, others={"other_pixels": PICTURE})
    assert (described(model).preprocessing, described(model).notes) == (None, [])


@pytest.mark.parametrize("name,value", [
    ("preprocess_cfg.json", {"size": [32, 32], "resize_mode": "squash"}),
    ("open_clip_config.json", {"model_cfg": {"embed_dim": 8}, "preprocess_cfg": {
        "resize_mode": "shortest", "interpolation": "bicubic"}})])
def test_open_clips_files(tmp_path, name, value):
    put(tmp_path, name, value)
    spec = described(model_of(tmp_path, {"y": (1, 3)})).preprocessing
    assert spec.resizer == "pil-bicubic" and round(spec.mean[0], 3) == 0.481
    assert spec.crop == (32 if "open" in name else None)


@pytest.mark.parametrize("name,value", [
    ("preprocessor_config.json", VIT),
    ("config.json", {"architecture": "vit", "pretrained_cfg": {"input_size": [3, 32, 32]}})])
def test_files_of_pytorch_are_not_taken_for_networks_that_were_made_anew(tmp_path, name, value):
    """Taggers of anime pictures have timm's file beside a network that wants BGR of 0 to 255."""
    put(tmp_path, name, value)
    said = described(model_of(tmp_path, {"y": (1, 3)}, shape=(1, 32, 32, 3)))
    assert said.preprocessing is None and "this one's are NHWC" in said.notes[0]


def test_masks_of_whole_pictures_are_constants(tmp_path, monkeypatch):
    put(tmp_path, "preprocessor_config.json", VIT)
    args = argparse.Namespace(preprocessing=None)

    def masks(args, shapes=None, **others):
        return full_masks(args, model_of(tmp_path / "onnx", {"y": (1, 3)}, others=others,
                                         shape=(1, 3, None, 48)), shapes or {})

    size = {"pixel_values": (1, 3, 32, 48)}
    assert masks(args, pixel_mask=(None, 64, 64))["pixel_mask"].shape == (1, 64, 64)
    assert masks(args, size, pixel_mask=("b", "h", "w"))["pixel_mask"].shape == (1, 32, 48)
    assert np.all(masks(args, size, pixel_mask=(1, 8, 8))["pixel_mask"] == 1)
    assert masks(args, size, other=(1, 64, 64)) == {}
    assert masks(args, {"pixel_mask": (1, 64, 64)}, pixel_mask=("b", "h", "w")) == {}
    assert masks(argparse.Namespace(preprocessing="none"), pixel_mask=(1, 64, 64)) == {}
    monkeypatch.setattr("sys.argv", ["compile_model", str(tmp_path / "onnx" / "model.onnx"),
                                     "--shape", "pixel_values:1,3,32,48"])
    job = compile_model.make_job(compile_model.parse_arguments())
    assert list(job.shapes) == ["pixel_values"] and "pixel_mask is no input" in job.notes[-1]
    (tmp_path / "preprocessor_config.json").unlink()
    assert masks(args, pixel_mask=(1, 64, 64)) == {}


DETECTOR = {"architectures": ["RTDetrV2ForObjectDetection"], "model_type": "rt_detr_v2",
            "id2label": {"0": "cat", "1": "dog"}}


@pytest.mark.parametrize("change,outputs,expected", [
    ({}, {"logits": (1, 9, 2), "pred_boxes": (1, 9, 4)},
     {"activation": "sigmoid", "classes_per_box": "every", "limit": 300, "scores": "logits"}),
    ({"model_type": "detr"}, {"a": (1, 9, 3), "b": (1, 9, 4)},
     {"activation": "softmax", "background": 2, "labels": ["cat", "dog", "no object"],
      "scores": 0, "boxes": 1}),
    ({"architectures": ["SegformerForSemanticSegmentation"]}, {"logits": (1, 2, 8, 8)},
     {"kind": "segmentation", "form": "scores", "layout": "NCHW", "labels": ["cat", "dog"]}),
    ({"architectures": ["DepthAnythingForDepthEstimation"], "model_type": "depth_anything"},
     {"predicted_depth": (1, 32, 32)}, {"kind": "map", "quantity": "inverse-depth"}),
    ({"architectures": ["DepthAnythingForDepthEstimation"], "model_type": "depth_anything",
      "depth_estimation_type": "metric"}, {"predicted_depth": (1, 32, 32)},
     {"quantity": "depth", "unit": "m"}),
    ({"architectures": ["ViTForImageClassification"], "problem_type": "multi_label_classification",
      "id2label": {"0": "LABEL_0", "1": "LABEL_1"}}, {"logits": (1, 2)},
     {"kind": "classification", "activation": "sigmoid", "output": "logits"}),
])
def test_what_the_outputs_of_architectures_mean(tmp_path, change, outputs, expected):
    put(tmp_path, "config.json", {**DETECTOR, **change})
    (task,) = described(model_of(tmp_path, outputs)).tasks
    assert expected.items() <= task.items()


@pytest.mark.parametrize("change", [
    {"architectures": ["BertForTokenClassification"]}, {"architectures": []},
    {"architectures": ["GroundingDinoForObjectDetection"], "model_type": "grounding-dino"}])
def test_architectures_that_are_not_known_are_no_tasks(tmp_path, change):
    put(tmp_path, "config.json", {**DETECTOR, **change})
    assert described(model_of(tmp_path, {"y": (1, 9, 2)})).tasks is None


YOLO = {"stride": "32", "names": "{0: 'ball', 1: 'post'}", "task": "detect", "imgsz": "[32, 32]",
        "head": "Detect"}


@pytest.mark.parametrize("change,outputs,expected", [
    ({}, {"output0": (1, 6, 21)}, {"form": "yolo-v8", "labels": ["ball", "post"]}),
    ({}, {"output0": (1, 300, 6)}, {"form": "box-rows", "box_format": "xyxy"}),
    # Two classes and six candidates: columns, although they look like rows.
    ({}, {"output0": (1, 6, 6)}, {"form": "yolo-v8"}),
    ({"task": "segment"}, {"a": (1, 38, 21), "b": (1, 32, 8, 8)},
     {"form": "yolo-v8",
      "masks": {"output": 1, "count": 32, "layout": "NCHW", "drop_empty": True}}),
    ({"task": "segment"}, {"a": (1, 300, 38), "b": (1, 32, 8, 8)}, {"form": "box-rows"}),
    ({"task": "pose", "kpt_shape": "[4, 2]"}, {"a": (1, 14, 21)},
     {"keypoints": {"count": 4, "values": 2}}),
    ({"task": "obb"}, {"a": (1, 7, 21)}, {"form": "yolo-v8"}),
    ({"task": "obb"}, {"a": (1, 300, 7)}, {"form": "box-rows", "box_format": "cxcywh"}),
    ({"head": "RTDETRDecoder"}, {"a": (1, 300, 6)},
     {"form": "yolo-rows", "units": "normalized", "objectness": False, "nms": None}),
    ({"head": "RTDETRDecoder", "names": "{0: 'a', 1: 'b', 2: 'c'}"}, {"a": (1, 300, 6)},
     {"form": "box-rows", "units": "normalized", "box_format": "cxcywh"}),
    ({"task": "classify"}, {"a": (1, 2)}, {"kind": "classification", "activation": "none"}),
])
def test_what_ultralytics_writes_into_the_file(tmp_path, change, outputs, expected):
    said = described(model_of(tmp_path, outputs, {**YOLO, **change}))
    (task,) = said.tasks
    assert expected.items() <= task.items()
    assert "by Ultralytics" in said.notes[0]
    fits = {"classify": "crop"}.get(change.get("task"), "letterbox")
    assert said.preprocessing.fit == ("squash" if "head" in change else fits)
    assert said.preprocessing.divide_by == 255.0


def test_yolov5_says_no_task(tmp_path):
    old = {key: YOLO[key] for key in ("stride", "names")}
    (task,) = described(model_of(tmp_path, {"output": (1, 63, 7)}, old)).tasks
    assert (task["form"], task["objectness"]) == ("yolo-rows", True)


@pytest.mark.parametrize("change,words", [
    ({"names": "{0: 'ball', 2: 'post'}"}, "not those of the classes"),
    ({"names": "__import__('os')"}, "its names cannot be read"),
    ({"names": "{0: 'ball'"}, "its names cannot be read"),
    ({"names": "[]" * 600_000}, "not those of the classes"),
    ({"names": "{0: 'ball', 'x': 'post'}"}, "not those of the classes"),
    ({"task": "panoptic"}, "its task is 'panoptic'"),
    ({"task": "pose", "kpt_shape": "17"}, "its kpt_shape is 17"),
    ({"task": "pose", "kpt_shape": "[17, 'x']"}, "keypoints"),
    ({"task": "classify", "imgsz": "[]"}, "resize"),
    ({"names": "['ball']"}, "1 labels")])
def test_what_ultralytics_never_writes_is_not_taken(tmp_path, change, words):
    said = described(model_of(tmp_path, {"output0": (1, 6, 21)}, {**YOLO, **change}))
    assert said.tasks is None and words in said.notes[-1]


@pytest.mark.parametrize("change,shapes,layout,expected", [
    ({}, [(1, 6, 21)], "NCHW", {"form": "yolo-v8", "units": "normalized"}),
    ({}, [(1, 300, 6)], "NCHW", {"form": "box-rows", "units": "pixels"}),
    ({}, [(1, 300, 6)], "NHWC", {"form": "box-rows", "units": "normalized"}),
    ({"task": "segment"}, [(1, 38, 21), (1, 8, 8, 32)], "NHWC",
     {"output": 0, "masks": {"output": 1, "count": 32, "layout": "NHWC", "drop_empty": True}}),
    ({"task": "segment"}, [(1, 32, 8, 8), (1, 38, 21)], "NCHW",
     {"output": 1, "masks": {"output": 0, "count": 32, "layout": "NCHW", "drop_empty": True}})])
def test_ultralytics_tflite_files_have_boxes_in_shares(change, shapes, layout, expected):
    """As its LiteRT backend reads them."""
    (task,), _ = ultralytics.described({**YOLO, **change}, shapes, "it", layout)
    assert expected.items() <= task.items()


def test_ultralytics_writes_behind_tflite_files(tmp_path):
    path = tmp_path / "net.tflite"
    path.write_bytes(b"TFL3" * 9)
    assert properties_behind(path) == {}
    said = {"stride": 32, "names": {"0": "ball", "1": "post"}, "task": "detect",
            "imgsz": [32, 32], "head": "Detect"}
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("metadata.json", json.dumps(said))
    found = properties_behind(path)
    assert ultralytics.is_ultralytics(found) and found["task"] == "detect"
    (task,), _ = ultralytics.described(found, [(1, 6, 21)], "it", "NCHW")
    assert task["labels"] == ["ball", "post"]
    path.write_bytes(path.read_bytes()[:-30])
    assert properties_behind(path) == {}


CLASSIFIERS = Path(__file__).parent / "data"


@pytest.mark.parametrize("dtype,mean,std", [
    ("float32", [127.5] * 3, [127.5] * 3), ("uint8", [0.0] * 3, [1.0] * 3),
    # The numbers that are stored stand for 1/128 of themselves.
    ("int8", [100.0, 110.0, 120.0], [50 / 128, 60 / 128, 70 / 128])])
def test_classifiers_of_tensorflow_lite(dtype, mean, std):
    """Their metadata were written with MediaPipe's own schema (make_classifiers.py)."""
    said = described(read_tflite(CLASSIFIERS / f"classifier_{dtype}.tflite"))
    assert said.tasks == [{"kind": "classification", "output": 0,
                           "labels": ["cat", "dog", "owl"]}]
    spec = said.preprocessing
    assert (spec.resizer, spec.fit, spec.divide_by) == ("cv2-warp", "squash", 1.0)
    assert list(spec.mean) == mean and list(spec.std) == std
    assert "the metadata of" in said.notes[0]


def test_damaged_metadata_of_tensorflow_lite_are_not_taken(tmp_path):
    data = (CLASSIFIERS / "classifier_float32.tflite").read_bytes()
    path = tmp_path / "net.tflite"
    start = data.index(b"M001")
    refused = 0
    for place in range(start - 4, data.index(b"labels.txt"), 2):
        path.write_bytes(data[:place] + b"\xff\xff" + data[place + 2:])
        try:
            found = tflite_metadata.read(path)
        except ToolError as error:
            refused += 1
            assert "the metadata of" in str(error)
        else:
            assert found is None or set(found.labels) <= {"cat", "dog", "owl"}
    assert refused > 10
    # Without the archive of labels behind it.
    path.write_bytes(data[:data.index(b"PK\x03\x04")])
    said = described(read_tflite(path))
    assert (said.preprocessing, said.tasks) == (None, None)
    assert "damaged" in said.notes[0]
