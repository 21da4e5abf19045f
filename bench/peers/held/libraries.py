"""Copies of a peer's libraries that ask cpuid_without_avx512.c instead of the CPU what it can do.

Most runtimes choose their kernels by the CPUID instruction and have no switch that would hold them
to AVX2. In the copies each CPUID is replaced by two bytes that no program has otherwise: PUSH ES
twice, which is an invalid opcode in 64-bit mode. The preloaded library answers the signal.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).resolve().parent
CPUID = b"\x0f\xa2"
REPLACED = b"\x06\x06"

_HEADER = re.compile(r"^\s*\d+ \.\S+\s+([0-9a-f]+)\s+([0-9a-f]+)\s+[0-9a-f]+\s+([0-9a-f]+)\s", re.M)
_INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s+cpuid\s*$", re.M)


def file_offsets(headers: str, disassembly: str) -> list[int]:
    """Where in the file the CPUID instructions lie.

    headers, disassembly: what `objdump -h` and `objdump -d --no-show-raw-insn` print.
    """
    sections = [tuple(int(number, 16) for number in match) for match in _HEADER.findall(headers)]
    found = []
    for address in (int(text, 16) for text in _INSTRUCTION.findall(disassembly)):
        size, start, offset = next(s for s in sections if s[1] <= address < s[1] + s[0])
        found.append(address - start + offset)
    return found


def patched(content: bytes, offsets: Iterable[int]) -> bytes:
    """The content with the CPUID instructions at these offsets replaced."""
    result = bytearray(content)
    for offset in offsets:
        if content[offset:offset + 2] != CPUID:
            raise ValueError(f"there is no CPUID instruction at offset {offset}")
        result[offset:offset + 2] = REPLACED
    return bytes(result)


def copy_patched(package_roots: Iterable[Path], destination: Path) -> int:
    """Copies packages below `destination`, libraries patched; how many instructions there were."""
    count = 0
    for root in package_roots:
        if root.is_dir():
            shutil.copytree(root, destination / root.name, copy_function=os.link,
                            ignore=shutil.ignore_patterns("__pycache__"))
        else:
            os.link(root, destination / root.name)
    for library in sorted(destination.rglob("*.so*")):
        content = library.read_bytes()
        if CPUID not in content:
            continue
        offsets = file_offsets(_objdump("-h", library),
                               _objdump("-d", "--no-show-raw-insn", library))
        if offsets:
            library.unlink()  # a link to the installed one
            library.write_bytes(patched(content, offsets))
            count += len(offsets)
    return count


def build_preload(folder: Path) -> Path:
    """The library that answers, compiled."""
    library = folder / "cpuid_without_avx512.so"
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-o", library,
                    HERE / "cpuid_without_avx512.c"], check=True)
    return library


def _objdump(*arguments: object) -> str:
    return subprocess.run(["objdump", *map(str, arguments)], capture_output=True, text=True,
                          check=True).stdout
