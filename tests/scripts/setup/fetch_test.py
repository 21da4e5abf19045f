"""Fetched files: pinned, checked, and explained when they cannot be had.  No network is used."""

import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import zipfile

import pytest
from conftest import ROOT

from run_model_tools.errors import ToolError
from run_model_tools.setup import pypi
from run_model_tools.setup.pypi import Package


@pytest.fixture
def downloads(tmp_path, monkeypatch):
    monkeypatch.setattr(pypi, "DOWNLOADS", tmp_path / "downloads")
    (tmp_path / "downloads").mkdir()
    # pip looks into an empty folder instead of an index.
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "empty"))
    return tmp_path / "downloads"


def package(data: bytes) -> Package:
    return Package("thing==1.0", "thing-1.0.tar.gz", hashlib.sha256(data).hexdigest())


def test_a_file_that_is_there_is_used(downloads):
    (downloads / "thing-1.0.tar.gz").write_bytes(b"right")
    assert pypi.fetch(package(b"right")) == downloads / "thing-1.0.tar.gz"


def test_another_file_of_that_name_is_not_used(downloads):
    (downloads / "thing-1.0.tar.gz").write_bytes(b"wrong")
    with pytest.raises(ToolError) as caught:
        pypi.fetch(package(b"right"))
    assert caught.value.code == 3
    assert "thing==1.0" in str(caught.value) and "network" in str(caught.value)


def test_pip_fetches_and_compares_the_hash(downloads, tmp_path):
    """A wheel out of a folder: taken with the right hash, refused with another."""
    wheel = tmp_path / "empty" / "thing-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("thing.py", "")
        archive.writestr("thing-1.0.dist-info/METADATA",
                         "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
        archive.writestr("thing-1.0.dist-info/WHEEL",
                         "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("thing-1.0.dist-info/RECORD", "")
    right = hashlib.sha256(wheel.read_bytes()).hexdigest()
    with pytest.raises(ToolError, match="THESE PACKAGES DO NOT MATCH THE HASHES"):
        pypi.fetch(Package("thing==1.0", wheel.name, "0" * 64))
    assert pypi.fetch(Package("thing==1.0", wheel.name, right)).read_bytes() == wheel.read_bytes()


def archives(tmp_path, data):
    tar, wheel = tmp_path / "a.tar.gz", tmp_path / "a.whl"
    with tarfile.open(tar, "w:gz") as archive:
        info = tarfile.TarInfo("pkg/file")
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("pkg/file", data)
    return tar, wheel


def test_members_are_compared_with_their_hash(tmp_path):
    digest = hashlib.sha256(b"data").hexdigest()
    for archive in archives(tmp_path, b"data"):
        assert pypi.read_member(archive, "pkg/file", digest) == b"data"
        with pytest.raises(ToolError, match="has the SHA-256") as caught:
            pypi.read_member(archive, "pkg/file", "0" * 64)
        assert caught.value.code == 6
        with pytest.raises(ToolError, match="no member pkg/other"):
            pypi.read_member(archive, "pkg/other", digest)


def test_labels_are_imagenets_thousand():
    lines = (ROOT / "labels" / "imagenet.txt").read_text(encoding="utf-8").split("\n")
    assert len(lines) == 1001 and lines[-1] == ""
    for index, name in ((0, "tench, Tinca tinca"), (1, "goldfish, Carassius auratus"),
                        (134, "crane"), (281, "tabby, tabby cat"), (282, "tiger cat"),
                        (517, "crane"), (967, "espresso"),
                        (999, "toilet tissue, toilet paper, bathroom tissue")):
        assert lines[index] == name
    assert all(line == line.strip() and line for line in lines[:-1])


def test_unreachable_index_is_explained(tmp_path):
    """fetch_zoo with nothing at hand and no index: a sentence, exit code 3, no traceback."""
    repository = tmp_path / "repository"
    shutil.copytree(ROOT / "scripts", repository / "scripts")
    (repository / "artifacts").mkdir()
    for name in ("zoo.json", "tasks.json"):
        shutil.copy(ROOT / "artifacts" / name, repository / "artifacts")
    (repository / "build").mkdir()
    (repository / "build" / "venv").symlink_to(ROOT / "build" / "venv")
    environment = {k: v for k, v in os.environ.items() if k != "RUN_MODEL_ZOO_CACHE"}
    result = subprocess.run(
        [str(repository / "scripts" / "fetch_zoo"), "squeezenet1_1"], capture_output=True,
        text=True,
        check=False, env={**environment, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)})
    assert result.returncode == 3, result.stderr
    assert "Python package index" in result.stdout and "Traceback" not in result.stderr
    assert "squeezenet1_1 could not be had" in result.stderr
    assert not list((repository / "build" / "zoo").glob("*.onnx"))
