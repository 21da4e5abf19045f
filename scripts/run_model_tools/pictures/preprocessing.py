"""The description of how a picture becomes a network's input: `preprocessing` in metadata.json."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from run_model_tools.environment import DATA_ROOT
from run_model_tools.errors import MALFORMED_FILE, USAGE, ToolError
from run_model_tools.files import read_json

WEIGHTS = DATA_ROOT / "artifacts" / "torchvision_weights.json"

RESIZERS = ("nearest", "pil-bilinear", "pil-bicubic", "pil-nearest", "pil13-bilinear",
            "pil13-bicubic", "cv2-linear", "cv2-warp")
FITS = ("crop", "squash", "letterbox", "pad", "squash-crop")
CROPS = ("crop", "squash-crop")
"""The fits that take the middle of a picture resized to a given length."""
COLOR_ORDERS = ("RGB", "BGR")
LAYOUTS = ("NCHW", "NHWC", "CHW", "HWC")
DEFAULT_PAD = 114
EDGE = "edge"
POSITIONS = ("centre", "start")
ROUNDINGS = ("nearest", "down")


@dataclass(frozen=True)
class Preprocessing:
    """x[c] = (float32(pixel[c]) / divide_by - mean[c]) / std[c], each step rounded to float32.

    mean and std are in the order in which the network sees its channels (`color_order`).  resize
    (the short side) and crop, in pixels, belong to the fit `crop`, and to `squash-crop`, where
    resize is of both sides; pad, the grey value of the border, to `letterbox` and `pad`; of the
    resizer `cv2-warp` to all fits, where it may also be `edge`, the picture's own edge.  Of
    `letterbox` is position (`start`: all of the border lies behind the picture); rounding is
    `down` where a letterbox's sides that are no whole pixels are cut off, or a crop begins half a
    pixel before the middle.
    """

    resizer: str
    fit: str
    color_order: str
    divide_by: float
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    resize: int | None = None
    crop: int | None = None
    pad: int | str | None = None
    position: str | None = None
    rounding: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The object in metadata.json; what does not belong to the fit is left out."""
        fields = {key: value for key, value in asdict(self).items() if value is not None}
        order = ("resizer", "fit", "resize", "crop", "pad", "position", "rounding", "color_order",
                 "divide_by", "mean", "std")
        return {key: list(fields[key]) if key in ("mean", "std") else fields[key]
                for key in order if key in fields}


PRESETS = {
    # torchvision's classification models.
    "imagenet": Preprocessing("pil-bilinear", "crop", "RGB", 255.0, (0.485, 0.456, 0.406),
                              (0.229, 0.224, 0.225), resize=256, crop=224),
    # Networks trained with Caffe.
    "caffe": Preprocessing("pil-bilinear", "crop", "BGR", 1.0, (104.0, 117.0, 123.0),
                           (1.0, 1.0, 1.0), resize=256, crop=224),
}


def of_weights(name: str) -> Preprocessing | None:
    """Of torchvision's trained classifiers, by the name of their weights, such as
    ResNet50_Weights.IMAGENET1K_V2 or .DEFAULT; None where there are none of that name."""
    for group in read_json(WEIGHTS, 1)["groups"]:
        if name in group.pop("weights"):
            return from_json({**group, "fit": "crop", "color_order": "RGB", "divide_by": 255.0},
                             str(WEIGHTS))
    return None


def from_json(value: Any, what: str) -> Preprocessing:
    """Checks an object of metadata.json; raises ToolError (4) naming `what` and the field."""
    def refuse(field: str, expected: str) -> ToolError:
        found = value.get(field) if isinstance(value, dict) else value
        return ToolError(MALFORMED_FILE, f"{what}: preprocessing's {field} is {found!r}, where "
                                         f"{expected} is expected.")

    def choice(field: str, known: tuple[str, ...]) -> str:
        if value.get(field) not in known:
            raise refuse(field, " or ".join(known))
        return value[field]

    def number(field: str, item: Any) -> float:
        if isinstance(item, bool) or not isinstance(item, (int, float)) or not math.isfinite(item):
            raise refuse(field, "a number")
        return float(item)

    def triple(field: str) -> tuple[float, float, float]:
        items = value.get(field)
        if not isinstance(items, list) or len(items) != 3:
            raise refuse(field, "a list of three numbers")
        a, b, c = (number(field, item) for item in items)
        return a, b, c

    def whole(field: str, low: int, high: int) -> int:
        item = value.get(field)
        if isinstance(item, bool) or not isinstance(item, int) or not low <= item <= high:
            raise refuse(field, f"a whole number from {low} to {high}")
        return item

    def of_fits(field: str, known: tuple[str, ...], fits: tuple[str, ...]) -> str | None:
        """Nothing for the first of `known`, which is what goes without saying."""
        if field not in value:
            return None
        if fit not in fits:
            raise refuse(field, f"nothing but with the fit {' or '.join(fits)}")
        said = choice(field, known)
        return None if said == known[0] else said

    def pad() -> int | str | None:
        warps = value.get("resizer") == "cv2-warp"
        if warps and value.get("pad") == EDGE:
            return EDGE
        if fit not in ("letterbox", "pad") and not (warps and "pad" in value):
            return None
        return whole("pad", 0, 255) if "pad" in value else DEFAULT_PAD

    if not isinstance(value, dict):
        raise ToolError(MALFORMED_FILE, f"{what}: preprocessing is not a JSON object.")
    known = Preprocessing.__dataclass_fields__
    for field in value:
        if field not in known:
            raise ToolError(MALFORMED_FILE, f"{what}: preprocessing has the unknown field "
                                            f"'{field}'; known are {', '.join(known)}.")
    fit = choice("fit", FITS)
    result = Preprocessing(
        resizer=choice("resizer", RESIZERS), fit=fit,
        color_order=choice("color_order", COLOR_ORDERS),
        divide_by=number("divide_by", value.get("divide_by")), mean=triple("mean"),
        std=triple("std"),
        resize=whole("resize", 1, 65535) if fit in CROPS else None,
        crop=whole("crop", 1, 65535) if fit in CROPS else None,
        pad=pad(), position=of_fits("position", POSITIONS, ("letterbox",)),
        rounding=of_fits("rounding", ROUNDINGS, ("letterbox", *CROPS)))
    if result.divide_by == 0 or 0 in result.std:
        raise refuse("divide_by" if result.divide_by == 0 else "std", "something other than 0")
    if (result.crop or 0) > (result.resize or 0):
        raise refuse("crop", f"at most resize ({result.resize})")
    if fit == "squash-crop" and result.resizer == "cv2-warp":
        raise refuse("resizer", "another one with the fit squash-crop")
    return result


