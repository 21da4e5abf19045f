"""The description of the preprocessing: what a file and the flags may say."""

import argparse
import json

import pytest

from run_model_tools.errors import ToolError
from run_model_tools.pictures import preprocessing
from run_model_tools.pictures.preprocessing import PRESETS, from_json

CAFFE = {"resizer": "pil-bilinear", "fit": "crop", "resize": 256, "crop": 224,
         "color_order": "BGR", "divide_by": 1.0, "mean": [104.0, 117.0, 123.0],
         "std": [1.0, 1.0, 1.0]}


def parse(*flags):
    parser = argparse.ArgumentParser()
    preprocessing.add_flags(parser)
    return parser.parse_args(flags)


def test_json_round_trip():
    assert from_json(CAFFE, "x").to_json() == CAFFE
    assert PRESETS["caffe"].to_json() == CAFFE


def test_fields_of_another_fit_are_left_out():
    squash = from_json({**CAFFE, "fit": "squash"}, "x").to_json()
    assert "crop" not in squash and "resize" not in squash
    letterbox = from_json({**CAFFE, "fit": "letterbox"}, "x").to_json()
    assert letterbox["pad"] == 114


WARP = {**{k: v for k, v in CAFFE.items() if k not in ("resize", "crop")}, "resizer": "cv2-warp"}


@pytest.mark.parametrize("change", [
    {"fit": "squash"}, {"fit": "squash", "pad": "edge"}, {"fit": "squash", "pad": 0},
    {"fit": "letterbox", "pad": "edge"}, {"fit": "letterbox", "pad": 7, "position": "start"}])
def test_a_warp_says_what_lies_outside(change):
    assert from_json({**WARP, **change}, "x").to_json() == {**WARP, **change}


def test_a_letterbox_may_begin_at_the_corner_and_cut_off():
    yolox = {**WARP, "resizer": "cv2-linear", "fit": "letterbox", "pad": 114, "position": "start",
             "rounding": "down"}
    assert from_json(yolox, "x").to_json() == yolox
    usual = from_json({**yolox, "position": "centre", "rounding": "nearest"}, "x")
    assert usual.position is None and usual.rounding is None


def test_flags_leave_out_what_belongs_to_another_fit(tmp_path):
    path = tmp_path / "net.json"
    path.write_text(json.dumps({**WARP, "fit": "letterbox", "pad": "edge", "position": "start"}))
    changed, _ = preprocessing.from_flags(
        parse("--preprocessing", str(path), "--resizer", "cv2-linear", "--fit", "pad"), path)
    assert changed.pad == 114 and changed.position is None


@pytest.mark.parametrize("change", [
    {"resizer": "lanczos"}, {"fit": "stretch"}, {"color_order": "rgb"}, {"divide_by": 0},
    {"divide_by": "1"}, {"divide_by": float("nan")}, {"mean": [1, 2]}, {"mean": 1},
    {"std": [1, 0, 1]}, {"std": [1, True, 1]}, {"resize": 0}, {"resize": 1.5}, {"crop": 257},
    {"resize": 1 << 20}, {"scale": 1}, {"fit": "letterbox", "pad": 256},
    {"fit": "letterbox", "pad": "edge"}, {"fit": "squash", "position": "start"},
    {"fit": "letterbox", "rounding": "up"}])
def test_nonsense_is_refused_with_its_field(change):
    with pytest.raises(ToolError) as caught:
        from_json({**CAFFE, **change}, "side.json")
    assert caught.value.code == 4
    assert "side.json" in str(caught.value)
    assert any(field in str(caught.value) for field in change)


@pytest.mark.parametrize("field", ["resizer", "fit", "mean", "std", "divide_by", "color_order"])
def test_nothing_is_guessed(field):
    with pytest.raises(ToolError, match=field):
        from_json({k: v for k, v in CAFFE.items() if k != field}, "side.json")


def test_sidecar_is_found_beside_the_model(tmp_path):
    model = tmp_path / "net.onnx"
    assert preprocessing.from_flags(parse(), model) == (None, None)
    (tmp_path / "net.model.json").write_text(json.dumps({"preprocessing": CAFFE,
                                                         "labels": "l.txt"}))
    assert preprocessing.from_flags(parse(), model) == (PRESETS["caffe"], "l.txt")
    assert preprocessing.from_flags(parse("--preprocessing", "none"), model) == (None, None)


def test_flags_change_pieces(tmp_path):
    args = parse("--preprocessing", "imagenet", "--mean", "1", "2", "3", "--fit", "letterbox")
    described, _ = preprocessing.from_flags(args, tmp_path / "net.onnx")
    assert described.mean == (1.0, 2.0, 3.0)
    assert described.std == PRESETS["imagenet"].std
    assert (described.fit, described.pad, described.crop) == ("letterbox", 114, None)


def test_pieces_without_a_whole_are_refused(tmp_path):
    with pytest.raises(ToolError, match="--preprocessing") as caught:
        preprocessing.from_flags(parse("--color-order", "BGR"), tmp_path / "net.onnx")
    assert caught.value.code == 2


def test_flags_are_checked_like_a_file(tmp_path):
    with pytest.raises(ToolError, match="std"):
        preprocessing.from_flags(parse("--preprocessing", "caffe", "--std", "0", "1", "1"),
                                 tmp_path / "net.onnx")


@pytest.mark.parametrize("text", ["", "[]", "{", "{}", '{"preprocessing": 3}'])
def test_bad_files_are_refused(tmp_path, text):
    path = tmp_path / "p.json"
    path.write_text(text)
    with pytest.raises(ToolError) as caught:
        preprocessing.read_file(path)
    assert caught.value.code == 4 and "p.json" in str(caught.value)


def test_weights_of_torchvision_go_by_their_names(tmp_path):
    flags = parse("--preprocessing", "ResNet50_Weights.DEFAULT", "--color-order", "BGR")
    spec, _ = preprocessing.from_flags(flags, tmp_path / "net.onnx")
    assert (spec.resizer, spec.resize, spec.crop, spec.color_order) == (
        "pil-bilinear", 232, 224, "BGR")
    with pytest.raises(ToolError, match="nor weights of a classifier") as refused:
        preprocessing.from_flags(parse("--preprocessing", "ResNet50_Weights.V3"), tmp_path / "n")
    assert refused.value.code == 2
