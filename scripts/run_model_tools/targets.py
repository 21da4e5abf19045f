"""Targets with short names, CPUs and GPUs, and what it takes to link for them."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from run_model_tools.environment import DATA_ROOT
from run_model_tools.errors import USAGE, WRONG_MACHINE, ToolError

DEVICE_KINDS = ("opencl", "vulkan", "cuda")
"""GPUs, by the first word of TVM's target strings."""


@dataclass(frozen=True)
class Target:
    """name: the artifact's folder; tvm: TVM's target string, or "native" (TVM finds it out)."""

    name: str
    tvm: str
    host: str | None = None
    """Of a GPU: TVM's target string of the CPU that starts its kernels."""
    needs: dict[str, Any] | None = field(default=None, hash=False)
    """Of a GPU: what the code takes for granted of it, beside what it is found to use."""

    @property
    def device(self) -> str | None:
        """The kind of GPU, "opencl", "vulkan" or "cuda"; None for a CPU."""
        kind = self.tvm.split(None, 1)[0] if self.tvm.strip() else ""
        return kind if kind in DEVICE_KINDS else None

    @property
    def cpu(self) -> str:
        """The target string of what runs on a CPU."""
        return self.host or self.tvm

    @property
    def is_native(self) -> bool:
        return self.tvm == "native"

    def compiler(self) -> str | None:
        """The C++ compiler that links for this target, or None for the machine's own.

        TVM's triples differ from the names of Debian's compilers in the CPU's name only.
        """
        triple = _option(self.cpu, "mtriple")
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


@dataclass(frozen=True)
class NamedDevice:
    """One entry of targets.json's devices: a kind of GPU."""

    name: str
    title: str
    tvm: str
    host: str
    """The name of the CPU target that its host code is for, unless another one is asked for."""
    needs: dict[str, Any] = field(default_factory=dict, hash=False)


@cache
def named_devices() -> dict[str, NamedDevice]:
    """The GPUs of targets.json by their names, in the file's order."""
    return {entry["name"]: NamedDevice(**entry) for entry in _read_list()["devices"]}


@cache
def aliases() -> dict[str, str]:
    """Older spellings of names, and the names that they stand for."""
    return _read_list()["aliases"]


def find_target(text: str, name: str | None = None) -> Target:
    """A target by its name in targets.json or an older spelling of that, or any TVM target string.

    A GPU may have a CPU behind it, as in "vulkan+raspi5_aarch64"; of a string of TVM's for one, as
    "opencl -max_num_threads=64", the CPU is that of the GPU's kind.  The folder is called `name`;
    else a named target gives its own, also where an older spelling asked for it, and a string gives
    its words: "llvm -mcpu=skylake" is llvm-mcpu-skylake.  Raises ToolError (2) for a GPU or a CPU
    behind it that the list does not have.
    """
    named = named_targets().get(aliases().get(text, text))
    if named is not None:
        return Target(name or named.name, named.tvm)
    words = text.split(None, 1)
    if words and (words[0] in DEVICE_KINDS or _is_device(words[0])):
        return _find_device(text, name)
    return Target(name or _folder_of(text), _with_vendor(text))


def _with_vendor(text: str) -> str:
    """A triple of 32-bit Arm as LLVM knows it: without a vendor it takes Linux for one and not for
    Arm's ABI, and gets what casts between int64 and floats return from the wrong registers."""
    return re.sub(r"(-mtriple=(?:arm|thumb)\w*)-linux-(?=\w*eabi)", r"\1-unknown-linux-", text)


def _is_device(word: str) -> bool:
    """Whether it is the name of a GPU, known or not."""
    return word.startswith(tuple(f"{kind}{mark}" for kind in DEVICE_KINDS for mark in "+-"))


def _find_device(text: str, name: str | None) -> Target:
    devices = named_devices()
    if " " in text.strip():
        kind = text.split(None, 1)[0]
        default = next(one for one in devices.values() if one.tvm.split()[0] == kind)
        return Target(name or _folder_of(text), text, named_targets()[default.host].tvm)
    device_name, _, cpu_name = text.partition("+")
    device = devices.get(device_name)
    if device is None:
        raise ToolError(USAGE, f"there is no GPU target '{device_name}': choose from "
                               f"{', '.join(devices)}, or write a target string of TVM.")
    cpu_name = aliases().get(cpu_name, cpu_name) or device.host
    cpu = named_targets().get(cpu_name)
    if cpu is None or cpu.machine is None:
        hosts = [one.name for one in named_targets().values() if one.machine is not None]
        raise ToolError(USAGE, f"'{cpu_name}' is no CPU for the host code of '{device_name}': "
                               f"choose from {', '.join(hosts)}.")
    own = device.name if cpu_name == device.host else f"{device.name}+{cpu_name}"
    return Target(name or own, device.tvm, cpu.tvm, device.needs)


def _folder_of(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.") or "target"


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
