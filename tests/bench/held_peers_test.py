"""Peers held to AVX2: libraries that see a CPU without AVX-512, and what the kernel says of its
use."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from peers.held import holding
from peers.held.avx512 import used_by
from peers.held.libraries import build_preload, copy_patched, file_offsets, patched

# What `objdump -h` and `objdump -d --no-show-raw-insn` print, without most of it.
_HEADERS = """
libnet.so:     file format elf64-x86-64

Sections:
Idx Name          Size      VMA               LMA               File off  Algn
 10 .init         00000017  0000000000401000  0000000000401000  00001000  2**2
                  CONTENTS, ALLOC, LOAD, READONLY, CODE
 11 .text         00000100  0000000000412340  0000000000412340  00002340  2**4
                  CONTENTS, ALLOC, LOAD, READONLY, CODE
"""
_CODE = """
0000000000412340 <asks>:
  412340:\tpush   %rbx
  412341:\tcpuid
  412343:\tmov    $0x412350 <cpuid>,%eax
  41243e:\tcpuid
"""

# Asks for a feature word: leaf, sub-leaf, and which of EAX, EBX, ECX and EDX.
_LIBRARY = """
#include <cpuid.h>
unsigned ask(unsigned leaf, unsigned sub, int which) {
  unsigned r[4];
  __cpuid_count(leaf, sub, r[0], r[1], r[2], r[3]);
  return r[which];
}
void trap(void) { __builtin_trap(); }
"""
_ASK = """
import ctypes, json, sys
library = ctypes.CDLL(sys.argv[1])
library.ask.restype = ctypes.c_uint
print(json.dumps([[library.ask(leaf, sub, which) for which in range(4)]
                  for leaf, sub in ((0, 0), (1, 0), (7, 0), (7, 1), (0x24, 0))]), flush=True)
if sys.argv[2] == "trap":
    library.trap()
"""

needs_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="CPUID is of x86-64")


def test_offsets_are_those_in_the_file():
    assert file_offsets(_HEADERS, _CODE) == [0x2341, 0x243e]


def test_only_cpuid_is_replaced():
    assert patched(b"\x0f\xa2\x90\x0f\xa2", [3]) == b"\x0f\xa2\x90\x06\x06"
    with pytest.raises(ValueError, match="no CPUID instruction at offset 1"):
        patched(b"\x0f\xa2\x90", [1])


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """A library that asks CPUID, its copy that has been changed, and what is preloaded."""
    folder = tmp_path_factory.mktemp("held")
    package = folder / "installed" / "asking"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (folder / "asking.c").write_text(_LIBRARY)
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", package / "asking.so",
                    folder / "asking.c"], check=True)
    copies = folder / "copies"
    copies.mkdir()
    assert copy_patched([package], copies) == 1
    return package / "asking.so", copies / "asking" / "asking.so", build_preload(folder)


def ask(library: Path, preload: Path | None, end: str = "") -> subprocess.CompletedProcess:
    environment = os.environ | ({"LD_PRELOAD": str(preload)} if preload else {})
    return subprocess.run([sys.executable, "-c", _ASK, library, end], env=environment,
                          capture_output=True, text=True, check=False)


@needs_x86
def test_the_copy_sees_the_cpu_without_avx512(libraries):
    installed, copy, preload = libraries
    real = json.loads(ask(installed, None).stdout)
    seen = json.loads(ask(copy, preload).stdout)
    # AVX-512 F, DQ, IFMA, PF, ER, CD, BW and VL are bits of EBX (Intel's manual, CPUID, leaf 7).
    bits = sum(1 << bit for bit in (16, 17, 21, 26, 27, 28, 30, 31))
    assert seen[2][1] == real[2][1] & ~bits
    assert seen[2][2] & (1 << 11) == 0  # VNNI with 512 bits
    assert seen[2][1] & (1 << 5) == real[2][1] & (1 << 5)  # AVX2 stays as it is
    assert seen[0] == real[0] and seen[1][0] == real[1][0] and seen[1][2:] == real[1][2:]
    assert seen[4] == [0, 0, 0, 0]


@needs_x86
def test_the_installed_library_stays_as_it_is(libraries):
    installed, copy, _ = libraries
    assert b"\x0f\xa2" in installed.read_bytes()
    assert installed.stat().st_ino != copy.stat().st_ino
    assert ask(copy, None).returncode == -4  # SIGILL: without the answering library it cannot run


@needs_x86
def test_any_other_invalid_instruction_ends_the_process(libraries):
    _, copy, preload = libraries
    done = ask(copy, preload, "trap")
    assert done.returncode == -4 and done.stdout


def test_a_switch_needs_no_libraries(tmp_path):
    held = holding.hold("openvino", tmp_path, "1", tmp_path / "work")
    assert held.environment["ONEDNN_MAX_CPU_ISA"] == "AVX2" and "LD_PRELOAD" not in held.environment
    assert not (tmp_path / "work").exists()


@needs_x86
def test_libraries_are_changed_once(libraries, tmp_path, monkeypatch):
    packages = libraries[0].parent.parent
    monkeypatch.setitem(holding.PACKAGES, "ncnn", ("asking",))
    held = holding.hold("ncnn", packages, "1", tmp_path)
    assert "its 1 CPUID instructions" in held.how
    preload = Path(held.environment["LD_PRELOAD"])
    made = preload.stat().st_mtime_ns
    assert holding.hold("ncnn", packages, "1", tmp_path) == held
    assert preload.stat().st_mtime_ns == made


def test_a_peer_without_cpuid_cannot_be_held(tmp_path):
    (tmp_path / "ncnn").mkdir()
    for _ in range(2):  # nor the second time, when nothing is to be made
        with pytest.raises(holding.CannotHold, match="no CPUID instruction"):
            holding.hold("ncnn", tmp_path, "1", tmp_path / "work")


@pytest.mark.parametrize(("ages", "used"), [
    (["-1", "-1"], False), (["-1", "900"], True), (["5000", "-1"], False), (["0"], True),
    ([], None)])
def test_what_the_kernel_tells(tmp_path, ages, used):
    for number, age in enumerate(ages):
        task = tmp_path / "7" / "task" / str(number)
        task.mkdir(parents=True)
        (task / "arch_status").write_text(f"AVX512_elapsed_ms:\t{age}\n", encoding="ascii")
    assert used_by(7, 2.0, tmp_path) is used
