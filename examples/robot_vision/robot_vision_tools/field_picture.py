"""Synthetic pictures of a football field as a small robot sees it, with what is in them.

A seed decides a picture: the same seed and size give the same pixels. Nothing is photographed, and
nothing is meant to look real; light, colours, wear, blur, noise and what stands around the field
vary widely, so that a network cannot go by one of them.
"""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageFilter

from robot_vision_tools import scenery, things
from robot_vision_tools.camera import Camera

CLASSES = ("ball", "goalpost", "robot")
#: Classes of the mask: all that is neither grass nor a line is `other`, things on the field too.
AREAS = ("other", "line", "field")
OTHER, LINE, FIELD = range(3)

#: Half of a RoboCup field of the humanoid kid size, in metres, and the grass around it.
HALF_LENGTH, HALF_WIDTH, BORDER = 4.5, 3.0, 1.0
LINE_WIDTH = 0.05
GOAL_WIDTH = 2.6

#: A line one pixel wide covers at least half of a pixel, wherever it lies; less is left for slopes.
_LINE_FROM = 0.4
#: A thing that shows less of itself than this is no example of its class: `unclear`.
_LEAST_VISIBLE = 0.45
#: Nor is one of which less can be seen: pixels of a picture 640 wide.
_LEAST_SIDE = 7.0


@dataclass(frozen=True)
class FieldPicture:
    """boxes: x0, y0, x1, y1 in pixels, of class `classes`; unclear ones are to be left out of any
    count."""

    pixels: np.ndarray
    mask: np.ndarray
    boxes: np.ndarray
    classes: np.ndarray
    unclear: np.ndarray


def draw_picture(seed: int, width: int = 640, height: int = 480) -> FieldPicture:
    random = np.random.default_rng(seed)
    camera = _camera(random, width, height)
    x, y, distance = camera.ground()
    on_grass = ((np.abs(x) < HALF_LENGTH + BORDER) & (np.abs(y) < HALF_WIDTH + BORDER)
                & np.isfinite(distance))
    lines, is_line = _lines(np.where(on_grass, x, 99), np.where(on_grass, y, 99))
    mask = np.where(is_line, LINE, np.where(on_grass, FIELD, OTHER)).astype(np.uint8)

    canvas = scenery.surroundings(random, camera, np.isfinite(distance))
    grass = scenery.grass(random, x, y, distance, on_grass)
    paint = lines[..., None] * np.float32(random.uniform(0.6, 1.0))
    chalk = np.array(random.uniform(200, 255)) * np.array([1, 1, random.uniform(0.9, 1)])
    grass = grass * (1 - paint) + chalk.astype(np.float32) * paint
    canvas = np.where(on_grass[..., None], grass, canvas)
    canvas *= scenery.light(random, width, height)[..., None]

    painted = [thing.paint(random, camera, canvas) for thing in _things(random, camera)]
    return _finish(random, canvas, mask, [p for p in painted if p is not None])


def _camera(random: np.random.Generator, width: int, height: int) -> Camera:
    towards_goal = random.random() < 0.6
    x, y = random.uniform(-4.0, 3.0), random.uniform(-2.5, 2.5)
    if towards_goal:
        yaw = np.arctan2(random.uniform(-1.6, 1.6) - y, HALF_LENGTH - x)
    else:
        yaw = random.uniform(-np.pi, np.pi)
    focal = width / 2 / np.tan(random.uniform(0.5, 0.7))
    return Camera(width, height, focal, random.uniform(0.45, 0.95), random.uniform(0.1, 0.5),
                  random.normal(0, 0.03), yaw, x, y)


