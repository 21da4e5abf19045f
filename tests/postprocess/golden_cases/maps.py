"""Maps: of points, of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from golden_cases.common import back, case, detection, picture, rounded, run_lengths, sigmoid


def heatmaps(random: np.random.Generator, layout: str) -> dict[str, Any]:
    """get_max_preds() and get_final_preds() of HRNet's lib/core/inference.py."""
    count, height, width = 6, 8, 6
    maps = random.uniform(0.05, 1, (count, height, width)).round(3)
    maps[0, 0, 3] = maps[1, 4, 1] = maps[2, 6, 2] = maps[3, 3, 4] = 2.0
    where = picture(90, 60, 24, 32, "letterbox")
    expected = []
    for heat in maps:
        at = int(heat.reshape(-1).argmax())
        x, y = float(at % width), float(at // width)
        px, py = int(x), int(y)
        if 1 < px < width - 1 and 1 < py < height - 1:
            x += np.sign(heat[py, px + 1] - heat[py, px - 1]) * 0.25
            y += np.sign(heat[py + 1, px] - heat[py - 1, px]) * 0.25
        point = back(np.array([x * 24 / width, y * 32 / height]), where)
        expected.append([*point.round(4).tolist(), float(heat.max())])
    task = {"kind": "landmarks", "form": "heatmaps", "output": 0, "layout": layout,
            "refine": "quarter"}
    output = maps[None] if layout == "NCHW" else maps.transpose(1, 2, 0)[None]
    return case(f"heat maps {layout}", task, {"output": output}, where, expected)


def segmentation(random: np.random.Generator, fit: str, channels_last: bool) -> dict[str, Any]:
    width, height = 45, 31
    where = picture(width, height, 32, 24, fit)
    scores = rounded(random, (1, 4, 12, 16))
    # Where each pixel of the picture lies on the map, by the definition of align_corners=False.
    x = ((np.arange(width) + 0.5) * where["scale_x"] + where["offset_x"]) * 16 / 32
    y = ((np.arange(height) + 0.5) * where["scale_y"] + where["offset_y"]) * 12 / 24
    grid = np.stack(np.broadcast_arrays((x / 16 * 2 - 1)[None], (y / 12 * 2 - 1)[:, None]), -1)
    sampled = torch.nn.functional.grid_sample(
        torch.tensor(scores), torch.tensor(grid[None]), mode="bilinear", padding_mode="border",
        align_corners=False)[0].numpy()
    classes = sampled.argmax(0)
    if fit == "squash":
        resized = torch.nn.functional.interpolate(torch.tensor(scores), (height, width),
                                                  mode="bilinear", align_corners=False)[0].numpy()
        assert (resized.argmax(0) == classes).all()
    seen = ((x >= 0) & (x <= 16))[None] & ((y >= 0) & (y <= 12))[:, None]
    expected = {str(c): run_lengths((classes == c) & seen) for c in range(4)}
    task = {"kind": "segmentation", "form": "scores", "output": "s",
            "layout": "NHWC" if channels_last else "NCHW"}
    output = scores.transpose(0, 2, 3, 1) if channels_last else scores
    return case(f"segmentation {fit}", task, {"s": output}, where, expected)


def centers(random: np.random.Generator, layout: str, activation: str,
            with_offsets: bool) -> dict[str, Any]:
    """ctdet_decode() of CenterNet's src/lib/models/decode.py: _nms(), _topk() of each class and of
    all, and boxes about the peaks, in cells."""
    classes, height, width, count, least = 3, 12, 16, 12, 0.3
    raw = rounded(random, (classes, height, width), 1.5, -1.0)
    heat = torch.tensor(sigmoid(raw) if activation == "sigmoid" else sigmoid(raw).round(3))
    sizes = random.uniform(0.5, 6, (2, height, width)).round(2)
    offsets = random.uniform(0, 1, (2, height, width)).round(2)
    where = picture(120, 100, 64, 48, "letterbox")
    highest = torch.nn.functional.max_pool2d(heat[None], (3, 3), stride=1, padding=1)[0]
    peaks = heat * (highest == heat).double()
    scores, places = torch.topk(peaks.reshape(classes, -1), count)
    best, which = torch.topk(scores.reshape(-1), count)
    expected = []
    for score, index in zip(best.tolist(), which.tolist()):
        if score < least:
            continue
        place = int(places.reshape(-1)[index])
        row, column = divmod(place, width)
        shift = offsets[:, row, column] if with_offsets else (0.5, 0.5)
        x, y = column + shift[0], row + shift[1]
        w, h = sizes[:, row, column]
        box = np.array([x - w / 2, y - h / 2, x + w / 2, y + h / 2]) * 4
        expected.append(detection(back(box, where), index // count, score))
    last = layout == "NHWC"

    def out(maps: np.ndarray, swapped: bool = False) -> np.ndarray:
        maps = maps[::-1] if swapped and last else maps
        return maps.transpose(1, 2, 0)[None] if last else maps[None]

    outputs = {"hm": out(raw if activation == "sigmoid" else heat.numpy()),
               "wh": out(sizes, True)}
    task = {"kind": "detection", "form": "centers", "heatmap": "hm", "sizes": "wh",
            "layout": layout, "order": "yx" if last else "xy", "size_unit": "cells",
            "activation": activation, "score_threshold": least, "limit": count}
    if with_offsets:
        task["offsets"] = "reg"
        outputs["reg"] = out(offsets, True)
    return case(f"centers {layout}", task, outputs, where, expected)
