"""Code of kernels that were compiled before, LLVM IR and object files, on disk, found by all that
it was made of.

Several processes may use the folder at once: entries come into place by renaming.  Each begins with
the checksum of the rest, and one that does not fit is passed over and made again.
"""

from __future__ import annotations

import functools
import hashlib
import os
import zlib
from pathlib import Path

from run_model_tools.environment import BUILD_DIR
from run_model_tools.files import write_atomically

FOLDER_VARIABLE = "RUN_MODEL_KERNEL_CACHE"
"""Names another folder than the build's; empty or "off", as run_model has it, nothing is kept."""

MOST_BYTES = 256 << 20
_DIGEST_BYTES = 32


def folder() -> Path | None:
    """Where entries are kept, if they are."""
    named = os.environ.get(FOLDER_VARIABLE)
    if named is None:
        return BUILD_DIR / "cache" / "kernels"
    return None if named in ("", "off") else Path(named)


def key_of(compiler: str, arguments: list[str], source: str, headers: Path) -> str:
    """The name of an entry: equal ones have equal code, whichever folder it lies in."""
    program = os.stat(os.path.realpath(compiler))
    parts = [os.path.realpath(compiler), program.st_size, program.st_mtime_ns,
             [a for a in arguments if str(headers) not in a], source, _digest_of(headers)]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def find(key: str) -> bytes | None:
    """The code of an entry, or None where there is none that is whole."""
    place = folder()
    if place is None:
        return None
    path = place / key
    try:
        data = path.read_bytes()
        if hashlib.sha256(data[_DIGEST_BYTES:]).digest() != data[:_DIGEST_BYTES]:
            return None
        os.utime(path)  # what was not used for the longest time is dropped first
        return zlib.decompress(data[_DIGEST_BYTES:])
    except (OSError, zlib.error):
        return None


def keep(key: str, code: bytes) -> None:
    """Adds an entry; does nothing where the folder cannot be written to."""
    place = folder()
    if place is None:
        return
    data = zlib.compress(code, 1)
    try:
        write_atomically(place / key, hashlib.sha256(data).digest() + data)
        _bound(place)
    except OSError:
        return


@functools.cache
def _bound(place: Path) -> None:
    """Drops the oldest entries beyond MOST_BYTES; once a process, which adds a few MB at most."""
    entries = []
    for path in place.iterdir():
        try:
            entries.append((path.stat().st_mtime, path.stat().st_size, path))
        except OSError:
            continue  # another process has just dropped it
    total = 0
    for _, size, path in sorted(entries, reverse=True):
        total += size
        if total > MOST_BYTES:
            path.unlink(missing_ok=True)


@functools.cache
def _digest_of(headers: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(p for p in headers.iterdir() if p.is_file()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
