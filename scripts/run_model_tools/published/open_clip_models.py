"""preprocess_cfg.json and open_clip_config.json: what open_clip does to a picture
(image_transform() in open_clip/transform.py), as preprocessing."""

from __future__ import annotations

from typing import Any

from run_model_tools.pictures.preprocessing import Preprocessing, from_json
from run_model_tools.published import no_equal

FILES = ("preprocess_cfg.json", "open_clip_config.json")

_RESIZERS = {"bicubic": "pil-bicubic", "random": "pil-bicubic", "bilinear": "pil-bilinear"}
_MODES = ("shortest", "longest", "squash")
# What goes without saying (PreprocessCfg in open_clip/transform.py, OPENAI_DATASET_MEAN).
_USUAL = {"interpolation": "bicubic", "resize_mode": "shortest", "fill_color": 0,
          "mean": [0.48145466, 0.4578275, 0.40821073], "std": [0.26862954, 0.26130258, 0.27577711]}


def _said(value: dict[str, Any]) -> dict[str, Any]:
    inner = value.get("preprocess_cfg")
    return inner if isinstance(inner, dict) else value


def is_open_clip(value: Any) -> bool:
    """Whether a JSON object is such a file."""
    return isinstance(value, dict) and ("resize_mode" in _said(value) or "preprocess_cfg" in value)


def preprocessing_of(value: dict[str, Any], what: str, side: int | None = None) -> Preprocessing:
    """Raises ToolError (4) naming `what` where it says what has no equal here.

    side: of the network's square input, where it is known.
    """
    given = {**_USUAL, **{key: one for key, one in _said(value).items() if one is not None}}
    filter_, mode = str(given["interpolation"]), str(given["resize_mode"])
    if filter_ not in _RESIZERS:
        raise no_equal(what, f"resizes by {filter_!r}, and there are {', '.join(_RESIZERS)}")
    if mode not in _MODES:
        raise no_equal(what, f"has the resize_mode {mode!r}, and there are {', '.join(_MODES)}")
    fit: dict[str, Any] = {"fit": "squash"}
    if mode == "longest":
        fit = {"fit": "letterbox", "pad": given["fill_color"]}
    elif mode == "shortest":
        crop = _side(given.get("size", side), what)
        fit = {"fit": "crop", "resize": crop, "crop": crop}
    return from_json({"resizer": _RESIZERS[filter_], **fit, "color_order": "RGB",
                      "divide_by": 255.0,
                      **{name: [given[name]] * 3 if isinstance(given[name], (int, float))
                         else given[name] for name in ("mean", "std")}}, what)


def _side(found: Any, what: str) -> int:
    sides = found if isinstance(found, list) else [found]
    if len(set(map(str, sides))) != 1 or not isinstance(sides[0], int):
        raise no_equal(what, f"has a size of {found!r}, where that of a square is expected")
    return sides[0]
