"""The files of an artifact, and what metadata.json says about them."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import xxhash

from run_model_tools.compiling import c_target
from run_model_tools.compiling.graph_file import Entry
from run_model_tools.errors import MALFORMED_FILE, ToolError
from run_model_tools.files import sha256_of
from run_model_tools.source_model import Scale

SCHEMA_VERSION = 1
LIBRARY, GRAPH, PARAMS = c_target.LIBRARY, "model.json", "model.params"
SINGLE_FILE = "model_single.so"
METADATA = "metadata.json"
FORMS = "forms"
# What a new artifact takes the place of.
ALL_FILES = (LIBRARY, GRAPH, PARAMS, SINGLE_FILE, METADATA, c_target.SOURCE, c_target.MAKEFILE,
             c_target.HEADERS, FORMS)

# e_machine of an ELF header -> the name that uname -m gives (of 32-bit Arm, the usual one).
_MACHINES = {3: "i386", 40: "armv7l", 62: "x86_64", 183: "aarch64", 243: "riscv64"}


def library_machine(path: Path) -> str:
    """The CPU that a shared library is for, out of its ELF header."""
    with open(path, "rb") as file:
        header = file.read(20)
    if len(header) < 20 or header[:4] != b"\x7fELF":
        raise ToolError(MALFORMED_FILE, f"{path} is not a shared library (ELF).")
    machine = struct.unpack("<H" if header[5] == 1 else ">H", header[18:20])[0]
    return _MACHINES.get(machine, f"elf-machine-{machine}")


def guess_layout(shape: tuple[int, ...]) -> str | None:
    """The layout of a picture's shape, None where none is certain.

    Of four axes either the second or the last one is 1 or 3.  Of three, which sequences have too,
    the first or the last one is 3, and both others are longer (or open, -1).
    """
    if len(shape) == 3:
        whole = [extent > 3 or extent < 0 for extent in shape]
        return ("CHW" if shape[0] == 3 and all(whole[1:]) else
                "HWC" if shape[2] == 3 and all(whole[:2]) else None)
    if len(shape) != 4:
        return None
    first, last = shape[1] in (1, 3), shape[3] in (1, 3)
    return "NCHW" if first and not last else "NHWC" if last and not first else None


def describe_file(path: Path) -> dict[str, Any]:
    """Size and checksums: SHA-256 to publish, xxh3_64 to check quickly when loading."""
    digest = xxhash.xxh3_64()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return {"bytes": path.stat().st_size, "sha256": sha256_of(path), "xxh3_64": digest.hexdigest()}


def describe_input(entry: Entry, layouts: dict[str, str],
                   scale: Scale | None = None) -> dict[str, Any]:
    """An input of metadata.json; `layouts` are those that the user stated."""
    described = describe_output(entry, scale)
    layout = layouts.get(entry.name) or guess_layout(entry.shape)
    if layout:
        described["layout"] = layout
    return described


def describe_output(entry: Entry, scale: Scale | None = None) -> dict[str, Any]:
    """An output of metadata.json."""
    described: dict[str, Any] = {"name": entry.name, "shape": list(entry.shape),
                                 "dtype": entry.dtype}
    if scale is not None:
        described |= {"scale": scale.scale, "zero_point": scale.zero_point}
    return described


def files_match(folder: Path, metadata: dict[str, Any]) -> bool:
    """Whether every file that the metadata lists is there with its size and SHA-256."""
    for name, described in metadata.get("files", {}).items():
        path = folder / name
        if not path.is_file() or path.stat().st_size != described.get("bytes"):
            return False
        if sha256_of(path) != described.get("sha256"):
            return False
    return bool(metadata.get("files"))


def read_metadata(path: Path) -> dict[str, Any] | None:
    """metadata.json, or None where there is none that can be read."""
    try:
        value = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None
