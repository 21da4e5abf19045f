"""Hugging Face's and timm's descriptions of pictures, against what their own code makes of some
(make_processors.py), and what of them is refused."""

import json
from pathlib import Path

import numpy as np
import pytest

from run_model_tools.errors import MALFORMED_FILE, ToolError
from run_model_tools.fixtures.made_pictures import pattern
from run_model_tools.pictures.preprocess import preprocess
from run_model_tools.pictures.preprocessing import of_weights
from run_model_tools.published import image_processors, open_clip_models, timm_models

GOLDEN = json.loads((Path(__file__).parent / "data" / "processors.json").read_text())
VIT = {"image_processor_type": "ViTImageProcessor", "size": {"height": 24, "width": 24},
       "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
TIMM = {"input_size": [3, 224, 224], "crop_pct": 0.9, "mean": [0.5] * 3, "std": [0.5] * 3}


def name_of(case):
    config = case["config"]
    return (config.get("image_processor_type") or config.get("feature_extractor_type")
            or config.get("architecture") or config.get("weights") or config["resize_mode"])


def spec_of(config, size):
    if "weights" in config:
        return of_weights(config["weights"])
    if open_clip_models.is_open_clip(config):
        return open_clip_models.preprocessing_of(config, "x")
    if timm_models.is_timm(config):
        return timm_models.preprocessing_of(config, "x")
    return image_processors.preprocessing_of(config, "x", size)


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=name_of)
def test_pictures_are_prepared_as_their_own_code_does(case):
    for picture, expected in zip(GOLDEN["pictures"], case["pictures"]):
        spec = spec_of(case["config"], tuple(expected["shape"][1:]))
        made = preprocess(pattern(*picture), spec, (1, *expected["shape"]), "float32", "NCHW")
        got = made.tensor.ravel()
        places = np.linspace(0, got.size - 1, len(expected["values"])).astype(int)
        channels = places // (expected["shape"][1] * expected["shape"][2])
        # How far numbers are apart that stand for neighbouring values of a pixel.
        level = 1 / (spec.divide_by * np.array(spec.std)[channels])
        assert np.all(np.abs(got[places] - expected["values"]) <= case["levels"] * level)


@pytest.mark.parametrize("change,words", [
    ({"image_processor_type": "SamImageProcessor"}, "is of SamImageProcessor, which is not one of"),
    ({"resample": 1}, "by the filter Lanczos"),
    ({"size": {"shortest_edge": 24}}, "the network's is open"),
    ({"size": {"shortest_edge": 800, "longest_edge": 1333}}, "the network's is open"),
    ({"size": {"shortest_edge": 24, "longest_edge": 40}, "do_center_crop": True},
     "bounds the long side"),
    ({"do_pad": True, "pad_size": {"height": 40, "width": 40}}, "pads pictures to"),
    ({"do_crop_margin": True}, "has do_crop_margin"),
    ({"image_processor_type": "RfDetrImageProcessor", "resample": 3}, "there are cv2-linear"),
    ({"size": {"max_pixels": 1000}}, "has a size of {'max_pixels': 1000}"),
    ({"size": None}, "has a size of None"),
    ({"do_resize": False}, "does not resize"),
    ({"image_mean": [0.5]}, "mean is \\[0.5\\]"),
    ({"image_std": [0.5, 0, 0.5]}, "something other than 0"),
    ({"image_mean": "grey"}, "has an image_mean of 'grey'"),
    ({"rescale_factor": 0}, "has a rescale_factor of 0"),
    ({"do_flip_channel_order": True}, "known of MobileViT only"),
    ({"keep_aspect_ratio": True}, "follows the picture's"),
    ({"keep_aspect_ratio": True, "do_center_crop": True}, "and crops"),
    ({"do_center_crop": True, "crop_size": {"height": 20, "width": 10}}, "that is no square"),
    ({"do_center_crop": True, "crop_size": 30}, "at most resize"),
])
def test_what_has_no_equal_is_refused(change, words):
    with pytest.raises(ToolError, match=words) as refused:
        image_processors.preprocessing_of({**VIT, **change}, "it")
    assert refused.value.code == MALFORMED_FILE


BOUNDED = {"shortest_edge": 800, "longest_edge": 1333}