def _lines(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How much of each pixel a line covers, 0 to 1, and which pixels the mask calls a line.

    Far away a line is thinner than a pixel and only makes the grass lighter; the mask has it as
    long as it is a pixel wide. The field is the same in its four quarters. From the distance to the
    nearest line's middle, and how fast that changes from pixel to pixel, follows how much of a
    pixel lies within its width.
    """
    x, y = np.abs(x), np.abs(y)
    distance = np.minimum.reduce([
        _to_segment(x, y, HALF_LENGTH, True, HALF_WIDTH),             # goal line
        _to_segment(y, x, HALF_WIDTH, True, HALF_LENGTH),             # touch line
        _to_segment(x, y, 0.0, True, HALF_WIDTH),                     # halfway line
        np.abs(np.hypot(x, y) - 0.75),                                # centre circle
        _to_segment(x, y, HALF_LENGTH - 1.0, True, 1.5),              # goal area
        _to_segment(y, x, 1.5, False, HALF_LENGTH, HALF_LENGTH - 1.0),
        np.hypot(x - (HALF_LENGTH - 1.5), y)])                        # penalty mark
    rows, columns = np.gradient(distance)
    pixel = np.maximum(np.hypot(rows, columns), 1e-4)
    half = LINE_WIDTH / 2
    covered = (np.clip((half - distance) / pixel + 0.5, 0, 1)
               - np.clip((-half - distance) / pixel + 0.5, 0, 1))
    covered = np.where(pixel < 1.0, covered, 0).astype(np.float32)
    return covered, (covered > _LINE_FROM) & (pixel < LINE_WIDTH)


def _to_segment(across: np.ndarray, along: np.ndarray, at: float, from_zero: bool, end: float,
                start: float = 0.0) -> np.ndarray:
    beyond = np.maximum(along - end, 0)
    if not from_zero:
        beyond = np.maximum(beyond, start - along)
    return np.hypot(across - at, beyond)


def _things(random: np.random.Generator, camera: Camera) -> list[things.Thing]:
    """What stands on the field, the farthest first."""
    found: list[things.Thing] = []
    goal_height = random.uniform(1.1, 1.9)
    white = random.uniform(190, 250)
    thickness = random.uniform(0.09, 0.13)
    for end in (-1, 1):
        for side in (-1, 1):
            found.append(things.GoalPost(end * HALF_LENGTH, side * GOAL_WIDTH / 2, goal_height,
                                         thickness, white))
        found.append(things.Goal(end * (HALF_LENGTH + 0.01), 0.0, GOAL_WIDTH, goal_height,
                                 thickness, white))
    for _ in range(int(random.choice(4, p=[0.25, 0.35, 0.25, 0.15]))):
        ahead = random.uniform(0.9, 5.0)
        found.append(things.Robot(*camera.place(ahead, ahead * random.uniform(-0.6, 0.6)),
                                  random.uniform(0.5, 1.0)))
    for _ in range(int(random.choice(3, p=[0.15, 0.75, 0.1]))):
        ahead = random.uniform(0.5, 4.0)
        found.append(things.Ball(*camera.place(ahead, ahead * random.uniform(-0.55, 0.55)),
                                 random.uniform(0.07, 0.11)))
    for _ in range(int(random.integers(0, 3))):
        ahead = random.uniform(0.8, 5.0)
        found.append(things.Litter(*camera.place(ahead, ahead * random.uniform(-0.7, 0.7))))
    found.sort(key=lambda thing: -np.hypot(thing.x - camera.x, thing.y - camera.y))
    return found


def _finish(random: np.random.Generator, canvas: np.ndarray, mask: np.ndarray,
            painted: list[things.Painted]) -> FieldPicture:
    """The picture as a camera gives it, and what can be seen in it."""
    height, width = mask.shape
    owner = np.full(mask.shape, -1, np.int16)
    for index, one in enumerate(painted):
        top, left = one.corner
        part = (slice(top, top + one.cover.shape[0]), slice(left, left + one.cover.shape[1]))
        solid = one.cover > 0.5
        owner[part][solid] = index
        mask[part][solid] = OTHER
    boxes, classes, unclear = [], [], []
    least = _LEAST_SIDE * width / 640
    for index, one in enumerate(painted):
        if one.label is None:
            continue
        x0, y0, x1, y1 = one.box
        clipped = _within(one)
        if clipped[2] - clipped[0] < 2 or clipped[3] - clipped[1] < 2:
            continue
        whole = max((x1 - x0) * (y1 - y0), 1e-6)
        inside = (clipped[2] - clipped[0]) * (clipped[3] - clipped[1]) / whole
        area = max(int(np.count_nonzero(one.cover > 0.5)), 1)
        shown = np.count_nonzero(owner == index) / area
        boxes.append(clipped)
        classes.append(CLASSES.index(one.label))
        unclear.append(shown < _LEAST_VISIBLE or inside < 0.3
                       or min(clipped[2] - clipped[0], clipped[3] - clipped[1]) < least)
    return FieldPicture(_as_photographed(random, canvas), mask,
                        np.array(boxes, np.float32).reshape(-1, 4), np.array(classes, np.int64),
                        np.array(unclear, bool))


def _within(one: things.Painted) -> tuple[float, float, float, float]:
    """The box of what is inside the picture, of a thing that may be cut by its edges."""
    rows, columns = (np.flatnonzero((one.cover > 0.3).any(axis)) for axis in (1, 0))
    if not len(rows):
        return (0.0, 0.0, 0.0, 0.0)
    top, left = one.corner
    return (max(one.box[0], left + columns[0]), max(one.box[1], top + rows[0]),
            min(one.box[2], left + columns[-1] + 1), min(one.box[3], top + rows[-1] + 1))


def _as_photographed(random: np.random.Generator, canvas: np.ndarray) -> np.ndarray:
    """Exposure, white balance, blur, noise and JPEG's blocks."""
    balance = random.uniform(0.85, 1.15, 3) * random.uniform(0.55, 1.25)
    values = np.clip(canvas * balance.astype(np.float32) / 255, 0, 1) ** np.float32(
        random.uniform(0.8, 1.25))
    picture = Image.fromarray((values * 255).astype(np.uint8))
    scale = canvas.shape[1] / 640
    if random.random() < 0.5:
        picture = picture.filter(ImageFilter.GaussianBlur(random.uniform(0.3, 1.3) * scale))
    noisy = np.asarray(picture, np.float32)
    noisy = noisy + random.normal(0, random.uniform(1, 9), noisy.shape).astype(np.float32)
    pixels = np.clip(noisy, 0, 255).astype(np.uint8)
    if random.random() < 0.4:
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, "JPEG", quality=int(random.integers(55, 95)))
        pixels = np.asarray(Image.open(buffer).convert("RGB"))
    return pixels
