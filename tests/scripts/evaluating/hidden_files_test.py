"""Folders as a Mac packs them: beside each file one that has its name behind '._', and is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from run_model_tools.compiling.calibration_pictures import find_pictures
from run_model_tools.evaluating.datasets.reading import read_dataset

APPLE_DOUBLE = b"\0\5\x16\7\0\2\0\0Mac OS X"


def packed(folder: Path, *names: str) -> None:
    """Pictures, and what a Mac keeps about each."""
    folder.mkdir(parents=True)
    for name in names:
        Image.new("RGB", (4, 4)).save(folder / name)
        (folder / f"._{name}").write_bytes(APPLE_DOUBLE)


@pytest.fixture
def world(tmp_path: Path) -> Path:
    packed(tmp_path / "net" / "0", "a.png", "b.jpg")
    packed(tmp_path / "net" / "1", "a.png", "b.png")
    packed(tmp_path / "voc" / "JPEGImages", "a.jpg", "b.jpg")
    packed(tmp_path / "voc" / "SegmentationClass", "a.png", "b.png")
    return tmp_path


@pytest.mark.parametrize(("dataset", "expected"), [
    ("voc-masks:{0}/voc", ["a.jpg", "b.jpg"]), ("images:{0}/net/0:{0}/net/1", ["a.png", "b.jpg"]),
    ("imagenet:{0}/net", ["a.png", "b.jpg", "a.png", "b.png"])])
def test_data_sets_are_of_pictures_that_are_there(world, dataset, expected):
    examples = read_dataset(dataset.format(world), []).examples
    assert [example.path.name for example in examples] == expected


def test_calibration_takes_none_of_them(world):
    assert [path.name for path in find_pictures(world / "net" / "0")] == ["a.png", "b.jpg"]
