"""Picture -> input tensor with Pillow, OpenCV and NumPy: the reference that run_model must equal.

Geometry (sizes are width x height):
  crop       torchvision's Resize and CenterCrop: the short side becomes `resize` and the long one
             int(resize * long / short); the crop starts at int(round((size - crop) / 2.0)), with
             Python's rounding of halves to even.
  squash     straight to the size of the input.
  squash-crop  both sides become `resize`; the crop starts as that of `crop`.  With the rounding
             `down` both start at (size - crop) // 2, as in transformers' image processors.
  letterbox  r = min(W / w, H / h); the picture becomes round(w * r) x round(h * r) (halves to
             even, at least 1) and starts at int((W - width) / 2), int((H - height) / 2); the
             border is filled with `pad`.  With the position `start` the picture starts at 0, 0;
             with the rounding `down` its sides are cut off, and not rounded: both as YOLOX.
  pad        filled with `pad` up to the input's proportions, half of it (rounded down) before the
             picture, then resized to the input: imgaug's PadToAspectRatio, as YOEO has it.

The resizer cv2-warp rounds no sizes: the fit makes a region of the picture, in fractions of a
pixel, smaller or larger, and OpenCV's warpPerspective takes the region's corners to the input's, as
MediaPipe's ImageToTensorCalculator does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from run_model_tools.errors import BAD_PICTURE, MISMATCH, ToolError
from run_model_tools.pictures.preprocessing import CROPS, EDGE, LAYOUTS, Preprocessing
from run_model_tools.source_model import Scale

# Pictures with 8 bits a channel, which convert("RGB") takes without loss; alpha is dropped.
_MODES = ("1", "L", "LA", "P", "RGB", "RGBA")
# Grey of 16 bits, of which the upper eight count, as of colours with 16.
_DEEP_MODES = ("I;16", "I;16B", "I;16L")

LEAST_LEVELS = 8
"""Of the 256 values of a pixel: with fewer, rounding to whole numbers leaves no picture."""


@dataclass(frozen=True)
class Prepared:
    """The tensor, and the steps on the way that a report shows; sizes are (width, height)."""

    tensor: np.ndarray
    original_size: tuple[int, int]
    resized_size: tuple[int, int]


def load_picture(path: Path) -> np.ndarray:
    """A picture as uint8 [height, width, 3] in RGB order, turned upright by its EXIF tag.

    Grey becomes three equal channels; alpha is dropped without blending.
    """
    try:
        with Image.open(path) as image:
            if image.mode in _DEEP_MODES:
                grey = np.asarray(ImageOps.exif_transpose(image)).astype(np.uint16) >> 8
                return np.repeat(grey.astype(np.uint8)[..., None], 3, axis=2)
            if image.mode not in _MODES:
                raise ToolError(BAD_PICTURE, f"{path} is a picture of mode {image.mode}, where "
                                             f"one of {', '.join(_MODES)} is expected.")
            return np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise ToolError(BAD_PICTURE, f"{path} cannot be read as a picture: {error}.") from None


def resize(image: np.ndarray, width: int, height: int, resizer: str) -> np.ndarray:
    """uint8 [h, w, 3] -> uint8 [height, width, 3] by one of the named resizers.

    `nearest` takes pixel floor(i * in / out), counted in whole numbers, and pil-nearest the one
    under the middle of the new one.  pil-bilinear, pil-bicubic and pil13- are
    Pillow's up to release 12 and from 13 on, whichever is installed: along one axis they agree,
    and they differ in which axis comes first.
    """
    old_height, old_width = image.shape[:2]
    if resizer == "nearest":
        rows = np.arange(height) * old_height // height
        columns = np.arange(width) * old_width // width
        return image[rows[:, None], columns[None, :]]
    if resizer == "cv2-linear":
        return cv2.resize(image, (width, height), interpolation=cv2.INTER_LINEAR)
    if resizer == "cv2-warp":
        return warp(image, whole_region(image), (width, height), EDGE)
    release, filter_name = resizer.split("-")
    how = Image.Resampling[filter_name.upper()]
    lost = old_height - height
    vertical_first = release == "pil13" and lost > max(0, 2 * (old_width - width))
    between = (old_width, height) if vertical_first else (width, old_height)
    return np.asarray(Image.fromarray(image).resize(between, how).resize((width, height), how))


@dataclass(frozen=True)
class Region:
    """A rectangle of the picture, turned clockwise about its centre by `angle` degrees."""

    x: float
    y: float
    width: float
    height: float
    angle: float = 0.0


def whole_region(image: np.ndarray) -> Region:
    return Region(0.0, 0.0, image.shape[1], image.shape[0])


def warp(image: np.ndarray, region: Region, size: tuple[int, int], outside: int | str | None,
         ) -> np.ndarray:
    """The region as uint8 [H, W, 3] of `size`; outside the picture a grey value, or its edge."""
    width, height = size
    box = ((region.x + region.width / 2, region.y + region.height / 2),
           (region.width, region.height), region.angle)
    corners = np.array([[0, height], [0, 0], [width, 0], [width, height]], np.float32)
    matrix = cv2.getPerspectiveTransform(cv2.boxPoints(box), corners)
    if outside == EDGE:
        return cv2.warpPerspective(image, matrix, size, flags=cv2.INTER_LINEAR,
                                   borderMode=cv2.BORDER_REPLICATE)
    assert isinstance(outside, int)
    return cv2.warpPerspective(image, matrix, size, flags=cv2.INTER_LINEAR,
                               borderMode=cv2.BORDER_CONSTANT, borderValue=(outside,) * 3)


def fitted_region(region: Region, spec: Preprocessing, size: tuple[int, int]) -> Region:
    """What the resizer cv2-warp takes for a fit of `region`, about the same centre."""
    width, height = region.width, region.height
    if spec.fit == "crop":
        assert spec.resize is not None
        scale = spec.resize / min(width, height)
        width, height = size[0] / scale, size[1] / scale
    elif spec.fit in ("letterbox", "pad"):
        # MediaPipe counts in single precision.
        aspect = np.float32(size[1]) / np.float32(size[0])
        if aspect > np.float32(height) / np.float32(width):
            height = float(np.float32(width) * aspect)
        else:
            width = float(np.float32(height) / aspect)
    if spec.fit == "letterbox" and spec.position == "start":
        return Region(region.x, region.y, width, height, region.angle)
    return Region(region.x - (width - region.width) / 2, region.y - (height - region.height) / 2,
                  width, height, region.angle)


def short_side_size(width: int, height: int, short: int) -> tuple[int, int]:
    """(width, height) after the short side has become `short`, as torchvision counts it."""
    if width <= height:
        return short, int(short * height / width)
    return int(short * width / height), short


def letterbox_size(width: int, height: int, to: tuple[int, int],
                   rounding: str | None = None) -> tuple[int, int]:
    """(width, height) of a picture scaled to fit into `to` (width, height)."""
    ratio = min(to[0] / width, to[1] / height)
    whole = math.floor if rounding == "down" else round
    return max(1, whole(width * ratio)), max(1, whole(height * ratio))


def letterbox_start(resized: tuple[int, int], to: tuple[int, int],
                    position: str | None) -> tuple[int, int]:
    """(left, top): where the resized picture lies in `to`."""
    if position == "start":
        return 0, 0
    return int((to[0] - resized[0]) / 2), int((to[1] - resized[1]) / 2)


def aspect_padding(width: int, height: int, to: tuple[int, int]) -> tuple[int, int, int, int]:
    """(left, top, right, bottom) that bring a picture to the proportions of `to`."""
    aspect = to[0] / to[1]
    if width / height < aspect:
        missing = aspect * height - width
        return math.floor(missing / 2), 0, math.ceil(missing / 2), 0
    missing = 1 / aspect * width - height if width / height > aspect else 0.0
    return 0, math.floor(missing / 2), 0, math.ceil(missing / 2)


def fit_picture(image: np.ndarray, spec: Preprocessing,
                size: tuple[int, int]) -> tuple[np.ndarray, tuple[int, int]]:
    """(uint8 [H, W, 3] of exactly `size` = (W, H), size after the resize)."""
    old_height, old_width = image.shape[:2]
    width, height = size
    if spec.resizer == "cv2-warp":
        seen = fitted_region(whole_region(image), spec, size)
        return (warp(image, seen, size, EDGE if spec.pad is None else spec.pad),
                (round(old_width * width / seen.width), round(old_height * height / seen.height)))
    if spec.fit == "squash":
        return resize(image, width, height, spec.resizer), size
    if spec.fit == "pad":
        assert isinstance(spec.pad, int)
        left, top, right, bottom = aspect_padding(old_width, old_height, size)
        padded = np.pad(image, ((top, bottom), (left, right), (0, 0)), constant_values=spec.pad)
        return resize(padded, width, height, spec.resizer), size
    if spec.fit == "letterbox":
        new_width, new_height = letterbox_size(old_width, old_height, size, spec.rounding)
        assert isinstance(spec.pad, int)
        canvas = np.full((height, width, 3), spec.pad, np.uint8)
        left, top = letterbox_start((new_width, new_height), size, spec.position)
        canvas[top:top + new_height, left:left + new_width] = resize(
            image, new_width, new_height, spec.resizer)
        return canvas, (new_width, new_height)
    assert spec.resize is not None and spec.crop is not None  # the fit is one of CROPS
    new_width, new_height = (short_side_size(old_width, old_height, spec.resize)
                             if spec.fit == "crop" else (spec.resize, spec.resize))
    resized = resize(image, new_width, new_height, spec.resizer)
    whole = math.floor if spec.rounding == "down" else round
    top = whole((new_height - spec.crop) / 2.0)
    left = whole((new_width - spec.crop) / 2.0)
    return resized[top:top + spec.crop, left:left + spec.crop], (new_width, new_height)


def normalise(image: np.ndarray, spec: Preprocessing, dtype: Any) -> np.ndarray:
    """uint8 RGB [H, W, 3] -> `dtype` [H, W, 3] in the network's channel order.

    For uint8 and int8 the value is rounded, halves to even, and clamped to the type's range.
    """
    ordered = image[:, :, ::-1] if spec.color_order == "BGR" else image
    x = ordered.astype(np.float32) / np.float32(spec.divide_by)
    x = (x - np.array(spec.mean, np.float32)) / np.array(spec.std, np.float32)
    if np.issubdtype(dtype, np.integer):
        limits = np.iinfo(dtype)
        return np.clip(np.rint(x), limits.min, limits.max).astype(dtype)
    return x.astype(dtype)


def check_crop(spec: Preprocessing, shape: tuple[int, ...], layout: str) -> None:
    """Raises ToolError (6) where the input, whose axes `layout` names, has other sides than the
    crop; sides that are open (-1) or that it does not have fit any."""
    sides = [extent for axis, extent in zip(layout, shape) if axis in "WH" and extent > 0]
    if spec.fit in CROPS and any(side != spec.crop for side in sides):
        # In the proportion of 256 to 224, as run_model has it where nothing is stated.
        crop = (f"--resize {sides[0] * 8 // 7} --crop {sides[0]}, " if len(set(sides)) == 1 else "")
        raise ToolError(MISMATCH, f"an input of shape {list(shape)} ({layout}) does not take a "
                                  f"picture cropped to {spec.crop}x{spec.crop}: {crop}--fit squash "
                                  "or --fit letterbox makes one of its size.")


def check_levels(spec: Preprocessing, dtype: Any, scale: Scale | None = None) -> None:
    """Raises ToolError (6) where next to nothing of a picture is left in an input of whole numbers,
    since what is stated is for the numbers that they stand for, by `scale` where it is known."""
    if not np.issubdtype(dtype, np.integer):
        return
    ramp = np.repeat(np.arange(256, dtype=np.uint8)[None, :, None], 3, axis=2)
    levels = min(len(np.unique(channel)) for channel in normalise(ramp, spec, dtype)[0].T)
    if levels >= LEAST_LEVELS:
        return
    stored = ""
    if scale is not None:
        mean = [m - scale.zero_point * scale.scale * s for m, s in zip(spec.mean, spec.std)]
        flags = [f"{number:.6g}" for number in (*mean, *(s * scale.scale for s in spec.std))]
        stored = (" (by its scale and zero point: "
                  f"--mean {' '.join(flags[:3])} --std {' '.join(flags[3:])})")
    raise ToolError(MISMATCH, f"the preprocessing leaves {levels} of the 256 values of a pixel in "
                              f"an input of {np.dtype(dtype)}: state mean and deviation for the "
                              f"numbers that it stores{stored}, and not for those that they stand "
                              "for.")


def preprocess(image: np.ndarray, spec: Preprocessing, shape: tuple[int, ...], dtype: str,
               layout: str) -> Prepared:
    """A picture as the network's input tensor.

    Args:
      image: uint8 [height, width, 3], RGB.
      spec: what to do.
      shape, dtype, layout: of the input; one picture, one of LAYOUTS.
    Raises:
      ToolError (6): if such an input takes no picture, the crop is not its size, or next to
        nothing of a picture would be left.
    """
    if len(shape) != len(layout) or layout not in LAYOUTS:
        raise ToolError(MISMATCH, f"an input of shape {list(shape)} and layout {layout} takes no "
                                  f"picture: the axes of one of {', '.join(LAYOUTS)} are expected.")
    extents = {"N": 1, **dict(zip(layout, shape))}
    size = extents["W"], extents["H"]
    if (extents["N"], extents["C"]) != (1, 3):
        raise ToolError(MISMATCH, f"an input of shape {list(shape)} ({layout}) does not take one "
                                  "picture of 3 channels.")
    check_crop(spec, shape, layout)
    check_levels(spec, np.dtype(dtype))
    fitted, resized_size = fit_picture(image, spec, size)
    tensor = normalise(fitted, spec, np.dtype(dtype))
    if layout.endswith("CHW"):
        tensor = tensor.transpose(2, 0, 1)
    return Prepared(np.ascontiguousarray(tensor).reshape(shape), (image.shape[1], image.shape[0]),
                    resized_size)
