"""CenterNet's maps -> boxes in NumPy's float64, for reference_results.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def boxes_of_centers(task: dict[str, Any], output: Callable[[str | int], np.ndarray],
                     activated: Callable[[np.ndarray], np.ndarray],
                     size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """(corners [N, 2, 2] in pixels of the input, scores [N, classes]) of the peaks above the
    threshold, pixel by pixel, those of a pixel by their classes; other classes of each have -1.

    output: an output by its name or number, whose last three dimensions are channels, rows and
    columns.  size: the input's width and height.
    """
    def maps(member: str) -> np.ndarray:
        values = output(task[member])
        values = values.reshape(values.shape[-3:])
        return values.transpose(2, 0, 1) if task["layout"] == "NHWC" else values

    heat = activated(maps("heatmap"))
    classes, rows, columns = heat.shape
    wide = np.pad(heat, ((0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    highest = np.max([wide[:, y:y + rows, x:x + columns] for y in range(3) for x in range(3)], 0)
    peaks = np.argwhere(((heat == highest) & (heat >= task["score_threshold"])).transpose(1, 2, 0))
    y, x, label = peaks.T
    scores = np.full((len(peaks), classes), -1.0)
    scores[np.arange(len(peaks)), label] = heat[label, y, x]

    def pairs(member: str) -> np.ndarray:
        found = maps(member)[:, y, x].T
        return found[:, ::-1] if task["order"] == "yx" else found

    cell = np.array(size) / np.array([columns, rows])
    within = pairs("offsets") if task.get("offsets") is not None else 0.5
    centers = (np.stack([x, y], 1) + within) * cell
    sides = pairs("sizes") * (cell if task["size_unit"] == "cells" else 1.0)
    return np.stack([centers - sides / 2, centers + sides / 2], axis=1), scores
