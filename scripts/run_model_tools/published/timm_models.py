"""config.json of timm's networks: what timm.data.create_transform does to a picture for evaluation
(transforms_imagenet_eval in timm/data/transforms_factory.py), as preprocessing."""

from __future__ import annotations

import math
from typing import Any, NoReturn

from run_model_tools.errors import MALFORMED_FILE, ToolError
from run_model_tools.pictures.preprocessing import PRESETS, Preprocessing, from_json

_RESIZERS = {"bilinear": "pil-bilinear", "bicubic": "pil-bicubic"}
# What goes without saying (resolve_data_config in timm/data/config.py).
_USUAL = {"interpolation": "bicubic", "crop_pct": 0.875, "crop_mode": "center",
          "mean": PRESETS["imagenet"].mean, "std": PRESETS["imagenet"].std}


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

    def refuse(problem: str) -> NoReturn:
        raise ToolError(MALFORMED_FILE, f"{what} {problem}: say by --preprocessing what is done to "
                                        "pictures, with --fit, --resizer and the others.")

    def number(name: str) -> float:
        found = given.get(name)
        if isinstance(found, bool) or not isinstance(found, (int, float)) or not 0.01 < found <= 1:
            refuse(f"has a {name} of {found!r}, where a number up to 1 is expected")
        return found

    def square(name: str) -> int:
        size = given.get(name)
        if not isinstance(size, list) or len(size) != 3 or size[0] != 3 or size[1] != size[2] or (
                not isinstance(size[1], int) or not 1 <= size[1] <= 65535):
            refuse(f"has an {name} of {size!r}, where [3, N, N] is expected")
        return size[1]

    share = number("crop_pct")
    if side is not None and given.get("test_input_size") and side != square("input_size") and (
            side == square("test_input_size")):
        share = number("test_crop_pct") if "test_crop_pct" in given else share
    crop = side or square("input_size")
    filter_, mode = str(given["interpolation"]), str(given["crop_mode"])
    if filter_ not in _RESIZERS:
        refuse(f"resizes by {filter_!r}, and there are {' and '.join(_RESIZERS)}")
    resize = math.floor(crop / share)
    fits = {"center": {"fit": "crop", "resize": resize, "crop": crop},
            "squash": {"fit": "squash-crop", "resize": resize, "crop": crop}}
    if mode not in fits:
        refuse(f"has the crop_mode {mode!r}, and there are {' and '.join(fits)}")
    fit = {"fit": "squash"} if mode == "squash" and resize == crop else fits[mode]
    return from_json({"resizer": _RESIZERS[filter_], **fit, "color_order": "RGB",
                      "divide_by": 255.0, "mean": _listed(given["mean"]),
                      "std": _listed(given["std"])}, what)


def _listed(numbers: Any) -> Any:
    return list(numbers) if isinstance(numbers, tuple) else numbers
