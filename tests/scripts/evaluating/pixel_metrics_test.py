"""Errors of maps and likeness of images, beside scikit-image's figures, NumPy's least squares and
sums by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from run_model_tools.evaluating.example import ImageTruth, MapTruth
from run_model_tools.evaluating.metrics import depth, likeness
from run_model_tools.evaluating.metrics.depth import DepthRules
from run_model_tools.evaluating.outcome import Unfit
from run_model_tools.evaluating.pixel_predictions import ImageRules, MapRules

# Of scikit-image 0.24.0: peak_signal_noise_ratio() and structural_similarity() with
# gaussian_weights, sigma 1.5 and no sample covariance, of colours, of rgb2ycbcr()'s Y, and of
# colours without 4 pixels of each side; by the noise on the picture that pictures_of() makes.
SKIMAGE = {
    3: (38.3721423943746, 0.9855119508786249, 42.92438006611508, 0.9908465319975034,
        38.461945451378554, 0.9848646122760588),
    20: (22.305380893617816, 0.6621560189370759, 26.988451064227966, 0.7577595201145642,
         22.375565800066273, 0.663304325832531),
    80: (11.725402867615005, 0.14262445684904065, 16.248670862560118, 0.2049025174806411,
         11.65778748003122, 0.13475277210765488)}


def pictures_of(noise: int) -> tuple[np.ndarray, np.ndarray]:
    y, x = np.mgrid[:40, :52]
    truth = np.stack([127 + 90 * np.sin(x / 5 + k) + 30 * np.cos(y / (3 + k)) for k in range(3)],
                     -1)
    truth = np.clip(truth, 0, 255).astype(np.uint8)
    added = np.random.default_rng(noise).normal(0, noise, truth.shape)
    return np.clip(truth + added, 0, 255).astype(np.uint8), truth


@pytest.mark.parametrize("noise", SKIMAGE)
def test_psnr_and_ssim_are_scikit_images(noise: int) -> None:
    found, truth = pictures_of(noise)
    measured = [value for luma, border in ((False, 0), (True, 0), (False, 4))
                for value in likeness.measure(found, truth, luma, border).values()]
    assert measured == pytest.approx(SKIMAGE[noise], rel=1e-9)


def test_equal_images_have_no_psnr() -> None:
    _, truth = pictures_of(3)
    same = likeness.measure(truth, truth, False, 0)
    assert same == {"psnr": None, "ssim": pytest.approx(1)}
    other = {"psnr": 30.0, "ssim": 0.5}
    assert likeness.summarise([same, other]) == {
        "pictures": 2, "equal": 1, "psnr": 30.0, "ssim": pytest.approx(0.75)}
    with pytest.raises(ValueError, match="too few"):
        likeness.measure(truth, truth, False, 15)


def test_depth_by_hand() -> None:
    """One pixel is right, one too far by half, one too near by half, and two are not known."""
    truth = np.array([[2.0, 4.0, 8.0], [np.nan, 1.0, 0.0]])
    found = np.array([[2.0, 6.0, 4.0], [5.0, np.nan, 3.0]])
    figures = depth.measure_depth(found, truth, False, DepthRules())
    assert figures == pytest.approx({
        "abs_rel": (0 + 0.5 + 0.5) / 3, "sq_rel": (0 + 1 + 2) / 3, "rmse": math.sqrt(20 / 3),
        "rmse_log": math.sqrt((math.log(1.5) ** 2 + math.log(2) ** 2) / 3),
        "log10": (math.log10(1.5) + math.log10(2)) / 3,
        "silog": 100 * float(np.std([0, math.log(1.5), -math.log(2)])),
        "delta1": 1 / 3, "delta2": 2 / 3, "delta3": 2 / 3, "pixels": 3})
    capped = depth.measure_depth(found, truth, False, DepthRules("none", 1, 5))
    assert capped["pixels"] == 2 and capped["abs_rel"] == pytest.approx(0.125)  # 6 becomes 5
    assert depth.measure_depth(found, truth * np.nan, False, DepthRules()) is None


@pytest.mark.parametrize("inverse", [False, True])
def test_alignment_is_the_least_squares_of_numpy(inverse: bool) -> None:
    random = np.random.default_rng(2)
    truth = random.uniform(1, 9, (6, 7))
    wanted = 1 / truth if inverse else truth
    found = 40 * wanted + 3 + random.normal(0, 0.2, truth.shape)
    columns = np.stack([found.ravel(), np.ones(found.size)], 1)
    for alignment, used in (("scale", columns[:, :1]), ("scale-shift", columns)):
        solution = np.linalg.lstsq(used, wanted.ravel(), rcond=None)[0]
        aligned = (used @ solution).reshape(truth.shape)
        by_hand = 1 / np.maximum(aligned, 1 / truth.max()) if inverse else aligned
        figures = depth.measure_depth(found, truth, inverse, DepthRules(alignment))
        assert figures["abs_rel"] == pytest.approx(np.mean(np.abs(by_hand - truth) / truth))
        assert figures["rmse"] == pytest.approx(np.sqrt(np.mean((by_hand - truth) ** 2)))
    factor = np.median(wanted) / np.median(found)
    figures = depth.measure_depth(found, truth, inverse, DepthRules("median"))
    aligned = np.clip(1 / (found * factor), 0, truth.max()) if inverse else found * factor
    assert figures["abs_rel"] == pytest.approx(np.mean(np.abs(aligned - truth) / truth))


def test_an_exact_relative_depth_is_right_once_it_is_aligned() -> None:
    truth = np.random.default_rng(3).uniform(0.5, 60, (8, 8))
    figures = depth.measure_depth(5 / truth - 2, truth, True, DepthRules("scale-shift"))
    assert figures["abs_rel"] == pytest.approx(0, abs=1e-12) and figures["delta1"] == 1
    # One that is the same everywhere is no division by zero.
    flat = depth.measure_depth(np.full((8, 8), 3.0), truth, True, DepthRules("scale-shift"))
    assert 0 < flat["abs_rel"] < math.inf


def test_other_numbers() -> None:
    truth, found = np.array([[0.0, 1, 1, np.nan]]), np.array([[0.0, 1, 0, 7]])
    figures = depth.measure_numbers(found, truth)
    assert figures == pytest.approx({"mae": 1 / 3, "rmse": math.sqrt(1 / 3), "r2": 1 - 1 / (2 / 3),
                                     "pixels": 3})
    assert depth.measure_numbers(found, np.zeros((1, 4)))["r2"] is None
    assert depth.summarise([figures, {**figures, "r2": None, "mae": 1.0}]) == pytest.approx(
        {"pictures": 2, "pixels": 6, "mae": 2 / 3, "rmse": math.sqrt(1 / 3), "r2": -0.5})


def map_rules(quantity: str = "depth", step: float | None = None) -> MapRules:
    return MapRules(quantity, step, DepthRules())


def test_truths_of_16_bits_and_arrays(tmp_path: Path) -> None:
    stored = np.array([[0, 1500], [65535, 256]], np.uint16)
    Image.fromarray(stored).save(tmp_path / "a.png")
    truth = MapTruth(tmp_path / "a.png")
    np.testing.assert_array_equal(map_rules().read(truth), [[np.nan, 1.5], [65.535, 0.256]])
    assert map_rules(step=1 / 256).read(truth)[1, 1] == 1
    np.testing.assert_array_equal(map_rules("other").read(truth), stored)
    np.save(tmp_path / "b.npy", np.array([[[np.inf, -1], [2, np.nan]]], np.float32))
    np.testing.assert_array_equal(map_rules().read(MapTruth(tmp_path / "b.npy")),
                                  [[np.nan, np.nan], [2, np.nan]])
    Image.fromarray(stored.astype(np.uint8)).save(tmp_path / "c.png")
    assert map_rules(step=0.5).read(MapTruth(tmp_path / "c.png"))[1, 0] == 127.5


def cases(folder: Path) -> dict[str, tuple[MapRules | ImageRules, Path, np.ndarray, str]]:
    grey = np.ones((2, 2), np.float32)
    Image.new("L", (2, 2), 3).save(folder / "eight.png")
    Image.new("RGB", (2, 2)).save(folder / "colours.png")
    Image.new("I;16", (2, 2)).save(folder / "unknown.png")
    Image.new("RGB", (20, 20)).save(folder / "large.png")
    (folder / "broken.npy").write_bytes(b"\x93NUMPY and no more")
    np.save(folder / "text.npy", np.array([["a"]]))
    np.save(folder / "three.npy", np.ones((2, 2, 3)))
    image = np.zeros((20, 20, 4), np.uint8)
    return {
        "8 bits": (map_rules(), folder / "eight.png", grey, "has 8 bits"),
        "colours": (map_rules(), folder / "colours.png", grey, "has colours (RGB)"),
        "nothing known": (map_rules(), folder / "unknown.png", grey, "no number that counts"),
        "broken": (map_rules(), folder / "broken.npy", grey, "cannot be read"),
        "text": (map_rules(), folder / "text.npy", grey, "where numbers of"),
        "channels": (map_rules(), folder / "three.npy", grey, "where numbers of"),
        "size": (map_rules(step=1.0), folder / "eight.png", np.ones((3, 2), np.float32),
                 "has 2 x 2 pixels, and the network gives 2 x 3"),
        "image size": (ImageRules(False, 0), folder / "large.png", image[:10, :, :3],
                       "has 20 x 20 pixels, and the network gives 20 x 10"),
        "no picture": (ImageRules(False, 0), folder / "broken.npy", image[..., :3],
                       "cannot be read as a picture"),
        "unseen": (ImageRules(False, 0), folder / "large.png", image, "has not seen all"),
        "border": (ImageRules(False, 6), folder / "large.png", image[..., :3], "too few")}


@pytest.mark.parametrize("name", ["8 bits", "colours", "nothing known", "broken", "text",
                                  "channels", "size", "image size", "no picture", "unseen",
                                  "border"])
def test_what_cannot_be_judged(tmp_path: Path, name: str) -> None:
    rules, truth, found, words = cases(tmp_path)[name]
    kind = "image" if isinstance(rules, ImageRules) else "map"
    report = {"results": [{"kind": kind, "array": found}]}
    with pytest.raises(Unfit) as error:
        rules.judge(report, ImageTruth(truth) if kind == "image" else MapTruth(truth))
    assert words in str(error.value)
