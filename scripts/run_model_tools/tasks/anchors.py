"""The boxes from which detectors count: a description's "anchors" as float64 [N, 4].

Centre x, centre y, width and height, as shares of the input's sides.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def anchors_of(options: dict[str, Any], size: tuple[int, int] = (65536, 65536)) -> np.ndarray:
    """Of a checked "anchors"; `size` is the input's, (width, height), on which their number does
    not depend."""
    if options["generator"] == "mediapipe":
        return _mediapipe(options)
    if options["generator"] == "torchvision":
        return _torchvision(options)
    if options["generator"] == "pyramid":
        return _pyramid(options, size)
    return np.asarray(options["boxes"], np.float64).reshape(-1, 4)


def _grid(rows: int, columns: int, sides: list[tuple[float, float]], offset: tuple[float, float],
          divisor: tuple[float, float]) -> np.ndarray:
    """Each cell's anchors, cells row by row; offset and divisor are (x, y)."""
    y, x, anchor = np.meshgrid(np.arange(rows), np.arange(columns), np.arange(len(sides)),
                               indexing="ij")
    wanted = np.asarray(sides, np.float64).reshape(-1, 2)[anchor.ravel()]
    return np.column_stack([(x.ravel() + offset[0]) / divisor[0],
                            (y.ravel() + offset[1]) / divisor[1], wanted])


def _mediapipe(options: dict[str, Any]) -> np.ndarray:
    """SsdAnchorsCalculator: neighbouring layers of one stride share a map."""
    strides = options["strides"]
    low, high, count = options["min_scale"], options["max_scale"], len(strides)
    between = options.get("interpolated_scale_aspect_ratio", 1.0)

    def scale(layer: int) -> float:
        return (low + high) / 2 if count == 1 else low + (high - low) * layer / (count - 1)

    def shapes(layer: int) -> list[tuple[float, float]]:
        """(aspect ratio, scale) of a layer's anchors."""
        if layer == 0 and options.get("reduce_boxes_in_lowest_layer", False):
            return [(1.0, 0.1), (2.0, scale(0)), (0.5, scale(0))]
        made = [(ratio, scale(layer)) for ratio in options["aspect_ratios"]]
        if between > 0:
            after = 1.0 if layer == count - 1 else scale(layer + 1)
            made.append((between, math.sqrt(scale(layer) * after)))
        return made

    parts, first = [], 0
    while first < count:
        last = first
        while last < count and strides[last] == strides[first]:
            last += 1
        sides = [(s * math.sqrt(r), s / math.sqrt(r))
                 for layer in range(first, last) for r, s in shapes(layer)]
        if options.get("fixed_anchor_size", False):
            sides = [(1.0, 1.0)] * len(sides)
        if "feature_maps" in options:
            rows, columns = options["feature_maps"][first]
        else:
            rows = math.ceil(options["input_height"] / strides[first])
            columns = math.ceil(options["input_width"] / strides[first])
        offset = options.get("anchor_offset_x", 0.5), options.get("anchor_offset_y", 0.5)
        parts.append(_grid(rows, columns, sides, offset, (columns, rows)))
        first = last
    return np.concatenate(parts)


def _torchvision(options: dict[str, Any]) -> np.ndarray:
    """DefaultBoxGenerator: of each map two squares, and both rectangles of each aspect ratio."""
    maps, ratios = options["feature_maps"], options["aspect_ratios"]
    low, high = options.get("min_ratio", 0.15), options.get("max_ratio", 0.9)
    scales = options.get("scales")
    if not scales:
        scales = ([low + (high - low) * k / (len(maps) - 1) for k in range(len(maps))] + [1.0]
                  if len(maps) > 1 else [low, high])
    steps = options.get("steps")
    parts = []
    for k, (rows, columns) in enumerate(maps):
        between = math.sqrt(scales[k] * scales[k + 1])
        sides = [(scales[k], scales[k]), (between, between)]
        for ratio in ratios[k]:
            width, height = scales[k] * math.sqrt(ratio), scales[k] / math.sqrt(ratio)
            sides += [(width, height), (height, width)]
        if options.get("clip", True):
            sides = [(min(w, 1.0), min(h, 1.0)) for w, h in sides]
        divisor = (columns, rows) if not steps else (
            options["input_width"] / steps[k], options["input_height"] / steps[k])
        parts.append(_grid(rows, columns, sides, (0.5, 0.5), divisor))
    return np.concatenate(parts)


def _pyramid(options: dict[str, Any], size: tuple[int, int]) -> np.ndarray:
    """torchvision's AnchorGenerator: sizes in pixels, in each ratio of height to width."""
    parts = []
    for (rows, columns), sizes, ratios in zip(options["feature_maps"], options["sizes"],
                                              options["aspect_ratios"], strict=True):
        stride = size[0] // columns, size[1] // rows
        pairs = ([(s, r) for s in sizes for r in ratios] if options.get("outer") == "sizes"
                 else [(s, r) for r in ratios for s in sizes])
        sides = np.array([(s / math.sqrt(r), s * math.sqrt(r)) for s, r in pairs])
        if options.get("round", True):
            sides = 2 * np.round(sides / 2)
        offset = options.get("offset", 0.0)
        parts.append(_grid(rows, columns, (sides / np.array(size)).tolist(), (offset, offset),
                           (size[0] / stride[0], size[1] / stride[1])))
    return np.concatenate(parts)
