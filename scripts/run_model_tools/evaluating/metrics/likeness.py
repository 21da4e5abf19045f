"""How alike two pictures are: PSNR and SSIM, by scikit-image's definitions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

#: The window of Wang et al., "Image quality assessment", 2004: a Gaussian over 11 pixels.
_SIGMA, _RADIUS = 1.5, 5
_MOST = 255.0
_LUMA = np.array([65.481, 128.553, 24.966])


def luma(pixels: np.ndarray) -> np.ndarray:
    """uint8 [H, W, 3] -> float64 [H, W, 1], 16 to 235: BT.601's Y as MATLAB's rgb2ycbcr() gives it,
    which papers on super-resolution compare."""
    return (pixels.astype(np.float64) @ _LUMA / _MOST + 16)[..., None]


def measure(found: np.ndarray, truth: np.ndarray, of_luma: bool, border: int,
            ) -> dict[str, float | None]:
    """psnr in decibels (None for equal pictures, where it is infinite) and ssim.

    found, truth: uint8 [height, width, 3] of one size.  border: so many pixels of each side are
    left out.  Raises ValueError where no 11 pixels are left to a side.
    """
    if border:
        found, truth = (one[border:-border, border:-border] for one in (found, truth))
    if min(truth.shape[:2]) <= 2 * _RADIUS:
        raise ValueError(f"{truth.shape[1]} x {truth.shape[0]} pixels are too few: SSIM needs 11 "
                         "to a side")
    a, b = (luma(one) if of_luma else one.astype(np.float64) for one in (found, truth))
    error = float(np.mean((a - b) ** 2))
    return {"psnr": 10 * math.log10(_MOST ** 2 / error) if error > 0 else None,
            "ssim": float(np.mean([_ssim(a[..., c], b[..., c]) for c in range(a.shape[2])]))}


def _ssim(a: np.ndarray, b: np.ndarray) -> float:
    """structural_similarity(a, b, data_range=255, gaussian_weights=True, sigma=1.5,
    use_sample_covariance=False): only of windows that lie inside."""
    mean_a, mean_b = _blurred(a), _blurred(b)
    spread_a, spread_b = _blurred(a * a) - mean_a ** 2, _blurred(b * b) - mean_b ** 2
    both = _blurred(a * b) - mean_a * mean_b
    c1, c2 = (0.01 * _MOST) ** 2, (0.03 * _MOST) ** 2
    return float(np.mean((2 * mean_a * mean_b + c1) * (2 * both + c2)
                         / ((mean_a ** 2 + mean_b ** 2 + c1) * (spread_a + spread_b + c2))))


def _blurred(plane: np.ndarray) -> np.ndarray:
    """Means weighted by a Gaussian window, where it lies inside the plane."""
    places = np.arange(-_RADIUS, _RADIUS + 1)
    window = np.exp(-0.5 * (places / _SIGMA) ** 2)
    window /= window.sum()
    count = [side - 2 * _RADIUS for side in plane.shape]
    rows = sum((weight * plane[i:i + count[0]] for i, weight in enumerate(window)), np.zeros(()))
    return sum((weight * rows[:, i:i + count[1]] for i, weight in enumerate(window)), np.zeros(()))


def summarise(pictures: list[dict[str, Any]]) -> dict[str, Any]:
    """The means over the pictures; psnr of those that are not equal to the truth."""
    known = [one["psnr"] for one in pictures if one["psnr"] is not None]
    count = len(pictures)
    return {"pictures": count, "equal": count - len(known),
            "psnr": math.fsum(known) / len(known) if known else None,
            "ssim": math.fsum(one["ssim"] for one in pictures) / count if count else None}
