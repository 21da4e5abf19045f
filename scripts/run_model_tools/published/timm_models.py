"""config.json of timm's networks: what timm.data.create_transform does to a picture for evaluation
(transforms_imagenet_eval in timm/data/transforms_factory.py), as preprocessing."""

from __future__ import annotations

import math
from typing import Any

from run_model_tools.pictures.preprocessing import PRESETS, Preprocessing, from_json
from run_model_tools.published import no_equal, share

_RESIZERS = {"bilinear": "pil-bilinear", "bicubic": "pil-bicubic"}
# What goes without saying (resolve_data_config in timm/data/config.py).
_USUAL = {"interpolation": "bicubic", "crop_pct": 0.875, "crop_mode": "center",
          "mean": list(PRESETS["imagenet"].mean), "std": list(PRESETS["imagenet"].std)}


def is_timm(value: Any) -> bool:
    """Whether a JSON object is such a file."""
    return isinstance(value, dict) and isinstance(value.get("pretrained_cfg"), dict)


def preprocessing_of(value: dict[str, Any], what: str, side: int | None = None) -> Preprocessing:
    """Raises ToolError (4) naming `what` where it says what has no equal here.

    side: of the network's square input, where it is known; networks may be exported for another
      one than they were trained for, and timm crops in proportion.
    """
    given = {**_USUAL, **{key: one for key, one in value["pretrained_cfg"].items()
                          if one is not None}}

    def square(name: str) -> int:
        size = given.get(name)
        if not isinstance(size, list) or len(size) != 3 or size[0] != 3 or size[1] != size[2] or (
                not isinstance(size[1], int) or not 1 <= size[1] <= 65535):
            raise no_equal(what, f"has an {name} of {size!r}, where [3, N, N] is expected")
        return size[1]

    kept = share(what, "crop_pct", given["crop_pct"])
    if side is not None and given.get("test_input_size") and side != square("input_size") and (
            side == square("test_input_size")):
        kept = share(what, "test_crop_pct", given.get("test_crop_pct", kept))
    crop = side or square("input_size")
    filter_, mode = str(given["interpolation"]), str(given["crop_mode"])
    if filter_ not in _RESIZERS:
        raise no_equal(what, f"resizes by {filter_!r}, and there are {' and '.join(_RESIZERS)}")
    resize = math.floor(crop / kept)
    fits = {"center": {"fit": "crop", "resize": resize, "crop": crop},
            "squash": {"fit": "squash-crop", "resize": resize, "crop": crop}}
    if mode not in fits:
        raise no_equal(what, f"has the crop_mode {mode!r}, and there are {' and '.join(fits)}")
    fit = {"fit": "squash"} if mode == "squash" and resize == crop else fits[mode]
    return from_json({"resizer": _RESIZERS[filter_], **fit, "color_order": "RGB",
                      "divide_by": 255.0, "mean": given["mean"], "std": given["std"]}, what)
