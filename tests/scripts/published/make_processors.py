"""Makes data/processors.json: pictures as transformers', timm's and open_clip's own code prepares
them.

Run in the environment of scripts/requirements-exporting.txt and open_clip_torch 3.3, with scripts/
in PYTHONPATH.  Of a
picture a few numbers of the tensor are kept.  The pictures are such that Pillow 13, which that
environment has, resizes them as earlier releases do (preprocess/resizers.h).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import timm
import torchvision
import transformers
from open_clip.transform import PreprocessCfg, image_transform_v2
from PIL import Image
from timm.data import create_transform, resolve_data_config

from run_model_tools.fixtures.made_pictures import pattern

DATA = Path(__file__).parent / "data" / "processors.json"
PICTURES = [(60, 41, 1), (50, 60, 2)]
KEPT = 12

BOTH, SHORT = {"height": 24, "width": 27}, {"shortest_edge": 24}
BOUNDED = {"shortest_edge": 24, "longest_edge": 34}
SQUARE, CROP = {"height": 24, "width": 24}, {"height": 21, "width": 21}
MEANS = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
# By Pillow, byte for byte, and below by torchvision, which differs by one level.
PILLOW: list[tuple[str, dict[str, Any]]] = [
    *((name, {"size": BOTH, **MEANS}) for name in (
        "Beit", "Blip", "DPT", "OwlViT", "Pvt", "Segformer", "Siglip", "ViT", "Detr", "Yolos",
        "ConditionalDetr", "DeformableDetr")),
    ("RTDetr", {"size": BOTH}), ("RTDetr", {"size": BOTH, "do_normalize": True, **MEANS}),
    *((name, {"size": SHORT, "crop_size": CROP, **MEANS}) for name in (
        "Bit", "CLIP", "ChineseCLIP", "MobileNetV1", "MobileNetV2", "Levit", "PoolFormer")),
    ("PoolFormer", {"size": SQUARE, "crop_size": CROP, **MEANS}),
    ("MobileViT", {"size": SHORT, "crop_size": CROP, "resample": 2}),
    ("MobileViT", {"size": SHORT, "crop_size": CROP, "do_flip_channel_order": False}),
    ("DeiT", {"size": SQUARE, "crop_size": CROP, **MEANS}),
    ("Beit", {"size": SQUARE, "crop_size": CROP, "do_center_crop": True, **MEANS}),
    ("ConvNext", {"size": SHORT, **MEANS}),
    ("ConvNext", {"size": {"shortest_edge": 384}, **MEANS}),
    ("EfficientNet", {"size": BOTH, "resample": 0, "image_mean": [0.485, 0.456, 0.406],
                      "image_std": [0.478, 0.473, 0.474]}),
    ("EfficientNet", {"size": BOTH, "resample": 3, "include_top": False, "rescale_offset": True,
                      "rescale_factor": 1 / 127.5, **MEANS}),
    ("CLIP", {"size": SHORT, "crop_size": CROP, "do_rescale": False, "image_mean": [100.0] * 3,
              "image_std": [50.0] * 3}),
    ("ViT", {"size": BOTH, "do_normalize": False, "resample": 3}),
    ("LayoutLMv3", {"size": BOTH, "apply_ocr": False}), ("Detr", {"size": BOUNDED, **MEANS}),
    ("Yolos", {"size": {"shortest_edge": 32, "longest_edge": 64}, **MEANS}),
    ("DPT", {"size": {"height": 28, "width": 28}, "keep_aspect_ratio": True,
             "ensure_multiple_of": 7, **MEANS}),
]
TORCHVISION: list[tuple[str, dict[str, Any]]] = [
    ("DINOv3ViT", {"size": BOTH, **MEANS}), ("Tipsv2", {"size": BOTH}),
    ("ViT", {"size": BOTH, **MEANS}), ("CLIP", {"size": SHORT, "crop_size": CROP, **MEANS}),
    ("Sam2", {"size": BOTH, **MEANS}), ("RfDetr", {"size": BOTH, **MEANS}),
    ("DepthPro", {"size": BOTH, **MEANS}),
]
# As files on the hub say it that were written before transformers 4.25.
OLD: list[tuple[str, dict[str, Any]]] = [
    ("ViT", {"do_normalize": True, "do_resize": True, "image_mean": [0.5, 0.5, 0.5],
             "image_std": [0.5, 0.5, 0.5], "size": 24}),
    ("DeiT", {"crop_size": 21, "do_center_crop": True, "do_normalize": True, "do_resize": True,
              "resample": 3, "size": 24, **MEANS}),
    ("MobileViT", {"crop_size": 21, "do_center_crop": True, "do_flip_channels": True,
                   "do_resize": True, "resample": 2, "size": 24}),
    ("CLIP", {"crop_size": 21, "do_center_crop": True, "do_normalize": True, "do_resize": True,
              "resample": 3, "size": 24, **MEANS}),
    ("Segformer", {"do_normalize": True, "do_resize": True, "reduce_labels": True, "resample": 2,
                   "size": 24, **MEANS}),
    ("Detr", {"do_normalize": True, "do_resize": True, "format": "coco_detection", "max_size": 34,
              "size": 24, **MEANS}),
]
OPEN_CLIP: list[dict[str, Any]] = [
    {"size": [21, 21], "mode": "RGB", "interpolation": "bicubic", "resize_mode": "shortest",
     "fill_color": 0, "mean": MEANS["image_mean"], "std": MEANS["image_std"]},
    {"size": 21, "interpolation": "bilinear", "resize_mode": "squash", "mean": [0.5] * 3,
     "std": [0.5] * 3},
    {"size": [21, 21], "resize_mode": "longest", "fill_color": 7},
]
TIMM = ("resnet50.a1_in1k", "cspdarknet53.ra_in1k", "coat_lite_medium_384.in1k",
        "dm_nfnet_f0.dm_in1k", "vit_base_patch16_224.augreg_in21k_ft_in1k")
WEIGHTS = ("ResNet50_Weights.IMAGENET1K_V1", "ResNet50_Weights.DEFAULT", "Swin_S_Weights.DEFAULT",
           "EfficientNet_B3_Weights.IMAGENET1K_V1", "EfficientNet_V2_L_Weights.DEFAULT",
           "VGG16_Weights.IMAGENET1K_FEATURES", "Inception_V3_Weights.DEFAULT")


def kept(tensor: np.ndarray) -> dict[str, Any]:
    flat = tensor.ravel()
    places = np.linspace(0, flat.size - 1, KEPT).astype(int)
    return {"shape": list(tensor.shape), "values": [round(float(v), 5) for v in flat[places]]}


def of_transformers(name: str, settings: dict[str, Any], backend: str,
                    old: bool = False) -> dict[str, Any]:
    processor = getattr(transformers, f"{name}ImageProcessor{backend}")
    if old:
        config = {**settings, "feature_extractor_type": f"{name}FeatureExtractor"}
        made = processor.from_dict(dict(config))
    else:
        made = processor(**settings)
        config = json.loads(made.to_json_string())
    pictures = [kept(np.asarray(made(Image.fromarray(pattern(*picture)),
                                     return_tensors="np")["pixel_values"])[0])
                for picture in PICTURES]
    return {"config": config, "levels": 0.02 if backend else 1.02, "pictures": pictures}


def of_timm(name: str) -> dict[str, Any]:
    settings = json.loads(json.dumps(timm.get_pretrained_cfg(name).to_dict()))
    # Small pictures: what counts is the way there.
    settings["input_size"] = [3, 21, 21]
    settings.pop("test_input_size", None)
    transform = create_transform(**resolve_data_config({}, pretrained_cfg=settings))
    return {"config": {"architecture": name.split(".")[0], "pretrained_cfg": settings},
            "levels": 0.02,
            "pictures": [kept(transform(Image.fromarray(pattern(*picture))).numpy())
                         for picture in PICTURES]}


def of_open_clip(config: dict[str, Any]) -> dict[str, Any]:
    does = image_transform_v2(PreprocessCfg(**config), is_train=False)
    return {"config": config, "levels": 0.02,
            "pictures": [kept(does(Image.fromarray(pattern(*picture))).numpy())
                         for picture in PICTURES]}


def of_torchvision(name: str) -> dict[str, Any]:
    does = torchvision.models.get_weight(name).transforms()
    return {"config": {"weights": name}, "levels": 0.02,
            "pictures": [kept(does(Image.fromarray(pattern(*picture))).numpy())
                         for picture in PICTURES]}


def main() -> None:
    made = [of_transformers(*one, "Pil") for one in PILLOW]
    made += [of_transformers(*one, "") for one in TORCHVISION]
    made += [of_transformers(*one, "Pil", old=True) for one in OLD]
    made += [of_timm(name) for name in TIMM]
    made += [of_torchvision(name) for name in WEIGHTS]
    made += [of_open_clip(config) for config in OPEN_CLIP]
    DATA.parent.mkdir(exist_ok=True)
    cases = ",\n".join(json.dumps(case) for case in made)
    DATA.write_text(f'{{"pictures": {json.dumps(PICTURES)}, "cases": [\n{cases}]}}\n')


if __name__ == "__main__":
    main()
