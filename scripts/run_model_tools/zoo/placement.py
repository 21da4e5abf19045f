"""Where a picture lies in a network's input, for the references that find the way back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from run_model_tools.pictures.preprocess import (
    Region,
    aspect_padding,
    fitted_region,
    letterbox_size,
    letterbox_start,
    short_side_size,
)
from run_model_tools.pictures.preprocessing import Preprocessing


@dataclass(frozen=True)
class Placement:
    """Where the picture lies in the network's input: input = picture * scale + start, (x, y)."""

    picture: tuple[int, int]
    """Width and height."""
    input: tuple[int, int]
    scale: np.ndarray
    start: np.ndarray

    def to_picture(self, points: np.ndarray) -> np.ndarray:
        """[..., 2] of the input -> of the picture."""
        return (points - self.start) / self.scale


def placement_of(spec: Preprocessing, picture: tuple[int, int],
                 size: tuple[int, int]) -> Placement:
    """Sizes are (width, height); as pictures/preprocess.py fits a picture into an input."""
    if spec.resizer == "cv2-warp":
        seen = fitted_region(Region(0, 0, *picture), spec, size)
        scale = np.array(size) / np.array([seen.width, seen.height])
        return Placement(picture, size, scale, -np.array([seen.x, seen.y]) * scale)
    if spec.fit == "squash":
        resized, start = size, (0, 0)
    elif spec.fit == "pad":
        left, top, right, bottom = aspect_padding(*picture, size)
        scale = np.array(size) / np.array([picture[0] + left + right, picture[1] + top + bottom])
        return Placement(picture, size, scale, np.array([left, top]) * scale)
    elif spec.fit == "letterbox":
        resized = letterbox_size(*picture, size, spec.rounding)
        start = letterbox_start(resized, size, spec.position)
    else:
        assert spec.resize is not None and spec.crop is not None
        resized = short_side_size(*picture, spec.resize)
        start = (-int(round((resized[0] - spec.crop) / 2)),
                 -int(round((resized[1] - spec.crop) / 2)))
    return Placement(picture, size, np.array(resized, np.float64) / np.array(picture),
                     np.array(start, np.float64))
