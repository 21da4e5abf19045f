"""How far a map of numbers is from the true one: depth as Eigen et al. (2014) and MiDaS measure it,
anything else by its differences."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np

ALIGNMENTS = ("none", "median", "scale", "scale-shift")
Figures = dict[str, Optional[float]]
#: Shares of pixels whose depth is wrong by less than this factor.
_FACTORS = {"delta1": 1.25, "delta2": 1.25 ** 2, "delta3": 1.25 ** 3}


@dataclass(frozen=True)
class DepthRules:
    """alignment: what the prediction is put right by before it is compared, for each picture by
      itself: `median` (it is multiplied so that the medians are equal), `scale` (the factor of the
      least squares), `scale-shift` (factor and addend).  Of an inverse depth it is the inverse of
      the true depth that it is fitted to, as MiDaS and DPT do it.
    least, most: true depths beyond these do not count, and predictions are brought between them.
    """

    alignment: str = "none"
    least: float = 0.0
    most: float = math.inf


def measure_depth(found: np.ndarray, truth: np.ndarray, inverse: bool,
                  rules: DepthRules) -> Figures | None:
    """abs_rel, sq_rel, rmse, rmse_log, log10, silog (100 times the root of the variance of the
    logarithms' differences), delta1 to delta3, and pixels; None where no pixel counts.

    found, truth: float [height, width]; NaN where nothing is known, and no true depth is 0 or
    below.  inverse: whether `found` has inverse depths.
    """
    counted = np.isfinite(truth) & (truth > 0) & (truth >= rules.least) & (truth <= rules.most)
    counted &= np.isfinite(found)
    if not counted.any():
        return None
    true, values = truth[counted].astype(np.float64), found[counted].astype(np.float64)
    # What is infinitely far away, as an aligned inverse depth of 0 says, has no error that could be
    # added to others.
    most = rules.most if math.isfinite(rules.most) else (float(true.max()) if inverse else math.inf)
    values = _aligned(values, 1 / true if inverse else true, rules.alignment)
    if inverse:
        values = 1 / np.maximum(values, 1 / most)
    values = np.clip(values, max(rules.least, float(np.finfo(np.float32).tiny)), most)
    difference, logarithms = values - true, np.log(values) - np.log(true)
    ratio = np.maximum(values / true, true / values)
    return {
        "abs_rel": float(np.mean(np.abs(difference) / true)),
        "sq_rel": float(np.mean(difference ** 2 / true)),
        "rmse": float(np.sqrt(np.mean(difference ** 2))),
        "rmse_log": float(np.sqrt(np.mean(logarithms ** 2))),
        "log10": float(np.mean(np.abs(logarithms)) / math.log(10)),
        "silog": float(100 * np.std(logarithms)),
        **{name: float(np.mean(ratio < factor)) for name, factor in _FACTORS.items()},
        "pixels": int(counted.sum())}


def _aligned(values: np.ndarray, wanted: np.ndarray, alignment: str) -> np.ndarray:
    if alignment == "median":
        middle = float(np.median(values))
        return values * (float(np.median(wanted)) / middle) if middle else values
    if alignment == "scale":
        square = float(values @ values)
        return values * (float(values @ wanted) / square) if square else values
    if alignment == "scale-shift":
        centred = values - values.mean()
        square = float(centred @ centred)
        # A prediction that is the same everywhere says no more than the mean.
        slope = float(centred @ (wanted - wanted.mean())) / square if square else 0.0
        return slope * centred + wanted.mean()
    return values


def measure_numbers(found: np.ndarray, truth: np.ndarray) -> Figures | None:
    """mae, rmse, r2 (1 less the squared differences divided by those of the truth from its mean;
    None where the truth is the same everywhere) and pixels; None where no pixel counts."""
    counted = np.isfinite(truth) & np.isfinite(found)
    if not counted.any():
        return None
    true, values = truth[counted].astype(np.float64), found[counted].astype(np.float64)
    squares, spread = float(((values - true) ** 2).sum()), float(((true - true.mean()) ** 2).sum())
    return {"mae": float(np.abs(values - true).mean()),
            "rmse": math.sqrt(squares / true.size),
            "r2": 1 - squares / spread if spread > 0 else None,
            "pixels": int(counted.sum())}


def summarise(pictures: list[dict[str, Any]]) -> dict[str, Any]:
    """The mean over the pictures, each of which counts alike, as is usual; of all pixels how many
    there were."""
    names = [name for name in (pictures[0] if pictures else {}) if name != "pixels"]
    result: dict[str, Any] = {"pictures": len(pictures),
                              "pixels": sum(one["pixels"] for one in pictures)}
    for name in names:
        known = [one[name] for one in pictures if one[name] is not None]
        result[name] = math.fsum(known) / len(known) if known else None
    return result
