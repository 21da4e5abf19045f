"""Maps of numbers and images that a network makes of a picture, beside the true ones."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from PIL import Image

from run_model_tools.errors import ToolError
from run_model_tools.evaluating.example import IMAGE, MAP, ImageTruth, MapTruth
from run_model_tools.evaluating.metrics import depth, likeness
from run_model_tools.evaluating.metrics.depth import DepthRules
from run_model_tools.evaluating.outcome import Judged, Unfit, the_result
from run_model_tools.pictures.preprocess import load_picture

#: Metres, as most data sets store depth in 16 bits.
MILLIMETRE = 0.001
#: A map counts as right where so many pixels are within 1.25 of the truth, or so much of the
#: truth's variance is explained; an image where its SSIM is so high.
_WELL, _ALIKE = 0.5, 0.9


@dataclass(frozen=True)
class MapRules:
    """quantity: the task's.  step: what a 1 of a truth's PNG file stands for."""

    quantity: str
    step: float | None
    depth: DepthRules

    def facts(self) -> dict[str, Any]:
        """As JSON: other rules give other figures."""
        most = self.depth.most
        return {**asdict(self), "depth": {**asdict(self.depth),
                                          "most": most if math.isfinite(most) else None}}

    def judge(self, report: dict[str, Any], truth: MapTruth) -> Judged:
        """Raises Unfit."""
        found = _same_size(the_result(report, MAP)["array"], self.read(truth), truth)
        if self.quantity == "other":
            figures = depth.measure_numbers(*found)
        else:
            figures = depth.measure_depth(*found, self.quantity == "inverse-depth", self.depth)
        if figures is None:
            raise Unfit(f"{truth.path} has no number that counts where the network has seen the "
                        "picture")
        share = figures["r2" if self.quantity == "other" else "delta1"]
        score = 1.0 if share is None else max(0.0, share)
        return Judged(figures, score, score >= _WELL)

    def read(self, truth: MapTruth) -> np.ndarray:
        """float64 [height, width], NaN where nothing is known, as of a depth that is not above 0.
        Raises Unfit."""
        of_depth = self.quantity != "other"
        try:
            if truth.path.suffix.lower() == ".npy":
                numbers = np.load(truth.path, allow_pickle=False)
                if numbers.dtype.kind not in "fiub" or np.squeeze(numbers).ndim != 2:
                    raise Unfit(f"{truth.path} is {numbers.dtype} {numbers.shape}, where numbers "
                                "of [height, width] are expected")
                numbers = np.squeeze(numbers).astype(np.float64)
            else:
                numbers = self._of_png(truth)
        except (OSError, ValueError, SyntaxError, EOFError) as error:
            raise Unfit(f"{truth.path} cannot be read: {error}") from None
        known = np.isfinite(numbers) & ((numbers > 0) | (not of_depth))
        return np.where(known, numbers, np.nan)

    def _of_png(self, truth: MapTruth) -> np.ndarray:
        with Image.open(truth.path) as picture:
            if picture.mode not in ("L", "1") and not picture.mode.startswith("I"):
                raise Unfit(f"{truth.path} has colours ({picture.mode}), where one number for each "
                            "pixel is expected")
            eight_bits = picture.mode in ("L", "1")
            stored = np.asarray(picture).astype(np.float64)
        if self.step is None and self.quantity != "other" and eight_bits:
            raise Unfit(f"{truth.path} has 8 bits, which are no millimetres: say with --truth-step "
                        "what a 1 stands for")
        return stored * (self.step or (1.0 if self.quantity == "other" else MILLIMETRE))


@dataclass(frozen=True)
class ImageRules:
    """of_luma: compare Y only.  border: so many pixels of each side are left out."""

    of_luma: bool
    border: int

    def facts(self) -> dict[str, Any]:
        return asdict(self)

    def judge(self, report: dict[str, Any], truth: ImageTruth) -> Judged:
        """Raises Unfit."""
        result = the_result(report, IMAGE)
        found = result["array"]
        if result.get("unseen") or (found.shape[2] == 4 and not found[..., 3].all()):
            raise Unfit("the network has not seen all of the picture, and of a part no likeness is "
                        "measured: \"fit\" of its preprocessing crops")
        try:
            true = load_picture(truth.path)
        except ToolError as error:
            raise Unfit(str(error)) from None
        found, true = _same_size(found[..., :3], true, truth)
        try:
            figures = likeness.measure(found, true, self.of_luma, self.border)
        except ValueError as error:
            raise Unfit(f"{truth.path}: {error}") from None
        score = min(1.0, max(0.0, figures["ssim"] or 0.0))
        return Judged(figures, score, score >= _ALIKE)


def _same_size(found: np.ndarray, true: np.ndarray,
               truth: MapTruth | ImageTruth) -> tuple[np.ndarray, np.ndarray]:
    if found.shape[:2] != true.shape[:2]:
        raise Unfit(f"{truth.path} has {true.shape[1]} x {true.shape[0]} pixels, and the network "
                    f"gives {found.shape[1]} x {found.shape[0]}")
    return found, true
