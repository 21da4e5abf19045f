"""Files that are either whole or not there."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Collection, Iterator


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, as 64 hexadecimal digits."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def write_atomically(path: Path, data: bytes) -> None:
    """Writes `data` under another name in the same folder, then renames it into place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def copy_atomically(source: Path, path: Path) -> None:
    """Copies a file into place through a rename; the mode goes with it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        shutil.copyfile(source, temporary)
        shutil.copymode(source, temporary)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


@contextmanager
def directory_in_the_making(path: Path, replaced: Collection[str]) -> Iterator[Path]:
    """Gives an empty folder beside `path` that takes its place when the body ends well.

    Of an older `path`, the files called as in `replaced` go and all others are kept.  If the body
    fails, `path` stays as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.new."))
    os.chmod(making, 0o755)
    old = Path(f"{making}.old")
    try:
        yield making
        if path.exists():
            for entry in path.iterdir():
                if entry.name not in replaced and not (making / entry.name).exists():
                    os.replace(entry, making / entry.name)
            os.replace(path, old)
        os.replace(making, path)
    finally:
        shutil.rmtree(making, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds the lock file `path`, made where it is missing; waits for who else holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
