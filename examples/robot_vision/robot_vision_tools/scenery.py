"""Grass, light, and what is around the field."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw

from robot_vision_tools.camera import Camera


def smooth_noise(random: np.random.Generator, width: int, height: int, cells: int) -> np.ndarray:
    """float32 [height, width] around 0 with a deviation of about 1, smooth over 1/cells."""
    coarse = random.normal(0, 1, (max(2, cells * height // width), cells)).astype(np.float32)
    return np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC))


def light(random: np.random.Generator, width: int, height: int) -> np.ndarray:
    """What the light does to each pixel: spots, shadows of large things, a slope."""
    slope = (np.linspace(-1, 1, width)[None, :] * random.normal(0, 0.12)
             + np.linspace(-1, 1, height)[:, None] * random.normal(0, 0.1))
    spots = smooth_noise(random, width, height, 5) * random.uniform(0, 0.15)
    result = 1 + slope + spots
    if random.random() < 0.3:
        # The edge of a shadow, as of a stand or a window.
        across = (np.cos(angle := random.uniform(0, np.pi)) * np.linspace(-1, 1, width)[None, :]
                  + np.sin(angle) * np.linspace(-1, 1, height)[:, None])
        soft = random.uniform(0.01, 0.2)
        result *= 1 - random.uniform(0.2, 0.5) / (1 + np.exp(
            -np.clip((across - random.uniform(-0.6, 0.6)) / soft, -50, 50)))
    return np.clip(result, 0.25, 1.6).astype(np.float32)


def grass(random: np.random.Generator, x: np.ndarray, y: np.ndarray, distance: np.ndarray,
          on_grass: np.ndarray) -> np.ndarray:
    """float32 [height, width, 3], also where there is none."""
    height, width = x.shape
    base = np.array([random.uniform(25, 90), random.uniform(85, 165), random.uniform(20, 85)])
    base[1] = max(base[1], base[0] + 25, base[2] + 25)
    near = np.where(on_grass, distance, 20.0)
    blades = random.normal(0, 1, (height, width)).astype(np.float32)
    texture = blades * random.uniform(4, 22) / (1 + near * 0.7)
    texture += smooth_noise(random, width, height, 60) * random.uniform(1, 8)
    texture += smooth_noise(random, width, height, 8) * random.uniform(1, 12)
    if random.random() < 0.25:
        # Mown in stripes.
        stripe = np.floor(np.where(on_grass, x, 0) / random.uniform(0.5, 1.2)) % 2
        texture += (stripe - 0.5) * random.uniform(5, 25)
    result = base.astype(np.float32) + texture[..., None]
    worn = np.clip(smooth_noise(random, width, height, 12) - random.uniform(1.0, 3.0), 0, 1)
    earth = np.array([120, 105, 70], np.float32)
    return result * (1 - 0.6 * worn[..., None]) + earth * 0.6 * worn[..., None]


def surroundings(random: np.random.Generator, camera: Camera, below: np.ndarray) -> np.ndarray:
    """float32 [height, width, 3]: a wall above the horizon, a floor below, things before them."""
    height, width = below.shape
    wall, floor = (random.uniform(30, 235) + random.normal(0, 22, 3) for _ in range(2))
    canvas = np.where(below[..., None], floor, wall).astype(np.float32)
    canvas += smooth_noise(random, width, height, 10)[..., None] * random.uniform(2, 14)
    picture = Image.fromarray(np.clip(canvas, 0, 255).astype(np.uint8))
    draw = ImageDraw.Draw(picture)
    horizon = camera.project(*camera.place(30, 0), camera.height)[1]
    for _ in range(int(random.integers(3, 14))):
        color = tuple(int(v) for v in np.clip(random.uniform(10, 250) + random.normal(0, 40, 3),
                                              0, 255))
        left = random.uniform(-0.1, 1.0) * width
        kind = random.choice(5)
        if kind == 0:      # a pillar or a pole, often as white as a goal
            across = random.uniform(0.01, 0.05) * width
            draw.rectangle([left, horizon - height, left + across,
                            horizon + random.uniform(0, 0.1) * height], fill=color)
        elif kind == 1:    # a banner
            top = horizon - random.uniform(0, 0.3) * height
            draw.rectangle([left, top, left + random.uniform(0.1, 0.5) * width,
                            top + random.uniform(0.03, 0.15) * height], fill=color)
        elif kind == 2:    # a window or a lamp
            top = horizon - random.uniform(0.1, 0.9) * height
            draw.rectangle([left, top, left + random.uniform(0.03, 0.2) * width,
                            top + random.uniform(0.03, 0.2) * height], fill=color)
        elif kind == 3:    # somebody who looks on
            _person(random, draw, left, horizon, height)
        else:              # a round thing far away
            side = random.uniform(0.01, 0.06) * width
            top = horizon - random.uniform(-0.02, 0.4) * height
            draw.ellipse([left, top, left + side, top + side], fill=color)
    return np.asarray(picture, np.float32)


def _person(random: np.random.Generator, draw: ImageDraw.ImageDraw, left: float, horizon: float,
            height: int) -> None:
    tall = random.uniform(0.25, 0.7) * height
    wide = tall * random.uniform(0.2, 0.3)
    foot = horizon + random.uniform(0.0, 0.12) * height
    trousers, shirt = (tuple(int(v) for v in random.integers(15, 240, 3)) for _ in range(2))
    skin = tuple(int(v) for v in np.array([225, 170, 140]) * random.uniform(0.35, 1.0))
    draw.rectangle([left + 0.1 * wide, foot - 0.48 * tall, left + 0.42 * wide, foot],
                   fill=trousers)
    draw.rectangle([left + 0.58 * wide, foot - 0.48 * tall, left + 0.9 * wide, foot],
                   fill=trousers)
    draw.rectangle([left, foot - 0.86 * tall, left + wide, foot - 0.45 * tall], fill=shirt)
    draw.ellipse([left + 0.28 * wide, foot - tall, left + 0.72 * wide, foot - 0.84 * tall],
                 fill=skin)
