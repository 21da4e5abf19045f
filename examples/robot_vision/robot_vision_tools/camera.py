"""A robot's camera over a football field: which point of the ground a pixel sees, and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Camera:
    """A pinhole camera `height` metres above the ground.

    Field coordinates: x along the field, y across it, in metres from its centre; yaw turns from x
    to y, pitch looks down, roll tilts, all in radians. focal is in pixels.
    """

    width: int
    height_px: int
    focal: float
    height: float
    pitch: float
    roll: float
    yaw: float
    x: float
    y: float

    def _axes(self) -> np.ndarray:
        """Rows: the camera's right, down and forward in (ahead, left, up) of its place."""
        cp, sp = np.cos(self.pitch), np.sin(self.pitch)
        forward = np.array([cp, 0, -sp])
        down = np.array([-sp, 0, -cp])
        right = np.array([0, -1.0, 0])
        cr, sr = np.cos(self.roll), np.sin(self.roll)
        return np.array([cr * right + sr * down, cr * down - sr * right, forward])

    def ground(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For each pixel the field's x and y, and the distance along the ray; inf in the sky."""
        columns = (np.arange(self.width, dtype=np.float32) + 0.5 - self.width / 2) / self.focal
        rows = (np.arange(self.height_px, dtype=np.float32) + 0.5
                - self.height_px / 2) / self.focal
        right, down, forward = self._axes().astype(np.float32)
        ray = [columns[None, :] * right[i] + rows[:, None] * down[i] + forward[i]
               for i in range(3)]
        falling = np.maximum(-ray[2], 1e-6)
        distance = np.where(ray[2] < -1e-3, self.height / falling, np.inf)
        with np.errstate(invalid="ignore"):
            ahead, left = distance * ray[0], distance * ray[1]
        cy, sy = np.float32(np.cos(self.yaw)), np.float32(np.sin(self.yaw))
        with np.errstate(invalid="ignore"):
            return (self.x + cy * ahead - sy * left, self.y + sy * ahead + cy * left, distance)

    def project(self, x: float, y: float, z: float) -> tuple[float, float, float]:
        """(column, row, depth) of a point z metres above the field; depth <= 0 is behind us."""
        dx, dy = x - self.x, y - self.y
        cy, sy = np.cos(self.yaw), np.sin(self.yaw)
        place = np.array([cy * dx + sy * dy, -sy * dx + cy * dy, z - self.height])
        right, down, depth = self._axes() @ place
        safe = max(depth, 1e-3)
        return (self.width / 2 + self.focal * right / safe,
                self.height_px / 2 + self.focal * down / safe, float(depth))

    def place(self, ahead: float, left: float) -> tuple[float, float]:
        """The field's x and y of a point that is so far ahead and to the left of the camera."""
        cy, sy = np.cos(self.yaw), np.sin(self.yaw)
        return self.x + cy * ahead - sy * left, self.y + sy * ahead + cy * left
