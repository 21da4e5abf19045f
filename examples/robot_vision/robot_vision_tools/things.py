"""What stands on the field: balls, goals, robots, and what is none of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from PIL import Image, ImageDraw

from robot_vision_tools.camera import Camera

_SMOOTHING = 3
"""A thing that Pillow draws is drawn so many times as large and made smaller, for soft edges."""
_NEAREST = 0.3
"""What is nearer to the camera, in metres, is not drawn."""


@dataclass(frozen=True)
class Painted:
    """Where a thing has been painted: cover is how much of each pixel, from `corner` (row, column)
    on; box is that of the whole thing, also beyond the picture's edges; label None is no example
    of any class."""

    label: str | None
    box: tuple[float, float, float, float]
    corner: tuple[int, int]
    cover: np.ndarray


class Thing(Protocol):
    x: float
    y: float

    def paint(self, random: np.random.Generator, camera: Camera,
              canvas: np.ndarray) -> Painted | None:
        """Paints onto `canvas`, or gives None where the thing is not in the picture."""


def _blend(canvas: np.ndarray, box: tuple[float, float, float, float],
           ) -> tuple[slice, slice] | None:
    """The part of the canvas that a box touches."""
    height, width = canvas.shape[:2]
    top, bottom = max(int(np.floor(box[1])), 0), min(int(np.ceil(box[3])), height)
    left, right = max(int(np.floor(box[0])), 0), min(int(np.ceil(box[2])), width)
    return (slice(top, bottom), slice(left, right)) if top < bottom and left < right else None


def _shade_ground(canvas: np.ndarray, column: float, row: float, wide: float, tall: float,
                  strength: float) -> None:
    """A soft shadow."""
    part = _blend(canvas, (column - wide, row - tall, column + wide, row + tall))
    if part is None:
        return
    rows = (np.arange(part[0].start, part[0].stop) + 0.5 - row)[:, None] / tall
    columns = (np.arange(part[1].start, part[1].stop) + 0.5 - column)[None, :] / wide
    canvas[part] *= (1 - strength * np.clip(1 - np.hypot(rows, columns), 0, 1))[..., None]


@dataclass
class Ball:
    x: float
    y: float
    radius: float

    def paint(self, random: np.random.Generator, camera: Camera,
              canvas: np.ndarray) -> Painted | None:
        column, row, depth = camera.project(self.x, self.y, self.radius)
        if depth < _NEAREST:
            return None
        radius = camera.focal * self.radius / depth
        box = (column - radius, row - radius, column + radius, row + radius)
        part = _blend(canvas, (box[0] - 1, box[1] - 1, box[2] + 1, box[3] + 1))
        if part is None:
            return None
        _shade_ground(canvas, column + random.normal(0, 0.3) * radius, row + 0.9 * radius,
                      1.5 * radius, 0.55 * radius, random.uniform(0.3, 0.8))
        v = (np.arange(part[0].start, part[0].stop) + 0.5 - row)[:, None] / radius
        u = (np.arange(part[1].start, part[1].stop) + 0.5 - column)[None, :] / radius
        from_centre = np.hypot(u, v)
        cover = np.clip((1 - from_centre) * radius + 0.5, 0, 1).astype(np.float32)
        towards_us = np.sqrt(np.clip(1 - from_centre ** 2, 0, 1))
        normal = np.stack(np.broadcast_arrays(u, v, -towards_us), axis=-1)
        sun = random.normal(0, 0.5, 3) + (0, -1, -0.6)
        sun /= np.linalg.norm(sun)
        shading = 0.55 + 0.45 * np.clip(normal @ sun, -0.6, 1)
        color = _ball_colors(random, normal) * shading[..., None]
        canvas[part] = canvas[part] * (1 - cover[..., None]) + color * cover[..., None]
        return Painted("ball", box, (part[0].start, part[1].start), cover)


def _ball_colors(random: np.random.Generator, normal: np.ndarray) -> np.ndarray:
    """Patches around the corners of an icosahedron, as on a football, in one of many colours."""
    golden = (1 + 5 ** 0.5) / 2
    corners = np.array([[0, a, b] for a in (-1, 1) for b in (-golden, golden)])
    corners = np.concatenate([np.roll(corners, k, axis=1) for k in range(3)])
    corners /= np.linalg.norm(corners[0])
    turn, _ = np.linalg.qr(random.normal(0, 1, (3, 3)))
    nearest = (normal @ (corners @ turn).T).max(axis=-1)
    base = np.array(random.uniform(185, 250)) + random.normal(0, 6, 3)
    patch = (random.uniform(10, 70, 3) if random.random() < 0.7
             else random.uniform(20, 255, 3) * random.permutation([1.0, 0.5, 0.2]))
    share = np.clip((nearest - random.uniform(0.88, 0.95)) * 40, 0, 1)[..., None]
    return base * (1 - share) + patch * share


@dataclass
class GoalPost:
    x: float
    y: float
    height: float
    thickness: float
    white: float

    def paint(self, random: np.random.Generator, camera: Camera,
              canvas: np.ndarray) -> Painted | None:
        foot = camera.project(self.x, self.y, 0)
        head = camera.project(self.x, self.y, self.height)
        if min(foot[2], head[2]) < _NEAREST:
            return None
        return _bar(canvas, camera, foot, head, self.thickness, self.white, "goalpost")


def _bar(canvas: np.ndarray, camera: Camera, a: tuple[float, float, float],
         b: tuple[float, float, float], thickness: float, white: float,
         label: str | None) -> Painted | None:
    """A round bar between two projected points, lit from one side."""
    half_a, half_b = (camera.focal * thickness / 2 / p[2] for p in (a, b))
    start, end = np.array(a[:2]), np.array(b[:2])
    half = max(half_a, half_b)
    length = max(float(np.linalg.norm(end - start)), 1e-3)
    along = (end - start) / length
    # A post ends flat at its foot and head; its width adds to the box only across it.
    margin = np.abs(along[::-1]) * half + np.abs(along) * 0.5
    low, high = np.minimum(start, end) - margin, np.maximum(start, end) + margin
    box = (low[0], low[1], high[0], high[1])
    part = _blend(canvas, box)
    if part is None:
        return None
    v = (np.arange(part[0].start, part[0].stop) + 0.5 - start[1])[:, None]
    u = (np.arange(part[1].start, part[1].stop) + 0.5 - start[0])[None, :]
    position = u * along[0] + v * along[1]
    across = u * along[1] - v * along[0]
    here = half_a + (half_b - half_a) * np.clip(position / length, 0, 1)
    cover = (np.clip(here - np.abs(across) + 0.5, 0, 1)
             * np.clip(np.minimum(position, length - position) + 0.5, 0, 1)).astype(np.float32)
    shading = 0.8 + 0.2 * np.clip(across / np.maximum(here, 0.5), -1, 1)
    color = white * shading[..., None] * np.ones(3)
    canvas[part] = canvas[part] * (1 - cover[..., None]) + color * cover[..., None]
    return Painted(label, box, (part[0].start, part[1].start), cover)


@dataclass
class Goal:
    """The crossbar and the net behind it; the posts are things of their own."""

    x: float
    y: float
    width: float
    height: float
    thickness: float
    white: float

    def paint(self, random: np.random.Generator, camera: Camera,
              canvas: np.ndarray) -> Painted | None:
        left = camera.project(self.x, -self.width / 2, self.height)
        right = camera.project(self.x, self.width / 2, self.height)
        if min(left[2], right[2]) < _NEAREST:
            return None
        back = self.x + np.sign(self.x) * 0.5
        grey = self.white * random.uniform(0.6, 0.95)
        for y in np.linspace(-self.width / 2, self.width / 2, 14):
            strand = [camera.project(back, y, z) for z in (0, self.height * 0.9)]
            if min(p[2] for p in strand) > _NEAREST:
                _bar(canvas, camera, *strand, 0.008, grey, None)
        for z in np.linspace(0, self.height * 0.9, 8):
            strand = [camera.project(back, y, z) for y in (-self.width / 2, self.width / 2)]
            if min(p[2] for p in strand) > _NEAREST:
                _bar(canvas, camera, *strand, 0.008, grey, None)
        return _bar(canvas, camera, left, right, self.thickness, self.white, None)


@dataclass
class Robot:
    """A small humanoid in one of many poses and colours."""

    x: float
    y: float
    height: float

    def paint(self, random: np.random.Generator, camera: Camera,
              canvas: np.ndarray) -> Painted | None:
        foot = camera.project(self.x, self.y, 0)
        head = camera.project(self.x, self.y, self.height)
        if min(foot[2], head[2]) < _NEAREST + 0.3:
            return None
        tall = float(np.hypot(head[0] - foot[0], head[1] - foot[1]))
        wide = tall * random.uniform(0.4, 0.62)
        _shade_ground(canvas, foot[0], foot[1], 0.7 * wide, 0.22 * wide, 0.6)
        layer = _robot_layer(random, max(int(round(wide)), 3), max(int(round(tall)), 6))
        rows, columns = layer.shape[:2]
        left, top = foot[0] - columns / 2, foot[1] - rows
        return _paste(canvas, layer, int(round(left)), int(round(top)), "robot")


def _paste(canvas: np.ndarray, layer: np.ndarray, left: int, top: int,
           label: str | None) -> Painted | None:
    """An RGBA picture onto the canvas; its box is where it is not transparent."""
    solid = layer[..., 3] > 0.5
    if not solid.any():
        return None
    rows, columns = np.flatnonzero(solid.any(1)), np.flatnonzero(solid.any(0))
    box = (float(left + columns[0]), float(top + rows[0]), float(left + columns[-1] + 1),
           float(top + rows[-1] + 1))
    part = _blend(canvas, (left, top, left + layer.shape[1], top + layer.shape[0]))
    if part is None:
        return None
    shown = layer[part[0].start - top:part[0].stop - top, part[1].start - left:part[1].stop - left]
    cover = shown[..., 3]
    canvas[part] = canvas[part] * (1 - cover[..., None]) + shown[..., :3] * cover[..., None]
    return Painted(label, box, (part[0].start, part[1].start), cover)


def _robot_layer(random: np.random.Generator, width: int, height: int) -> np.ndarray:
    """float32 [height, width, 4]: colours to 255, and how much of each pixel it covers."""
    image = Image.new("RGBA", (width * _SMOOTHING, height * _SMOOTHING))
    draw = ImageDraw.Draw(image)
    body = np.clip(random.choice([35, 60, 110, 165]) + random.normal(0, 12, 3), 5, 235)
    joints = np.clip(body * random.uniform(0.4, 1.5) + random.normal(0, 10, 3), 0, 240)
    team = random.permutation([random.uniform(170, 255), random.uniform(0, 90),
                               random.uniform(0, 90)])

    def shape(kind: str, color: np.ndarray, x0: float, y0: float, x1: float, y1: float) -> None:
        fill = tuple(int(v) for v in np.clip(color * random.uniform(0.85, 1.15), 0, 255)) + (255,)
        box = [min(x0, x1) * width * _SMOOTHING, min(y0, y1) * height * _SMOOTHING,
               max(x0, x1) * width * _SMOOTHING - 1, max(y0, y1) * height * _SMOOTHING - 1]
        if box[2] <= box[0] or box[3] <= box[1]:
            return
        if kind == "ellipse":
            draw.ellipse(box, fill=fill)
        else:
            draw.rounded_rectangle(box, radius=0.06 * width * _SMOOTHING, fill=fill)

    stride = random.uniform(0.0, 0.1)
    hip, shoulder = 0.52 + random.normal(0, 0.02), 0.2 + random.normal(0, 0.01)
    for side, lift in ((-1, 0.0), (1, random.uniform(0, 0.06))):
        middle = 0.5 + side * (0.14 + stride)
        knee = hip + 0.24
        shape("rectangle", body, middle - 0.09, hip - 0.03, middle + 0.09, knee)
        shape("ellipse", joints, middle - 0.1, knee - 0.05, middle + 0.1, knee + 0.05)
        shape("rectangle", body, middle - 0.08, knee, middle + 0.08, 0.97 - lift)
        shape("rectangle", joints, middle - 0.14, 0.93 - lift, middle + 0.14, 1.0 - lift)
        reach = random.uniform(-0.12, 0.1)
        arm = 0.5 + side * 0.38
        shape("rectangle", body, arm - 0.07, shoulder, arm + 0.07, shoulder + 0.2)
        shape("rectangle", joints, arm + reach * side - 0.06, shoulder + 0.17,
              arm + reach * side + 0.06, shoulder + 0.36)
    shape("rectangle", body, 0.24, shoulder - 0.03, 0.76, hip)
    if random.random() < 0.85:
        shape("rectangle", team, 0.32, shoulder + 0.03, 0.68,
              shoulder + random.uniform(0.1, 0.25))
    shape("ellipse", joints, 0.36, 0.0, 0.64, 0.18)
    for side in (-1, 1):
        shape("ellipse", 255 - body, 0.5 + side * 0.06 - 0.025, 0.06, 0.5 + side * 0.06 + 0.025,
              0.1)
    layer = np.asarray(image, np.float32).reshape(height, _SMOOTHING, width, _SMOOTHING, 4)
    cover = layer[..., 3:] / 255
    total = cover.sum((1, 3))
    color = (layer[..., :3] * cover).sum((1, 3)) / np.maximum(total, 1e-3)
    return np.concatenate([color, total / _SMOOTHING ** 2], axis=-1)


@dataclass
class Litter:
    """Paper, tape, a shoe: something of any colour that nobody looks for."""

    x: float
    y: float

    def paint(self, random: np.random.Generator, camera: Camera,
              canvas: np.ndarray) -> Painted | None:
        column, row, depth = camera.project(self.x, self.y, 0)
        if depth < _NEAREST:
            return None
        side = int(np.clip(camera.focal * random.uniform(0.05, 0.25) / depth, 3, 200))
        image = Image.new("RGBA", (side * _SMOOTHING, side * _SMOOTHING))
        count = int(random.integers(3, 6))
        turns = np.sort(random.uniform(0, 2 * np.pi, count))
        points = 0.5 + 0.5 * np.stack([np.cos(turns), 0.5 * np.sin(turns)], axis=1)
        color = tuple(int(v) for v in np.clip(random.uniform(20, 250) + random.normal(0, 50, 3),
                                              0, 255)) + (255,)
        ImageDraw.Draw(image).polygon([tuple(p) for p in points * side * _SMOOTHING], fill=color)
        layer = np.asarray(image, np.float32).reshape(side, _SMOOTHING, side, _SMOOTHING, 4)
        layer = layer.mean((1, 3))
        layer[..., 3] /= 255
        layer[..., :3] = color[:3]
        return _paste(canvas, layer, int(column - side / 2), int(row - side / 2), None)