def read_file(path: Path) -> tuple[Preprocessing | None, str | None]:
    """(preprocessing, labels) of a file: a preprocessing object, or one that has it as a member."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise ToolError(MALFORMED_FILE, f"{path} does not hold a JSON object.")
    labels = value.get("labels")
    if "preprocessing" in value:
        value = value["preprocessing"]
        if value is None:
            return None, labels
    return from_json(value, str(path)), labels


def add_flags(parser: argparse.ArgumentParser) -> None:
    """--preprocessing and the flags that change single pieces of it."""
    group = parser.add_argument_group(
        "preprocessing", "How a picture becomes the input; written into metadata.json. Without "
        "any of these it is --task's, or taken from MODEL.model.json beside MODEL, from MODEL "
        "itself (Ultralytics) or from what Hugging Face has beside it, if that exists.")
    group.add_argument("--preprocessing", metavar="WHAT",
                       help="imagenet (torchvision's first weights), torchvision's name of others "
                            "(ResNet50_Weights.DEFAULT), caffe, none, or a JSON file, also Hugging "
                            "Face's preprocessor_config.json or timm's config.json")
    group.add_argument("--resizer", choices=RESIZERS)
    group.add_argument("--fit", choices=FITS)
    group.add_argument("--resize", type=int, metavar="N",
                       help="length of the short side; of both with --fit squash-crop")
    group.add_argument("--crop", type=int, metavar="N", help="side of the centre crop")
    group.add_argument("--pad", type=int, metavar="V", help="grey value of a letterbox's border")
    group.add_argument("--color-order", choices=COLOR_ORDERS)
    group.add_argument("--divide-by", type=float, metavar="X")
    group.add_argument("--mean", type=float, nargs=3, metavar=("C0", "C1", "C2"),
                       help="in the order in which the network sees the channels")
    group.add_argument("--std", type=float, nargs=3, metavar=("C0", "C1", "C2"))


def from_flags(args: argparse.Namespace, model: Path, default: Preprocessing | None = None,
               read: Callable[[Path], tuple[Preprocessing | None, str | None]] = read_file,
               ) -> tuple[Preprocessing | None, str | None]:
    """(preprocessing, labels) as the flags say, or else `default`, or else the file beside the
    model; `read`: what a file says."""
    sidecar = model.with_suffix(".model.json")
    labels = None
    if args.preprocessing is None and default is not None:
        base: Preprocessing | None = default
    elif args.preprocessing is None:
        base, labels = read_file(sidecar) if sidecar.exists() else (None, None)
    elif args.preprocessing == "none":
        base = None
    elif args.preprocessing in PRESETS:
        base = PRESETS[args.preprocessing]
    elif Path(args.preprocessing).exists():
        base, labels = read(Path(args.preprocessing))
    else:
        base = of_weights(args.preprocessing)
        if base is None:
            raise ToolError(USAGE, f"--preprocessing {args.preprocessing} is neither imagenet, "
                                   "caffe, none, a file nor weights of a classifier of "
                                   "torchvision, as ResNet50_Weights.IMAGENET1K_V2.")
    pieces = ("resizer", "fit", "resize", "crop", "pad", "color_order", "divide_by", "mean", "std")
    changes = {piece: getattr(args, piece) for piece in pieces if getattr(args, piece) is not None}
    if not changes:
        return base, labels
    if base is None:
        raise ToolError(USAGE, f"--{next(iter(changes)).replace('_', '-')} changes a piece of the "
                               "preprocessing, and none is stated: add --preprocessing imagenet, "
                               "caffe or FILE.")
    # Checked like a file, so that a flag cannot say what a file may not.
    return from_json(_as_lists(replace(base, **changes)), "the flags"), labels


def _as_lists(preprocessing: Preprocessing) -> dict[str, Any]:
    fields = preprocessing.to_json()
    if preprocessing.fit not in CROPS:
        fields.pop("resize", None)
        fields.pop("crop", None)
    if preprocessing.fit != "letterbox":
        fields.pop("position", None)
    if preprocessing.fit not in ("letterbox", *CROPS):
        fields.pop("rounding", None)
    if preprocessing.resizer != "cv2-warp" and preprocessing.pad == EDGE:
        fields.pop("pad")
    return fields
