"""Maps: of points, of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from golden_cases.common import back, case, picture, rounded, run_lengths


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
