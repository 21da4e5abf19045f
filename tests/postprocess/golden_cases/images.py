"""A number or a colour for each pixel."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from transformers import DPTImageProcessor

from golden_cases.common import case, picture, rounded

SHARES = [0.05, 0.25, 0.5, 0.75, 0.95]


def _depth_case(name: str, task: dict[str, Any], output: np.ndarray, where: dict[str, float],
                values: np.ndarray) -> dict[str, Any]:
    """values: NaN where nothing was seen."""
    seen = values[~np.isnan(values)]
    return case(name, task, {"depth": output}, where, {
        "values": [None if np.isnan(v) else round(float(v), 5) for v in values.ravel()],
        "quantiles": np.quantile(seen, SHARES).round(5).tolist(),
        "least": float(seen.min()), "most": float(seen.max()), "mean": float(seen.mean())})


def depth(random: np.random.Generator, resample: str) -> dict[str, Any]:
    """Of bicubic the package's own post_process_depth_estimation(), of DPT and Depth Anything."""
    width, height = 37, 23
    where = picture(width, height, 32, 24, "squash")
    output = np.abs(rounded(random, (1, 12, 16), 3.0)) + 1
    tensor = torch.tensor(output, dtype=torch.float32)
    if resample == "bicubic":
        values = DPTImageProcessor().post_process_depth_estimation(
            SimpleNamespace(predicted_depth=tensor),
            target_sizes=[(height, width)])[0]["predicted_depth"].numpy()
    else:
        values = torch.nn.functional.interpolate(tensor[None], (height, width), mode="bilinear",
                                                 align_corners=False)[0, 0].numpy()
    task = {"kind": "map", "output": "depth", "quantity": "inverse-depth", "resample": resample}
    return _depth_case(f"depth {resample}", task, output, where, values)


def depth_crop(random: np.random.Generator) -> dict[str, Any]:
    """A crop: what lies beyond it was not seen.  The network gives tenths of 10 m."""
    width, height = 40, 20
    where = picture(width, height, 16, 16, "crop")
    output = random.uniform(0, 1, (1, 1, 8, 8)).round(3)
    x = ((np.arange(width) + 0.5) * where["scale_x"] + where["offset_x"]) * 8 / 16
    y = ((np.arange(height) + 0.5) * where["scale_y"] + where["offset_y"]) * 8 / 16
    rows, columns = (np.clip(place, 0, 7.999).astype(int) for place in (y, x))
    values = 10 * output[0, 0][rows][:, columns]
    values[:, (x < 0) | (x > 8)] = np.nan
    task = {"kind": "map", "output": "depth", "quantity": "depth", "unit": "m", "scale": 10,
            "resample": "nearest"}
    return _depth_case("depth crop", task, output, where, values)


def image(random: np.random.Generator, layout: str, order: str, size: str) -> dict[str, Any]:
    """torchvision.utils.save_image()'s mul(255).add_(0.5).clamp_(0, 255) of what is in range; as
    the network has it, without the padding of a letterbox, or as torch's interpolate() has it."""
    width, height, channels = 24, 12, 1 if order == "GRAY" else 3
    where = picture(width, height, 16, 16, "letterbox" if size == "output" else "squash")
    ranges = [[-1, 1], [0, 2], [-1, 1.5]] if channels == 3 else [[-1, 1]]
    shares = random.uniform(-0.1, 1.1, (channels, 32, 32)).round(2)
    output = np.stack([low + (high - low) * share
                       for (low, high), share in zip(ranges, shares)]).round(4)
    if size == "picture":
        shown = torch.nn.functional.interpolate(torch.tensor(output)[None], (height, width),
                                                mode="bilinear", align_corners=False)[0].numpy()
    else:
        shown = output[:, 8:24]
    shares = np.stack([(plane - low) / (high - low) for (low, high), plane in zip(ranges, shown)])
    pixels = torch.tensor(shares).mul(255).add(0.5).clamp(0, 255).to(torch.uint8).numpy()
    if order == "BGR":
        pixels = pixels[::-1]
    pixels = np.broadcast_to(pixels, (3, *pixels.shape[1:])).transpose(1, 2, 0)
    task = {"kind": "image", "output": 0, "layout": layout, "color_order": order,
            "range": ranges if channels == 3 else ranges[0], "size": size}
    out = output[None] if layout == "NCHW" else output.transpose(1, 2, 0)[None]
    return case(f"image {order} {size}", task, {"o": out}, where,
                {"width": pixels.shape[1], "height": pixels.shape[0],
                 "pixels": pixels.ravel().tolist(), "least": float(output.min()),
                 "most": float(output.max())})
