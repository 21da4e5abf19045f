"""Targets with short names, and what it takes to link for them."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from functools import cache
from typing import Any

from run_model_tools.environment import DATA_ROOT
from run_model_tools.errors import WRONG_MACHINE, ToolError


@dataclass(frozen=True)
class Target:
    """name: the artifact's folder; tvm: TVM's target string, or "native" (TVM finds it out)."""

    name: str
    tvm: str

    @property
    def is_native(self) -> bool:
        return self.tvm == "native"

    def compiler(self) -> str | None:
        """The C++ compiler that links for this target, or None for the machine's own.

        TVM's triples differ from the names of Debian's compilers in the CPU's name only.
        """
        triple = _option(self.tvm, "mtriple")
        if triple is None:
            return None
        if triple.startswith("aarch64"):
            return "aarch64-linux-gnu-g++"
        if re.match(r"arm(v[678][a-z]*)?-.*eabihf", triple):
            return "arm-linux-gnueabihf-g++"
        if re.match(r"arm(v[678][a-z]*)?-.*eabi", triple):
            return "arm-linux-gnueabi-g++"
        if triple.startswith("riscv64"):
            return "riscv64-linux-gnu-g++"
        if triple.startswith(("x86_64", "x86-64")):
            return None
        return f"{triple}-g++"


# The one list of targets: the programs, the tests and the documentation read it too.
TARGETS_FILE = DATA_ROOT / "artifacts" / "targets.json"
_SCHEMA_VERSION = 1


@dataclass(frozen=True)
class NamedTarget:
    """One entry of targets.json: a kind of board, and all that it takes to serve it from here."""

    name: str
    title: str
    machine: str | None
    """As `uname -m` says; None where that is the compiling machine's or the board's business."""
    tvm: str
    preset: str
    """The CMake preset that builds the programs."""
    debian: str | None
    """Debian's name of the architecture."""
    compiler: str | None
    """What links the library; None: the machine's own compiler."""
    emulator: tuple[str, ...]
    """A command that runs this target's programs on another machine; empty: there is none."""
    features: tuple[str, ...]
    """The CPU features that the code needs, by LLVM's names (cpu_features.py)."""


@cache
def named_targets() -> dict[str, NamedTarget]:
    """The targets of targets.json by their names, in the file's order."""
    found = {}
    for entry in _read_list()["targets"]:
        members: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value
                                   for key, value in entry.items()}
        found[entry["name"]] = NamedTarget(**members)
    return found


@cache
def aliases() -> dict[str, str]:
    """Older spellings of names, and the names that they stand for."""
    return _read_list()["aliases"]


def find_target(text: str, name: str | None = None) -> Target:
    """A target by its name in targets.json or an older spelling of that, or any TVM target string.

    The folder is called `name`; else a named target gives its own, also where an older spelling
    asked for it, and a string gives its words: "llvm -mcpu=skylake" is llvm-mcpu-skylake.
    """
    named = named_targets().get(aliases().get(text, text))
    if named is not None:
        return Target(name or named.name, named.tvm)
    slug = re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.")
    return Target(name or slug or "target", text)


@cache
def _read_list() -> dict[str, Any]:
    contents = json.loads(TARGETS_FILE.read_text(encoding="utf-8"))
    if contents["schema_version"] != _SCHEMA_VERSION:
        raise ToolError(WRONG_MACHINE, f"{TARGETS_FILE} has schema_version "
                                       f"{contents['schema_version']}, and these scripts know "
                                       f"{_SCHEMA_VERSION}: use the scripts that came with it.")
    return contents


def _option(target: str, name: str) -> str | None:
    for word in shlex.split(target):
        if word.startswith(f"-{name}="):
            return word.split("=", 1)[1]
    return None
