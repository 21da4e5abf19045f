"""The Python reference of the preprocessing, against values worked out by hand."""

import re
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from run_model_tools.errors import ToolError
from run_model_tools.fixtures.made_pictures import pattern
from run_model_tools.pictures import preprocess as pp
from run_model_tools.pictures.preprocessing import PRESETS, RESIZERS, Preprocessing
from run_model_tools.source_model import Scale

PLAIN = Preprocessing("nearest", "squash", "RGB", 1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


def gradient(width, height):
    """Every pixel tells where it is: R = x, G = y, B = 200."""
    image = np.full((height, width, 3), 200, np.uint8)
    image[:, :, 0] = np.arange(width)
    image[:, :, 1] = np.arange(height)[:, None]
    return image


def test_nearest_takes_the_floor():
    resized = pp.resize(gradient(7, 5), 3, 4, "nearest")
    assert resized[0, :, 0].tolist() == [0, 2, 4]      # floor(i * 7 / 3)
    assert resized[:, 0, 1].tolist() == [0, 1, 2, 3]   # floor(i * 5 / 4)


@pytest.mark.parametrize("resizer", RESIZERS)
def test_every_resizer_keeps_a_flat_colour_and_the_same_size(resizer):
    flat = np.full((9, 13, 3), (10, 20, 250), np.uint8)
    assert (pp.resize(flat, 31, 4, resizer) == (10, 20, 250)).all()
    image = gradient(13, 9)
    assert np.array_equal(pp.resize(image, 13, 9, resizer), image)


def test_every_resizer_is_another_one():
    image = np.random.default_rng(0).integers(0, 256, (90, 60, 3), np.uint8)
    results = [pp.resize(image, 52, 11, resizer).tobytes() for resizer in RESIZERS]
    assert len(set(results)) == len(RESIZERS)


def test_pillow_13s_order_of_the_axes():
    table = (Path(__file__).parents[2] / "preprocess/data/resize.tsv").read_text().splitlines()
    lines = [line.split("\t") for line in table if line.startswith("pil13-")]
    assert len(lines) > 800
    for resizer, *numbers, checksum in lines:
        width, height, new_width, new_height, seed = map(int, numbers)
        pixels = pp.resize(pattern(width, height, seed), new_width, new_height, resizer)
        assert f"{zlib.crc32(pixels.tobytes()):08x}" == checksum, numbers


@pytest.mark.parametrize("size, short, expected", [
    ((451, 300), 256, (384, 256)),   # int(256 * 451 / 300) = int(384.85)
    ((300, 451), 256, (256, 384)),
    ((640, 427), 256, (383, 256)),
    ((256, 256), 256, (256, 256)),
    ((1, 1000), 2, (2, 2000))])
def test_short_side(size, short, expected):
    assert pp.short_side_size(*size, short) == expected


def test_centre_crop_rounds_halves_to_even():
    # (size - crop) / 2 is 0.5 and 1.5, which become 0 and 2.
    spec = replace(PLAIN, fit="crop", resize=3, crop=2)
    fitted, size = pp.fit_picture(gradient(5, 3), spec, (2, 2))
    assert size == (5, 3)
    assert fitted[:, :, 0].tolist() == [[2, 3], [2, 3]]
    assert fitted[:, :, 1].tolist() == [[0, 0], [1, 1]]


def test_letterbox_scales_to_fit_and_pads():
    spec = replace(PLAIN, fit="letterbox", pad=114)
    fitted, size = pp.fit_picture(gradient(8, 4), spec, (4, 4))
    assert size == (4, 2)
    assert (fitted[0] == 114).all() and (fitted[3] == 114).all()
    assert fitted[1, :, 0].tolist() == [0, 2, 4, 6]
    # A border that cannot be halved has its smaller part above and to the left.
    fitted, size = pp.fit_picture(gradient(4, 4), spec, (7, 4))
    assert size == (4, 4)
    assert (fitted[:, 0] == 114).all() and (fitted[:, 5:] == 114).all()
    assert fitted[0, 1:5, 0].tolist() == [0, 1, 2, 3]


def test_letterbox_keeps_a_sliver():
    fitted, size = pp.fit_picture(np.full((1, 200, 3), 7, np.uint8),
                                  replace(PLAIN, fit="letterbox", pad=0), (10, 10))
    assert size == (10, 1)
    assert (fitted == 7).sum() == 30


def test_mean_is_in_the_networks_order():
    """Caffe's line: 104 comes off blue."""
    pixel = np.array([[[200, 150, 110]]], np.uint8)
    assert pp.normalise(pixel, PRESETS["caffe"], np.float32).tolist() == [[[6.0, 33.0, 77.0]]]


def test_each_step_is_rounded_to_float32():
    pixel = np.array([[[17, 99, 211]]], np.uint8)
    spec = PRESETS["imagenet"]
    expected = [(np.float32(np.float32(p) / np.float32(255)) - np.float32(m)) / np.float32(s)
                for p, m, s in zip((17, 99, 211), spec.mean, spec.std)]
    got = pp.normalise(pixel, spec, np.float32)[0, 0]
    assert got.dtype == np.float32
    assert got.tolist() == [float(e) for e in expected]


def test_whole_numbers_round_halves_to_even_and_clamp():
    pixels = np.array([[[1, 3, 5], [255, 0, 7]]], np.uint8)
    halves = replace(PLAIN, divide_by=2.0)
    assert pp.normalise(pixels, halves, np.uint8).tolist() == [[[0, 2, 2], [128, 0, 4]]]
    shifted = replace(PLAIN, mean=(128.0, 0.0, 128.0))
    signed = pp.normalise(pixels, shifted, np.int8)
    assert signed.dtype == np.int8
    assert signed.tolist() == [[[-127, 3, -123], [127, 0, -121]]]
    assert pp.normalise(np.full((1, 1, 3), 255, np.uint8), PLAIN, np.int8).max() == 127


def test_whole_numbers_that_leave_no_picture_are_refused():
    to_one = replace(PLAIN, divide_by=127.5, mean=(1.0, 1.0, 1.0))
    pp.check_levels(to_one, np.float32)
    with pytest.raises(ToolError, match="leaves 3 of the 256 values") as refused:
        pp.preprocess(gradient(6, 6), to_one, (1, 3, 4, 5), "int8", "NCHW")
    assert refused.value.code == 6 and "--mean" not in str(refused.value)
    # With what it names, a pixel becomes the number that stands for what was stated.
    scale = Scale(1 / 64, -5)
    with pytest.raises(ToolError) as refused:
        pp.check_levels(to_one, np.int8, scale)
    mean, std = (tuple(map(float, numbers)) for numbers in re.findall(
        r"--(?:mean|std) (\S+) (\S+) ([-+.e\d]+)", str(refused.value)))
    ramp = np.repeat(np.arange(256, dtype=np.uint8)[None, :, None], 3, axis=2)
    stored = pp.normalise(ramp, replace(to_one, mean=mean, std=std), np.int8).astype(float)
    meant = pp.normalise(ramp, to_one, np.float32)
    inside = (stored > -128) & (stored < 127)
    assert inside.mean() > 0.8
    assert np.abs((stored + 5) / 64 - meant)[inside].max() <= 0.5001 / 64


def test_layouts_hold_the_same_values():
    image = gradient(6, 6)
    planes = pp.preprocess(image, PLAIN, (1, 3, 4, 5), "float32", "NCHW").tensor
    rows = pp.preprocess(image, PLAIN, (1, 4, 5, 3), "float32", "NHWC").tensor
    assert planes.shape == (1, 3, 4, 5) and planes.flags.c_contiguous
    assert np.array_equal(planes.transpose(0, 2, 3, 1), rows)
    for shape, layout, batch in (((3, 4, 5), "CHW", planes), ((4, 5, 3), "HWC", rows)):
        alone = pp.preprocess(image, PLAIN, shape, "float32", layout).tensor
        assert alone.flags.c_contiguous and np.array_equal(alone, batch[0])


@pytest.mark.parametrize("shape, layout", [
    ((1, 3, 8), "NCHW"), ((2, 3, 8, 8), "NCHW"), ((1, 1, 8, 8), "NCHW"), ((1, 3, 8, 8), "NHWC"),
    ((1, 3, 8, 9), "NCHW"), ((3, 8, 8), "NCHW"), ((1, 8, 8), "CHW"), ((8, 8, 3), "HCW")])
def test_inputs_that_take_no_such_picture_are_refused(shape, layout):
    spec = replace(PLAIN, fit="crop", resize=8, crop=8)
    with pytest.raises(ToolError) as caught:
        pp.preprocess(gradient(9, 9), spec, shape, "float32", layout)
    assert caught.value.code == 6


def test_pictures_of_every_kind_become_rgb(tmp_path):
    colour = Image.fromarray(gradient(5, 4))
    colour.save(tmp_path / "rgb.png")
    assert np.array_equal(pp.load_picture(tmp_path / "rgb.png"), gradient(5, 4))
    # Alpha is dropped without blending.
    with_alpha = colour.copy()
    with_alpha.putalpha(0)
    with_alpha.save(tmp_path / "rgba.png")
    assert np.array_equal(pp.load_picture(tmp_path / "rgba.png"), gradient(5, 4))
    colour.convert("L").save(tmp_path / "grey.png")
    grey = pp.load_picture(tmp_path / "grey.png")
    assert (grey[:, :, 0] == grey[:, :, 1]).all() and (grey[:, :, 1] == grey[:, :, 2]).all()


def test_exif_turns_the_picture_upright(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # Orientation: the first row is the right side.
    Image.fromarray(gradient(5, 4)).save(tmp_path / "turned.png", exif=exif)
    assert np.array_equal(pp.load_picture(tmp_path / "turned.png"), np.rot90(gradient(5, 4), -1))


def test_unreadable_pictures_are_refused(tmp_path):
    (tmp_path / "bad.png").write_bytes(b"not a picture")
    Image.new("CMYK", (2, 2)).save(tmp_path / "inks.jpg")
    for name in ("bad.png", "missing.png", "inks.jpg"):
        with pytest.raises(ToolError) as caught:
            pp.load_picture(tmp_path / name)
        assert caught.value.code == 7 and name in str(caught.value)
