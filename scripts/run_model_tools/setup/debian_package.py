"""Single files out of pinned Debian packages: fetched by apt-get, checked, never installed."""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from run_model_tools.errors import MISMATCH, MISSING_FILE, ToolError
from run_model_tools.files import copy_atomically, sha256_of
from run_model_tools.setup.pypi import DOWNLOADS


@dataclass(frozen=True)
class DebianPackage:
    """One version of a package, with the SHA-256 of its .deb."""

    name: str
    version: str
    file_name: str
    sha256: str

    @property
    def requirement(self) -> str:
        """As apt-get takes it."""
        return f"{self.name}={self.version}"


def fetch(package: DebianPackage) -> Path:
    """The .deb in build/downloads, downloaded unless it is there; ToolError (3, 6) if it cannot."""
    path = DOWNLOADS / package.file_name
    if path.exists() and sha256_of(path) == package.sha256:
        return path
    DOWNLOADS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=DOWNLOADS) as folder:
        result = subprocess.run(["apt-get", "download", package.requirement], cwd=folder,
                                capture_output=True, text=True, check=False)
        files = list(Path(folder).glob("*.deb"))
        if result.returncode != 0 or len(files) != 1:
            reason = (result.stderr.strip().splitlines() or ["no message"])[-1]
            raise ToolError(MISSING_FILE, (
                f"Debian's package {package.requirement} could not be fetched: apt-get says "
                f"'{reason}'; run it on Debian 12 after apt-get update, or put the file "
                f"{package.file_name} (snapshot.debian.org has every version) into {DOWNLOADS}."))
        if sha256_of(files[0]) != package.sha256:
            raise ToolError(MISMATCH, f"{package.requirement} as fetched is not the pinned file: "
                                      "its SHA-256 differs.")
        copy_atomically(files[0], path)
    return path


def read_member(archive: Path, member: str) -> bytes:
    """One file of a .deb by its path, without the leading slash."""
    listing = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(archive)], capture_output=True,
                             check=False)
    if listing.returncode != 0:
        raise ToolError(MISMATCH, f"{archive} is not a Debian package.")
    with tarfile.open(fileobj=io.BytesIO(listing.stdout)) as tar:
        try:
            extracted = tar.extractfile(f"./{member}")
        except KeyError:
            extracted = None
        if extracted is None:
            raise ToolError(MISMATCH, f"{archive} has no file {member}.")
        return extracted.read()
