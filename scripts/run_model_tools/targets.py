"""Targets with short names, and what it takes to link for them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass


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
        if re.match(r"arm(v[67][a-z]*)?-.*eabihf", triple):
            return "arm-linux-gnueabihf-g++"
        if re.match(r"arm(v[67][a-z]*)?-.*eabi", triple):
            return "arm-linux-gnueabi-g++"
        if triple.startswith("riscv64"):
            return "riscv64-linux-gnu-g++"
        if triple.startswith(("x86_64", "x86-64")):
            return None
        return f"{triple}-g++"


# TVM's x86 and Arm schedules read -mcpu, -mattr and -device; the number of cores is for the
# auto-scheduler and plays no part here.
NAMED = {
    "native": "native",
    "x86-64-v2": "llvm -mcpu=x86-64-v2",
    "x86-64-v3": "llvm -mcpu=x86-64-v3",
    "x86-64-v4": "llvm -mcpu=x86-64-v4",
    "aarch64": "llvm -device=arm_cpu -mtriple=aarch64-linux-gnu -mattr=+neon",
    "armhf": "llvm -device=arm_cpu -mtriple=armv7l-linux-gnueabihf -mfloat-abi=hard -mattr=+neon",
    "riscv64": "llvm -mtriple=riscv64-linux-gnu -mcpu=generic-rv64 -mattr=+m,+a,+f,+d,+c "
               "-mabi=lp64d",
}


def find_target(text: str, name: str | None = None) -> Target:
    """A target by its short name, or any TVM target string.

    The folder is called `name`, or after the string: "llvm -mcpu=skylake" is llvm-mcpu-skylake.
    """
    if text in NAMED:
        return Target(name or text, NAMED[text])
    slug = re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.")
    return Target(name or slug or "target", text)


def _option(target: str, name: str) -> str | None:
    for word in shlex.split(target):
        if word.startswith(f"-{name}="):
            return word.split("=", 1)[1]
    return None
