"""Files over HTTP: resumed where a download broke off, and checked before they have their name."""

from __future__ import annotations

import http.client
import os
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from run_model_tools.errors import MISMATCH, MISSING_FILE, ToolError
from run_model_tools.files import sha256_of

TIMEOUT = 10.0
"""Seconds without an answer or a byte until a server counts as unreachable."""
_BLOCK = 1 << 16
# Where a manifest does not state a size, so that a wrong address cannot fill the disk.
_LARGEST = 1 << 30


class Unreachable(ToolError):
    """The server did not answer, or not with the file."""


def download(url: str, path: Path, sha256: str, size: int | None = None,
             timeout: float = TIMEOUT) -> None:
    """Puts the file at `path`; what was fetched of it before (`path`.part) is gone on with.

    Args:
      sha256: the hexadecimal digest, or its first digits where no more is known.
      size: in bytes, where known.
    Raises:
      Unreachable (3): if it cannot be had now; the part stays for the next time.
      ToolError (6): if the file is another one; the part is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    limit = size or _LARGEST
    if part.exists() and part.stat().st_size > limit:
        part.unlink()
    if not (size and part.exists() and part.stat().st_size == size):
        _fetch(url, part, limit, timeout)
    found = sha256_of(part)
    if not found.startswith(sha256):
        part.unlink()
        raise ToolError(MISMATCH, f"{url} has the SHA-256 {found}, where {sha256} is expected: it "
                                  "is not the file of the manifest, and was not kept.")
    os.replace(part, path)


def _fetch(url: str, part: Path, limit: int, timeout: float) -> None:
    done = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "run_model-fetch_zoo"})
    if done:
        request.add_header("Range", f"bytes={done}-")
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            given = answer.headers.get("Content-Range") or ""
            resumed = answer.status == 206 and given.startswith(f"bytes {done}-")
            _store(answer, part, done if resumed else 0, limit)
    except urllib.error.HTTPError as error:
        if error.code == 416 and done:
            # There is nothing behind what is here already: begin anew, unless that was all.
            part.unlink()
            _fetch(url, part, limit, timeout)
            return
        raise Unreachable(MISSING_FILE, f"{url} was answered with HTTP {error.code} "
                                        f"({error.reason})") from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise Unreachable(MISSING_FILE, f"{url} could not be fetched ({reason})") from None


def _store(answer: http.client.HTTPResponse, part: Path, done: int, limit: int) -> None:
    expected = answer.headers.get("Content-Length")
    total = done + int(expected) if expected and expected.isdigit() else None
    shown = _Progress(part.name.removesuffix(".part"), total)
    with open(part, "ab" if done else "wb") as file:
        while block := answer.read(_BLOCK):
            done += len(block)
            if done > limit:
                raise OSError(f"it is longer than {limit} bytes")
            file.write(block)
            shown.update(done)
    shown.finish(done)
    if total is not None and done < total:
        raise OSError(f"the connection broke off after {done} of {total} bytes")


class _Progress:
    """One line on a terminal, nothing elsewhere."""

    def __init__(self, name: str, total: int | None) -> None:
        self._name, self._total = name, total
        self._shown = 0.0
        self._active = sys.stderr.isatty()

    def update(self, done: int) -> None:
        now = time.monotonic()
        if self._active and now - self._shown >= 0.2:
            self._shown = now
            share = f" of {self._total / 1e6:.1f}" if self._total else ""
            sys.stderr.write(f"\r{self._name}: {done / 1e6:.1f}{share} MB\033[K")
            sys.stderr.flush()

    def finish(self, done: int) -> None:
        if self._active:
            sys.stderr.write(f"\r{self._name}: {done / 1e6:.1f} MB\033[K\n")
