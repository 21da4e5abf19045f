"""preprocessor_config.json of Hugging Face: what the image processors of transformers do to a
picture, as preprocessing.

What they do is read from transformers 5 (src/transformers/models/*/image_processing_*.py), whose
torchvision backend resizes bytes as Pillow does, to one level.  What has no equal here is refused.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from run_model_tools.pictures.preprocessing import Preprocessing, from_json
from run_model_tools.published import no_equal, share

Size = tuple[int, int]
"""Height and width."""
FILE = "preprocessor_config.json"
# What transformers 5 writes of a network for pictures and texts, with the former inside.
PROCESSOR_FILE, _INSIDE = "processor_config.json", "image_processor"

_BILINEAR, _BICUBIC = 2, 3
# By the numbers of PIL.Image.Resampling.
_RESIZERS = {0: "pil-nearest", _BILINEAR: "pil-bilinear", _BICUBIC: "pil-bicubic"}
# Of pictures that became floats before.
_NOT_ANTIALIASED = {_BILINEAR: "cv2-linear"}
_OTHER_FILTERS = {1: "Lanczos", 4: "box", 5: "Hamming"}


@dataclass(frozen=True)
class _Kind:
    """What goes without saying in the file of an image processor."""

    resample: int
    crops: bool = False
    one_size_is_both_sides: bool = True
    """What a size of one number means, in files of transformers before 4.25: both sides, or the
    short one."""
    normalizes: bool = True
    antialiases: bool = True


_DETECTOR = _Kind(_BILINEAR, one_size_is_both_sides=False)
# transformers.js's own, of networks that transformers has none for (image_processors_utils.js).
_BROWSERS = _Kind(_BILINEAR, one_size_is_both_sides=False, normalizes=False)
_SHORT_SIDE = _Kind(_BICUBIC, crops=True, one_size_is_both_sides=False)
_MOBILE_NET = _Kind(_BILINEAR, crops=True, one_size_is_both_sides=False)
_BOTH_SIDES = _Kind(_BICUBIC)
_KINDS = {
    "Beit": _BOTH_SIDES, "Bit": _SHORT_SIDE, "Blip": _BOTH_SIDES, "ChineseCLIP": _SHORT_SIDE,
    "CLIP": _SHORT_SIDE, "ConditionalDetr": _DETECTOR,
    "ConvNext": _Kind(_BICUBIC, one_size_is_both_sides=False), "DeformableDetr": _DETECTOR,
    "DeiT": _Kind(_BICUBIC, crops=True), "DepthPro": _Kind(_BILINEAR, antialiases=False),
    "Detr": _DETECTOR, "DINOv3ViT": _Kind(_BILINEAR), "DPT": _BOTH_SIDES, "EfficientNet": _Kind(0),
    "Image": _BROWSERS, "LayoutLMv3": _Kind(_BILINEAR), "Levit": _SHORT_SIDE,
    "MobileNetV1": _MOBILE_NET, "MobileNetV2": _MOBILE_NET, "MobileViT": _MOBILE_NET,
    "OwlViT": _BOTH_SIDES, "PoolFormer": _SHORT_SIDE, "Pvt": _Kind(_BILINEAR),
    "RfDetr": _Kind(_BILINEAR, one_size_is_both_sides=False, antialiases=False),
    "RTDetr": _Kind(_BILINEAR, normalizes=False), "Sam2": _Kind(_BILINEAR),
    "Segformer": _Kind(_BILINEAR), "Siglip": _BOTH_SIDES,
    "Tipsv2": _Kind(_BILINEAR, normalizes=False), "ViT": _Kind(_BILINEAR), "Yolos": _DETECTOR}
_YOLOS_MULTIPLE = 16
_SUFFIXES = ("ImageProcessorFast", "ImageProcessorPil", "ImageProcessor", "FeatureExtractor")


def inside(value: Any) -> Any:
    """What a JSON object says of pictures."""
    return value[_INSIDE] if isinstance(value, dict) and _INSIDE in value else value


def is_image_processor(value: Any) -> bool:
    """Whether a JSON object is such a file."""
    return isinstance(value, dict) and ("image_processor_type" in value
                                        or "feature_extractor_type" in value)


def preprocessing_of(value: dict[str, Any], what: str, size: Size | None = None,
                     notes: list[str] | None = None) -> Preprocessing:
    """Raises ToolError (4) naming `what`, where it is not one of the processors known here, or says
    what has no equal here.

    size: of the network's input, where it is known.  Processors that keep a picture's proportions
      are taken where they make this size of a picture of such proportions; others are squashed to
      it then, which `notes` is told.
    """
    return _Processor(value, what, size, [] if notes is None else notes).preprocessing()


class _Processor:
    def __init__(self, value: dict[str, Any], what: str, network: Size | None,
                 notes: list[str]) -> None:
        self._value, self._what, self._network, self._notes = value, what, network, notes
        self._type = str(value.get("image_processor_type") or value.get("feature_extractor_type"))
        self._name = next((self._type.removesuffix(end) for end in _SUFFIXES
                           if self._type.endswith(end)), self._type)
        if self._name not in _KINDS:
            self._refuse(f"is of {self._type}, which is not one of {', '.join(_KINDS)}")
        self._kind = _KINDS[self._name]

    def preprocessing(self) -> Preprocessing:
        for name in ("do_thumbnail", "do_align_long_axis", "do_crop_margin"):
            if self._value.get(name):
                self._refuse(f"has {name}, by which what is seen of a picture follows from it")
        if not self._says("do_resize"):
            self._refuse("does not resize pictures, which have to be of the network's size then")
        return from_json({**self._geometry(), **self._numbers(), "resizer": self._resizer()},
                         self._what)

    def _refuse(self, problem: str) -> NoReturn:
        raise no_equal(self._what, problem)

    def _says(self, name: str, usual: bool = True) -> bool:
        found = self._value.get(name)
        return usual if found is None else bool(found)

    def _resizer(self) -> str:
        number = self._value.get("resample")
        if number is None:
            number = self._kind.resample
        known = _RESIZERS if self._kind.antialiases else _NOT_ANTIALIASED
        if not isinstance(number, int) or number not in known:
            other = _OTHER_FILTERS.get(number) if isinstance(number, int) else None
            self._refuse(f"resizes by the filter {other or repr(number)}, and there are "
                         f"{', '.join(known.values())}")
        return known[number]

    # Where the input lies in the picture.

    def _geometry(self) -> dict[str, Any]:
        size = self._size("size", self._kind.one_size_is_both_sides)
        crops = self._says("do_center_crop", self._kind.crops)
        padded = self._value.get("pad_size")
        if self._says("do_pad", False) and padded not in (None, size):
            self._refuse(f"pads pictures to {padded}")
        if "shortest_edge" in size:
            return self._of_short_side(size, crops)
        if self._value.get("keep_aspect_ratio"):
            if crops:
                self._refuse("has keep_aspect_ratio and crops")
            return self._in_proportion(functools.partial(self._scaled_least, size))
        if not crops or self._crop() == size:
            return {"fit": "squash"}
        side = self._side(size, "size")
        if self._name == "PoolFormer":
            return self._cropped("crop", self._enlarged(side))
        return self._cropped("squash-crop", side)

    def _of_short_side(self, size: dict[str, int], crops: bool) -> dict[str, Any]:
        side, most = size["shortest_edge"], size.get("longest_edge")
        if self._name == "ConvNext" and most is None:
            # From 384 on pictures are squashed, and below cropped.
            if side >= 384:
                return {"fit": "squash"}
            return {"fit": "crop", "resize": self._enlarged(side), "crop": side,
                    "rounding": "down"}
        if not crops:
            return self._in_proportion(functools.partial(self._bounded, side, most))
        if most is not None:
            self._refuse("bounds the long side of a picture, and crops")
        if self._name == "Levit":
            side = int(256 / 224 * side)
        if self._name == "PoolFormer":
            side = self._enlarged(side)
        return self._cropped("crop", side)

    def _in_proportion(self, becomes: Callable[[Size], Size]) -> dict[str, Any]:
        """Of what keeps the proportions of a picture; `becomes`: its size as (height, width)."""
        if self._network is None:
            self._refuse("keeps the proportions of a picture, so that the size of its input "
                         "follows the picture's, and the network's is open")
        height, width = self._network
        made = becomes(self._network)
        if made != self._network:
            self._refuse(f"keeps the proportions of a picture, makes those of {width}x{height} "
                         f"{made[1]}x{made[0]}, and the network's input is {width}x{height}")
        self._notes.append(f"pictures are squashed to {width}x{height}, where {self._what} keeps "
                           "their proportions")
        return {"fit": "squash"}

    def _bounded(self, side: int, most: int | None, size: Size) -> Size:
        """The short side becomes `side`, or else the long one `most`."""
        short, long = sorted(size)
        exact: float = side
        if most is not None and long / short * side > most:
            exact = most * short / long
        sides = {short: round(exact), long: long if short == round(exact)
                 else int(exact * long / short)}
        multiple = self._multiple()
        return (sides[size[0]] // multiple * multiple, sides[size[1]] // multiple * multiple)

    def _scaled_least(self, to: dict[str, int], size: Size) -> Size:
        """One side becomes what is wanted, that which changes less, and both are multiples."""
        scale = min((to["height"] / size[0], to["width"] / size[1]), key=lambda x: abs(1 - x))
        multiple = self._multiple()
        return (round(scale * size[0] / multiple) * multiple,
                round(scale * size[1] / multiple) * multiple)

    def _multiple(self) -> int:
        """What sides that follow a picture's are whole multiples of."""
        if self._name == "Yolos":
            return _YOLOS_MULTIPLE
        found = [self._value[name] for name in ("ensure_multiple_of", "size_divisor",
                                                "size_divisibility")
                 if self._value.get(name) is not None]
        if not all(type(number) is int and 1 <= number <= 65535 for number in found):
            self._refuse(f"has sides that are multiples of {found}, where whole numbers are "
                         "expected")
        return math.lcm(*found)

    def _cropped(self, fit: str, resize: int) -> dict[str, Any]:
        return {"fit": fit, "resize": resize, "crop": self._side(self._crop(), "crop_size"),
                "rounding": "down"}

    def _crop(self) -> dict[str, int]:
        return self._size("crop_size", True)

    def _enlarged(self, side: int) -> int:
        kept = self._value.get("crop_pct", 0.875 if self._name == "ConvNext" else 0.9)
        return side if kept is None else int(side / share(self._what, "crop_pct", kept))

    def _size(self, name: str, both_sides: bool) -> dict[str, int]:
        found = self._value.get(name)
        if isinstance(found, int):
            most = found if self._kind is _BROWSERS else None
            found = {"height": found, "width": found} if both_sides else {
                "shortest_edge": found, "longest_edge": self._value.get("max_size") or most}
        if isinstance(found, list) and len(found) == 2:
            found = {"width": found[0], "height": found[1]}
        found = {key: side for key, side in found.items()
                 if side is not None} if isinstance(found, dict) else {}
        known = [{"height", "width"}, {"shortest_edge"}, {"shortest_edge", "longest_edge"}]
        if set(found) not in known or not all(
                isinstance(side, int) and 1 <= side <= 65535 for side in found.values()):
            self._refuse(f"has a {name} of {self._value.get(name)!r}, where height and width, or "
                         "shortest_edge, are expected")
        return found

    def _side(self, size: dict[str, int], name: str) -> int:
        if len(set(size.values())) != 1:
            self._refuse(f"has a {name} that is no square")
        return next(iter(size.values()))

    # What becomes of the numbers.

    def _numbers(self) -> dict[str, Any]:
        mean, std, divide_by = [0.0] * 3, [1.0] * 3, 1.0
        if self._says("do_rescale"):
            divide_by = self._divisor()
        if self._says("do_normalize", self._kind.normalizes) and self._name != "MobileViT":
            mean, std = self._triple("image_mean"), self._triple("image_std")
        if self._name == "EfficientNet":
            if self._says("rescale_offset", False):
                mean = [1.0 + number for number in mean]
            if self._says("include_top"):
                std = [a * b for a, b in zip(std, self._triple("image_std"))]
        flips = self._says("do_flip_channel_order", self._name == "MobileViT")
        if flips and self._name != "MobileViT":
            self._refuse("has do_flip_channel_order, which is known of MobileViT only")
        return {"color_order": "BGR" if flips else "RGB", "divide_by": divide_by, "mean": mean,
                "std": std}

    def _divisor(self) -> float:
        factor = self._value.get("rescale_factor")
        if factor is None:
            return 255.0
        if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not (
                1e-9 < factor < 1e9):
            self._refuse(f"has a rescale_factor of {factor!r}, where a number above 0 is expected")
        divisor = 1 / factor
        # 0.00392156862745098 is a 255th.
        return float(round(divisor)) if abs(divisor - round(divisor)) < 1e-6 else divisor

    def _triple(self, name: str) -> list[float]:
        found = self._value.get(name)
        if isinstance(found, (int, float)) and not isinstance(found, bool):
            return [float(found)] * 3
        if not isinstance(found, list) or not all(
                isinstance(item, (int, float)) and not isinstance(item, bool) for item in found):
            self._refuse(f"has an {name} of {found!r}, where three numbers are expected")
        return [float(item) for item in found]
