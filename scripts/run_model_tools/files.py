"""Files as the tools write them: whole or not there, and JSON: read, and laid out to be read."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from run_model_tools.errors import MALFORMED_FILE, MISMATCH, MISSING_FILE, ToolError


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, as 64 hexadecimal digits."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def visible(folder: Path) -> list[Path]:
    """What a folder holds, by name, without hidden files, as a Mac packs beside others
    (._cat.jpg)."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


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


_WIDTH = 100


def read_lines(path: Path) -> list[str]:
    """A text file's lines, as a list of labels has them: of UTF-8, ended by \\n or \\r\\n.

    Raises ToolError where it cannot be read (3) or is no text (4).
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ToolError(MISSING_FILE, f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ToolError(MALFORMED_FILE, f"{path} is not UTF-8: save it as such.") from None
    return text.replace("\r\n", "\n").rstrip("\n").split("\n")


def read_json(path: Path, schema_version: int | None = None) -> Any:
    """A file's JSON value: of an object with that schema_version, if one is given.

    Raises ToolError where it cannot be read (3) or is something else (4).
    """
    try:
        root = json.loads(path.read_bytes())
    except OSError as error:
        raise ToolError(MISSING_FILE, f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise ToolError(MALFORMED_FILE, f"{path} is not JSON: {error}.") from None
    if schema_version is not None:
        found = root.get("schema_version") if isinstance(root, dict) else None
        if found != schema_version:
            raise ToolError(MALFORMED_FILE, f"{path} has the schema_version {found}, where "
                                            f"{schema_version} is expected.")
    return root


def json_text(value: Any) -> str:
    """`value` as the text of a file: indented, with short lists and objects on one line."""
    return _format(value, 0) + "\n"


def _format(value: Any, depth: int) -> str:
    flat = json.dumps(value, ensure_ascii=False)
    inner, outer = "  " * (depth + 1), "  " * depth
    nested = isinstance(value, (dict, list)) and bool(value)
    # The outermost object is always spread; an inner one only where a line cannot hold it, or
    # where it has members of its own to show.
    if not nested or (depth > 0 and len(flat) + len(inner) + 16 <= _WIDTH
                      and not _has_objects(value)):
        return flat
    if isinstance(value, dict):
        items = [f"{inner}{json.dumps(key, ensure_ascii=False)}: {_format(item, depth + 1)}"
                 for key, item in value.items()]
        return "{\n" + ",\n".join(items) + "\n" + outer + "}"
    items = [inner + _format(item, depth + 1) for item in value]
    return "[\n" + ",\n".join(items) + "\n" + outer + "]"


def _has_objects(value: Any) -> bool:
    items = value.values() if isinstance(value, dict) else value
    return any(isinstance(item, dict) for item in items)


def put_or_compare(folder: Path, files: dict[str, bytes], check: bool) -> int:
    """Writes the files that differ, or with `check` raises ToolError (6) naming them."""
    differing = [name for name, data in files.items()
                 if not (folder / name).is_file() or (folder / name).read_bytes() != data]
    if check and differing:
        raise ToolError(MISMATCH, f"in {folder}, {', '.join(differing)} differ from what this "
                                  "program makes: run it without --check.")
    for name in differing:
        write_atomically(folder / name, files[name])
        print(f"wrote {folder / name}")
    if not differing:
        print(f"{folder}: {len(files)} file(s) as they should be.")
    return 0


@functools.cache
def sources_hash(*folders: Path) -> str:
    """A hash of all sources and their data below the folders."""
    files = [path for folder in folders for path in sorted(folder.rglob("*"))
             if path.suffix in (".h", ".in", ".py", ".json")]
    parts = [[path.name, sha256_of(path)] for path in files]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
