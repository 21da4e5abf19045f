"""Means and maxima over regions of pictures, held to ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from repaired_models import matches, noise, one, repaired

from run_model_tools.errors import ToolError

HEIGHT, WIDTH = 10, 13


def boxes(kind, scale):
    """Corners of 12 boxes, in a picture that is `scale` times as large as the features."""
    random = np.random.default_rng(4)
    low = random.uniform(-3, HEIGHT, (12, 2))
    size = {"any": random.uniform(0, 15, (12, 2)), "small": random.uniform(0, 1e-3, (12, 2)),
            "huge": random.uniform(0, 900, (12, 2)) - low, "none": np.zeros((12, 2)),
            "whole": 2 * random.integers(0, 5, (12, 2))}.get(kind, np.zeros((12, 2)))
    low = np.round(low) if kind == "whole" else low
    made = np.concatenate([low, low + size], 1)
    if kind == "edges":
        # The first and last samples that count: one element beside the outermost ones.
        made = random.choice([-1.5, -1, -0.5, 0, 1], (12, 4)) + [0, 0, WIDTH, HEIGHT]
    if kind == "backwards":
        made = made[:, [2, 3, 0, 1]] - [0, 0, 2, 2]
    return (made / scale).astype(np.float32)


KINDS = ("any", "small", "huge", "none", "whole", "edges")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("pictures, scale", [(1, 1.0), (3, 0.25), (2, 0.8)])
def test_means_of_as_many_samples_as_a_bin_has_elements(kind, mode, pictures, scale):
    of = np.random.default_rng(2).integers(0, pictures, 12)
    for bins in ((3, 2), (1, 7)):
        matches("RoiAlign", [noise(pictures, 3, HEIGHT, WIDTH), boxes(kind, scale), of],
                output_height=bins[0], output_width=bins[1], spatial_scale=scale,
                coordinate_transformation_mode=mode)


def test_regions_whose_ends_come_before_their_begins_have_no_samples():
    matches("RoiAlign", [noise(1, 3, HEIGHT, WIDTH), boxes("backwards", 1), np.zeros(12, int)],
            output_height=2, output_width=2)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "huge"])
@pytest.mark.parametrize("mode", ["half_pixel", "output_half_pixel"])
def test_maxima_of_known_regions(kind, mode):
    matches("RoiAlign", [noise(2, 3, HEIGHT, WIDTH), boxes(kind, 0.5), np.arange(12) % 2],
            constants=(1,), output_height=3, output_width=2, spatial_scale=0.5, mode="max",
            coordinate_transformation_mode=mode)


@pytest.mark.parametrize("constants, size, said", [
    ((), 1, "the number of its samples depends on the boxes .sampling_ratio=0., and of these"),
    ((1,), 1e6, "its regions have up to 500000 x 333334 samples in each bin")])
def test_maxima_of_other_regions_are_refused(constants, size, said):
    model, inputs = one("RoiAlign", [noise(1, 3, HEIGHT, WIDTH), np.float32([[0, 0, size, size]]),
                                     np.zeros(1, int)], constants=constants, mode="max",
                        output_height=2, output_width=3)
    with pytest.raises(ToolError, match=said):
        repaired(model, inputs)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("size", [(3, 4), (1, 2), (7, 1)])
@pytest.mark.parametrize("rounded", [False, True])
def test_crops_are_resized(mode, size, rounded):
    """Corners are places; what lies outside has a number of its own."""
    rois = np.random.default_rng(4).uniform(-0.2, 1.2, (6, 4)).astype(np.float32)
    rois = np.clip(np.round(rois * 4) / 4, 0, 1) if rounded else rois
    matches("CropAndResize", [noise(2, 3, HEIGHT, WIDTH), rois, np.arange(6, dtype=np.int32) % 2,
                              np.array(size, np.int32)], domain="com.microsoft", constants=(3,),
            mode=mode, extrapolation_value=0.5)


@pytest.mark.parametrize("kind", [*KINDS, "backwards"])
@pytest.mark.parametrize("pictures, scale, bins", [
    (1, 1.0, (3, 2)), (3, 0.25, (1, 7)), (2, 0.8, (7, 7))])
def test_maxima_of_whole_elements(kind, pictures, scale, bins):
    """Of Fast R-CNN; corners halfway between two elements are rounded away from zero."""
    of = np.random.default_rng(2).integers(0, pictures, (12, 1)).astype(np.float32)
    matches("MaxRoiPool", [noise(pictures, 3, HEIGHT, WIDTH),
                           np.concatenate([of, boxes(kind, scale)], 1)],
            pooled_shape=bins, spatial_scale=scale)
