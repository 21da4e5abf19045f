"""images/: what pictures.py says is what is there, and how pictures are taken out and remade."""

import io

import numpy as np
import pytest
from conftest import ROOT
from PIL import Image

from run_model_tools.errors import ToolError
from run_model_tools.files import sha256_of
from run_model_tools.pictures import originals
from run_model_tools.pictures.originals import PICTURES, Picture
from run_model_tools.setup import debian_package, pypi
from run_model_tools.setup.debian_package import DebianPackage

IMAGES = ROOT / "images"


@pytest.mark.parametrize("picture", PICTURES, ids=lambda p: p.file_name)
def test_the_committed_files_are_those_stated(picture):
    assert sha256_of(IMAGES / picture.file_name) == picture.sha256
    assert f"`{picture.file_name}`" in (IMAGES / "README.md").read_text(encoding="utf-8")
    if picture.short_side:
        with Image.open(IMAGES / picture.file_name) as image:
            assert min(image.size) == picture.short_side


def test_nothing_else_is_there_and_it_is_small():
    files = {path.name: path.stat().st_size for path in IMAGES.iterdir()}
    assert set(files) == {p.file_name for p in PICTURES} | {"README.md"}
    assert sum(name.endswith(".png") for name in files) >= 10
    assert sum(files.values()) < 3e6


def made(file_name, original, short_side=None, sha256="0" * 64):
    return Picture(file_name, sha256, originals.SCIKIT_IMAGE, "m", "1" * 64, "t", "a", "l",
                   short_side)


def png(pixels, **options):
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", **options)
    return buffer.getvalue()


def test_scaling_keeps_the_shape():
    pixels = np.random.default_rng(1).integers(0, 256, (60, 90, 3), dtype=np.uint8)
    small = originals.remake(made("p.png", b"", 20), png(pixels))
    assert small.shape == (20, 30, 3)
    expected = Image.fromarray(pixels).resize((30, 20), Image.Resampling.LANCZOS)
    assert np.array_equal(small, np.asarray(expected))


def test_another_compression_of_the_same_pixels_is_kept():
    pixels = np.random.default_rng(2).integers(0, 4, (20, 20, 3), dtype=np.uint8)
    original = png(pixels)
    committed = png(pixels, compress_level=1)
    picture = made("p.png", original)
    assert originals.file_bytes(picture, original, committed) == committed
    changed = pixels.copy()
    changed[3, 4, 1] ^= 1
    for other in (png(changed), b"no picture", None):
        remade = originals.file_bytes(picture, original, other)
        assert np.array_equal(np.asarray(Image.open(io.BytesIO(remade))), pixels)


def test_pictures_are_found_in_a_resource_file():
    def webp(content):
        return b"RIFF" + (4 + len(content)).to_bytes(4, "little") + b"WEBP" + content
    one, two = webp(b"VP8 first"), webp(b"VP8 second!")
    data = b"qres\0\0" + one + b"RIFF\x04\0\0\0WAVE" + two + webp(b"cut")[:-2]
    assert originals.webp_files(data) == [one, two]


def test_a_debian_package_that_cannot_be_had(tmp_path, monkeypatch):
    monkeypatch.setattr(debian_package, "DOWNLOADS", tmp_path)
    with pytest.raises(ToolError, match="snapshot.debian.org") as caught:
        debian_package.fetch(DebianPackage("no-such-package-here", "1-1", "n_1-1_all.deb", "0"))
    assert caught.value.code == 3
    (tmp_path / "n_1-1_all.deb").write_bytes(b"x")
    with pytest.raises(ToolError, match="not a Debian package"):
        debian_package.read_member(tmp_path / "n_1-1_all.deb", "usr/file")


def test_the_python_packages_are_pinned():
    for picture in PICTURES:
        if isinstance(picture.package, pypi.Package):
            assert "==" in picture.package.requirement and len(picture.package.sha256) == 64
