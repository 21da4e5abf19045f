"""Training pictures: drawn once, then cut, mirrored and recoloured anew each time."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

import numpy as np
from PIL import Image

from robot_vision_tools.field_picture import OTHER, FieldPicture, draw_picture

SIZE = 416
PAD = 114
#: The sizes at which a camera may have taken them.
_WIDTHS = (416, 480, 560, 640)


@dataclass(frozen=True)
class Lesson:
    """As the network sees a picture: uint8 [416, 416, 3], letterboxed; boxes in its pixels."""

    pixels: np.ndarray
    mask: np.ndarray
    boxes: np.ndarray
    classes: np.ndarray
    unclear: np.ndarray


def letterboxed(picture: FieldPicture) -> Lesson:
    """Pillow's bilinear, centred, as run_model prepares it; of the mask the nearest."""
    height, width = picture.mask.shape
    scale = min(SIZE / width, SIZE / height)
    inner = (round(width * scale), round(height * scale))
    left, top = (SIZE - inner[0]) // 2, (SIZE - inner[1]) // 2
    pixels = np.full((SIZE, SIZE, 3), PAD, np.uint8)
    mask = np.full((SIZE, SIZE), OTHER, np.uint8)
    part = (slice(top, top + inner[1]), slice(left, left + inner[0]))
    pixels[part] = np.asarray(Image.fromarray(picture.pixels).resize(
        inner, Image.Resampling.BILINEAR))
    mask[part] = np.asarray(Image.fromarray(picture.mask).resize(
        inner, Image.Resampling.NEAREST))
    boxes = picture.boxes * scale + np.array([left, top, left, top], np.float32)
    return Lesson(pixels, mask, boxes.astype(np.float32), picture.classes, picture.unclear)


def draw_lessons(first_seed: int, count: int) -> list[Lesson]:
    """Says how far it is, on a terminal."""
    start, lessons = time.monotonic(), []
    for index in range(count):
        width = _WIDTHS[index % len(_WIDTHS)]
        lessons.append(letterboxed(draw_picture(first_seed + index, width, width * 3 // 4)))
        if sys.stderr.isatty() and index % 20 == 0:
            sys.stderr.write(f"\rdrawn {index} of {count}, {time.monotonic() - start:.0f} s\033[K")
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K")
    return lessons


def varied(lesson: Lesson, side: int, random: np.random.Generator) -> Lesson:
    """A part of side x side pixels, in other colours, mirrored or not."""
    size = lesson.mask.shape[0]
    left, top = (int(v) for v in random.integers(0, size - side + 1, 2))
    if len(lesson.boxes) and random.random() < 0.5 and side < size:
        # Around a thing: most of a field is grass.
        box = lesson.boxes[random.integers(len(lesson.boxes))]
        left, top = (int(np.clip((box[k] + box[k + 2]) / 2 - side * random.uniform(0.2, 0.8), 0,
                                 size - side)) for k in (0, 1))
    part = (slice(top, top + side), slice(left, left + side))
    pixels, mask = lesson.pixels[part], lesson.mask[part]
    moved = lesson.boxes - np.array([left, top, left, top], np.float32)
    boxes = np.clip(moved, 0, side)
    whole = np.maximum((moved[:, 2:] - moved[:, :2]).prod(1), 1e-6)
    inside = np.maximum(boxes[:, 2:] - boxes[:, :2], 0)
    kept = inside.min(1) >= 2 if len(boxes) else np.zeros(0, bool)
    unclear = lesson.unclear | (inside.prod(1) / whole < 0.4)
    if random.random() < 0.5:
        pixels, mask = pixels[:, ::-1], mask[:, ::-1]
        boxes = boxes[:, [2, 1, 0, 3]] * np.array([-1, 1, -1, 1], np.float32) + np.array(
            [side, 0, side, 0], np.float32)
    factors = random.uniform(0.85, 1.15, 3) * random.uniform(0.75, 1.25)
    colored = np.clip(pixels * factors.astype(np.float32), 0, 255).astype(np.uint8)
    return Lesson(colored, np.ascontiguousarray(mask), boxes[kept].astype(np.float32),
                  lesson.classes[kept], unclear[kept])