@pytest.mark.parametrize("change,size,made", [
    ({"size": BOUNDED}, (800, 1066), None), ({"size": BOUNDED}, (750, 1333), None),
    ({"size": BOUNDED}, (1333, 750), None), ({"size": BOUNDED}, (640, 640), "800x800"),
    ({"size": BOUNDED}, (800, 1400), "1333x762"),
    ({"size": {"shortest_edge": 24}}, (24, 90), None),
    ({"size": {"shortest_edge": 24}}, (48, 90), "45x24"),
    ({"size": {"height": 28, "width": 28}, "keep_aspect_ratio": True, "ensure_multiple_of": 14},
     (28, 42), None),
    ({"size": {"height": 28, "width": 28}, "keep_aspect_ratio": True, "ensure_multiple_of": 14},
     (56, 56), "28x28"),
    ({"image_processor_type": "YolosImageProcessor", "size": BOUNDED}, (800, 1066), "1056x800"),
    ({"image_processor_type": "YolosImageProcessor", "size": BOUNDED}, (800, 1056), None),
    # As transformers.js reads one number: bounds of both sides.
    ({"feature_extractor_type": "ImageFeatureExtractor", "image_processor_type": None, "size": 32},
     (32, 32), None),
    ({"feature_extractor_type": "ImageFeatureExtractor", "image_processor_type": None, "size": 32},
     (32, 48), "32x21"),
])
def test_what_keeps_proportions_is_taken_where_it_makes_the_networks_size(change, size, made):
    notes = []
    if made is None:
        spec = image_processors.preprocessing_of({**VIT, **change}, "it", size, notes)
        assert spec.fit == "squash" and f"squashed to {size[1]}x{size[0]}" in notes[0]
    else:
        with pytest.raises(ToolError, match=f"makes those of {size[1]}x{size[0]} {made}"):
            image_processors.preprocessing_of({**VIT, **change}, "it", size, notes)


def test_transformers_js_normalises_only_where_it_is_said():
    """Its own processor, of networks such as RMBG and MODNet."""
    said = {**VIT, "image_processor_type": "ImageFeatureExtractor"}
    assert image_processors.preprocessing_of(said, "it").mean == (0.0,) * 3
    spec = image_processors.preprocessing_of({**said, "do_normalize": True}, "it")
    assert (spec.fit, spec.resizer, spec.mean) == ("squash", "pil-bilinear", (0.5,) * 3)


@pytest.mark.parametrize("change,words", [
    ({"interpolation": "nearest"}, "resizes by 'nearest'"), ({"resize_mode": "x"}, "resize_mode"),
    ({"size": [21, 22]}, "of a square"), ({"size": None}, "of a square"),
    ({"mean": [0.5]}, "mean is"), ({"resize_mode": "longest", "fill_color": 300}, "pad is 300")])
def test_what_open_clip_says_and_has_no_equal_is_refused(change, words):
    with pytest.raises(ToolError, match=words):
        open_clip_models.preprocessing_of({"resize_mode": "shortest", "size": 21, **change}, "it")


JUNK = [None, True, -1, 0, 1e-320, 1e300, float("nan"), "x", [], [1], [[]], {}, {"height": []}]


@pytest.mark.parametrize("case", [case for case in GOLDEN["cases"]
                                  if "weights" not in case["config"]], ids=name_of)
def test_anything_else_is_taken_or_refused_in_a_sentence(case):
    config = case["config"]
    is_timm = timm_models.is_timm(config)
    reader = open_clip_models if open_clip_models.is_open_clip(config) else image_processors
    said = config["pretrained_cfg"] if is_timm else config
    for key in said:
        for junk in JUNK:
            changed = {**said, key: junk}
            try:
                if is_timm:
                    timm_models.preprocessing_of({"pretrained_cfg": changed}, "it", 21)
                else:
                    reader.preprocessing_of(changed, "it")
            except ToolError as error:
                assert str(error).startswith("it")


@pytest.mark.parametrize("change,words", [
    ({"crop_mode": "border"}, "crop_mode 'border'"), ({"interpolation": "lanczos"}, "'lanczos'"),
    ({"crop_pct": 0}, "a crop_pct of 0"), ({"input_size": [1, 28, 28]}, "an input_size of"),
    ({"mean": [0.5]}, "mean is"),
])
def test_what_timm_says_and_has_no_equal_is_refused(change, words):
    with pytest.raises(ToolError, match=words):
        timm_models.preprocessing_of({"pretrained_cfg": {**TIMM, **change}}, "it")


def test_timm_crops_in_proportion_where_the_network_was_exported_for_another_size():
    spec = timm_models.preprocessing_of({"pretrained_cfg": TIMM}, "it", 288)
    assert (spec.resize, spec.crop) == (320, 288)
    tested = {**TIMM, "test_input_size": [3, 288, 288], "test_crop_pct": 1.0}
    spec = timm_models.preprocessing_of({"pretrained_cfg": tested}, "it", 288)
    assert (spec.resize, spec.crop) == (288, 288)
